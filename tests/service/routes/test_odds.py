"""The odds endpoints, asked without HTTP, beside plain Python over the rows of the board."""

import base64
import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.boards import build, frame
from support.hazards import HAZARDS, NOW, SECOND
from support.live_strategies import feed, moment, row_ids

from oddsengine import catalog
from oddsengine.catalog.reasons import CODES, NAMES, SENTENCES, UNCOMPARED, reason
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import ask, prepare
from oddsengine.live.engine import Engine
from oddsengine.query import CURSOR_PATTERN, LATEST, SORTS, Cursor
from oddsengine.tables.schema import check_odds
from oddsengine_service.board.boards import Boards
from oddsengine_service.board.views import Board
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.params import parse
from oddsengine_service.routes.odds_routes import endpoints
from oddsengine_service.tiers import TIERS, Caller, books_of
from oddsengine_service.wire.odds_response import ODDS, Batch

PATHS = {endpoint.path: endpoint for endpoint in endpoints}
SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=max(3, settings().max_examples // 8))
WORLD = build(11, 3, 7)
Body = dict[str, Any]


def stand(engine: Engine) -> Any:
    """What an endpoint needs of a node."""
    return SimpleNamespace(engine=engine, boards=Boards(engine, "close", {}))


def call(
    node: Any, path: str, query: dict[str, Any] | None = None, tier: str = "sharp", board: Board | None = None,
    body: Batch | None = None, **values: str,
) -> Body:  # fmt: skip
    """Ask as the application does, and read the answer as a client does."""
    endpoint = PATHS[path]
    read, ignored = parse(urlencode(query or {}).encode(), endpoint.query)
    rights = TIERS[tier]
    caller = Caller("account", "key", rights, rights.rate, 0, rights.features)
    ask = Context(caller, read, values, body, board or node.engine, node, ignored)
    found: Body = msgspec.json.decode(msgspec.json.encode(endpoint.answer(ask)))
    return found


def refused(node: Any, path: str, query: dict[str, Any] | None = None, **more: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        call(node, path, query, **more)
    return caught.value


def walk(node: Any, path: str, query: dict[str, Any], by: str = "cursor", **more: Any) -> Iterator[Body]:
    """Every page, one after the other."""
    query = dict(query)
    while True:
        answer = call(node, path, query, **more)
        yield answer
        pages = answer["pagination"]
        if not pages["has_more"]:
            assert pages["next_cursor" if by == "cursor" else "next_offset"] is None
            return
        query[by] = pages["next_cursor" if by == "cursor" else "next_offset"]


def ids(pages: Sequence[Body] | Iterator[Body]) -> list[str]:
    return [row["id"] for answer in pages for row in answer["data"]]


def live_board(rows: Sequence[dict[str, Any]] = WORLD) -> Engine:
    engine = Engine()
    engine.step(frame(rows), moment(NOW))
    return engine


@pytest.fixture(scope="module")
def node() -> Any:
    return stand(live_board())


def price(event: str, book: str, market: str, selection: str, decimal: float | None, **more: Any) -> dict[str, Any]:
    return {
        "event_id": event, "sportsbook": book, "sport": "basketball", "league": "nba", "home_team": "Boston Celtics",
        "away_team": "LA Lakers", "market_type": market, "selection": selection, "odds_decimal": decimal,
        "event_start_time": "2026-02-09T00:30:00Z", **more,
    }  # fmt: skip


# ---- the twin: the rows of a table as mappings ----


def american(row: dict[str, Any]) -> float:
    shown = round(row["odds_american"], 2)
    return 100.0 if shown == -100.0 else shown


def meant(kind: str, row: dict[str, Any]) -> bool:
    """Whether two names settle alike; one that fixes a line or a side means only that."""
    if kind == row["market_type"]:
        return True
    one, two = (catalog.market_type(name, row["sport"] or "") for name in (kind, row["market_type"]))
    three = {"moneyline_3way": "moneyline"} if catalog.sport(row["sport"] or "").draws else {}
    families = [three.get(each.family, each.family) for each in (one, two)]
    if not (one.usable and two.usable) or families[0] != families[1] or one.period != two.period:
        return False
    line = two.fixed_line if two.fixed_line is not None else row["line"]
    return one.fixed_line in (None, line) and one.team_side in ("", two.team_side, row["team_side"])


def has_market(row: dict[str, Any], asked: str) -> bool:
    kinds = catalog.categories().get(asked, (asked,))
    props = catalog.market_type(row["market_type"], row["sport"] or "").is_prop
    names = [kind for kind in kinds if kind != "player_*"]
    exact = any(meant(kind, row) for kind in names)
    return exact or ("player_*" in kinds and props)


def named(row: dict[str, Any]) -> str:
    texts = (row["home_team"], row["away_team"], row["player_name"], row["selection"])
    return "\n".join(catalog.normalise(text or "") for text in texts)


def fits(row: dict[str, Any], q: dict[str, Any], tier: str) -> bool:
    """Whether a row is what a query asks for, condition by condition."""
    low, high = (100.0 if q.get(name) == -100 else q.get(name) for name in ("min_odds", "max_odds"))
    own = books_of(tier)
    book = catalog.book(row["sportsbook"]).id
    some = {name: q[name].split(",") if name in q else None for name in ("sport", "sportsbook", "market", "event")}
    eastern = row["event_start_time"].astimezone(ZoneInfo("America/New_York")).date().isoformat()
    return (
        (own is None or book in own)
        and (some["sport"] is None or row["sport"] in some["sport"])
        and (some["sportsbook"] is None or book in some["sportsbook"])
        and (some["event"] is None or row["event_id"] in some["event"])
        and (some["market"] is None or any(has_market(row, asked) for asked in some["market"]))
        and ("live" not in q or row["is_live"] == (q["live"] == "true"))
        and (low is None or american(row) >= low)
        and (high is None or american(row) <= high)
        and ("q" not in q or catalog.normalise(q["q"]) in named(row))
        and ("date" not in q or eastern == q["date"])
    )


def rows_of(engine: Engine) -> list[dict[str, Any]]:
    return list(engine.table().iter_rows(named=True))


VALUES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "odds_american": lambda row: row["odds_american"], "odds_decimal": lambda row: row["odds_decimal"],
    "probability": lambda row: row["odds_probability"], "timestamp": lambda row: row["last_seen_at"],
    "event_start_time": lambda row: row["event_start_time"],
    "sportsbook": lambda row: catalog.book(row["sportsbook"]).id, "sport": lambda row: row["sport"],
    "league": lambda row: catalog.league(row["league"], row["sport"]).id,
}  # fmt: skip

EVENTS = sorted({row["event_id"] for row in WORLD})
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "sport": st.sampled_from(["basketball", "soccer", "baseball,hockey", "soccer,basketball"]),
        "sportsbook": st.sampled_from(["draftkings", "fanduel", "fanduel,draftkings"]),
        "market": st.sampled_from(
            ["main", "spread", "props", "total,moneyline", "point_spread", "double_chance", "h2h"]
        ),
        "event": st.lists(st.sampled_from(EVENTS), min_size=1, max_size=3, unique=True).map(",".join),
        "live": st.sampled_from(["true", "false"]),
        "min_odds": st.sampled_from([-200, -110, -100, 0, 100, 120.5]),
        "max_odds": st.sampled_from([-150, -100, 0, 100, 150, 400]),
        "q": st.sampled_from(["atletico", "BOSTON", "jokic", "over", "köln", "!!", "n"]),
        "date": st.sampled_from(["2026-02-08", "2026-02-09", "2026-01-01"]),
    },
)


@given(QUERIES, st.sampled_from(["sharp", "sharp", "hobby", "free"]), st.integers(20, 200))
def test_a_list_is_what_plain_python_finds(node: Any, query: dict[str, Any], tier: str, limit: int) -> None:
    expected = {row["row_id"] for row in rows_of(node.engine) if fits(row, query, tier)}
    for by in ("offset", "cursor"):
        pages = list(walk(node, "/odds", query | {"limit": limit}, by, tier=tier))
        found = ids(pages)
        assert len(found) == len(expected)
        assert set(found) == expected
        assert all(page["meta"]["total"] == len(expected) for page in pages)
        assert [page["meta"]["count"] for page in pages] == [len(page["data"]) for page in pages]
        assert all(len(page["data"]) == limit for page in pages[:-1])
    data = [row for page in pages for row in page["data"]]
    order = [(row["event_start_time"], row["event_id"], row["market_type"]) for row in data]
    starts: dict[str, str] = {}
    for row in rows_of(node.engine):
        starts[row["event_id"]] = min(starts.get(row["event_id"], "9"), row["event_start_time"].isoformat())
    assert order == sorted(order, key=lambda key: (starts[key[1]], key[1], key[2]))


