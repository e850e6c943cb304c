"""Futures over a socket: every field by name, filters, pages, tiers, errors; and how they come to a node."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import polars as pl
import pytest
from support.service_running import PATIENCE_S, TIER_IDS, Running, running, until

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as known
from oddsengine.feeds import Game, Payload
from oddsengine.futures import FuturesField, find_futures
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.simulate.simulated_futures import FuturesSeason
from oddsengine.sources.failure import Failure
from oddsengine.sources.source_settings import FeedSettings
from oddsengine_service import demo
from oddsengine_service.board.futures_board import NodeFutures, stated_fields
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.applying import MOST_QUOTES
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.node import Node
from oddsengine_service.settings import SettingsError, load
from oddsengine_service.wire.futures_response import Future, FutureLeg, FutureOdds

MARKET = [
    "market_id", "display_name", "sport", "league", "future_type", "selection_count", "books_available", "season",
    "subject", "line", "places", "event_start_time", "last_update", "books", "field_size", "field_source",
    "is_complete", "incomplete_reason", "hold_percentage", "reference_book", "reference_hold", "devig_method",
    "arbitrage",
]  # fmt: skip
PRICE = [
    "id", "selection", "sportsbook", "odds_american", "odds_decimal", "probability", "line", "future_market_id",
    "future_market_name", "event_start_time", "timestamp", "sport", "league", "future_type", "season", "subject",
    "sportsbook_name", "is_active", "last_seen_at", "odds_changed_at", "deep_link", "is_complete", "is_best",
    "fair_probability", "no_vig_odds", "ev_percentage", "set_aside",
]  # fmt: skip
LEG = ["selection", "sportsbook", "odds_american", "odds_decimal", "implied_probability", "stake_percent"]
PASSERS = {"future_type": "PLAYER", "league": "wnba"}
BAKING = FuturesField("", "Baking contest", ("Ada", "Ben", "Cem"))


def rows_of(book: str, odds: dict[str, float], **more: Any) -> list[dict[str, Any]]:
    base = {"sportsbook": book, "market": "Baking contest", "places": 1}
    return [{**base, "selection": name, "odds_decimal": price, **more} for name, price in odds.items()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A demo's seasons, one market that is an arbitrage and one that nobody can complete."""
    with running(tmp_path_factory.mktemp("futures"), events=2) as made:
        futures, now = made.node.futures, made.node.engine.now
        assert now is not None
        made.node.write(demo.add_futures, futures, now).result()
        fields = [field for league in ("nba", "nfl") for field in FuturesSeason(7, league, 2025).fields()]
        made.node.write(futures.state, [*(FuturesField(**dict(field)) for field in fields), BAKING]).result()
        rows = [
            *rows_of("fanduel", {"Ada": 2.2, "Ben": 3.5}), *rows_of("betmgm", {"Cem": 4.5, "Ben": 3.9}),
            *rows_of("pinnacle", {"Ada": 1.95, "Ben": 3.8}, is_active=False),
            *rows_of("unheard_of", {"Who": 3.0}, market="Some other contest", deep_link="https://x.example/"),
            *rows_of("pinnacle", {"Nikola Jokić": 4.0, "Luka Doncic": 5.0}, market="Best passer", **PASSERS),
            *rows_of("betmgm", {"Jokic, Nikola": 4.1}, market="Best passer", **PASSERS),
        ]  # fmt: skip
        made.node.write(futures.apply, rows, now).result()
        made.advance()
        yield made


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[httpx2.Client]:
    with server.client() as made:
        yield made


