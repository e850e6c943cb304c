"""Feeds: 100,000 quotes from JSON to applied, parsing and step separately, with known names.

    pytest benchmarks/bench_feeds.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only

The baseline is `json.loads` of the same bytes and one plain dict per quote, without parsing or validation. Steps are
without views; see `bench_live.py` for those.
"""

import datetime as dt
import gc
import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from synthetic import NOW
from synthetic import board as make_board

import oddsengine as oe
from oddsengine.feeds import Payload
from oddsengine.feeds.node_api import InterfaceStream, read_page
from oddsengine.feeds.the_odds_api import RequestScope, TheOddsApi
from oddsengine.live.engine import Engine

ROWS = 92_000  # about 100,000 prices
_SPORTS = {
    "nba": "basketball_nba", "nfl": "americanfootball_nfl", "nhl": "icehockey_nhl", "epl": "soccer_epl",
}  # fmt: skip
_MARKETS = {"moneyline": "h2h", "point_spread": "spreads", "total_points": "totals"}


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    oe.load_kernels()
    frame = make_board(ROWS)
    return frame.with_columns(
        pl.col("market_type").replace({"moneyline_2way": "moneyline"}), id=pl.int_range(pl.len()).cast(pl.String)
    )


def _iso(moment: dt.datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def the_odds_api(frame: pl.DataFrame, now: dt.datetime) -> bytes:
    """The prices as one response: events, bookmakers, markets, outcomes."""
    events: dict[str, dict[str, Any]] = {}
    books: dict[tuple[str, str], dict[str, Any]] = {}
    markets: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        event, book, name = row["event_id"], row["sportsbook"], row["market_type"]
        key = _MARKETS.get(name, name)
        if event not in events:
            events[event] = {
                "id": event, "sport_key": _SPORTS[row["league"]], "sport_title": row["league"].upper(),
                "commence_time": _iso(row["event_start_time"]), "home_team": row["home_team"],
                "away_team": row["away_team"], "bookmakers": [],
            }  # fmt: skip
        if (event, book) not in books:
            books[event, book] = {"key": book, "title": book.title(), "last_update": _iso(now), "markets": []}
            events[event]["bookmakers"].append(books[event, book])
        if (event, book, key) not in markets:
            markets[event, book, key] = {"key": key, "last_update": _iso(now), "outcomes": []}
            books[event, book]["markets"].append(markets[event, book, key])
        outcome = {"name": row["selection"], "price": row["odds_decimal"]}
        if row["line"] is not None:
            outcome["point"] = row["line"]
        if row["player_name"]:
            outcome["description"] = row["player_name"]
        markets[event, book, key]["outcomes"].append(outcome)
    return json.dumps(list(events.values())).encode()


def interface(frame: pl.DataFrame, now: dt.datetime) -> bytes:
    """The prices as one page."""
    rows = []
    for row in frame.iter_rows(named=True):
        link = f"https://{row['sportsbook']}.example/{row['id']}"
        times = {"event_start_time": _iso(row["event_start_time"]), "last_seen_at": _iso(now)}
        rows.append(row | times | {"odds_changed_at": times["last_seen_at"], "deep_link": link})
    return json.dumps({"success": True, "data": rows, "pagination": {"has_more": False}}).encode()


def plain_dicts(data: bytes) -> list[dict[str, Any]]:
    """The baseline: one plain dict per quote."""
    given = json.loads(data)
    if isinstance(given, dict):
        return [dict(row) for row in given["data"]]
    return [
        {
            "event_id": event["id"], "sport": event["sport_key"], "home_team": event["home_team"],
            "away_team": event["away_team"], "event_start_time": event["commence_time"], "sportsbook": maker["key"],
            "market_type": market["key"], "last_seen_at": market["last_update"], "selection": outcome["name"],
            "odds_decimal": outcome["price"], "line": outcome.get("point"), "player_name": outcome.get("description"),
        }
        for event in given
        for maker in event["bookmakers"]
        for market in maker["markets"]
        for outcome in market["outcomes"]
    ]  # fmt: skip


def _reader(form: str) -> Callable[[bytes], Payload]:
    if form == "interface":
        return lambda data: read_page(data).payload
    feed, asked = TheOddsApi(), RequestScope.of([*_MARKETS.values(), "player_points"])
    return lambda data: feed.read(data, asked)


_FORMS = {"the_odds_api": the_odds_api, "interface": interface}


@pytest.mark.benchmark(group="100,000 quotes: parse")
@pytest.mark.parametrize("form", _FORMS)
def test_parse(benchmark: Any, frame: pl.DataFrame, form: str) -> None:
    data, read = _FORMS[form](frame, NOW), _reader(form)
    assert len(read(data).quotes) == frame.height
    gc.collect()
    benchmark.extra_info["bytes"] = len(data)
    benchmark(read, data)


@pytest.mark.benchmark(group="100,000 quotes: parse")
@pytest.mark.parametrize("form", _FORMS)
def test_plain_dicts(benchmark: Any, frame: pl.DataFrame, form: str) -> None:
    data = _FORMS[form](frame, NOW)
    assert len(plain_dicts(data)) == frame.height
    gc.collect()
    benchmark(plain_dicts, data)


def _later(frame: pl.DataFrame, form: str, n: int) -> list[tuple[dt.datetime, bytes]]:
    moments = [NOW + dt.timedelta(seconds=5 * at) for at in range(n)]
    return [(now, _FORMS[form](frame, now)) for now in moments]


@pytest.mark.benchmark(group="100,000 quotes: step")
@pytest.mark.parametrize("form", _FORMS)
def test_step(benchmark: Any, frame: pl.DataFrame, form: str) -> None:
    read, engine = _reader(form), Engine()
    (now, data), *later = _later(frame, form, 6)
    engine.step(read(data).quotes, now)
    steps = iter(later)

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        now, data = next(steps)
        quotes = read(data).quotes
        gc.collect()
        return (quotes, now), {}

    benchmark.pedantic(engine.step, setup=setup, rounds=len(later))


@pytest.mark.benchmark(group="100,000 quotes: JSON to applied")
@pytest.mark.parametrize("form", _FORMS)
def test_applied(benchmark: Any, frame: pl.DataFrame, form: str) -> None:
    read, engine = _reader(form), Engine()
    (now, data), *later = _later(frame, form, 6)
    engine.step(read(data).quotes, now)
    steps = iter(later)

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        gc.collect()
        return next(steps), {}

    def apply(now: dt.datetime, data: bytes) -> None:
        engine.step(read(data).quotes, now)

    benchmark.pedantic(apply, setup=setup, rounds=len(later))


@pytest.mark.benchmark(group="a stream of 100,000 rows")
def test_renewal(benchmark: Any, frame: pl.DataFrame) -> None:
    """Renew the time of every row, as every `ALL_S` seconds: the rows, and the step that applies them."""
    stream, engine = InterfaceStream(), Engine()
    rows = json.loads(interface(frame, NOW))["data"]
    quotes = stream.read("snapshot", json.dumps({"odds": rows}).encode()).quotes
    engine.step(quotes, NOW)
    moments = iter([NOW + dt.timedelta(seconds=30 * at) for at in range(1, 7)])

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        gc.collect()
        return (next(moments),), {}

    def renew(now: dt.datetime) -> None:
        renewed = stream.renew({**row, "last_seen_at": now} for row in quotes).quotes
        assert len(renewed) == frame.height
        engine.step(renewed, now)

    benchmark.pedantic(renew, setup=setup, rounds=6)