@given(QUERIES, st.sampled_from([sign + name for name in SORTS for sign in ("", "-")]), st.integers(20, 200))
def test_sorted_as_plain_python_sorts(node: Any, query: dict[str, Any], sort: str, limit: int) -> None:
    plain = ids(walk(node, "/odds", query | {"limit": 200}))
    value = VALUES[sort.removeprefix("-")]
    rows = {row["row_id"]: row for row in rows_of(node.engine)}
    expected = sorted(plain, key=lambda ident: value(rows[ident]), reverse=sort[0] == "-")  # stable either way
    for by in ("offset", "cursor"):
        assert ids(walk(node, "/odds", query | {"sort": sort, "limit": limit}, by)) == expected


@given(QUERIES, st.sampled_from(["", "-odds_decimal", "league", "timestamp"]), st.integers(1, 3))
def test_grouped_by_event(node: Any, query: dict[str, Any], sort: str, limit: int) -> None:
    query = query | ({"sort": sort} if sort else {})
    flat: dict[str, list[str]] = {}
    for page in walk(node, "/odds", query | {"limit": 200}):
        for row in page["data"]:
            flat.setdefault(row["event_id"], []).append(row["id"])
    for by in ("offset", "cursor"):
        pages = list(walk(node, "/odds", query | {"group_by": "event", "limit": limit}, by))
        assert all(page["meta"]["total"] == len(flat) for page in pages)
        found = [(event["event_id"], [row["id"] for row in event["odds"]]) for page in pages for event in page["data"]]
        assert found == list(flat.items())


@FEW
@given(SEEDS)
def test_other_conditions(seed: int) -> None:
    rows = build(seed, 2, 5, ("moneyline", "props", "team_total"), ())
    board = stand(live_board(rows))
    table = rows_of(board.engine)

    def found(**query: Any) -> set[str]:
        return set(ids(walk(board, "/odds", query | {"limit": 200})))

    def those(fitting: Any) -> set[str]:
        return {row["row_id"] for row in table if fitting(row)}

    def is_prop(row: dict[str, Any]) -> bool:
        return catalog.market_type(row["market_type"], row["sport"]).is_prop

    assert found(is_player_prop="true") == those(is_prop)
    assert found(is_player_prop="0") == those(lambda row: not is_prop(row))
    assert found(player_name="lebron JÁMES") == those(
        lambda row: is_prop(row) and "lebron james" in catalog.normalise(f"{row['player_name']} {row['selection']}")
    )
    assert found(stat_category="points") == those(lambda row: row["market_type"] == "player_points")
    shown = [row for page in walk(board, "/odds", {"limit": 200}) for row in page["data"]]
    assert found(selection="DRAW,under") == {
        row["id"]
        for row in shown
        if catalog.normalise(row["selection"]) in ("draw", "under") or row["selection_type"] in ("draw", "under")
    }
    leagues = {row["league"] for row in table}
    for league in leagues:
        assert found(league=league) == those(lambda row, league=league: row["league"] == league)


def test_teams_go_by_their_aliases() -> None:
    rows = [price(event, "fanduel", "moneyline", "Boston Celtics", 1.9) for event in "ab"]
    rows.append(price("c", "fanduel", "moneyline", "Nuggets", 1.9, home_team="Denver Nuggets", away_team="Miami Heat"))
    engine = Engine()
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    board = stand(engine)
    for name in ("Lakers", "LA Lakers", "los_angeles_lakers", "celtics"):
        assert {row["event_id"] for row in call(board, "/odds", {"team": name})["data"]} == {"a", "b"}, name
    assert call(board, "/odds", {"team": "Heat,Lakers"})["meta"]["total"] == 3
    answer = call(board, "/odds", {"team": "Nobody FC"})
    assert (answer["data"], answer["meta"]["unknown"]) == ([], {"team": ["Nobody FC"]})


def test_days_are_those_of_the_eastern_us() -> None:
    engine = Engine()
    engine.step([price("late", "fanduel", "moneyline", "LA Lakers", 1.9)], datetime(2026, 2, 9, 4, 59, tzinfo=UTC))
    board = stand(engine)  # it starts at 19:30 on the 8th in New York, where it is 23:59 of that day
    assert call(board, "/odds", {"date": "today"})["meta"]["total"] == 1
    assert call(board, "/odds", {"date": "2026-02-08"})["meta"]["total"] == 1
    assert call(board, "/odds", {"date": "2026-02-09"})["meta"]["total"] == 0
    assert call(board, "/odds", {"date": "9999-12-31"})["meta"]["total"] == 0
    engine.step([], datetime(2026, 2, 9, 5, 1, tzinfo=UTC))
    assert call(board, "/odds", {"date": "today"})["meta"]["total"] == 0
    for wrong in ("yesterday", "2026-2-9", "2026-02-30", "20260209", "2026-W06-1"):
        assert refused(board, "/odds", {"date": wrong}).code == "validation_error"


# ---- what the wire says ----


def test_a_row_says_what_the_board_says(node: Any) -> None:
    table = {row["row_id"]: row for row in rows_of(node.engine)}
    shown = [row for page in walk(node, "/odds", {"limit": 200}) for row in page["data"]]
    for row in shown:
        given = table[row["id"]]
        assert tuple(row) == ODDS
        for name in ("event_id", "selection", "is_live", "is_active"):
            assert row[name] == given[name]
        for name in ("home_team", "away_team"):
            assert row[name] == catalog.team_name(given[name], row["sport"], row["league"])
        assert row["market_type"] == catalog.published_name(
            given["market_type"], given["sport"], given["stat_category"] or "", given["market_segment"] or ""
        )
        assert (row["source_market_type"] or row["market_type"]) == given["market_type"]
        assert row["odds_decimal"] == round(given["odds_decimal"], 6)
        assert row["odds_american"] == round(given["odds_american"], 2)
        assert row["odds_probability"] == row["probability"] == round(1.0 / given["odds_decimal"], 6)
        assert row["timestamp"] == row["last_seen_at"]
        for name in ("last_seen_at", "odds_changed_at", "event_start_time"):
            assert row[name][-1] == "Z"
            assert datetime.fromisoformat(row[name]) == (given[name] or given["last_seen_at"])
        if catalog.market_type(given["market_type"], given["sport"]).has_line:
            assert row["line"] == given["line"]
        if given["selection_type"] is not None:
            assert row["selection_type"] == given["selection_type"]
        assert row["selection_type"]
        assert (row["is_main_line"] is None) == (row["is_alternate_line"] is None)
        assert row["is_main_line"] is None or row["is_alternate_line"] is not row["is_main_line"]
    assert {row["line"] for row in shown if row["market_type"] == "moneyline"} == {None}


@given(st.lists(st.integers(-(10**16), 10**17), min_size=1, max_size=5))
def test_times_are_written_as_numpy_writes_them(micros: list[int]) -> None:
    from oddsengine.tables.timestamps import timestamps

    written = timestamps(np.array([*micros, np.iinfo(np.int64).min]))
    years = [text for text in np.array(micros).astype("M8[us]").astype(str) if len(text) == 26 and text[0] != "-"]
    assert [text[:-1] for text in written[:-1] if text[:-1] in years] == years
    assert written[-1] is None


