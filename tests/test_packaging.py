"""The distributions: what is in the wheel and in the source distribution, and the wheel with nothing else installed.

The wheel is built from the source distribution, as installers do.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

import oddsengine
from oddsengine._cache import PREBUILT

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "oddsengine": "oddsengine",
    "service/oddsengine_service": "oddsengine_service",
}  # folders, and what they are installed as
ENTRY = "oddsengine_cli.py"
OTHERS = ("tests", "docs", "examples", "notebooks", "benchmarks", "scripts", ".ci", "deploy", "conda")
FILES = (
    ".dockerignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md",
    "constraints.txt", ENTRY, "pyproject.toml", "setup.py",
)  # fmt: skip
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
TIMEOUT_S = 300


def files(*folders: str) -> set[str]:
    """Files of some folders, as a checkout has them."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints", "kernels"} & set(path.parts)
    }


def build(kind: str, source: Path, out: Path) -> Path:
    """Build a distribution without kernels: `.ci/smoke` tries a wheel that has them."""
    code = f"import sys; from setuptools.build_meta import build_{kind}; print(build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=source, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False, env={**os.environ, "ODDSENGINE_BUILD_KERNELS": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    pytest.importorskip("setuptools", minversion="77", reason="building needs setuptools 77: make setup installs it")
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("out")
    for name in sorted(files(*PACKAGES, *OTHERS) | set(FILES)):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    caches = (
        "oddsengine/__pycache__/a.cpython-311.pyc",
        "oddsengine/kernels/k.nbc",
        "oddsengine/kernels/kernels.json",
        "service/oddsengine_service/b.pyc",
        "tests/__pycache__/c.nbc",
    )
    for name in caches:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).touch()
    return build("sdist", tree, out)


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    place = tmp_path_factory.mktemp("source")
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    (tree,) = place.iterdir()
    left = tree / "build" / "lib" / "oddsengine" / "left_by_an_earlier_build.py"
    left.parent.mkdir(parents=True)
    left.touch()
    return build("wheel", tree, place)


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_every_file_of_both_packages_and_no_other(wheel: Path) -> None:
    expected = {f"{name}{path.removeprefix(folder)}" for folder, name in PACKAGES.items() for path in files(folder)}
    assert contents(wheel) == expected | {ENTRY}
    assert {"oddsengine_service/page/index.html", "oddsengine/catalog/books.toml", "oddsengine/py.typed"} <= expected


def test_the_wheel_installs_two_packages_and_the_entry_point(wheel: Path) -> None:
    assert {name.partition("/")[0] for name in contents(wheel)} == {*PACKAGES.values(), ENTRY}


def test_the_source_distribution_has_what_a_checkout_has(source: Path) -> None:
    with tarfile.open(source) as archive:
        found = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert files(*PACKAGES, *OTHERS) | set(FILES) <= found
    assert not [name for name in found if re.search(r"__pycache__|\.py[cod]$|\.nb[ci]$", name)]
    made = {name for name in found if name.startswith("oddsengine.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    hidden = {".gitignore", ".pre-commit-config.yaml"}
    assert found <= files(*PACKAGES, *OTHERS) | set(FILES) | made | hidden


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        said = Parser().parsestr(archive.read(name).decode())
    plain = [need for need in said.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert plain == PROJECT["dependencies"]
    assert said["Version"] == oddsengine.__version__
    assert said["License-Expression"] == "MIT"
    assert said["Requires-Python"] == ">=3.11"
    versions = {line.rpartition(" ")[2] for line in said.get_all("Classifier", []) if ":: 3." in line}
    assert versions == {"3.11", "3.12", "3.13"}


def test_the_extra_pins_the_compiler_that_wheels_are_built_with() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line.startswith(("llvmlite==", "numba=="))]
    assert PROJECT["optional-dependencies"]["kernels"] == pinned


CONDA = {"tzdata": "python-tzdata"}  # packages that have another name there


def test_the_conda_recipe_says_what_the_project_says() -> None:
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    context = yaml.safe_load(text)["context"]
    recipe = yaml.safe_load(re.sub(r"\$\{\{ (version|python_min) \}\}", lambda found: context[found[1]], text))
    needs, python = recipe["requirements"], PROJECT["requires-python"]
    split = [re.fullmatch(r"([\w-]+)(.*)", need) for need in PROJECT["dependencies"]]
    own = [f"{CONDA.get(name, name)} {bound}".strip() for name, bound in (need.groups() for need in split if need)]
    assert needs["run"] == [f"python {python}", *own]
    tools = [need.replace(">=", " >=") for need in SETTINGS["build-system"]["requires"]]
    assert needs["host"] == [f"python {python.removeprefix('>=')}.*", "pip", *tools]
    package, build = recipe["package"], recipe["build"]
    assert (package["name"], package["version"]) == (PROJECT["name"], oddsengine.__version__)
    assert recipe["source"]["path"] == f"../dist/oddsengine-{oddsengine.__version__}.tar.gz"  # what `make dist` builds
    assert (build["noarch"], build["script"]["env"]) == ("python", {"ODDSENGINE_BUILD_KERNELS": "0"})
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert build["python"]["entry_points"] == scripts
    about = recipe["about"]
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])
    assert [about["license_file"]] == PROJECT["license-files"]


