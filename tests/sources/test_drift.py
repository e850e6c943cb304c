"""What came that a contract does not know: counted in a sample, bounded, and said by a node."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from feeds.test_samples import encoded
from support.handler_calls import answer, found, node
from support.local_servers import new_hub, running, until
from support.smarkets import Smarkets, contract, event, market, quotes

from oddsengine.feeds.contract_types import NEW_FIELD, NEW_VALUE, OTHER, Difference
from oddsengine.feeds.venue_contracts import find
from oddsengine.live.engine import Engine
from oddsengine.sources.drift import Drift, DriftCounts
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.smarkets_client import source
from oddsengine.sources.source_settings import SmarketsSettings
from oddsengine.testing.local_servers import Answering, http, served
from oddsengine.testing.simulated_clock import SimulatedLoop
from oddsengine_cli import main
from oddsengine_service.feeds.status import SourceStatus, Track
from oddsengine_service.routes.feed_routes import endpoints
from oddsengine_service.scale.node_changes import RemoteFeeds

PLACE = "GET /v3/events/"


def looked(*documents: Any, kind: str = "smarkets", place: str = PLACE) -> tuple[Drift, list[list[Difference]]]:
    """What was seen after some answers, and what was new in each; they come a quarter of a second after the other."""

    async def look() -> tuple[Drift, list[list[Difference]]]:
        drift, new = Drift(find(kind)), []
        for document in documents:
            body = document if isinstance(document, bytes) else encoded(document)
            new.append(await drift.look(place, body))
            await asyncio.sleep(0.25)
        return drift, new

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(look())


def page(*events: Any) -> Any:
    return {"events": list(events), "pagination": {"next_page": None}}


def test_what_is_new_is_named_once_and_counted() -> None:
    strange = page(event(state="frozen", weather="rain"), event("e2", state="frozen", bettable="yes"))
    drift, (first, second, usual) = looked(strange, strange, page(event()))
    assert [(one.path, one.kind, one.came, one.decides) for one in first] == [
        ("events[].state", NEW_VALUE, "'frozen'", True), ("events[].weather", NEW_FIELD, "'rain'", False),
        ("events[].bettable", OTHER, "'yes'", False),
    ]  # fmt: skip
    assert second == usual == []
    assert drift.seen == {first[0]: 4, first[1]: 2, first[2]: 2}
    assert drift.counts == DriftCounts(values=2, fields=1)
    assert [one.path for one in drift.values()] == ["events[].state", "events[].bettable"], "what decides comes first"


def test_answers_of_each_kind_are_looked_at_a_hundred_times_then_once_a_second() -> None:
    strange = page(event(state="frozen"))
    drift, _ = looked(*[strange] * 130)
    (one,) = drift.seen
    assert drift.seen[one] == 107  # the last of these at 24.75 s, then at 25.75 s and so on until 31.75 s


def test_what_is_not_known_is_bounded() -> None:
    drift, _ = looked(*(page(event(state=f"state{n}"), event("e2", state=f"s{n}")) for n in range(150)))
    assert drift.counts.values == 200


def test_of_long_lists_all_parts_are_looked_at_in_turn() -> None:
    """A large answer, which is looked at in a thread."""
    long = page(*(event(f"e{n}", state="frozen" if n == 777 else "live") for n in range(1000)))
    assert len(encoded(long)) > 100_000
    _, new = looked(*[long] * 20)
    assert [at for at, found in enumerate(new) if found] == [17]


def test_other_answers_are_left_alone() -> None:
    for given in (
        {"kind": "table"}, {"place": "GET /v3/popular/"}, {"place": "POST /v3/events/"},
    ):  # fmt: skip
        assert looked({"x": 1}, **given)[0].counts == (0, 0)
    assert looked(b"<html>", b"\xff", b"[" * 5000)[0].counts == (0, 0)


def after(exchange: Smarkets) -> tuple[SourceStatus, int]:
    """The status of a node's feed once it has read all, and how many prices it has."""

    async def run() -> tuple[SourceStatus, int]:
        hub = new_hub()
        async with http(exchange) as url:
            feed = SmarketsSettings(name="s", kind="smarkets", sports=("soccer",), url=url, rate=1000.0)
            async with running(hub, source(feed, {}, Secrets())):
                await until(lambda: hub.statuses()[0].caught_up, "all prices")
                (status,) = hub.statuses()
                return status, hub.engine.table().height

    return asyncio.run(run())


