"""Sources of plugins: what they may do, and that whatever else they do costs their own prices only, and is said."""

import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from service.test_operated import a_key
from support.forking import CLI, PIPE, python
from support.plugin_packages import install
from support.service_running import PATIENCE_S

import oddsengine as oe
from oddsengine.sources import SettingsError, read_feed
from oddsengine.sources.failure import FetchError
from oddsengine.sources.source_settings import SettingsTable, UnusableSettings
from oddsengine_cli import main
from oddsengine_service.feeds.status import Track
from oddsengine_service.settings import load

MODULE = '''
"""A book of two prices, and everything that a source may do wrong."""

import asyncio
import logging
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from oddsengine.feeds import Game, Payload
from oddsengine.sources import Failure, FeedSettings, SourceKind

START = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)


class Settings(FeedSettings, frozen=True, kw_only=True):
    key_env: str = ""
    odds: float = 1.9


class Strict(Settings, frozen=True, kw_only=True):
    def __post_init__(self):
        if self.odds < 1.0:
            raise ValueError("needs odds above 1")
        if self.odds > 100.0:
            raise TypeError("odd odds")


def payload(book, *odds, start=START):
    game = Game(f"{book}1", "basketball", "nba", f"{book} Celtics", f"{book} Lakers", start)
    return Payload([game], [
        {**game.fields, "id": f"{book}{side}", "sportsbook": book, "market_type": "moneyline", "selection": team,
         "odds_decimal": price}
        for side, team, price in zip("ha", (game.home, game.away), odds)
    ])


def kind(run, settings=Settings, made=None):
    class Fetcher:
        def __init__(self, feed, env, secrets):
            self.feed, self.key = feed, env["key_env"]

        async def run(self, receiver):
            await run(self, receiver, self.feed.name)

    return SourceKind(settings, made or Fetcher, variables={"key_env": "GOOD_KEY"}, leagues={"nba": "NBA!"})


async def _good(self, receiver, name, book="draftkings", start=START):
    receiver.expect(name, "", 60.0)
    await receiver.deliver(name, payload(book, self.feed.odds, 2.0, start=start))
    receiver.caught_up(name)
    await asyncio.sleep(3600.0)


async def _raises(self, receiver, name):
    raise LookupError(f"no price for {self.key}")


async def _grouped(self, receiver, name):
    async with asyncio.TaskGroup() as group:
        group.create_task(_raises(self, receiver, name))


async def _refused(self, receiver, name):
    raise ExceptionGroup("of tasks", [Failure("not with this key", fatal=True)])


class Panic(BaseException):
    """As polars raises one."""


async def _panics(self, receiver, name):
    raise Panic(f"no memory for {self.key}")


async def _parts_panic(self, receiver, name):
    async with asyncio.TaskGroup() as group:
        group.create_task(_panics(self, receiver, name))


async def _part_exits(self, receiver, name):
    async with asyncio.TaskGroup() as group:
        group.create_task(_exits(self, receiver, name))


async def _interrupts(self, receiver, name):
    raise KeyboardInterrupt


class Refusal(Failure):
    def __init__(self, text):
        super().__init__(text, kind="odd", status="403", wait=-1.0)


async def _tells(self, receiver, name):
    """Every text that a source may give has its key, once in the middle and once where texts are cut."""
    receiver.expect(name, "", 60.0)
    for text in (self.key, "x" * 292 + self.key):
        receiver.alive(name, text)
        counts = Counter([text])
        await receiver.deliver(name, Payload(refused=counts, unmapped=Counter([("book", text)])), text)
        receiver.warn(name, text, text)
        receiver.conflict(name, text)
        receiver.failed(name, Refusal(text))
        await receiver.unreadable(name, b"", text)
        for logger in ("book_feeds", "oddsengine.book_feeds"):
            logging.getLogger(logger).warning("asks with %s", text)
        try:
            receiver.failed(name, "x" * 90 + self.key)
        except TypeError as error:
            receiver.failed(name, Failure(str(error)))
    raise Refusal(f"not with {self.key}")


async def _exits(self, receiver, name):
    sys.exit(3)


async def _cancels(self, receiver, name):
    raise asyncio.CancelledError


async def _returns(self, receiver, name):
    receiver.alive(name)


async def _blocks(self, receiver, name):
    receiver.expect(name, "", 1.0)
    time.sleep(3600.0)


async def _silent(self, receiver, name):
    await asyncio.sleep(3600.0)


async def _delivers(self, receiver, name, what):
    receiver.expect(name, "", 60.0)
    await receiver.deliver(name, what)
    await asyncio.sleep(3600.0)


async def _other(self, receiver, name):
    await receiver.deliver("good", Payload(complete=[("draftkings", None)]))
    await asyncio.sleep(3600.0)


async def _forever(self, receiver, name):
    receiver.expect(name, "", "60")


def _broken(feed, env, secrets):
    raise RuntimeError("no licence for " + env["key_env"])


good, strict = kind(_good), kind(_good, Strict)
raises, exits, cancels, returns, blocks, silent = map(kind, (_raises, _exits, _cancels, _returns, _blocks, _silent))
other, forever, grouped, refused = map(kind, (_other, _forever, _grouped, _refused))
panics, parts_panic, part_exits, interrupts, tells = map(
    kind, (_panics, _parts_panic, _part_exits, _interrupts, _tells)
)
mapping = kind(lambda self, receiver, name: _delivers(self, receiver, name, {"quotes": []}))
old = kind(lambda *words: _good(*words, "betmgm", datetime(1970, 1, 2, tzinfo=UTC)))
naive = kind(lambda *words: _delivers(*words, payload("naive", 1.9, 2.0, start=datetime(2027, 1, 1))))
senseless = kind(lambda *words: _delivers(*words, payload("fanduel", 0.5, 2.1)))
broken, number = kind(_good, made=_broken), kind(_good, made=lambda *_: 5)


def _made_panics(feed, env, secrets):
    raise Panic("x" * 290 + env["key_env"])


class Unready:
    @property
    def run(self):
        raise LookupError("not yet")


unready = kind(_good, made=lambda *_: Unready())
made_panics = kind(_good, made=_made_panics)
no_kind = {"settings": Settings}
no_settings = SourceKind(dict, lambda *_: None)
'''
KINDS = (
    "grouped", "refused", "good", "strict", "raises", "exits", "cancels", "returns", "blocks", "silent", "other",
    "forever", "mapping", "naive", "senseless", "broken", "number", "no_kind", "no_settings", "panics", "parts_panic",
    "part_exits", "interrupts", "tells", "made_panics", "old",
    "unready",
)  # fmt: skip
MORE = {
    "raises_on_import": "unimportable:KIND",
    "exits_on_import": "exiting:KIND",
    "panics_on_import": "panicking:KIND",
    "missing": "book_feeds:missing",
}
OF = "of book-feeds 1.0 cannot be used: "
FAILS = "of book-feeds 1.0 fails: "


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modules = {
        "book_feeds": MODULE, "unimportable": "raise OSError('no disk')", "exiting": "raise SystemExit(4)",
        "panicking": "class Panic(BaseException): pass\nraise Panic('no memory')",
    }  # fmt: skip
    entries = {name: f"book_feeds:{name}" for name in KINDS} | MORE
    return install(tmp_path_factory.mktemp("packages"), "book-feeds", modules, sources=entries)


