"""Targets of alerts that plugins add: used as ours are, and one that fails costs its own messages."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from support.plugin_packages import install
from support.service_running import Running, running

from oddsengine_service.bettors import plugin_targets
from oddsengine_service.bettors.targets import AlertMessage, Sender
from oddsengine_service.settings import SettingsError, load

MODULE = """
import threading

sent, go_on = [], threading.Event()


class Pager:
    def __init__(self, secret):
        if secret == "wrong-secret":
            raise PermissionError(f"not with {secret}")
        self.secret = secret

    def check(self, address):
        if not address.removeprefix("pager:").isdigit():
            raise ValueError("a pager has a number")

    def send(self, address, message):
        if address == "pager:13":
            raise KeyError(self.secret)
        if address == "pager:14":
            raise ValueError("x" * 295 + self.secret)
        if address == "pager:15":
            raise Panic(self.secret)
        if address == "pager:0":
            go_on.wait(60.0)
        sent.append((address, message.title, message.text, message.body, self.secret))


def of_nothing(secret):
    return None


class Panic(BaseException):
    pass


def panics(secret):
    raise Panic("x" * 268 + secret)


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


def unprintable(secret):
    return Unprintable()


def hangs(secret):
    go_on.wait(60.0)
"""
HANGS = "import pagers; pagers.go_on.wait(60.0)"
NAMES = {"pager": "Pager", "https": "Pager", "nothing": "of_nothing"} | {
    name: name for name in ("gone", "hangs", "panics", "unprintable")
}


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    names = {name: f"pagers:{made}" for name, made in NAMES.items()} | {"stuck": "stuck_pagers:Pager"}
    modules = {"pagers": MODULE, "stuck_pagers": HANGS}
    folder = install(tmp_path_factory.mktemp("pagers"), "pagers", modules, "0.3", targets=names)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in modules:
        sys.modules.pop(name, None)


def sender(**targets: str) -> tuple[Sender, dict[str, str]]:
    """A sender with some targets, and what was reported of those that cannot be used."""
    text = ",".join(f"{scheme}={variable}" for scheme, variable in targets.items())
    environ = {"ODDSENGINE_ALERTS_TARGETS": text, "TOKEN": "my-secret", "WRONG": "wrong-secret"}
    failed: dict[str, str] = {}
    others = plugin_targets.plugin_targets(load(None, environ), environ, failed.__setitem__)
    return Sender(others=others), failed


def test_a_message_goes_through_it() -> None:
    used, failed = sender(pager="TOKEN")
    used.check("pager:7")
    used.send("pager:7", AlertMessage("mine", ["one", "two"], total=2))
    import pagers  # type: ignore[import-not-found]

    ((*words, body, secret),) = pagers.sent
    assert (words, json.loads(body)["total"], secret) == (["pager:7", "mine", "one\ntwo"], 2, "my-secret")
    assert failed == {}
    pagers.sent.clear()
    with pytest.raises(ValueError, match="a pager has a number"):
        used.check("pager:me")
    with pytest.raises(ValueError, match=r"a target must begin with https://, .*, mailto: or pager:, got 'fax'$"):
        used.check("fax:7")


def test_what_it_raises_is_said_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    used, _ = sender(pager="TOKEN")
    with pytest.raises(ValueError, match=r"^the target 'pager' of pagers 0.3 fails: KeyError$"):
        used.send("pager:13", AlertMessage("t", []))
    with pytest.raises(ValueError, match=r"^the target 'pager' of pagers 0.3 fails: Panic$"):
        used.send("pager:15", AlertMessage("t", []))
    with pytest.raises(ValueError, match=r"^x{295}\*\*\*$"):
        used.send("pager:14", AlertMessage("t", []))


def test_one_that_waits_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_targets, "TIMEOUT_S", 0.02)
    monkeypatch.setattr(plugin_targets, "_MOST_RUNNING", 2)
    used, _ = sender(pager="TOKEN")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"the target 'pager' of pagers 0.3 has not finished within 0.02 s"):
            used.send("pager:0", AlertMessage("t", []))
    with pytest.raises(ValueError, match=r"pagers 0.3 has not finished earlier messages"):
        used.send("pager:1", AlertMessage("t", []))
    _go_on()
    used.check("pager:1")


def _go_on() -> None:
    """End what waits, and its threads."""
    import pagers

    pagers.go_on.set()
    end = time.monotonic() + 10.0
    while any(thread.name.startswith("target ") for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
    pagers.go_on.clear()


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        (
            {"fax": ""},
            "oddsengine.toml: alerts.targets.fax must be the scheme of a target that a package registers: gone",
        ),
        (
            {"https": ""},
            "alerts.targets.https is ambiguous: the target 'https' is registered by oddsengine and by pagers",
        ),
        ({"pager": "NONE"}, "alerts.targets.pager is 'NONE', but that environment variable is not set or empty"),
    ],
)
def test_a_wrong_name_is_a_wrong_setting(targets: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as error:
        sender(**targets)
    assert sentence in str(error.value)


def test_one_that_cannot_be_made_is_reported_and_the_others_work() -> None:
    used, failed = sender(pager="WRONG", nothing="", gone="", panics="TOKEN", unprintable="")
    of = "of pagers 0.3 cannot be used: "
    assert failed == {
        "alert target pager": f"the target 'pager' {of}pagers:Pager raises PermissionError: not with ***",
        "alert target nothing": f"the target 'nothing' {of}its target has no check, got None",
        "alert target gone": f"the target 'gone' {of}importing pagers:gone raises AttributeError: module 'pagers' has "
        "no attribute 'gone'",
        "alert target panics": f"the target 'panics' {of}pagers:panics raises Panic: {'x' * 268}***",
        "alert target unprintable": f"the target 'unprintable' {of}its target has no check, got <a Unprintable without "
        "a text: RuntimeError>",
    }
    with pytest.raises(ValueError, match=f"the target 'pager' {of}the node's log says why"):
        used.check("pager:7")


def test_one_that_hangs_while_it_is_imported_or_made_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    sender(nothing="")  # imports what the others wait for
    monkeypatch.setattr(plugin_targets, "TIMEOUT_S", 0.5)  # twice: a busy machine may take long for the good one
    used, failed = sender(hangs="", stuck="", pager="TOKEN")
    of = "of pagers 0.3 cannot be used: it was not made within 0.5 s"
    assert failed == {f"alert target {name}": f"the target {name!r} {of}" for name in ("hangs", "stuck")}
    used.check("pager:7")
    _go_on()


def test_an_alert_of_a_node_is_sent_and_confirmed(tmp_path: Path) -> None:
    settings = {"ODDSENGINE_ALERTS_TARGETS": "pager=TOKEN,gone=", "TOKEN": "my-secret"}
    with running(tmp_path, events=4, settings=settings) as server, of_key(server) as client:
        client.put("/filters/mine", json={"list": "ev", "query": "min_ev=0"}).raise_for_status()
        given = (
            client.post("/alerts", json={"filter": "mine", "targets": ["pager:7"]}).raise_for_status().json()["data"]
        )
        assert given["targets"] == given["unconfirmed"] == ["pager:///..."]
        assert client.post(f"/alerts/{given['id']}/test").json()["data"] == {"sent": True, "error": None}
        import pagers

        code = json.loads(pagers.sent[-1][3])["code"]
        confirmed = client.post(f"/alerts/{given['id']}/confirm", json={"code": code}).raise_for_status().json()["data"]
        assert confirmed["unconfirmed"] == []
        assert "alert target gone" in client.get("/health").text


def of_key(server: Running) -> httpx2.Client:
    return httpx2.Client(base_url=f"{server.origin}/api/v1", headers={"X-API-Key": "demo_pro"}, timeout=60.0)