def get(client: httpx2.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def every(client: httpx2.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        body = get(client, path, **query, limit=200, offset=offset)
        found += body["data"]
        offset = body["pagination"]["next_offset"]
    return found


def test_every_field_of_a_market(client: httpx2.Client) -> None:
    body = get(client, "/futures", limit=200)
    assert list(body) == ["success", "data", "pagination", "meta"]
    assert body["meta"]["count"] == body["meta"]["total"] == len(body["data"])
    for row in body["data"]:
        assert list(row) == MARKET
        assert msgspec.convert(row, Future, strict=True)
        assert row["future_type"] in known.TYPES
        assert row["books_available"] == len(row["books"]) > 0
        assert (row["is_complete"] is True) == (row["incomplete_reason"] is None)
    assert [row["display_name"] for row in body["data"] if not row["league"]] == [
        "Baking contest",
        "Some other contest",
    ]
    titles = [row for row in body["data"] if row["display_name"] == "NBA Champion 2025-26"]
    (title,) = titles
    assert (title["sport"], title["selection_count"], title["places"], title["field_source"]) == (
        "basketball", 30, 1, "catalog",
    )  # fmt: skip
    assert title["event_start_time"].startswith("2026-06-20")
    assert 0.0 < title["hold_percentage"] < title["reference_hold"]


def test_every_field_of_a_price(client: httpx2.Client, server: Running) -> None:
    rows = every(client, "/futures/odds")
    assert len(rows) == len(server.node.futures)
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert list(row) == PRICE
        assert msgspec.convert(row, FutureOdds, strict=True)
        assert row["probability"] == pytest.approx(1.0 / row["odds_decimal"], abs=1e-6)
        assert row["timestamp"] == row["last_seen_at"]
        win = row["odds_american"] / 100 if row["odds_american"] > 0 else -100 / row["odds_american"]
        assert 1 + win == pytest.approx(row["odds_decimal"], rel=1e-3)
        if row["fair_probability"] is not None:
            fair = 1 + (row["no_vig_odds"] / 100 if row["no_vig_odds"] > 0 else -100 / row["no_vig_odds"])
            assert fair * row["fair_probability"] == pytest.approx(1.0, rel=1e-3)
        if row["ev_percentage"] is not None and catalog.book(row["sportsbook"]).commission == 0.0:
            edge = 100 * (row["fair_probability"] * row["odds_decimal"] - 1)
            assert row["ev_percentage"] == pytest.approx(edge, abs=0.2)
    (other,) = [row for row in rows if row["selection"] == "Who"]
    assert (other["deep_link"], other["fair_probability"], other["is_complete"]) == ("https://x.example/", None, None)
    suspended = [row for row in rows if not row["is_active"]]
    assert {(row["selection"], row["set_aside"]) for row in suspended} == {("Ada", "unusable"), ("Ben", "unusable")}


def test_a_player_has_one_name(client: httpx2.Client) -> None:
    rows = every(client, "/futures/odds", league="wnba")
    assert [(row["selection"], row["sportsbook"], row["odds_decimal"]) for row in rows] == [
        ("Luka Doncic", "pinnacle", 5.0), ("Nikola Jokić", "betmgm", 4.1), ("Nikola Jokić", "pinnacle", 4.0),
    ]  # fmt: skip


def test_fair_probabilities_sum_to_the_places(client: httpx2.Client) -> None:
    for market in every(client, "/futures", is_complete=True):
        if market["reference_book"] is None:
            continue
        prices = every(client, "/futures/odds", market_id=market["market_id"], sportsbook=market["reference_book"])
        assert len(prices) == market["field_size"]
        assert sum(row["fair_probability"] for row in prices) == pytest.approx(market["places"], abs=1e-4)


def test_an_arbitrage_covers_the_field(client: httpx2.Client) -> None:
    (market,) = get(client, "/futures", q="baking")["data"]
    arb = market["arbitrage"]
    assert [list(leg) for leg in arb["legs"]] == [LEG] * 3
    assert [(leg["selection"], leg["sportsbook"]) for leg in arb["legs"]] == [
        ("Ada", "fanduel"), ("Ben", "betmgm"), ("Cem", "betmgm"),
    ]  # fmt: skip
    assert all(msgspec.convert(leg, FutureLeg) for leg in arb["legs"])
    implied = sum(leg["implied_probability"] for leg in arb["legs"])
    assert arb["implied_total"] == pytest.approx(100 * implied, abs=1e-3)
    assert arb["profit_percent"] == pytest.approx(100 * (1 / implied - 1), abs=1e-3)
    assert market["hold_percentage"] == pytest.approx(100 * (implied - 1), abs=1e-3)
    assert arb["id"].startswith(market["market_id"])
    (one,) = get(client, "/futures", q="baking", sportsbook="fanduel")["data"]
    assert (one["arbitrage"], one["hold_percentage"], one["is_complete"]) == (None, None, True)
    assert (one["selection_count"], one["books"]) == (2, ["fanduel"])
    assert one["market_id"] == market["market_id"]


def test_it_is_what_the_library_says(client: httpx2.Client, server: Running) -> None:
    board = server.node.futures.board
    season = FuturesSeason(7, "nba", 2025)
    assert board.now is not None
    result = find_futures(
        pl.DataFrame(season.quotes(server.node.engine.now or board.now)), now=board.now,
        fields=[FuturesField(**dict(field)) for field in season.fields()],
    )  # fmt: skip
    wanted = {row["market_id"]: row for row in result.markets.iter_rows(named=True)}
    shown = every(client, "/futures", league="nba")
    assert {row["market_id"] for row in shown} == set(wanted)
    for row in shown:
        assert row["display_name"] == wanted[row["market_id"]]["display_name"]
        assert row["is_complete"] == wanted[row["market_id"]]["is_complete"]


def test_filters(client: httpx2.Client) -> None:
    everything = every(client, "/futures")

    def ids(**query: Any) -> set[str]:
        return {row["market_id"] for row in every(client, "/futures", **query)}

    def those(**wanted: Any) -> set[str]:
        return {row["market_id"] for row in everything if all(row[name] == value for name, value in wanted.items())}

    assert ids(sport="basketball") == ids(sport="nba") == those(sport="basketball") != set()
    assert ids(league="NFL") == those(league="nfl") != set()
    for kind in known.TYPES:
        assert ids(future_type=kind) == those(future_type=kind) != set()
    some = sorted(those(league="nba"))[:2]
    assert ids(market_id=",".join(some)) == ids(market=some[0] + "," + some[1]) == set(some)
    assert ids(is_complete=False) == {row["market_id"] for row in everything if row["is_complete"] is not True} != set()
    assert ids(q="mvp") == {row["market_id"] for row in everything if "MVP" in row["display_name"]} != set()
    assert ids(sportsbook="pinnacle") == {row["market_id"] for row in everything if "pinnacle" in row["books"]}
    name = get(client, "/futures/odds", market_id=some[0])["data"][0]["selection"]
    rows = every(client, "/futures/odds", selection=name.upper(), league="nba")
    assert {row["selection"] for row in rows} == {name}
    part = every(client, "/futures/odds", q="celt", league="nba", future_type="TEAM")
    assert {row["selection"] for row in part} == {"Boston Celtics"}
    assert len(every(client, "/futures/odds", q="NBA MVP")) == len(
        every(client, "/futures/odds", future_type="PLAYER", league="nba")
    )
    two = every(client, "/futures/odds", sportsbook="fanduel,betmgm")
    assert {row["sportsbook"] for row in two} == {"fanduel", "betmgm"}


def test_what_nobody_knows_is_said(client: httpx2.Client) -> None:
    for path in ("/futures", "/futures/odds"):
        meta = get(client, path, league="quidditch", market_id="nothing", sportsbook="nowhere", colour="red")["meta"]
        assert meta["unknown"] == {"league": ["quidditch"], "market_id": ["nothing"], "sportsbook": ["nowhere"]}
        assert (meta["ignored"], meta["total"]) == (["colour"], 0)
    assert "unknown" not in get(client, "/futures", sportsbook="unheard_of")["meta"]


@pytest.mark.parametrize("path", ["/futures", "/futures/odds"])
def test_pages(client: httpx2.Client, path: str) -> None:
    whole = get(client, path, limit=200)["data"]
    pieces = [row for at in range(0, 30, 7) for row in get(client, path, limit=7, offset=at)["data"]]
    assert pieces == whole[: len(pieces)]
    total = get(client, path)["meta"]["total"]
    last = get(client, path, limit=200, offset=total - 1)
    assert (last["meta"]["count"], last["pagination"]["has_more"], last["pagination"]["next_offset"]) == (
        1,
        False,
        None,
    )
    past = get(client, path, offset=5000)
    assert (past["data"], past["pagination"]["has_more"]) == ([], False)
    keys = [(row["sport"], row["league"], row.get("display_name") or row["future_market_name"]) for row in whole]
    assert keys == sorted(keys)


@pytest.mark.parametrize("path", ["/futures", "/futures/odds"])
@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"limit": 0}, "limit"), ({"limit": 201}, "limit"), ({"offset": -1}, "offset"), ({"offset": 5001}, "offset"),
        ({"future_type": "HORSE"}, "TEAM"), ({"limit": "many"}, "limit"),
    ],
)  # fmt: skip
def test_errors(client: httpx2.Client, path: str, query: dict[str, Any], word: str) -> None:
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")
    assert word in answer.json()["error"]["message"]
    assert client.post(path).status_code == 405