@pytest.fixture(autouse=True)
def installed(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.setenv("GOOD_KEY", "secret-of-mine")
    yield
    for name in ("book_feeds", "unimportable", "exiting", "panicking"):
        sys.modules.pop(name, None)


def read(kind: str, **settings: Any) -> Any:
    return read_feed(SettingsTable("my.toml", "feeds.mine", {"kind": kind} | settings, {}, set()), "mine")


# ---- settings ----


def test_its_settings_are_read_as_ours_are() -> None:
    feed = read("strict", odds=2.5, key_env="GOOD_KEY")
    assert (feed.odds, feed.key_env, feed.timeout, feed.kind) == (2.5, "GOOD_KEY", 15.0, "strict")
    with pytest.raises(SettingsError, match=r"^my.toml: feeds.mine.odds must be of type .*float.*, got 'x'$"):
        read("strict", odds="x")
    with pytest.raises(SettingsError, match=r"^my.toml: feeds.mine.interval is not a setting; allowed: "):
        read("strict", interval=3)
    with pytest.raises(SettingsError, match=r"^my.toml: feeds.mine needs odds above 1$"):
        read("strict", odds=0.5)


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("raises_on_import", {}, "importing unimportable:KIND raises OSError: no disk"),
        ("exits_on_import", {}, "importing exiting:KIND raises SystemExit: 4"),
        ("panics_on_import", {}, "importing panicking:KIND raises Panic: no memory"),
        ("missing", {}, "importing book_feeds:missing raises AttributeError: module 'book_feeds' has no attribute"),
        ("no_kind", {}, "book_feeds:no_kind must be a SourceKind, got {'settings': "),
        ("no_settings", {}, "its settings must be a subclass of FeedSettings, got <class 'dict'>"),
        ("strict", {"odds": 200.0}, "its settings raise TypeError: odd odds"),
    ],
)
def test_a_kind_that_cannot_be_used_leaves_the_other_settings_valid(
    kind: str, settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    path = tmp_path / "node.toml"
    bad = f'[feeds.bad]\nkind = "{kind}"\nkey_env = "ODDSENGINE_SECRET"\n{lines}'
    path.write_text(f'{bad}[feeds.good]\nkind = "good"\n')
    environ = {"ODDSENGINE_FEEDS_BAD_INTERVAL": "3", "ODDSENGINE_FEEDS_BAD_TOKEN_ENV": "ODDSENGINE_TOKEN"}
    feeds = load(path, environ | {"ODDSENGINE_SECRET": "x", "ODDSENGINE_TOKEN": "y"}).feeds
    assert isinstance(feeds["bad"], UnusableSettings)
    assert feeds["bad"].reason.startswith(f"the kind of source {kind!r} {OF}{reason}")
    assert feeds["good"].kind == "good"


def test_a_name_that_two_packages_register_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = install(tmp_path, "Other.Feeds", {}, "2.1", sources={"good": "nowhere:KIND", "kalshi": "nowhere:KIND"})
    monkeypatch.syspath_prepend(str(rivals))
    with pytest.raises(SettingsError) as error:
        read("good")
    assert str(error.value) == (
        "my.toml: feeds.mine has an ambiguous kind: the kind of source 'good' is registered by book-feeds 1.0 "
        "and by Other.Feeds 2.1; uninstall all but one"
    )
    with pytest.raises(SettingsError, match=r"'kalshi' is registered by oddsengine and by Other.Feeds 2.1; uninstall"):
        read("kalshi")
    assert read("strict").kind == "strict"


# ---- fetch ----


def test_fetch_reads_one(monkeypatch: pytest.MonkeyPatch) -> None:
    odds = oe.fetch("good", odds=1.8)
    assert odds.select("sportsbook", "odds_decimal").rows() == [("draftkings", 1.8), ("draftkings", 2.0)]
    with pytest.raises(
        FetchError, match=r"^raises: the kind of source 'raises' of book-feeds 1.0 fails: its run.. raises Look"
    ):
        oe.fetch("raises", key="secret-of-mine")
    with pytest.raises(FetchError, match=r"'grouped' of book-feeds 1.0 fails: its run.. raises LookupError: no price"):
        oe.fetch("grouped", key="secret-of-mine")
    with pytest.raises(FetchError, match=r"^refused: not with this key$"):
        oe.fetch("refused")
    with pytest.raises(FetchError, match=r"^panics: the kind of source .* raises Panic: no memory for \*\*\*$"):
        oe.fetch("panics", key="secret-of-mine")
    with pytest.raises(FetchError, match=r"^tells: not with \*\*\*$"):
        oe.fetch("tells", key="secret-of-mine")
    with pytest.raises(FetchError, match=r"its payload is refused: a payload must be a Payload, got {'quotes': \[\]}"):
        oe.fetch("mapping")
    with pytest.raises(ValueError, match="importing unimportable:KIND raises OSError: no disk"):
        oe.fetch("raises_on_import")


# ---- a node ----

AT_ONCE = {
    "raises": ("amber", "plugin fails"),
    "exits": ("amber", "plugin fails"),
    "panics": ("amber", "plugin fails"),
    "parts_panic": ("amber", "plugin fails"),
    "part_exits": ("amber", "plugin fails"),
    "interrupts": ("amber", "plugin fails"),
    "made_panics": ("red", "plugin fails"),
    "unready": ("red", "plugin fails"),
    "tells": ("amber", "it fails, or what it sends cannot be used"),
    "cancels": ("amber", "plugin fails"),
    "returns": ("amber", "plugin fails"),
    "other": ("amber", "plugin fails"),
    "forever": ("amber", "plugin fails"),
    "mapping": ("amber", "plugin fails"),
    "naive": ("amber", "plugin fails"),
    "broken": ("red", "plugin fails"),
    "number": ("red", "plugin fails"),
    "no_kind": ("red", "plugin fails"),
    "raises_on_import": ("red", "plugin fails"),
    "exits_on_import": ("red", "plugin fails"),
    "blocks": ("amber", "late: silent since|its plugin blocks"),
    "senseless": ("amber", "some of its prices are invalid and were rejected"),
    "silent": ("amber", "no data yet"),
    "good": ("green", "data in time"),
}


def test_a_node_serves_while_all_of_them_fail(packages: Path, tmp_path: Path) -> None:
    sections = [f'[feeds.{name}]\nkind = "{name}"\nkey_env = "GOOD_KEY"\n' for name in AT_ONCE]
    (tmp_path / "oddsengine.toml").write_text("[service]\nport = 0\n" + "".join(sections))
    key = a_key(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(packages)!r}); {CLI}"
    log = tmp_path / "log"
    with log.open("w") as file, python(code, "serve", cwd=tmp_path, stdout=PIPE, stderr=file) as process:
        try:
            assert process.stdout is not None
            origin = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert origin, log.read_text()
            base = f"{origin[0]}/api/v1"
            rows: dict[str, Any] = {}
            end = time.monotonic() + PATIENCE_S
            with httpx2.Client(base_url=base, headers={"X-API-Key": key}, timeout=PATIENCE_S) as client:
                while not _said(rows) and time.monotonic() < end:
                    rows = {row["name"]: row for row in client.get("/feeds").json().get("data", ())}
                    time.sleep(0.2)
                state = client.get("/health")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    assert {name: (row["status"], row["reason"]) for name, row in rows.items() if not _is_said(row)} == {}
    assert (rows["good"]["events"], rows["good"]["books"]) == (1, ["draftkings"])
    assert state.status_code in (200, 503)
    written = [log, *(path for path in (tmp_path / "oddsengine-data").rglob("*") if path.suffix != ".db")]
    for path in filter(Path.is_file, written):
        assert b"secret-" not in path.read_bytes(), path