def test_own_texts_of_a_price() -> None:
    own = {
        "deep_link": "https://sportsbook.draftkings.com/event/7", "sportsbook_name": "DK", "external_event_id": "7",
        "market_id": "m", "selection_id": "s", "max_bet": 250.0, "is_main_line": False,
    }  # fmt: skip
    exchange = {"volume": 9e5, "volume_24h": 12.5, "open_interest": 3.0, "exchange_token_id": "0x1",
                "commission": 0.01, "min_bet": 2.0, "bet_step": 0.5, "bet_delay": 5.0}  # fmt: skip
    deep = {"levels": [{"odds_decimal": 1.9, "stake": 10.0}, {"odds_decimal": 1.88, "stake": 20.0}]}
    engine = Engine()
    totals = [price("e", "draftkings", "total_points", "Over", 1.9, line=line) for line in (200.5, 201.5)]
    engine.step(
        [
            totals[0] | own, totals[1] | {"is_alternate_line": False},
            price("e", "betmgm", "moneyline", "LA Lakers", 1.9, deep_link="https://sports.{state}.betmgm.com/x"),
            price("e", "corner_shop", "moneyline", "LA Lakers", None, odds_american=-110, event_start_time=None),
            price("e", "kalshi", "total_points", "Over", 1.9, line=200.5, **exchange),
            price("e", "betmgm", "player_points", "Over", 1.9, line=20.5, player_name="Nikola Jokić"),
            *(price("e", "novig", "total_points", "Over", 1.9, line=line, is_main_line=main, **deep)
              for line, main in ((200.5, False), (201.5, True))),
        ],
        datetime(2026, 2, 8, tzinfo=UTC),
    )  # fmt: skip
    first = {(row["sportsbook"], row["line"]): row for row in call(stand(engine), "/odds")["data"]}
    row = first["draftkings", 200.5]
    assert {name: row[name] for name in own} == own
    assert (row["is_alternate_line"], first["draftkings", 201.5]["is_main_line"]) == (True, True)
    assert {name: first["kalshi", 200.5][name] for name in exchange} == exchange
    assert first["kalshi", 200.5]["is_main_line"] is True  # nobody says otherwise, and it is the only line
    assert {row[name] for name in exchange} == {None}
    assert [first["novig", line]["is_main_line"] for line in (200.5, 201.5)] == [False, True]
    assert (first["betmgm", 20.5]["player_id"], row["player_id"]) == ("nikola_jokic", None)
    assert first["betmgm", None]["deep_link"] == "https://sports.betmgm.com/en/sports"
    bare = first["corner_shop", None]
    assert (bare["deep_link"], bare["sportsbook_name"], bare["max_bet"]) == (None, "corner_shop", None)
    assert (bare["odds_decimal"], bare["probability"]) == (1.909091, 0.52381)
    assert bare["event_start_time"] == "2026-02-09T00:30:00.000000Z"  # of its event
    assert [
        row["sportsbook"] for row in call(stand(engine), "/odds", {"is_main_line": "true", "market": "total"})["data"]
    ] == ["kalshi", "draftkings", "novig"]


def test_main_lines_are_those_of_the_table() -> None:
    """The rule over whole tables, among the accepted prices of the tier's books."""
    for seed in range(8):
        engine = live_board(build(seed, 3, 8, ("spread", "total", "team_total", "moneyline"), ()))
        node = stand(engine)
        prepared = prepare(engine.table(), None, engine.moment)
        g, rows, kinds = prepared.identity.groups, prepared.table["row_id"].to_list(), prepared.identity.kinds
        for tier in ("sharp", "hobby"):
            books = books_of(tier)
            main = ask(
                prepared, None if books is None else sorted(books), None, "power", None, thresholds()
            ).prices.main
            expected = {
                rows[row]: bool(main[market]) or not kinds[g.kind[g.ladder[market]]].has_line
                for row, market in zip(g.row.tolist(), g.market.tolist(), strict=True)
            }
            pages = list(walk(node, "/odds", {"limit": 200}, tier=tier))
            shown = {row["id"]: row["is_main_line"] for page in pages for row in page["data"]}
            assert shown == {ident: expected.get(ident, flag) for ident, flag in shown.items()}
            assert any(ident in expected for ident in shown)
            for flag in (True, False):
                chosen = set(ids(walk(node, "/odds", {"is_main_line": str(flag).lower(), "limit": 200}, tier=tier)))
                assert chosen == {ident for ident, main_line in shown.items() if main_line is flag}


def test_rejected_prices_do_not_decide_the_main_line() -> None:
    """Three books whose prices are stale, and two whose prices are not: their arbitrage and `/odds` agree."""
    engine, now = Engine(), datetime(2026, 2, 8, tzinfo=UTC)
    stale = [(book, 221.5, (1.9, 1.9)) for book in ("fanduel", "betmgm", "caesars")]
    good = [("draftkings", 220.5, (2.1, 1.85)), ("bet365", 220.5, (1.85, 2.1))]

    def step(quoted: Any, at: datetime) -> None:
        engine.step(
            [
                price("e", book, "total_points", side, odds, line=line)
                for book, line, both in quoted
                for side, odds in zip(("Over", "Under"), both, strict=True)
            ],
            at,
        )

    step(stale, now)
    node = stand(engine)
    assert {row["line"]: row["is_main_line"] for row in call(node, "/odds")["data"]} == {221.5: True}
    step(good, now + timedelta(minutes=11))
    rows = call(node, "/odds")["data"]
    assert {row["line"]: row["is_main_line"] for row in rows} == {220.5: True, 221.5: False}
    [arbitrage] = engine.view(max_profit=None).opportunities().arbitrage.iter_rows(named=True)
    assert (arbitrage["line"], arbitrage["is_alternate_line"]) == (220.5, False)
    moved = call(node, "/odds/delta", {"since": now.isoformat()})["data"]
    assert {row["line"]: row["is_main_line"] for row in moved} == {220.5: True, 221.5: False}  # all of them


@pytest.mark.parametrize("moneyline_first", [True, False])
def test_a_main_line_changes_with_prices_of_other_books(moneyline_first: bool) -> None:
    """Rows that did not change otherwise are written anew, whichever market is known first."""
    engine, now = Engine(), datetime(2026, 2, 8, tzinfo=UTC)
    node = stand(engine)
    quoted = [(side, line) for line in (200.5, 201.5) for side in ("Over", "Under")]
    totals = [price("e", "fanduel", "total_points", side, 1.9, line=line) for side, line in quoted]
    moneyline = price("e", "fanduel", "moneyline", "Boston Celtics", 1.9)
    engine.step([moneyline, *totals] if moneyline_first else [*totals, moneyline], now)

    def mains() -> dict[Any, Any]:
        return {row["line"]: row["is_main_line"] for row in call(node, "/odds", {"sportsbook": "fanduel"})["data"]}

    assert mains() == {None: True, 200.5: True, 201.5: False}
    engine.step([row | {"sportsbook": "betmgm"} for row in totals[2:]], now + timedelta(seconds=1))
    assert mains() == {None: True, 200.5: False, 201.5: True}


def test_even_money_is_plus_100_everywhere() -> None:
    """-100 and +100 are one price; rows, table, best prices, filters and opportunities say +100."""
    engine = Engine()
    quoted = {"draftkings": (-100.0, -100.0), "fanduel": (None, 1.999999), "betmgm": (100.0, 110.0)}
    rows = [
        price("e", book, "total_points", side, odds if american is None else None, line=201.5, odds_american=american)
        for book, (first, second) in quoted.items()
        for side, american, odds in (("Over", first, second), ("Under", None if first is None else second, second))
    ]
    update = engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    assert -100.0 not in update.changed["odds_american"].to_list()
    assert set(engine.table().filter(sportsbook="draftkings")["odds_american"]) == {100.0}
    assert set(check_odds(pl.DataFrame(rows)).filter(sportsbook="draftkings")["odds_american"]) == {100.0}
    node = stand(engine)
    shown = {(row["sportsbook"], row["selection"]): row["odds_american"] for row in call(node, "/odds")["data"]}
    assert shown == {
        ("draftkings", "Over"): 100.0, ("draftkings", "Under"): 100.0, ("fanduel", "Over"): 100.0,
        ("fanduel", "Under"): 100.0, ("betmgm", "Over"): 100.0, ("betmgm", "Under"): 110.0,
    }  # fmt: skip
    for limits, count in (({"min_odds": 100}, 6), ({"max_odds": -100}, 5), ({"min_odds": -100, "max_odds": 100}, 5)):
        assert len(call(node, "/odds", limits)["data"]) == count, limits


def test_of_equal_lines_the_lowest_is_the_main_one() -> None:
    engine = Engine()
    lines = (202.5, 201.5, 203.5)
    sides = ("Over", "Under")
    rows = [price("e", "fanduel", "total_points", side, 1.9, line=line) for line in lines for side in sides]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    main = call(stand(engine), "/odds", {"is_main_line": "true"})["data"]
    assert [row["line"] for row in main] == [201.5, 201.5]