@pytest.mark.parametrize("path", ["/futures", "/futures/odds"])
def test_only_the_highest_tier_has_futures(server: Running, path: str) -> None:
    for tier in TIER_IDS:
        with server.client(tier) as client:
            answer = client.get(path)
        if tier == "enterprise":
            assert answer.status_code == 200
            continue
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "tier_restricted")
        assert "enterprise" in answer.json()["error"]["message"]
    with server.client(None) as client:
        assert (client.get(path).status_code, client.get(path).json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["/futures", "/futures/odds"])
def test_a_body_is_kept_until_something_moves(server: Running, client: httpx2.Client, path: str) -> None:
    first = client.get(path, params={"q": "Some other"})
    tag = first.headers["etag"]
    again = client.get(path, params={"q": "Some other"}, headers={"If-None-Match": tag})
    assert again.status_code == 304
    now = server.node.engine.now
    assert now is not None
    moved = rows_of("unheard_of", {"Who": 3.0 + now.minute / 100 + len(path)}, market="Some other contest")
    server.node.write(server.node.futures.apply, moved, now).result()
    server.advance()
    after = client.get(path, params={"q": "Some other"}, headers={"If-None-Match": tag})
    assert after.status_code == 200
    assert after.headers["etag"] != tag


def test_the_description_has_answers_of_futures(server: Running, client: httpx2.Client) -> None:
    document = httpx2.get(f"{server.origin}/openapi.json", timeout=60.0).json()
    for path, fields in (("/futures", MARKET), ("/futures/odds", PRICE)):
        operation = document["paths"][path]["get"]
        example = operation["responses"]["200"]["content"]["application/json"]["example"]
        assert list(example["data"][0]) == fields
        assert operation["tags"] == ["Futures"]


