"""What a view holds open is what a search of the whole board finds, whichever markets its steps left alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.effort import less, some
from support.golden import VIEWS as USUAL
from support.golden import fed, world

from oddsengine import find_middles
from oddsengine.catalog import amended_fair_table
from oddsengine.detection.kinds import KINDS
from oddsengine.live.engine import Engine
from oddsengine.live.view import View
from oddsengine.simulate import World

START = datetime(2026, 2, 8, tzinfo=UTC)
VIEWS: tuple[dict[str, Any], ...] = (*USUAL, {"method": "close", "min_ev": -2.0})
Found = dict[tuple[int, int], tuple[list[int], list[float]]]


def held(view: View) -> Found:
    """What a view holds open: legs and figures by kind and id."""
    kept, at = view.open.table, view.open.places()
    return columns(kept.kind[at], kept.id[at], kept.legs[at], kept.figures[at])


def columns(kind: Any, ident: Any, legs: Any, figures: Any) -> Found:
    rows = zip(kind.tolist(), ident.tolist(), legs.tolist(), np.nan_to_num(figures, nan=-9.0).tolist(), strict=True)
    return {(k, i): (legs_, figures_) for k, i, legs_, figures_ in rows}


def check(engine: Engine, views: list[View]) -> None:
    """A view that is resumed searches everything."""
    for view, words in zip(views, VIEWS, strict=True):
        before = held(view)
        engine.close(view)
        assert engine.view(**words, keep=True) is view
        assert before == held(view)


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_open_sets_are_what_a_whole_search_finds(seed: int) -> None:
    engine = Engine()
    views = [engine.view(**words, keep=True) for words in VIEWS]
    found = 0
    for step in fed([100 + 10 * seed + at for at in range(3)], 45, events=2, books=8)(engine):
        engine.step(**step)
        check(engine, views)
        found += sum(len(held(view)) for view in views)
    assert found > 100


@pytest.mark.parametrize("method", ["close", "power"])
def test_many_users_find_together_what_each_finds_alone(method: str) -> None:
    rng, engine = np.random.default_rng(5), Engine()
    books = World(7, hazards=True, events=4).books
    wants: list[dict[str, Any]] = [
        {"books": sorted(rng.choice(books, int(rng.integers(3, len(books))), replace=False).tolist()), "method": method,
         "min_ev": -3.0, "min_middle_ev": None} for _ in range(less(25, 12))
    ]  # fmt: skip
    views = [engine.view(**words, keep=True) for words in wants]
    for step in world(7, less(8, 4), events=4, live=0.0, tick=2.0, pace=60.0)(engine):
        engine.step(**step)
        together = [held(view) for view in views]
        for view, words, found in zip(views, wants, together, strict=True):
            engine.close(view)
            assert engine.view(**words, keep=True) is view
            assert held(view) == found
    assert len({len([kind for kind, _ in found if kind == KINDS.code("middles")]) for found in together}) > 5


def test_a_moneyline_changes_beside_a_line_that_is_quoted_on_one_side_alone() -> None:
    """That line is estimated from its neighbours, whose votes are needed although they did not change."""
    game = {"event_id": "e", "sport": "baseball", "league": "mlb", "home_team": "Home", "away_team": "Away"}

    def both(book: str, line: float | None, *prices: float) -> list[dict[str, Any]]:
        market = "moneyline" if line is None else "run_line"
        lines = (None, None) if line is None else (line, -line)
        return [
            {**game, "sportsbook": book, "market_type": market, "selection": team, "line": at, "odds_decimal": price}
            for team, at, price in zip(("Home", "Away"), lines, prices, strict=False)
        ]

    engine = Engine(guards=[], fair=amended_fair_table({"vote": {"others": 0}}))
    view = engine.view(method="close", min_middle_ev=None, keep=True)
    board = both("betrivers", -0.5, 1.95)
    for at, book in enumerate(("fanduel", "draftkings", "betmgm", "caesars")):
        board += both(book, None, 1.75 + at / 100, 2.16 - at / 100) + both(book, -1.5, 2.4 - at / 100, 1.6 + at / 100)
    for at, price in enumerate((1.75, 1.7)):
        engine.step([*board, *both("fanduel", None, price)], START + timedelta(seconds=at))
        found = held(view)
        engine.close(view)
        assert engine.view_of(view.wanted) is view
        assert held(view) == found
        assert any(kind == KINDS.code("middles") for kind, _ in found)


def test_users_share_a_fitted_shape_but_not_what_their_books_say_of_a_draw() -> None:
    game = {"event_id": "e", "sport": "hockey", "league": "nhl", "home_team": "Home", "away_team": "Away"}
    lines = {"fanduel": -1.5, "draftkings": -2.5, "betmgm": None, "caesars": None}
    prices = {"fanduel": (2.3, 1.66), "draftkings": (2.4, 1.7), "betmgm": (1.8, 2.1), "caesars": (1.5, 2.75)}
    odds: list[dict[str, Any]] = [
        {**game, "sportsbook": book, "odds_decimal": price, "selection": team,
         "market_type": "moneyline" if line is None else "point_spread",
         "line": None if line is None else line if team == "Home" else -line}
        for book, line in lines.items() for team, price in zip(("Home", "Away"), prices[book], strict=True)
    ]  # fmt: skip
    total: dict[str, Any] = {
        **game,
        "sportsbook": "fanduel",
        "market_type": "total_goals",
        "odds_decimal": 1.91,
        "line": 6.5,
    }
    odds += [{**total, "selection": side} for side in ("Over", "Under")]
    engine = Engine(guards=[])
    words = [
        {"books": [*list(lines)[:2], other], "sharp": "fanduel", "min_middle_ev": None} for other in list(lines)[2:]
    ]
    views = [engine.view(**each, keep=True) for each in words]  # type: ignore[arg-type]
    engine.step(odds, START)
    together = [held(view) for view in views]
    chances = [
        figures[1] for found in together for (kind, _), (_, figures) in found.items() if kind == KINDS.code("middles")
    ]
    assert len(chances) == 2
    assert chances[0] != chances[1]
    for view, found in zip(views, together, strict=True):
        engine.close(view)
        assert engine.view_of(view.wanted) is view
        assert held(view) == found


def test_open_sets_in_play() -> None:
    engine = Engine()
    views = [engine.view(**words, keep=True) for words in VIEWS]
    for step in world(900, less(40, 20), events=3, live=1.0, tick=2.0, pace=60.0)(engine):
        engine.step(**step)
        check(engine, views)


def quotes(**odds: float) -> list[dict[str, Any]]:
    """A moneyline by book and side, as `pinnacle_home=2.0`."""
    return [
        {
            "sportsbook": name.rsplit("_", 1)[0], "event_id": "e", "sport": "tennis", "home_team": "Home",
            "away_team": "Away", "market_type": "moneyline", "selection": name.rsplit("_", 1)[1].title(),
            "odds_decimal": price,
        }
        for name, price in odds.items()
    ]  # fmt: skip


def test_a_market_that_leaves_and_returns_as_it_was_is_searched_again() -> None:
    engine = Engine()
    view = engine.view(keep=True)
    prices = quotes(
        pinnacle_home=1.9, pinnacle_away=2.0, fanduel_home=2.1, fanduel_away=1.8, bet365_home=1.9, bet365_away=1.98,
        caesars_home=1.89, caesars_away=1.97,
    )  # fmt: skip
    first = engine.step(prices, START)
    before = view.ids()
    assert before["ev"]
    engine.step((), START + timedelta(seconds=1), complete=["pinnacle", "fanduel", "bet365", "caesars"])
    assert not any(view.ids().values())
    again = engine.step(prices, START + timedelta(seconds=2))
    assert view.ids() == before
    assert sorted(again.of(view).ids("ev", new=True)) == sorted(first.of(view).ids("ev", new=True))


@pytest.mark.parametrize("seed", some(range(4), 1))
def test_what_rests_on_a_market_that_leaves_is_searched_again(seed: int) -> None:
    """Lines that gave a middle its tails, the moneyline beside a spread, an equivalent: a whole market goes at once."""
    engine, rng = Engine(), np.random.default_rng(seed)
    views = [engine.view(**words, keep=True) for words in VIEWS]
    step = next(iter(world(700 + seed, 1, events=4, live=0.0)(engine)))
    engine.step(step["quotes"], step["now"])
    markets: list[Any] = ["event_id", "market_type", "player_name", pl.col("line").abs()]
    left = engine.table().select(*markets).unique(maintain_order=True).rows()
    for at in range(30):
        gone = left.pop(int(rng.integers(len(left))))
        table = engine.table().with_columns(pl.col("line").abs())
        same = pl.all_horizontal(
            pl.col(name).eq_missing(value) for name, value in zip(table.select(*markets).columns, gone, strict=True)
        )
        ids = table.filter(same)["row_id"].to_list()
        engine.step((), step["now"] + timedelta(milliseconds=at), removed=ids)
        check(engine, views)


@pytest.mark.parametrize("seed", some(range(6), 1))
def test_the_fast_pass_overlooks_no_middle(seed: int) -> None:
    """A threshold leaves out what is worth less, by the figures that are shown."""
    engine = Engine()
    engine.step(**next(iter(world(500 + seed, 1, events=8, live=0.0)(engine))))
    table = engine.table()
    every = find_middles(table)
    values = every["expected_value"]
    for least in values.gather_every(3).to_list():
        some = find_middles(table, min_ev=least - 1e-6)
        assert sorted(some["id"]) == sorted(every.filter(values >= least - 1e-6)["id"])
    assert every.height > 20


def test_what_sleeping_views_held_makes_room() -> None:
    """A view that is resumed and suspended takes places that others gave up, and theirs stay."""
    engine = Engine()
    for step in fed([8], 20, events=2, books=8)(engine):
        engine.step(**step)
    first = engine.view(min_ev=-5.0, method="power", keep=True)
    before = held(first)
    assert before
    most = 0
    for turn in range(30):
        others = [engine.view(min_ev=-5.0 - at, method="power", keep=True) for at in range(1, 12)]
        assert all(held(other).items() >= before.items() for other in others)
        for other in others:
            engine.close(other)
            assert not held(other)
        if turn == 1:
            most = engine.state.opened.top
    assert (engine.state.opened.top, held(first)) == (most, before)


def test_a_table_shrinks_once_views_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others hold open stays, and steps go on from there."""
    monkeypatch.setattr("oddsengine.board.open._COMPACT", 0)
    engine = Engine()
    views = [engine.view(**words, keep=True) for words in VIEWS]
    many = [engine.view(max_hold=hold, min_ev=-20.0, min_middle_ev=None) for hold in (2.0, 3.0, 4.0)]
    feed = world(7, 9, events=4, live=0.0, tick=2.0, pace=60.0)(engine)
    for at, step in enumerate(feed):
        engine.step(**step)
        if at == 4:
            before, size = [held(view) for view in views], engine.state.opened.id.size
            for view in many:
                view.close()
            assert [held(view) for view in views] == before
            assert engine.state.opened.id.size < size / 2
            assert engine.state.opened.top == sum(view.open.places().size for view in views)
        check(engine, views)