def test_of_lines_of_equally_many_books_the_most_balanced_is_the_main_one() -> None:
    engine = Engine()
    prices = {200.5: (1.6, 2.4), 201.5: (1.9, 1.95), 202.5: (2.6, 1.5)}
    rows = [
        price("e", "fanduel", "total_points", side, odds, line=line)
        for line, both in prices.items()
        for side, odds in zip(("Over", "Under"), both, strict=True)
    ]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    main = call(stand(engine), "/odds", {"is_main_line": "true"})["data"]
    assert [row["line"] for row in main] == [201.5, 201.5]


def test_a_list_of_nothing_is_no_condition(node: Any) -> None:
    everything = call(node, "/odds", {"limit": 5})
    for name in ("sport", "sportsbook", "market", "event", "team", "fields", "selection"):
        assert call(node, "/odds", {"limit": 5, name: " , "}) == everything


def test_fields() -> None:
    node = stand(live_board())
    answer = call(node, "/odds", {"fields": "odds_decimal,id", "limit": 3})
    assert [tuple(row) for row in answer["data"]] == [("odds_decimal", "id")] * 3
    assert [row["id"] for row in answer["data"]] == ids([call(node, "/odds", {"limit": 3})])
    grouped = call(node, "/odds", {"fields": "id", "group_by": "event", "limit": 1})["data"][0]
    assert all(tuple(row) == ("id",) for row in grouped["odds"])
    every = call(node, "/odds", {"group_by": "event", "limit": 1})["data"]
    assert call(node, "/odds", {"group_by": "event", "limit": 1, "fields": "odds"})["data"] == every
    assert list(call(node, "/odds", {"fields": "event_name,id", "limit": 1})["data"][0]) == ["id"]
    problem = refused(node, "/odds", {"fields": "id,colour"})
    assert problem.status == 400
    assert "'colour'" in problem.message
    assert "odds_decimal" in problem.message


# ---- best ----


def verdicts(engine: Engine) -> tuple[Any, list[str]]:
    prepared = prepare(engine.table(), None, engine.moment)
    return prepared, prepared.table["row_id"].to_list()


@FEW
@given(SEEDS, st.sampled_from(["free", "hobby", "sharp"]), st.sampled_from(["", "true", "false"]))
def test_best_is_the_best_of_each_outcome(seed: int, tier: str, live: str) -> None:
    """Outcomes and verdicts as they are read from a whole table."""
    rng = random.Random(seed)
    engine = live_board(build(seed, 2, 8, hazards=rng.sample(sorted(HAZARDS), 5)))
    prepared, rows = verdicts(engine)
    table = {row["row_id"]: row for row in rows_of(engine)}
    g, own = prepared.identity.groups, books_of(tier)
    best: dict[tuple[int, int], list[str]] = {}
    for at, row in enumerate(g.row.tolist()):
        price_row = table[rows[row]]
        if prepared.guarded.reason[at] or (own is not None and price_row["sportsbook"] not in own):
            continue
        if live and price_row["is_live"] != (live == "true"):
            continue
        best.setdefault((int(g.market[at]), int(g.side[at])), []).append(rows[row])

    def rank(ident: str) -> tuple[Any, ...]:
        row = table[ident]
        return -net_of(row), -row["last_seen_at"].timestamp(), catalog.book(row["sportsbook"]).id

    expected = {min(each, key=rank) for each in best.values()}
    read = {rows[row] for row in g.row.tolist()}
    unread = {CODES["unmapped"], CODES["ambiguous_moneyline"]}
    others = {rows[at] for at, code in enumerate(prepared.identity.verdict.tolist()) if code in unread}
    query = {"limit": 200} | ({"live": live} if live else {})
    pages = list(walk(stand(engine), "/odds/best", query, "offset", tier=tier)) if expected else []
    found = ids(pages)
    assert len(found) == len(set(found))
    assert all(page["meta"]["total"] == len(found) for page in pages)
    # Two rows of one book may tie in everything; then either is the best.
    assert sorted(rank(ident) for ident in found if ident in read) == sorted(rank(ident) for ident in expected)
    assert {ident for ident in found if ident not in read} <= others


def net_of(row: dict[str, Any]) -> float:
    """A row's price after the commission or fee of its book."""
    book, odds = catalog.book(row["sportsbook"]), float(row["odds_decimal"])
    win = 1.0 + (odds - 1.0) * (1.0 - book.commission)
    return 1.0 / (1.0 / win + book.fee / win * (1.0 - 1.0 / win)) if book.fee else win


SIMILAR = (("novig", 2.08), ("fanduel", 2.06))


@pytest.mark.parametrize("book", ["betfair_exchange", "kalshi"])
@pytest.mark.parametrize(("quoted", "wins"), [(2.08, False), (2.20, True)])
def test_best_is_what_pays_most_after_commission(book: str, quoted: float, wins: bool) -> None:
    engine, best = Engine(), book if wins else "fanduel"
    rows = [price("e", book, "moneyline", "LA Lakers", quoted), price("e", "fanduel", "moneyline", "LA Lakers", 2.06)]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    (row,) = call(stand(engine), "/odds/best")["data"]
    assert row["sportsbook"] == best
    assert row["odds_decimal"] == (quoted if wins else 2.06)
    assert row["odds_decimal_net"] == pytest.approx(net_of(row), abs=1e-6)
    assert "odds_decimal_net" not in call(stand(engine), "/odds")["data"][0]


@pytest.mark.parametrize(("live", "best"), [(False, "novig"), (True, "fanduel")])
def test_a_fee_in_play_counts_in_play_only(live: bool, best: str) -> None:
    engine = Engine()
    rows = [price("e", book, "moneyline", "LA Lakers", odds, is_live=live) for book, odds in SIMILAR]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    (row,) = call(stand(engine), "/odds/best")["data"]
    assert row["sportsbook"] == best


def test_of_equal_prices_the_one_seen_last_is_best() -> None:
    engine = Engine()
    now = datetime(2026, 2, 8, tzinfo=UTC)

    def seen(book: str, ago: int, decimal: float = 2.0, **more: Any) -> dict[str, Any]:
        return price("e", book, "moneyline", "LA Lakers", decimal, last_seen_at=now - timedelta(seconds=ago), **more)

    engine.step([seen("betmgm", 9), seen("fanduel", 5), seen("caesars", 5), seen("pinnacle", 1, 1.95)], now)
    board = stand(engine)

    def winner(**query: Any) -> list[str]:
        return [row["sportsbook"] for row in call(board, "/odds/best", query)["data"]]

    assert winner() == ["caesars"]
    assert winner(sportsbook="betmgm,fanduel") == ["fanduel"]
    engine.step([seen("fanduel", -1)], now + timedelta(seconds=1))
    assert winner() == ["fanduel"]
    engine.step([seen("betmgm", -2, 2.6, is_active=False), seen("caesars", -2, 2.01)], now + timedelta(seconds=2))
    assert winner() == ["caesars"]  # a suspended price is never the best
    engine.step([seen("fanduel", -3000)], now + timedelta(seconds=3000))
    assert winner() == ["fanduel"]  # nor is a stale one, though it is higher
    swapped = {"home_team": "LA Lakers", "away_team": "Boston Celtics"}
    engine.step([seen("bovada", -3000, 2.02, **swapped)], now + timedelta(seconds=3001))
    assert winner() == ["bovada"]  # the same bet, the teams named the other way round
    engine.step([seen("bovada", -3002, 1.5, is_live=True, **swapped)], now + timedelta(seconds=3002))
    assert winner(live="true") == ["bovada"]
    assert winner(live="false") == ["fanduel"]


def test_a_three_way_price_is_not_a_two_way_one() -> None:
    engine = Engine()
    soccer = {"sport": "tennis", "league": "atp", "home_team": "Ann", "away_team": "Bea"}
    rows = [price("e", "fanduel", "moneyline", side, 2.9, **soccer) for side in ("Ann", "Draw", "Bea")]
    rows += [price("e", "betmgm", "moneyline", side, 1.9, **soccer) for side in ("Ann", "Bea")]
    rows += [price("e", "caesars", "moneyline_3way", "Ann", 3.1, **soccer)]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    found = call(stand(engine), "/odds/best")["data"]
    assert sorted((row["selection"], row["sportsbook"]) for row in found) == [
        ("Ann", "betmgm"), ("Ann", "caesars"), ("Bea", "betmgm"), ("Bea", "fanduel"), ("Draw", "fanduel"),
    ]  # fmt: skip