def _said(rows: dict[str, Any]) -> bool:
    return bool(rows) and all(map(_is_said, rows.values()))


def _is_said(row: dict[str, Any]) -> bool:
    color, words = AT_ONCE[row["name"]]
    return row["status"] == color and any(each in row["reason"] for each in words.split("|"))


def test_feeds_check_says_what_a_plugin_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oddsengine.toml").write_text(
        '[feeds.a]\nkind = "raises"\nkey_env = "GOOD_KEY"\n[feeds.b]\nkind = "good"\n'
    )
    assert main(["feeds", "check", "--format", "json"]) == 1
    said = {one["name"]: (one["status"], one["quotes"], one["reason"]) for one in json.loads(capsys.readouterr().out)}
    assert said == {
        "a": ("degraded", 0, f"the kind of source 'raises' {FAILS}its run() raises LookupError: no price for ***"),
        "b": ("ok", 2, ""),
    }


def test_feeds_check_says_that_no_price_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oddsengine.toml").write_text('[feeds.good]\nkind = "good"\n[feeds.old]\nkind = "old"\n')
    assert main(["feeds", "check", "--format", "json"]) == 0
    notes = {one["name"]: one["notes"] for one in json.loads(capsys.readouterr().out)}
    names = "the catalog does not know the team '{} Celtics' of nba: prices of other feeds would never meet its own"
    started = "2 started_not_live (marked pre-match after the event's start)"
    assert notes == {
        "good": [names.format("draftkings")],
        "old": [f"none of its prices is used, of 2 are rejected {started}", names.format("betmgm")],
    }


def test_a_source_that_reports_nothing_is_late_and_then_down() -> None:
    start = datetime(2026, 2, 8, 18, tzinfo=UTC)
    track = Track("mine", "silent", start, down_after=60.0)
    said = [track.assess(start + timedelta(seconds=seconds)) for seconds in (50.0, 62.0, 130.0)]
    assert [one.status for one in said] == ["starting", "degraded", "down"]
    assert said[1].public == "late: silent since 2026-02-08T18:00:00Z"