# ---- from sources ----


def hub_of(futures: NodeFutures) -> Hub:
    made = Hub(Writer(Engine()), Matcher(), clock=lambda: datetime.now(UTC), futures=futures)
    made.add(FeedSettings(name="main", kind="test"))
    return made


def test_a_payload_s_futures_reach_the_board() -> None:
    async def check() -> None:
        futures = NodeFutures((BAKING,))
        hub = hub_of(futures)
        rows = [{**row, "id": f"{row['selection']}/1"} for row in rows_of("betmgm", {"Ada": 2.2, "Ben": 3.5, " ": 2.0})]
        await hub.deliver("main", Payload(futures=rows))
        assert futures.board.table["pick"].to_list() == ["Ada", "Ben"]
        assert hub.tracks["main"].refused == {"the selection has no name": 1}
        (status,) = hub.statuses()
        assert (status.quotes, [one.book for one in hub.books()]) == (3, ["betmgm"])
        board = futures.board
        await hub.deliver("main", Payload(removed=["nobody's"]))
        assert futures.board is board
        await hub.deliver("main", Payload(removed=["Ada/1"]))
        assert futures.board.table["pick"].to_list() == ["Ben"]
        await hub.close()

    asyncio.run(check())


def test_futures_of_a_large_payload_are_applied_with_its_removals() -> None:
    async def check() -> None:
        futures = NodeFutures((BAKING,))
        hub = hub_of(futures)
        (row,) = rows_of("betmgm", {"Ada": 2.2})
        await hub.deliver("main", Payload(futures=[{**row, "id": "Ada/1"}]))
        before = futures.board.number
        start = datetime.now(UTC) + timedelta(hours=1)
        games = [Game(f"g{at}", "soccer", "x", f"Home {at}", f"Away {at}", start) for at in range(MOST_QUOTES + 1)]
        quotes = [
            {"sportsbook": "betmgm", "event_id": game.id, "sport": "soccer", "league": "x", "home_team": game.home,
             "away_team": game.away, "market_type": "moneyline", "selection": game.home, "odds_decimal": 1.9}
            for game in games
        ]  # fmt: skip
        await hub.deliver("main", Payload(games, quotes, removed=["Ada/1"], futures=[{**row, "id": "Ada/2"}]))
        assert hub.engine.table().height == MOST_QUOTES + 1
        assert futures.board.table["pick"].to_list() == ["Ada"]
        assert futures.board.number == before + 1
        await hub.close()

    asyncio.run(check())