def test_links_of_a_state() -> None:
    engine = Engine()
    engine.step(
        [
            price("e", "betmgm", "moneyline", "LA Lakers", 2.0, external_event_id="7"),
            price("e", "fanduel", "moneyline", "LA Lakers", 1.9, deep_link="https://{state}.sportsbook.fanduel.com/x"),
        ],
        datetime(2026, 2, 8, tzinfo=UTC),
    )
    board = stand(engine)
    links = {
        "betmgm": "https://sports.nj.betmgm.com/en/sports/events/7", "fanduel": "https://nj.sportsbook.fanduel.com/x",
    }  # fmt: skip
    for path, query in (("/odds", {}), ("/odds", {"fields": "sportsbook,deep_link"}), ("/odds/best", {})):
        rows = call(board, path, {"state": "NJ", **query})["data"]
        assert rows
        assert all(row["deep_link"] == links[row["sportsbook"]] for row in rows)
    (event,) = call(board, "/odds", {"state": "nj", "group_by": "event"})["data"]
    assert {row["sportsbook"]: row["deep_link"] for row in event["odds"]} == links
    assert all("nj" not in row["deep_link"] for row in call(board, "/odds")["data"])


# ---- one event, many events ----


YANKEES = {
    "sport": "baseball", "league": "mlb", "home_team": "Los Angeles Dodgers", "away_team": "New York Yankees",
}  # fmt: skip


def test_a_market_has_one_name_whatever_its_source_calls_it() -> None:
    """DraftKings' spread and total of a baseball game were not in `main`, and a moneyline was two arrays."""
    engine = Engine()
    names = {
        "draftkings": ("h2h", "spreads", "totals"), "fanduel": ("moneyline", "run_line", "total_runs"),
        "betmgm": ("Money Line", "alternate_spreads", "total_points"),
    }  # fmt: skip
    rows = [
        price("e", book, market, selection, odds, line=line, **YANKEES)
        for book, (winner, spread, total) in names.items()
        for market, selection, line, odds in (
            (winner, "Los Angeles Dodgers", None, 1.8), (winner, "New York Yankees", None, 2.1),
            (spread, "Los Angeles Dodgers", -1.5, 2.2), (spread, "New York Yankees", 1.5, 1.7),
            (total, "Over", 8.5, 1.9), (total, "Under", 8.5, 1.95),
        )
    ]  # fmt: skip
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    node = stand(engine)
    compared = call(node, "/odds/comparison", {"event": "e"})["data"]
    assert {name: len(rows) for name, rows in compared.items()} == {"moneyline": 6, "run_line": 6, "total_runs": 6}
    sources = {(row["sportsbook"], row["source_market_type"]) for rows in compared.values() for row in rows}
    assert sources == {
        ("draftkings", "h2h"), ("draftkings", "spreads"), ("draftkings", "totals"), ("fanduel", None),
        ("betmgm", "Money Line"), ("betmgm", "alternate_spreads"), ("betmgm", "total_points"),
    }  # fmt: skip
    main = call(node, "/odds", {"market": "main", "sportsbook": "draftkings"})["data"]
    assert len(main) == 6
    for words, size in (
        ("h2h", 6), ("ml", 6), ("spread", 6), ("spreads", 6), ("point_spread", 6), ("run_line", 6), ("total", 6),
        ("totals", 6), ("total_points", 6), ("total_runs", 6), ("h2h,total_runs", 12), ("draw_no_bet", 0), ("props", 0),
    ):  # fmt: skip
        assert len(call(node, "/odds", {"market": words})["data"]) == size, words
    assert len(call(node, "/odds/best", {"market": "spreads"})["data"]) == 2


def test_a_bet_sold_under_other_words_has_its_familys_name_line_and_side() -> None:
    engine = Engine()
    soccer = {"sport": "soccer", "league": "epl", "home_team": "Arsenal", "away_team": "Chelsea"}
    engine.step(
        [
            price("e", "a", "draw_no_bet", "Arsenal", 1.5, **soccer),
            price("e", "b", "asian_handicap", "Arsenal", 1.55, line=0.0, **soccer),
            price("e", "b", "asian_handicap", "Arsenal", 1.9, line=-0.5, **soccer),
            price("e", "a", "home_team_to_score", "Yes", 1.2, **soccer),
            price("e", "b", "away_team_total", "Over", 1.4, line=0.5, **soccer),
            price("e", "a", "1x2", "Draw", 3.5, **soccer),
            price("e", "b", "moneyline", "Draw", 3.6, **soccer),
        ],
        datetime(2026, 2, 8, tzinfo=UTC),
    )  # fmt: skip
    node = stand(engine)

    def rows(market: str) -> set[tuple[Any, ...]]:
        shown = call(node, "/odds", {"market": market})["data"]
        return {tuple(row[name] for name in ("sportsbook", "market_type", "line", "selection_type")) for row in shown}

    level = {("a", "point_spread", 0.0, "home"), ("b", "point_spread", 0.0, "home")}
    assert rows("draw_no_bet") == rows("dnb") == level
    assert rows("spread") == level | {("b", "point_spread", -0.5, "home")}
    assert rows("home_team_total") == {("a", "team_total", 0.5, "home_over")}
    assert rows("team_total") == rows("home_team_total") | {("b", "team_total", 0.5, "away_over")}
    assert rows("moneyline") == rows("1x2") == {(b, "moneyline", None, "draw") for b in "ab"}


def test_comparison_has_market_types_for_keys(node: Any) -> None:
    event = EVENTS[0]
    answer = call(node, "/odds/comparison", {"event_id": event})
    assert "meta" not in answer
    table = [row for row in rows_of(node.engine) if row["event_id"] == event]
    assert {name: sorted(row["id"] for row in rows) for name, rows in answer["data"].items()} == {
        name: sorted(row["row_id"] for row in table if row["market_type"] == name)
        for name in {row["market_type"] for row in table}
    }
    assert set(call(node, "/odds/comparison", {"event": event, "market": "moneyline"})["data"]) == {"moneyline"}
    assert refused(node, "/odds/comparison", {"market": "main"}).status == 400
    assert call(node, "/odds/comparison", {"event": "nothing"})["meta"]["unknown"] == {"event": ["nothing"]}


def test_one_event(node: Any) -> None:
    event = EVENTS[1]
    found = ids(walk(node, "/events/{eventId}/odds", {"limit": 7}, eventId=event))
    assert found == ids(walk(node, "/odds", {"event": event, "limit": 200}))
    assert call(node, "/events/{eventId}/odds", {"market": "moneyline"}, eventId=event)["meta"]["total"] < len(found)
    problem = refused(node, "/events/{eventId}/odds", eventId="nothing")
    assert (problem.status, problem.code) == (404, "not_found")


@pytest.mark.parametrize(("tier", "most"), [("free", 5), ("hobby", 20), ("pro", 50), ("sharp", 100)])
def test_a_batch_has_a_limit(node: Any, tier: str, most: int) -> None:
    def ask(*wanted: str, **more: Any) -> Body:
        return call(node, "/odds/batch", body=Batch(list(wanted), **more), tier=tier)

    strange = [f"event {at}" for at in range(most - 1)]
    answer = ask(EVENTS[0], EVENTS[0], *strange)
    assert list(answer["data"]) == [EVENTS[0], *strange]
    assert answer["meta"]["unknown"]["event"] == strange
    expected = {row["row_id"] for row in rows_of(node.engine) if row["event_id"] == EVENTS[0]}
    shown = {row["id"] for row in answer["data"][EVENTS[0]]}
    assert shown == expected if tier == "sharp" else shown < expected
    for wrong in ([EVENTS[0], *strange, "one more"], [], ["x" * 300]):
        problem = refused(node, "/odds/batch", body=Batch(wrong), tier=tier)
        assert (problem.status, problem.code) == (400, "validation_error")
    narrow = ask(EVENTS[0], sportsbook="draftkings, fanduel", market="moneyline")["data"][EVENTS[0]]
    assert {row["market_type"] for row in narrow} <= {"moneyline"}
    assert {row["sportsbook"] for row in narrow} <= {"draftkings", "fanduel"}


