"""The odds screen, asked without HTTP, beside the lists of prices and of +EV bets of the same board."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
import pytest

from oddsengine import catalog
from oddsengine.live.engine import Engine
from oddsengine.query import Index, RowFilter
from oddsengine.simulate import World
from oddsengine_service.board.boards import Boards
from oddsengine_service.http.endpoints import Context
from oddsengine_service.http.params import parse
from oddsengine_service.routes import odds_routes, screen_routes
from oddsengine_service.tiers import TIERS, Caller, books_of

NOW = datetime(2026, 2, 7, 18, tzinfo=UTC)
PATHS = {endpoint.path: endpoint for endpoint in (*odds_routes.endpoints, *screen_routes.endpoints)}
Body = dict[str, Any]


def call(engine: Engine, path: str, tier: str = "enterprise", method: str = "close", **query: Any) -> Body:
    node = SimpleNamespace(engine=engine, boards=Boards(engine, method, {}))
    read, ignored = parse(urlencode(query).encode(), PATHS[path].query)
    rights = TIERS[tier]
    caller = Caller("account", "key", rights, rights.rate, 0, rights.features)
    answer = PATHS[path].answer(Context(caller, read, {}, None, engine, node, ignored))  # type: ignore[arg-type]
    found: Body = msgspec.json.decode(msgspec.json.encode(answer))
    return found


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine()
    for batch in World(3, events=14).run(40.0):
        made.step(batch.quotes, batch.now)
    return made


def prices(body: Body) -> dict[str, tuple[Body, Body, Body, Body]]:
    """By id of a price: its game, market, outcome and itself."""
    return {
        price["id"]: (game, market, outcome, price)
        for game in body["data"]
        for market in game["markets"]
        for outcome in market["outcomes"]
        for price in outcome["prices"].values()
    }


@pytest.mark.parametrize("method", ["close", "power"])
def test_ev_is_that_of_the_list(engine: Engine, method: str) -> None:
    view = engine.view(method=method, min_ev=0.0)
    listed = {row["odds_id"]: row for row in view.opportunities(["ev"]).ev.to_dicts()}
    found = prices(call(engine, "/odds/screen", method=method, limit=200))
    both = listed.keys() & found.keys()
    assert len(both) > 5
    for ident in both:
        assert found[ident][3]["ev_percentage"] == pytest.approx(listed[ident]["ev_percentage"], abs=1e-4)
    # Markets without lines are shown whole.
    found = prices(call(engine, "/odds/screen", method=method, market="moneyline", limit=200))
    assert {ident for ident, row in listed.items() if row["market_type"] == "moneyline"} <= found.keys()


def test_prices_bests_and_holds_are_those_of_the_board(engine: Engine) -> None:
    body = call(engine, "/odds/screen", market="moneyline", league="nba", limit=200)
    rows = {row["id"]: row for row in call(engine, "/odds", market="moneyline", league="nba", limit=200)["data"]}
    best = {(row["event_id"], row["selection_type"]): row for row in
            call(engine, "/odds/best", market="moneyline", league="nba", limit=200)["data"]}  # fmt: skip
    found = prices(body)
    assert found.keys() == rows.keys()
    by_book = defaultdict[tuple[str, str], list[Body]](list)
    for row in rows.values():
        by_book[row["event_id"], row["sportsbook"]].append(row)
    for ident, (game, market, outcome, price) in found.items():
        row = rows[ident]
        assert (price["odds_american"], price["odds_decimal"], price["line"]) == (
            row["odds_american"], row["odds_decimal"], None)  # fmt: skip
        assert price["rejection"] == (row["rejection"] and row["rejection"]["reason"])
        one = best.get((game["event_id"], outcome["selection_type"]))
        assert (one is None) == (outcome["best"] == [])
        if one is not None:
            assert one["sportsbook"] in outcome["best"]
        book = row["sportsbook"]
        both = by_book[game["event_id"], book]
        if book in market["holds"] and len(both) == 2 and not (catalog.book(book).commission or catalog.book(book).fee):
            total = sum(1.0 / each["odds_decimal"] for each in both)
            assert market["holds"][book] == pytest.approx(100.0 * (total - 1.0), abs=1e-3)
    for game in body["data"]:
        for market in game["markets"]:
            shares = [outcome["fair_probability"] for outcome in market["outcomes"]]
            assert None not in shares
            assert sum(shares) == pytest.approx(1.0, abs=1e-5)
            assert [outcome["selection_type"] for outcome in market["outcomes"]] == ["away", "home"]


def quote(book: str, side: str, odds: float, line: float | None = None, **more: Any) -> Body:
    home, away = "Boston Celtics", "Miami Heat"
    return {
        "sportsbook": book, "event_id": "e", "sport": "basketball", "league": "nba", "home_team": home,
        "away_team": away, "market_type": "moneyline" if line is None else "point_spread",
        "selection": {"home": home, "away": away}.get(side, side), "selection_type": side, "odds_decimal": odds,
        "line": line, "event_start_time": NOW + timedelta(hours=5), "last_seen_at": NOW, "is_live": False, **more,
    }  # fmt: skip


def spread(book: str, line: float, home: float, away: float) -> list[Body]:
    return [quote(book, "home", home, line), quote(book, "away", away, -line)]


def test_a_book_without_the_main_line_is_shown_with_its_most_even_one() -> None:
    made = Engine()
    books = ("pinnacle", "fanduel", "draftkings", "betmgm")
    rows = [row for book in books for row in spread(book, -4.5, 1.92 - 0.01 * (book == "fanduel"), 1.9)]
    rows += [*spread("fanduel", -3.5, 1.88, 1.88), *spread("bet365", -6.5, 2.4, 1.57)]
    rows += [*spread("bet365", -5.5, 2.05, 1.8)]
    made.step(rows, NOW)
    (market,) = call(made, "/odds/screen", market="spread")["data"][0]["markets"]
    away, home = market["outcomes"]
    assert (market["line"], home["line"], away["line"]) == (-4.5, -4.5, 4.5)
    assert (home["prices"]["bet365"]["line"], away["prices"]["bet365"]["line"]) == (-5.5, 5.5)
    assert home["prices"]["fanduel"]["line"] == -4.5
    assert "bet365" not in home["best"]  # 2.05 is of another bet
    assert sorted(home["best"]) == ["betmgm", "draftkings", "pinnacle"]
    assert market["holds"]["bet365"] == pytest.approx(100.0 * (1 / 2.05 + 1 / 1.8 - 1.0), abs=1e-3)
    assert market["hold_percentage"] == pytest.approx(100.0 * (1 / 1.92 + 1 / 1.9 - 1.0), abs=1e-3)


def test_a_side_without_a_price_of_the_draw_is_another_market() -> None:
    made = Engine()
    soccer: Body = {
        "sport": "soccer",
        "league": "england_premier_league",
        "home_team": "Arsenal",
        "away_team": "Everton",
    }
    names = {"home": "Arsenal", "away": "Everton", "draw": "Draw"}

    def priced(book: str, **odds: float) -> list[Body]:
        return [quote(book, side, each, **soccer, selection=names[side]) for side, each in odds.items()]

    made.step([*priced("pinnacle", home=1.8, draw=3.6, away=4.6), *priced("fanduel", home=1.78, draw=3.5, away=4.5),
               *priced("bet365", home=1.3, away=3.4), *priced("betmgm", home=1.31, away=3.3)], NOW)  # fmt: skip
    markets = call(made, "/odds/screen", market="moneyline")["data"][0]["markets"]
    kinds = {tuple(outcome["selection_type"] for outcome in market["outcomes"]): market for market in markets}
    assert kinds.keys() == {("away", "draw", "home"), ("away", "home")}
    assert kinds["away", "home"]["outcomes"][1]["prices"].keys() == {"bet365", "betmgm"}
    assert kinds["away", "draw", "home"]["outcomes"][2]["best"] == ["pinnacle"]


def test_what_cannot_be_bet_has_a_reason_and_no_ev() -> None:
    made = Engine()
    books = ("pinnacle", "fanduel", "draftkings", "betmgm", "caesars")
    rows = [quote(book, side, 1.91) for book in books for side in ("home", "away")]
    rows += [quote("bet365", "home", 2.6), quote("bet365", "away", 1.5), quote("betrivers", "home", 1.95)]
    made.step([*rows, quote("betrivers", "away", 1.9, is_active=False)], NOW)
    (market,) = call(made, "/odds/screen", market="moneyline")["data"][0]["markets"]
    away, home = market["outcomes"]
    wrong = home["prices"]["bet365"]
    assert (wrong["ev_percentage"], wrong["rejection"]) == (None, "too generous compared with the other books")
    assert "bet365" not in home["best"]
    assert not away["prices"]["betrivers"]["is_active"]
    assert home["prices"]["fanduel"]["ev_percentage"] < 0.0


@pytest.mark.parametrize("tier", ["free", "hobby", "pro"])
def test_only_books_of_the_tier_and_the_request_are_shown(engine: Engine, tier: str) -> None:
    own = books_of(tier)
    assert own is not None
    body = call(engine, "/odds/screen", tier, market="moneyline")
    assert set(body["meta"]["sportsbooks"]) <= own
    chosen = call(engine, "/odds/screen", tier, market="moneyline", sportsbook="draftkings,fanduel")
    assert set(chosen["meta"]["sportsbooks"]) == {"draftkings", "fanduel"} & own


def test_pages_and_unknown_ids(engine: Engine) -> None:
    whole = call(engine, "/odds/screen", market="moneyline", limit=200)
    events = [game["event_id"] for game in whole["data"]]
    assert len(set(events)) == len(events) == whole["meta"]["total"] > 3
    second = call(engine, "/odds/screen", market="moneyline", limit=2, offset=1)
    assert [game["event_id"] for game in second["data"]] == events[1:3]
    assert second["pagination"]["next_offset"] == 3
    assert call(engine, "/odds/screen", market="no_such_market")["meta"]["unknown"] == {"market": ["no_such_market"]}
    assert call(Engine(), "/odds/screen")["data"] == []


def test_rows_of_no_market_have_no_fair_price() -> None:
    made = Engine()
    made.step([quote("pinnacle", "home", 1.9), quote("fanduel", "home", 1.95, is_active=False)], NOW)
    with Index(made).reader(judged=True) as reader:
        slots = reader.matching_rows(RowFilter(), {})
        assert slots.size == 2
        fair = reader.fair(slots, None, "close")
        for column in (fair.probability, fair.ev, fair.hold, fair.own):
            assert np.isnan(column).all()