def test_futures_are_taken_with_their_payload_or_not_at_all() -> None:
    async def check() -> None:
        futures = NodeFutures()
        hub = hub_of(futures)
        rows = rows_of("betmgm", {"Ada": 2.2})
        await hub.deliver("main", Payload(futures=rows))
        before = futures.board
        game = Game("x", "basketball", "nba", "Boston Celtics", "Utah Jazz", datetime.now(UTC) + timedelta(hours=1))
        wrong: Any = [(None, "x")]
        moved = rows_of("betmgm", {"Ada": 2.4})
        with pytest.raises(Failure, match="rejected"):
            await hub.deliver("main", Payload([game], complete=wrong, futures=moved))
        assert futures.board is before
        with pytest.raises(Failure, match="rejected"):
            await hub.deliver("main", Payload(futures=[{"sportsbook": "a", "market": "b"}]))
        assert futures.board is before
        await hub.close()

    asyncio.run(check())


def test_what_was_judged_of_a_board_that_was_taken_back_is_nobody_s() -> None:
    """The next board has its number, and may have its moment."""
    futures, now = NodeFutures((BAKING,)), datetime(2026, 11, 1, tzinfo=UTC)
    seen = []

    def fails() -> None:
        with futures.applying(rows_of("betmgm", {"Ada": 2.2}), now, source="a", removed=()):
            (market,) = futures.board.markets
            assert futures.judged(futures.board, market, None, now).sheet is futures.board.sheets[market]
            seen.append((futures.board, market))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    gone, market = seen[0]
    with futures.applying(rows_of("betmgm", {"Ada": 2.4, "Ben": 3.5}), now, source="a", removed=()):
        board = futures.board
        assert board.number == gone.number
        assert futures.judged(board, market, None, now).sheet is board.sheets[market]
        assert futures.judged(gone, market, None, now).sheet is gone.sheets[market]


def test_who_takes_part_is_the_operator_s_word(tmp_path: Path) -> None:
    file = tmp_path / "fields.toml"
    file.write_text('[[field]]\nmarket = "Baking contest"\ncontestants = ["Ada", "Ben", "Cem"]\n', encoding="utf-8")
    environ = {"ODDSENGINE_MATCHING_FIELDS": str(file)}
    assert stated_fields(load(None, environ)) == (BAKING,)
    assert stated_fields(load(None, {})) == ()
    file.write_text("[[field]]\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"matching\.fields is .* needs market and contestants"):
        stated_fields(load(None, environ))
    with pytest.raises(SettingsError, match=r"matching\.fields"):
        stated_fields(load(None, {"ODDSENGINE_MATCHING_FIELDS": str(tmp_path / "none")}))


# ---- the demo ----


def test_the_demo_has_futures_that_move(server: Running) -> None:
    node = Node(Engine(), server.node.keys, server.node.limits, demo=True)
    playing = threading.Thread(target=demo.run_world, args=(node,), kwargs={"events": 2}, daemon=True)
    playing.start()
    until(lambda: node.engine.number > 0, "the first step")
    node.closing.set()
    playing.join(PATIENCE_S)
    futures = node.futures
    board = futures.board
    assert board.now is not None
    assert {market.league for market in board.markets.values()} == set(demo.FUTURES_LEAGUES)
    demo.add_futures(futures, board.now + timedelta(seconds=demo.FUTURES_S - 1.0))
    assert futures.board is board
    demo.add_futures(futures, board.now + timedelta(seconds=demo.FUTURES_S + 300.0))
    assert len(futures.board) >= len(board)  # some books begin to list a long shot
    both = board.table.join(futures.board.table, on=["market_id", "pick_key", "book"])
    assert (both["odds_decimal"] != both["odds_decimal_right"]).any()
    node.close()