# ---- who may see what ----


def test_books_of_a_tier() -> None:
    rows = [price("e", book, "moneyline", "LA Lakers", 1.9) for book in (*catalog.books(), "corner_shop")]
    engine = Engine()
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    board = stand(engine)

    def books(tier: str, **query: Any) -> set[str]:
        return {row["sportsbook"] for page in walk(board, "/odds", query, tier=tier) for row in page["data"]}

    for tier, count in (("free", 2), ("hobby", 5), ("pro", 15), ("sharp", len(rows)), ("enterprise", len(rows))):
        assert len(books(tier)) == count
    assert books("free", sportsbook="DraftKings") == {"draftkings"}
    assert books("free", add_sportsbook="fanduel") == {"draftkings", "fanduel"}
    assert books("sharp", sportsbook="fanduel", add_sportsbook="corner_shop") == {"fanduel", "corner_shop"}
    here = {"kalshi", "draftkings", "fanduel", "caesars", "ballybet"}
    for name in ("US-NY", "us-ny"):
        assert books("enterprise", location=name) == here
    assert books("free", location="US-NY") == {"draftkings", "fanduel"}
    assert books("sharp", sportsbook="fanduel,betmgm", location="US-NY") == {"fanduel"}
    assert books("sharp", sportsbook="betmgm", location="US-NY") == set()
    possible = books("enterprise", location="US-NY", location_unknown="true")
    assert here | {"betmgm", "corner_shop"} < possible
    assert not possible & {"polymarket", "smarkets"}
    problem = refused(board, "/odds", {"location": "New York"}, tier="free")
    assert (problem.status, problem.code) == (400, "validation_error")
    assert problem.message == "location must be a country such as GB, or a part of one such as US-NJ, got 'New York'"
    for name in ("sportsbook", "add_sportsbook"):
        for above in ("pinnacle", "corner_shop"):
            problem = refused(board, "/odds", {name: f"draftkings,{above}"}, tier="free")
            assert (problem.status, problem.code) == (403, "tier_restricted")
            assert above in problem.message
    assert refused(board, "/odds/batch", body=Batch(["e"], "pinnacle"), tier="free").code == "tier_restricted"


def test_unknown_ids_are_named(node: Any) -> None:
    query = {"sport": "quidditch", "league": "nbaa", "market": "moneylin", "sportsbook": "drftkings", "event": "e0"}
    for name, value in query.items():
        answer = call(node, "/odds", {name: value})
        assert (answer["data"], answer["meta"]["total"]) == ([], 0)
        assert answer["meta"]["unknown"] == {name: [value]}
        assert answer["pagination"]["has_more"] is False
    assert call(node, "/odds", query)["meta"]["unknown"] == {name: [value] for name, value in query.items()}
    mixed = call(node, "/odds", {"sport": f"{WORLD[0]['sport']},quidditch"})
    assert mixed["meta"]["unknown"] == {"sport": ["quidditch"]}
    assert mixed["data"]
    known = {"sport": "tennis", "league": "nfl", "market": "puck_line", "sportsbook": "bovada"}
    assert "unknown" not in call(node, "/odds", known)["meta"]
    assert call(node, "/odds", {"sprot": "tennis"})["meta"]["ignored"] == ["sprot"]


def test_a_late_board_is_asked_alike() -> None:
    engine = Engine()
    late = engine.delayed(60)
    board = stand(engine)
    now = datetime(2026, 2, 8, tzinfo=UTC)
    assert call(board, "/odds", tier="free", board=late)["data"] == []
    assert call(board, "/odds/delta", {"since": now.isoformat()}, tier="free", board=late)["data"] == []
    for second, decimal in ((0, 1.9), (30, 2.0), (61, 2.1)):
        engine.step([price("e", "fanduel", "moneyline", "LA Lakers", decimal)], now + timedelta(seconds=second))
    shown = {
        tier: call(board, "/odds", tier=tier, board=at)["data"][0]["odds_decimal"]
        for tier, at in (("free", late), ("pro", engine))
    }
    assert shown == {"free": 1.9, "pro": 2.1}


# ---- while the board moves ----


def test_offsets_end_at_their_cap() -> None:
    engine = Engine()
    rows = [price("e", "fanduel", "total_points", "Over", 1.9, line=at + 0.5) for at in range(5301)]
    engine.step(rows, datetime(2026, 2, 8, tzinfo=UTC))
    board = stand(engine)
    pages = call(board, "/odds", {"limit": 200, "offset": 4800})["pagination"]
    assert (pages["has_more"], pages["next_offset"]) == (True, 5000)
    pages = call(board, "/odds", {"limit": 200, "offset": 5000})["pagination"]
    assert (pages["has_more"], pages["next_offset"]) == (True, None)
    rest = list(walk(board, "/odds", {"limit": 200, "cursor": pages["next_cursor"]}))
    assert [len(page["data"]) for page in rest] == [101]
    lines = [row["line"] for page in walk(board, "/odds", {"limit": 200}) for row in page["data"]]
    assert lines == [at + 0.5 for at in range(5301)]
    assert ids([call(board, "/odds", {"cursor": pages["next_cursor"], "offset": 50, "limit": 200})]) == ids(rest)


def stir(engine: Engine, said: Any) -> None:
    """One step of a feed."""
    step = said.step(row_ids(engine.table()))
    engine.step(step.quotes, step.now, removed=step.removed, complete=step.complete, events=step.events)


@FEW
@given(SEEDS, st.sampled_from(["", "sportsbook", "-sport", "odds_decimal"]), st.sampled_from([1, 7, 40]))
def test_a_walk_by_cursor_while_the_board_moves(seed: int, sort: str, limit: int) -> None:
    """Whatever is there all the time, and in a sorted list does not move, is met once; nothing is met twice."""
    engine = Engine()
    said = feed(seed, 3, 5, pauses=(0.0, 0.4, 1.0))
    first = said.first()
    engine.step(first.quotes, first.now)
    board, table = stand(engine), engine.table()
    steady = dict(zip(table["row_id"], table["odds_decimal"], strict=True))
    query: dict[str, Any] = {"limit": limit} | ({"sort": sort} if sort else {})
    met: list[str] = []
    for _ in range(60):
        answer = call(board, "/odds", query)
        met += ids([answer])
        if not answer["pagination"]["has_more"]:
            break
        query["cursor"] = answer["pagination"]["next_cursor"]
        stir(engine, said)
        here = dict(zip(*engine.table().select("row_id", "odds_decimal").get_columns(), strict=True))
        steady = {
            ident: odds
            for ident, odds in steady.items()
            if ident in here and (sort != "odds_decimal" or here[ident] == odds)
        }
    else:
        last = met[-1:]
        assert last
        return
    counts = {ident: met.count(ident) for ident in steady}
    assert set(counts.values()) <= {1}
    if sort != "odds_decimal":
        assert len(met) == len(set(met))


def test_a_postponed_event_keeps_its_place() -> None:
    engine = Engine()
    now = datetime(2026, 2, 8, tzinfo=UTC)

    def starting(event: str, hour: int) -> dict[str, Any]:
        return price(event, "fanduel", "moneyline", "LA Lakers", 1.9, event_start_time=f"2026-02-09T{hour:02d}:00:00Z")

    engine.step([starting("a", 3), starting("b", 1), starting("c", 2)], now)
    board = stand(engine)
    answer = call(board, "/odds", {"limit": 1})
    assert answer["data"][0]["event_id"] == "b"
    engine.step([starting("b", 9), starting("a", 0)], now + timedelta(seconds=1))
    rest = walk(board, "/odds", {"limit": 1, "cursor": answer["pagination"]["next_cursor"]})
    assert [page["data"][0]["event_id"] for page in rest] == ["c", "a"]
    by_start = call(board, "/odds", {"sort": "event_start_time"})["data"]
    assert [row["event_id"] for row in by_start] == ["a", "c", "b"]


@given(st.one_of(st.text(max_size=40), st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode())))
def test_a_broken_cursor_is_refused(node: Any, text: str) -> None:
    if text.strip() and not re.fullmatch(CURSOR_PATTERN, text.strip()):
        problem = refused(node, "/odds", {"cursor": text})
        assert (problem.status, problem.code) == (400, "validation_error")
        assert "next_cursor" in problem.message