def test_what_users_install_together_is_in_the_extra_for_all() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) == {"oddsengine", *extras} - {"all", "dev", "test-all", "docs", "bench"}


# ---- where only the wheel and its dependencies are ----


def needed(names: list[str]) -> Iterator[importlib.metadata.Distribution]:
    """Distributions that some requirements install, without extras."""
    waiting, seen = list(names), set()
    while waiting:
        name = re.split(r"[^\w.-]", waiting.pop(), maxsplit=1)[0]
        if name not in seen:
            seen.add(name)
            distribution = importlib.metadata.distribution(name)
            yield distribution
            waiting += [need for need in distribution.requires or () if "extra ==" not in need]


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked beside links to its dependencies."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for distribution in needed(PROJECT["dependencies"]):
        for part in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (site / part).symlink_to(Path(str(distribution.locate_file(part))))
    if PREBUILT.is_dir() and not (site / "oddsengine" / "kernels").exists():
        (site / "oddsengine" / "kernels").symlink_to(PREBUILT)  # else 49 kernels are compiled, 40 s
    return site


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing but the wheel and its dependencies."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from oddsengine_cli import main; sys.exit(main())"
    environ = {"ODDSENGINE_CACHE": str(ROOT / "oddsengine" / "__pycache__"), **os.environ}  # the kernels are the same
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *words], cwd=site, env=environ, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip


@pytest.mark.exhaustive
def test_the_wheel_scans_without_the_extra(site: Path) -> None:
    done = command(site, "scan", "--sample", "--kind", "arb")
    assert (done.returncode, "Arbitrage" in done.stdout) == (0, True), done.stderr


def test_without_the_extra_a_plot_names_it(site: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import oddsengine as oe\n"
        "from oddsengine.tables.sample import SAMPLE_BOARD\n"
        "try: oe.plot.ladder(oe.read_odds(SAMPLE_BOARD), 'bills', 'spread')\n"
        "except ImportError as error: print(error)"
    )
    environ = {"ODDSENGINE_CACHE": str(ROOT / "oddsengine" / "__pycache__"), **os.environ}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=site, env=environ, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    sentence = 'plots need the package matplotlib; run pip install "oddsengine[plots]"'
    assert done.stdout.splitlines() == [sentence], done.stderr
    done = command(site, "audit", "history.parquet", "--plot", "audit.png")
    assert (done.returncode, done.stderr) == (2, f"oddsengine audit: {sentence}\n")


# With `--demo` .ci/smoke asks the same of each wheel.
@pytest.mark.parametrize(
    "words", [pytest.param(("serve", "--demo"), marks=pytest.mark.exhaustive), ("serve",), ("feeds", "check")],
    ids=" ".join,
)  # fmt: skip
def test_without_the_extra_a_command_of_the_service_names_it(site: Path, words: tuple[str, ...]) -> None:
    done = command(site, *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"oddsengine {words[0]}: ")
    assert "pip install 'oddsengine[service]'" in sentence