def drifted() -> Smarkets:
    """An exchange with a market in a new state, that has a new field, and a contract of a new type."""
    exchange = Smarkets()
    exchange.markets.append(market("m3", "WINNER_2_WAY", state="frozen", extra=1))
    exchange.contracts.append(contract("c9", "Both", "BOTH"))
    exchange.quotes["c9"] = quotes([(5000, 1.0)])
    return exchange


def test_a_node_says_what_its_feed_does_not_know(caplog: pytest.LogCaptureFixture) -> None:
    exchange = drifted()
    usual, prices = after(Smarkets())
    assert (usual.unknown_values, usual.new_fields, usual.refused, usual.reason) == (0, 0, 0, "")
    status, left = after(exchange)
    assert (status.unknown_values, status.new_fields, status.refused) == (2, 1, 2)
    assert left == prices > 0, "all other rows are there"
    assert (status.status, status.public) == ("ok", "its answers have 2 values that its contract does not know")
    assert status.reason.startswith(f"{status.public}: contracts[].contract_type.name: 'BOTH'; allowed: one of HOME")
    logged = [record.getMessage() for record in caplog.records if "not in its contract" in record.getMessage()]
    assert len(logged) == 2
    assert logged[0].startswith("feeds.s: not in its contract: markets[].state: 'frozen'; allowed: one of new, open, ")


def test_the_check_of_feeds_lists_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(drifted()) as url:
        text = f'[feeds.s]\nkind = "smarkets"\nsports = ["soccer"]\nurl = "{url}"\nrate = 1000.0\n'
        (tmp_path / "oddsengine.toml").write_text(text)
        assert main(["feeds", "check", "--config", "oddsengine.toml", "--format", "json"]) == 0
    ((*_, side, state, fields),) = [one["notes"] for one in json.loads(capsys.readouterr().out)]
    assert side.startswith("not in its contract, and a price depends on it: contracts[].contract_type.name: 'BOTH'; ")
    assert state.startswith(
        "not in its contract, and a price depends on it: markets[].state: 'frozen'; allowed: one of"
    )
    assert state.endswith("cancelled (1 times)")
    assert fields == "fields that its contract does not have: markets[].extra"


def test_the_check_of_feeds_says_what_a_venue_needs_that_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exchange = Smarkets()
    exchange.spoil("/events/", *[refusing] * 100)
    with served(exchange) as url:
        (tmp_path / "oddsengine.toml").write_text(f'[feeds.s]\nkind = "smarkets"\nsports = ["soccer"]\nurl = "{url}"\n')
        assert main(["feeds", "check", "--config", "oddsengine.toml", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["notes"] == [
        "a user needs a verified account, an application that Smarkets has approved, a fee of 150 GBP, paid once"
    ]


async def refusing(answering: Answering) -> None:
    await answering.answer(b"<html>Security Check</html>", 403)


def test_feeds_counts_it() -> None:
    track = Track("s", "smarkets", datetime(2026, 2, 8, 18, tzinfo=UTC), 60.0, drift=Drift(find("smarkets")))
    asyncio.run(track.drift.look(PLACE, encoded(page(event(state="frozen", weather="rain")))))

    here, feeds = node(Engine()), RemoteFeeds()
    feeds.replace([track.status(track.since)], [])
    here.use_feeds(feeds)
    body = answer(found(endpoints, "/feeds"), here)
    assert [(one["unknown_values"], one["new_fields"]) for one in (*body["data"], body["meta"])] == [(1, 1), (1, 1)]