@given(st.from_regex(CURSOR_PATTERN, fullmatch=True), st.sampled_from(["", "-odds_decimal", "league"]))
def test_every_cursor_of_the_described_form_is_accepted(node: Any, cursor: str, sort: str) -> None:
    query = {"cursor": cursor, "sort": sort, "offset": 7}
    for more in ({}, {"group_by": "event"}):
        assert "next_cursor" in call(node, "/odds", query | more)["pagination"]
    assert "next_cursor" in call(node, "/odds/delta", query | {"since": "2026-02-08T00:00:00Z"})["pagination"]
    assert Cursor.read(Cursor.read(cursor).text()) == Cursor.read(cursor)


def test_a_cursor_keeps_the_order_of_its_list(node: Any) -> None:
    """Whatever `sort` and `offset` stand beside it."""
    for name in ("", "odds_decimal", "-probability", "sportsbook", "-event_start_time"):
        listed = {"limit": 40, "sort": name}
        first = call(node, "/odds", listed)
        query = listed | {"cursor": first["pagination"]["next_cursor"]}
        second = ids([call(node, "/odds", query)])
        assert second == ids([call(node, "/odds", listed | {"offset": 40})])
        assert second == ids([call(node, "/odds", query | {"sort": "-timestamp", "offset": 3})])
    events = call(node, "/odds", {"group_by": "event", "limit": 1})
    rows = call(node, "/odds", {"cursor": events["pagination"]["next_cursor"], "limit": 200})
    assert events["data"][0]["event_id"] not in {row["event_id"] for row in rows["data"]}
    assert rows["meta"]["total"] - len(rows["data"]) >= len(events["data"][0]["odds"])


@given(st.text(), st.one_of(st.integers(-LATEST, LATEST), st.floats(1e-9, 1e9)))
def test_a_cursor_reads_back_as_written(text: str, value: float) -> None:
    rest = (text, "full_game", "", text, -5, 0, text, "", 2**40, "fanduel")
    for cursor in (
        Cursor("", None, LATEST, text, rest), Cursor("-odds_decimal", value, -1, text, None),
        Cursor("league", text, 0, text, rest),
    ):  # fmt: skip
        assert Cursor.read(cursor.text()) == cursor
        assert re.fullmatch("[A-Za-z0-9._~-]+", cursor.text()), "no URL has to escape it"


# ---- rejections ----


def test_rows_say_which_guard_rejects_them(node: Any) -> None:
    prepared, rows = verdicts(node.engine)
    expected = dict.fromkeys((row["row_id"] for row in rows_of(node.engine)), "")
    expected |= {rows[at]: NAMES[code] for at, code in enumerate(prepared.identity.verdict.tolist())}
    for at, row in enumerate(prepared.identity.groups.row.tolist()):
        expected[rows[row]] = NAMES[prepared.guarded.reason[at]]
    table, now = {row["row_id"]: row for row in rows_of(node.engine)}, node.engine.moment

    def alone(row: dict[str, Any]) -> str:
        """Of a market that is not compared: what the price tells by itself."""
        book, age = catalog.book(row["sportsbook"]), (now - row["last_seen_at"]).total_seconds()
        if age > (30.0 if row["is_live"] else 600.0):
            return "stale"
        if not row["is_live"] and row["event_start_time"] is not None and row["event_start_time"] < now:
            return "started_not_live"
        return "mid_price_source" if book.mid_price else "parlay_only" if book.parlay_only else ""

    seen = set()
    for page in walk(node, "/odds", {"limit": 200}):
        for row in page["data"]:
            guard = expected[row["id"]]
            guard = alone(table[row["id"]]) if guard in UNCOMPARED else guard
            assert row["rejection"] == ({"guard": guard, "reason": reason(guard)} if guard else None)
            seen.add(guard)
    assert len(seen) > 3
    best = call(node, "/odds/best", {"limit": 200})["data"]
    assert {row["rejection"] for row in best} == {None}


def test_a_price_that_only_grew_old_is_in_the_delta() -> None:
    """Everywhere the same; a delayed board has the reasons of its own time."""
    engine = Engine()
    late, now = engine.delayed(60), datetime(2026, 2, 8, tzinfo=UTC)
    fresh = [price("e", "fanduel", "moneyline", side, 1.9) for side in ("Boston Celtics", "LA Lakers")]
    old = price("e", "pinnacle", "moneyline", "LA Lakers", 3.4, last_seen_at=now - timedelta(seconds=590))
    engine.step([*fresh, old], now)
    board = stand(engine)
    query = {"since": now.isoformat()}
    assert call(board, "/odds/delta", query)["data"] == []
    later = now + timedelta(seconds=11)
    engine.step([], later)
    (row,) = call(board, "/odds/delta", query)["data"]
    stale = {"guard": "stale", "reason": "not seen for too long"}
    assert (row["sportsbook"], row["rejection"]) == ("pinnacle", stale)
    assert call(board, "/odds/delta", {"since": later.isoformat()})["data"] == []

    def shown(path: str, **more: Any) -> list[Any]:
        data = call(board, path, **more)["data"]
        flat = [row for rows in data.values() for row in rows] if isinstance(data, dict) else data
        return [row["rejection"] for row in flat if row["sportsbook"] == "pinnacle"]

    assert shown("/odds") == shown("/odds", query={"fields": "sportsbook,rejection"}) == [stale]
    assert shown("/odds/comparison", query={"event": "e"}) == shown("/events/{eventId}/odds", eventId="e") == [stale]
    assert shown("/odds/batch", body=Batch(["e"])) == [stale]
    assert call(board, "/odds", {"group_by": "event"})["data"][0]["odds"][-1]["rejection"] == stale
    best = {row["selection"]: row["sportsbook"] for row in call(board, "/odds/best")["data"]}
    assert best == {"Boston Celtics": "fanduel", "LA Lakers": "fanduel"}
    engine.step([], now + timedelta(seconds=60))
    assert shown("/odds", board=late) == [None]
    engine.step([], now + timedelta(seconds=72))
    assert shown("/odds", board=late) == [stale]
    engine.step([old | {"last_seen_at": now + timedelta(seconds=80)}], now + timedelta(seconds=80))
    (row,) = call(board, "/odds/delta", {"since": later.isoformat()})["data"]
    assert row["rejection"] is None


def test_prices_of_uncompared_markets_grow_old_too() -> None:
    """A correct score is compared by no detector; its prices can be bet while they are fresh, and are best."""
    engine, now = Engine(), datetime(2026, 2, 8, tzinfo=UTC)

    def score(book: str, decimal: float, **more: Any) -> dict[str, Any]:
        return price("e", book, "correct_score", "2-1", decimal, sport="soccer", league="epl", **more)

    old = score("pinnacle", 9.5, last_seen_at=now - timedelta(seconds=590))
    engine.step([score("fanduel", 9.0), old, score("underdog", 12.0)], now)
    board = stand(engine)

    def guards() -> dict[str, str]:
        rows = call(board, "/odds")["data"]
        return {row["sportsbook"]: (row["rejection"] or {"guard": ""})["guard"] for row in rows}

    assert engine.rejected_counts() == {"unmapped": 3}
    assert guards() == {"pinnacle": "", "fanduel": "", "underdog": "parlay_only"}
    assert [row["sportsbook"] for row in call(board, "/odds/best")["data"]] == ["pinnacle"]
    engine.step([], now + timedelta(seconds=11))
    assert guards() == {"pinnacle": "stale", "fanduel": "", "underdog": "parlay_only"}
    assert [row["sportsbook"] for row in call(board, "/odds/best")["data"]] == ["fanduel"]
    assert len(call(board, "/odds/delta", {"since": now.isoformat()})["data"]) == 1
    engine.step([old | {"last_seen_at": now}], now + timedelta(seconds=12))
    assert guards()["pinnacle"] == ""


def test_every_verdict_has_a_reason() -> None:
    assert set(SENTENCES) == set(NAMES) - {""}
    assert not any("{" in reason(name) for name in NAMES[1:])


# ---- what changed ----

STILL = ("last_seen_at", "timestamp")  # a price that is seen again has not changed


def snapshot(board: Any) -> dict[str, Body]:
    return {
        row["id"]: {name: value for name, value in row.items() if name not in STILL}
        for page in walk(board, "/odds", {"limit": 200})
        for row in page["data"]
    }


@FEW
@given(SEEDS, st.integers(1, 30))
def test_a_snapshot_and_its_deltas_are_the_later_snapshot(seed: int, limit: int) -> None:
    engine = Engine()
    said = feed(seed, 2, 5, pauses=(0.4, 1.0, 1.0, 5.0, 30.0, 300.0))
    first = said.first()
    engine.step(first.quotes, first.now)
    board = stand(engine)
    known, since = snapshot(board), moment(said.now).isoformat()
    for _ in range(6):
        for _ in range(said.rng.randint(1, 2)):
            stir(engine, said)
        if said.now - round(datetime.fromisoformat(since).timestamp() * SECOND) > 600 * SECOND:
            assert call(board, "/odds/delta", {"since": since})["meta"]["since_clamped"] is True
            return
        for page in walk(board, "/odds/delta", {"since": since, "limit": limit}):
            assert "since_clamped" not in page["meta"]
            for row in page["data"]:
                known[row["id"]] = {name: value for name, value in row.items() if name not in STILL}
            for row in page["removed"]:
                assert set(row) == {"id", "sportsbook", "removed_at"}
                known.pop(row["id"], None)
            later = page["meta"]["server_time"]
        since = later
        assert known == snapshot(board)
        assert call(board, "/odds/delta", {"since": since})["data"] == []


@FEW
@given(st.integers(0, 2**32))
def test_deltas_carry_every_field(seed: int) -> None:
    """Rows of little books that move, leave, link elsewhere, and whose own movement changes what others are."""
    rng = random.Random(seed)
    engine, now = Engine(), datetime(2026, 2, 8, tzinfo=UTC)
    engine.step([price("e", "pinnacle", "moneyline", "LA Lakers", 2.0)], now)
    board = stand(engine)
    known, since = snapshot(board), now.isoformat()
    books, lines, start = ("draftkings", "fanduel", "pinnacle", "zork"), (200.5, 201.5, 202.5), now

    def quote() -> dict[str, Any]:
        line, side = rng.choice(lines), rng.choice(("Over", "Under"))
        more: dict[str, Any] = {
            "event_start_time": start + timedelta(hours=rng.randint(1, 2)), "is_active": rng.random() < 0.8,
            "deep_link": f"https://sportsbook.draftkings.com/{rng.randint(1, 2)}", "max_bet": float(rng.randint(1, 2)),
            "sportsbook_name": rng.choice(("A", "B")), "external_event_id": rng.choice("12"),
            "market_id": rng.choice("12"), "selection_id": rng.choice("12"), "is_live": rng.random() < 0.2,
            "is_main_line": rng.choice((True, False, None)),
            "odds_changed_at": now - timedelta(seconds=rng.randint(0, 3)),
        }  # fmt: skip
        chosen = {"event_start_time": None} | {name: value for name, value in more.items() if rng.random() < 0.2}
        return price(
            rng.choice("ef"), rng.choice(books), "total_points", side, rng.choice((1.8, 1.9, 2.0)), line=line, **chosen
        )

    for _ in range(12):
        for _ in range(rng.randint(1, 3)):
            now += timedelta(seconds=rng.choice((0.5, 1, 5)))
            gone = [id_ for id_ in known if rng.random() < 0.05]
            on = set(engine.table()["row_id"].to_list())
            engine.step([quote() for _ in range(rng.randint(0, 3))], now, removed=[id_ for id_ in gone if id_ in on])
            if rng.random() < 0.3:
                call(board, "/odds", {"limit": 200})
        answer = call(board, "/odds/delta", {"since": since, "limit": 200})
        for row in answer["data"]:
            known[row["id"]] = {name: value for name, value in row.items() if name not in STILL}
        for row in answer["removed"]:
            known.pop(row["id"], None)
        since, shown = answer["meta"]["server_time"], snapshot(board)
        assert known.keys() == shown.keys()
        wrong = {name: (row[name], shown[id_][name]) for id_, row in known.items() for name in row
                 if row[name] != shown[id_][name]}  # fmt: skip
        assert not wrong
        assert call(board, "/odds/delta", {"since": since})["data"] == []


def test_delta_says_what_left_and_for_how_long() -> None:
    engine = Engine()
    now = datetime(2026, 2, 8, tzinfo=UTC)
    rows = [price("e", book, "moneyline", "LA Lakers", 1.9) for book in ("fanduel", "pinnacle")]
    engine.step(rows, now)
    board = stand(engine)

    def delta(at: datetime, tier: str = "sharp", **query: Any) -> Body:
        return call(board, "/odds/delta", {"since": at.isoformat()} | query, tier=tier)

    assert [row["sportsbook"] for row in delta(now - timedelta(seconds=1))["data"]] == ["fanduel", "pinnacle"]
    assert delta(now)["data"] == []  # strictly after
    left = now + timedelta(seconds=10)
    engine.step(removed=engine.table()["row_id"].to_list(), now=left)
    answer = delta(now)
    assert [(row["sportsbook"], row["removed_at"]) for row in answer["removed"]] == [
        ("fanduel", "2026-02-08T00:00:10.000000Z"), ("pinnacle", "2026-02-08T00:00:10.000000Z"),
    ]  # fmt: skip
    assert (answer["data"], answer["meta"]["server_time"]) == ([], "2026-02-08T00:00:10.000000Z")
    assert [row["sportsbook"] for row in delta(now, "free")["removed"]] == ["fanduel"]
    assert delta(now, sport="soccer")["removed"] == []
    assert delta(left)["removed"] == []
    engine.step([], now + timedelta(seconds=605))
    answer = delta(now)
    assert (len(answer["removed"]), answer["meta"]["since_clamped"]) == (2, True)
    engine.step([], now + timedelta(seconds=615))
    assert delta(now)["removed"] == []
    assert refused(board, "/odds/delta").status == 400
    assert refused(board, "/odds/delta", {"since": "noon"}).code == "validation_error"


@pytest.mark.parametrize("by", ["cursor", "offset"])
def test_a_page_of_events_has_a_bounded_number_of_rows(node: Any, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """It ends early, and goes on where it ended; an event is never cut."""
    whole = call(node, "/odds", {"group_by": "event", "limit": 200})
    sizes = [len(event["odds"]) for event in whole["data"]]
    assert len(sizes) > 2
    monkeypatch.setattr("oddsengine.query.reader.MOST_ROWS", max(sizes) + 1)
    pages = list(walk(node, "/odds", {"group_by": "event", "limit": 200}, by))
    assert [event for page in pages for event in page["data"]] == whole["data"]
    assert len(pages) > 1
    for page in pages:
        assert page["pagination"]["limit"] == 200
        assert len(page["data"]) == 1 or sum(len(event["odds"]) for event in page["data"]) <= max(sizes) + 1


def test_a_batch_has_a_bounded_number_of_rows(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that do not fit are to be asked for next; one that alone has too many prices is cut."""
    listed = call(node, "/odds", {"group_by": "event", "limit": 200})["data"]
    whole = {event["event_id"]: event["odds"] for event in listed}
    sizes = [len(rows) for rows in whole.values()]
    assert min(sizes) > 1
    monkeypatch.setattr("oddsengine.query.reader.MOST_ROWS", max(sizes) + 1)
    ids, found, answers = [*reversed(whole), "nothing"], dict[str, Any](), 0
    while ids:
        answer = call(node, "/odds/batch", body=Batch(ids), tier="enterprise")
        meta = answer.get("meta", {})
        assert "truncated" not in meta
        assert sum(map(len, answer["data"].values())) <= max(sizes) + 1
        found, ids, answers = found | answer["data"], meta.get("remaining", []), answers + 1
    assert answers > 1
    assert found == {**whole, "nothing": []}
    largest = max(whole, key=lambda id_: len(whole[id_]))
    monkeypatch.setattr("oddsengine.query.reader.MOST_ROWS", max(sizes) - 1)
    one = call(node, "/odds/batch", body=Batch([largest]), tier="enterprise")
    assert (one["data"][largest], one["meta"]) == (whole[largest][:-1], {"truncated": True})
    compared = call(node, "/odds/comparison", {"event": largest}, tier="enterprise")
    assert compared["meta"]["truncated"] is True
    assert sum(map(len, compared["data"].values())) == max(sizes) - 1
