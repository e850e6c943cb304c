"""What reviews of the live board found, kept so that it does not come back."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.effort import less, some

import oddsengine as oe
from oddsengine.board.names import Names, Votes
from oddsengine.live.engine import DelayedEngine, Engine
from oddsengine.live.view import View

NOW = datetime(2026, 2, 8, tzinfo=UTC)


def quote(selection: str = "X", odds: float = 1.95, book: str = "pinnacle", **fields: Any) -> dict[str, Any]:
    return {
        "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "X", "away_team": "Y",
        "market_type": "moneyline", "selection": selection, "odds_decimal": odds, **fields,
    }  # fmt: skip


ARB = [quote("X", 2.2, "fanduel"), quote("Y", 2.2, "draftkings"), quote("X", 1.9), quote("Y", 1.9)]


def test_a_frame_with_row_numbers_of_its_own() -> None:
    rows = [quote("x", book="a"), quote("y", book="b"), quote("z", book=""), quote("w", book="d")]
    prices = pl.Series("odds_american", [110.0, -120.0, 130.0, 140.0])
    frame = pl.DataFrame(rows).drop("odds_decimal").with_columns(prices, row=pl.Series([2, 3, 4, 5]))
    engine = oe.Engine()
    engine.step(frame, NOW)
    assert engine.table().sort("sportsbook")["odds_american"].to_list() == [110.0, -120.0, 140.0]


def test_a_link_with_the_separator_of_links() -> None:
    engine = oe.Engine()
    engine.step([quote(deep_link="https://x/?q=\x1fz\x1fz", max_bet=3.0)], NOW)
    assert engine.table().select("deep_link", "sportsbook_name", "max_bet").row(0) == ("https://x/?q= z z", None, 3.0)


def test_a_negative_limit_is_unknown() -> None:
    """Some sources mean that by -1."""
    unknown = quote(max_bet=-1.0)
    for quotes in ([unknown], json.dumps([unknown], default=str), pl.DataFrame([unknown])):
        engine = oe.Engine()
        engine.step(quotes, NOW)
        assert engine.table()["max_bet"].to_list() == [None]


def test_what_exchanges_say_beside_books_that_say_nothing(tmp_path: Path) -> None:
    """Prices of one batch with and without each field; a tape has them all."""
    given: list[dict[str, Any]] = [
        {}, {"max_bet": 3.0}, {"volume": 7.5}, {"volume": 0.0, "open_interest": 2.0, "is_main_line": True},
        {"exchange_token_id": "0x\x1f1", "volume_24h": 1e9}, {"is_alternate_line": False},
    ]  # fmt: skip
    names = ("max_bet", "volume", "volume_24h", "open_interest", "exchange_token_id", "is_main_line")
    wanted = [tuple("0x 1" if name == "exchange_token_id" and name in own else own.get(name) for name in names)
              for own in given]  # fmt: skip
    engine, writer = oe.resume(tmp_path)
    with writer:
        engine.step([quote(book=f"b{at}", **own) for at, own in enumerate(given)], NOW)
        assert engine.table().sort("sportsbook").select(names).rows() == wanted
        engine.step([quote(book="b2", volume=8.0)], NOW + timedelta(seconds=1))
    table = oe.replay(tmp_path).table().sort("sportsbook")
    assert table.equals(engine.table().sort("sportsbook"))
    assert table["volume"].to_list() == [None, None, 8.0, 0.0, None, None]


def test_a_view_that_two_hold_and_one_closes() -> None:
    engine = oe.Engine()
    engine.step(ARB, NOW)
    first, second = engine.view(), engine.view()
    engine.close(first)
    third = engine.view()
    assert second is third
    assert engine.views == (second,)
    engine.step([quote("X", 1.8, "fanduel")], NOW + timedelta(seconds=1))
    assert second.ids() == {kind: [] for kind in ("ev", "arbitrage", "low_hold", "middles")} | {
        "ev": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).ev["id"]],
        "arbitrage": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).arbitrage["id"]],
        "low_hold": [i[-16:] for i in oe.find_all(engine.table(), now=engine.moment).low_hold["id"]],
    }


def test_numbers_of_other_kinds_can_be_recorded(tmp_path: Path) -> None:
    engine, writer = oe.resume(tmp_path)
    numbers: dict[str, Any] = dict(
        min_ev=np.float32(1.0), sharp={"pinnacle": np.int64(2)}, commission={"a": np.float32(0.01)}
    )
    with writer:
        engine.view(**numbers)
        engine.step(ARB, NOW)
    assert oe.replay(oe.Tape(tmp_path)).state_hash() == engine.state_hash()
    assert oe.replay(tmp_path).state_hash() == oe.replay(str(tmp_path)).state_hash() == engine.state_hash()


@pytest.mark.parametrize("guard", ["side_conflict", "no_line", "price_mismatch"])
def test_guards_of_identity_can_be_off(guard: str) -> None:
    rows = [
        quote("X", 2.2, "fanduel", odds_american=300.0), quote("Y", 2.2, "draftkings", selection_type="home"),
        quote("X", 2.3, "bet365", line=3.5), quote("X", 1.9), quote("Y", 1.9),
    ]  # fmt: skip
    guards = [name for name in oe.GUARDS if name != guard]
    engine = oe.Engine(guards=guards)
    engine.step(rows, NOW)
    whole = oe.find_all(engine.table(), now=NOW, guards=guards)
    shown = {kind: sorted(i[-16:] for i in getattr(whole, kind)["id"]) for kind in ("ev", "arbitrage", "low_hold")}
    assert {kind: ids for kind, ids in engine.view().ids().items() if kind != "middles"} == shown
    assert any(shown.values())


def test_a_duplicate_that_is_seen_again_may_be_the_one_shown() -> None:
    line: dict[str, Any] = dict(sport="basketball", market_type="total_points", line=220.5)
    engine = oe.Engine()
    view = engine.view()
    twins = [quote(text, 2.1, "fanduel", **line) for text in ("Over 220.5", "OVER 220.5")]
    others = [quote("Under", 2.1, "draftkings", **line)]
    engine.step([*twins, *others], NOW)
    later = NOW + timedelta(seconds=70)
    for twin in twins:
        engine.step([twin, *others], later)
        shown, whole = view.opportunities().arbitrage, oe.find_all(engine.table(), now=engine.moment).arbitrage
        assert shown.drop("detected_at").equals(whole.drop("detected_at"))
        later += timedelta(seconds=70)


def test_a_line_that_is_no_number_makes_no_new_rows() -> None:
    engine = oe.Engine()
    for _ in range(5):
        total: dict[str, Any] = dict(sport="basketball", market_type="total_points", line=math.nan)
        engine.step([quote("Over 220.5", book="fanduel", **total)], NOW)
    assert (engine.size, len(engine.wordings)) == (1, 1)


@pytest.mark.parametrize("field", ["odds_decimal", "odds_american", "line", "last_seen_at"])
def test_a_number_that_is_too_large_costs_its_row(field: str) -> None:
    engine = oe.Engine()
    update = engine.step([quote(), {**quote("Y"), field: 10**400}], NOW)
    assert engine.size == 1
    assert update.rejected.select("row", "field").rows() == [(2, field)]


def test_a_number_beyond_any_in_json() -> None:
    same = '"sportsbook":"a","event_id":"e","market_type":"moneyline"'
    text = f'[{{{same},"selection":"x","odds_decimal":1e999}},{{{same},"selection":"y","odds_decimal":2.0}}]'
    engine = oe.Engine()
    assert engine.step(text, NOW).rejected["row"].to_list() == [1]
    assert engine.size == 1


@pytest.mark.parametrize("quotes", ["[" * 100_000, None, 5])
def test_what_is_no_list_of_quotes(quotes: Any) -> None:
    with pytest.raises(oe.OddsError, match=r"quotes (must be|are not)"):
        oe.Engine().step(quotes, NOW)


def test_a_suspended_row_without_a_price_beside_a_bad_one() -> None:
    bare = {name: value for name, value in quote().items() if name != "odds_decimal"}
    update = oe.Engine().step([{**bare, "is_active": False}, {**bare, "sportsbook": ""}], NOW)
    assert update.rejected.select("row", "field").rows() == [(1, "odds_decimal"), (2, "sportsbook")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"removed": 5}, "removed must be a list, got 5"),
        ({"complete": "fanduel"}, "complete must be a list, got 'fanduel'"),
        ({"events": "x"}, "events must be a list, got 'x'"),
        ({"events": [3]}, "events must be mappings with event_id and status, got 3"),
    ],
)
def test_lists_that_are_none(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        oe.Engine().step([], NOW, **words)


def test_a_time_that_cannot_be() -> None:
    engine = oe.Engine()
    with pytest.raises(ValueError, match="now must be from 1900 to 2199, got the year 10000"):
        engine.step([quote(last_seen_at="9999-12-31T23:59:00-12:00")])
    engine.step([quote()], NOW)
    assert engine.size == 1


def test_three_way_markets_of_two_names_meet() -> None:
    teams: dict[str, Any] = dict(sport="soccer", league="epl", home_team="Arsenal", away_team="Chelsea")
    prices = {("fanduel", "moneyline"): (2.9, 3.2, 2.9), ("pinnacle", "1x2"): (2.7, 3.0, 3.3)}
    rows = [
        quote(side, odds, book, **teams, market_type=market)
        for (book, market), offers in prices.items()
        for side, odds in zip(("Arsenal", "Draw", "Chelsea"), offers, strict=True)
    ]
    engine = oe.Engine()
    view = engine.view(method="power")
    engine.step(rows, NOW)
    whole = oe.find_all(engine.table(), now=NOW, method="power")
    assert view.ids()["arbitrage"] == [i[-16:] for i in whole.arbitrage["id"]] != []
    assert view.ids()["ev"] == sorted(i[-16:] for i in whole.ev["id"]) != []


def test_a_price_suspended_for_most_of_a_day_does_not_flap() -> None:
    engine = oe.Engine()
    engine.step([quote(odds=2.0)], NOW)
    engine.step([quote(odds=2.2)], NOW + timedelta(seconds=1))
    for step in range(1, 110):
        engine.step([quote(odds=2.2, is_active=False)], NOW + timedelta(minutes=10 * step))
    engine.step([quote(odds=2.0)], NOW + timedelta(seconds=65_636))
    assert engine.table()["flap"].to_list() == [False]


def test_an_empty_text_is_none() -> None:
    engine = oe.Engine()
    for text in (None, "", None):
        engine.step([quote(player_name=text)], NOW)
    assert (engine.size, len(engine.wordings)) == (1, 1)


def test_a_tape_begun_without_steps_forgets_the_guards_of_its_first_engine(tmp_path: Path) -> None:
    _, writer = oe.resume(tmp_path, oe.Engine(guards=["stale"]))
    writer.close()
    engine, writer = oe.resume(tmp_path, oe.Engine())
    with writer:
        engine.step(ARB, NOW)
    assert oe.Tape(tmp_path).without == ()
    assert oe.replay(oe.Tape(tmp_path)).state_hash() == engine.state_hash()


@pytest.mark.parametrize(
    "words", [{"min_size": 1e308}, {"min_size": -1.0}, {"min_profit": -200.0}, {"commission": {5: 0.1}}]
)
def test_what_a_view_cannot_want(words: dict[str, Any]) -> None:
    engine = oe.Engine()
    with pytest.raises(ValueError, match=f"{next(iter(words))}"):
        engine.view(**words)
    engine.step(ARB, NOW)
    assert engine.number == 1


def test_kinds_that_a_view_does_not_know() -> None:
    view = oe.Engine().view(keep=True)
    for wrong in (["arbs"], [], "arb"):
        with pytest.raises(ValueError, match="kinds must be a list of ev, arbitrage, low_hold, middles, got"):
            view.opportunities(wrong)
    assert view.opportunities("arbitrage").arbitrage.height == 0


def test_delayed_engines_are_not_recorded() -> None:
    engine = oe.Engine()
    with pytest.raises(TypeError, match="record the engine that it follows"):
        engine.delayed(5).record(None)  # type: ignore[arg-type]


def test_states_that_differ_have_other_hashes() -> None:
    def state(**words: Any) -> str:
        engine = oe.Engine()
        engine.step([quote(**words.pop("fields", {}))], NOW)
        engine.step([], NOW, **words)
        return engine.state_hash()

    same = state()
    assert same == state()
    assert same != state(events=[{"event_id": "e", "status": "postponed"}])
    assert same != state(fields={"odds_american": -105.0})


def test_prices_of_an_event_that_is_said_to_have_ended_but_is_quoted_stay() -> None:
    engine = oe.Engine()
    engine.step(ARB, NOW, events=[{"event_id": "e", "status": "ended"}])
    for step in range(1, 80):
        update = engine.step(ARB[:2], NOW + timedelta(seconds=10 * step))
        assert step == 61 or not update.removed.height
    assert engine.size == 2


class _Interrupted(BaseException):
    pass


def interrupted(engine: oe.Engine, at: int, inside: Callable[..., Any] | None = None, **words: Any) -> bool:
    """Make a step, and interrupt it before the line of this number (of one function); False where it ended before."""
    left = [at]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if "oddsengine" not in frame.f_code.co_filename:
            return None
        if inside is not None and frame.f_code is not getattr(inside, "__code__", None):
            return trace
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise _Interrupted
        return trace

    sys.settrace(trace)
    try:
        engine.step(**words)
    except _Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("start", some(range(7), 1))
def test_a_step_that_is_interrupted_anywhere_is_whole_or_not_at_all(start: int) -> None:
    """At one line in seven of the whole step, each time with new names, prices that move and rows that leave."""
    first = [*ARB, quote("X", 2.0, "bet365", event_id="other")]
    second: dict[str, Any] = {
        "quotes": [quote("X", 2.3, "fanduel"), quote("Z", 3.0, "new_book", event_id="new", league="other")],
        "now": NOW + timedelta(seconds=31), "complete": [("bet365", None)],
    }  # fmt: skip
    whole = oe.Engine()
    before = oe.Engine()
    for engine in (whole, before):
        engine.view(keep=True)
        engine.step(first, NOW)
    whole.step(**second)
    at = start + 1
    while True:
        engine = oe.Engine()
        view = engine.view(keep=True)
        engine.step(first, NOW)
        if not interrupted(engine, at, **second):
            break
        as_is = whole if engine.number == 2 else before
        assert engine.table().sort("row_id").equals(as_is.table().sort("row_id")), at
        assert view.ids() == as_is.views[0].ids(), at
        if engine.number == 1:
            engine.step(**second)
        assert engine.table().sort("row_id").equals(whole.table().sort("row_id")), at
        assert view.ids() == whole.views[0].ids(), at
        at += 61


@pytest.mark.parametrize(
    "inside",
    [
        Votes.code,
        Votes.decide,
        Names.book,
        Names._append,
        Names._unit,
        Names._kind,
        Names.settle,
        Names._turn,
        Names._regroup,
    ],
)
def test_names_are_whole_wherever_a_change_of_them_is_interrupted(inside: Callable[..., Any]) -> None:
    """New books, events and markets, and an event whose teams and league most rows turn out to name otherwise."""
    new = [
        *(quote("Y", 1.9, book, home_team="Y", away_team="X", league="other") for book in ("b", "c", "d", "e", "f")),
        quote("Z", 3.0, "new", event_id="new", market_type="total_points", selection_type="over", line=2.5),
    ]  # fmt: skip
    if inside is Names.book:
        new = new[:1]  # a second book, or a new kind of market, would hide what the first one leaves
    last: dict[str, Any] = {"quotes": [quote("Y", 2.0, "g"), quote("X", 2.0, "g")], "now": NOW + timedelta(seconds=2)}

    def run(at: int = 0) -> tuple[oe.Engine, View, bool]:
        engine = oe.Engine()
        view, stopped = engine.view(keep=True), False
        engine.step(ARB, NOW)
        step: dict[str, Any] = {"quotes": new, "now": NOW + timedelta(seconds=1)}
        if at:
            stopped = interrupted(engine, at, inside, **step)
        if engine.number == 1:
            engine.step(**step)
        engine.step(**last)
        return engine, view, stopped

    whole, expected, _ = run()
    at = 1
    while True:
        engine, view, stopped = run(at)
        assert engine.state_hash(views=False) == whole.state_hash(views=False), at
        assert engine.table().sort("row_id").equals(whole.table().sort("row_id")), at
        assert view.ids() == expected.ids(), at
        if not stopped:
            break
        at += less(1, 3)
    assert at > 2


@pytest.mark.parametrize(
    "inside", [Engine._commit, Engine._forward, Engine._follow, DelayedEngine.receive, DelayedEngine.catch_up]
)
def test_a_delayed_board_gets_every_batch_once_wherever_a_step_is_interrupted(inside: Callable[..., Any]) -> None:
    def steps() -> Iterator[dict[str, Any]]:
        for second in range(9):
            new = quote("Z", 3.0, f"book {second}", event_id=f"new {second}", league="other")
            yield {
                "quotes": [quote("X", 2.1 + second / 100, "fanduel"), *ARB[1:], new],
                "now": NOW + timedelta(seconds=second),
            }

    def run(at: int = 0) -> tuple[oe.Engine, oe.Engine, bool]:
        engine = oe.Engine()
        late, stopped = engine.delayed(2.0), False
        for number, step in enumerate(steps(), start=1):
            if number == 6 and at:
                stopped = interrupted(engine, at, inside, **step)
                # Not only after the next step, if this one is complete.
                assert late.number == max(0, engine.number - 2), at
            if engine.number < number:
                engine.step(**step)
        return engine, late, stopped

    whole, before, _ = run()
    assert before.number == 7
    at = 1
    while True:
        engine, late, stopped = run(at)
        assert engine.state_hash() == whole.state_hash(), at
        assert late.state_hash() == before.state_hash(), at
        if not stopped:
            break
        at += 1
    assert at > 2


@pytest.mark.parametrize(
    "odd",
    [
        {"odds_decimal": "+120"},
        {"odds_decimal": -110.0},
        {"odds_decimal": -110},
        {"selection": "A" * 1001},
        {"deep_link": "A" * 1001},
        {"last_seen_at": "2" * 1001},
        {"line": True},
        {"max_bet": True},
        {"last_seen_at": "2026-02-08T18:00:00+25:00"},
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_both_readers_refuse_a_row_alike(odd: dict[str, Any], beside: bool) -> None:
    rows = [quote() | odd, quote(odds=132.0, book="a"), quote()][: None if beside else 1]
    table = oe.check_odds(pl.DataFrame([{k: str(v) for k, v in row.items()} for row in rows], infer_schema_length=None))
    for given in (rows, json.dumps(rows)):
        update = oe.Engine().step(given, NOW)
        assert update.rejected.drop("value").equals(table.rejected.drop("value"))
        assert update.rejected.height == 1


def test_a_price_did_not_change_after_it_was_seen() -> None:
    engine = oe.Engine()
    early = NOW - timedelta(seconds=30)
    engine.step([quote() | {"last_seen_at": early, "odds_changed_at": NOW}], NOW)
    assert engine.table().select("last_seen_at", "odds_changed_at").row(0) == (early, early)


def test_a_low_hold_shows_one_row_of_a_book_that_quotes_a_price_twice() -> None:
    """Its American price, link and id; the row is the one that is close enough in time to the other leg."""

    def price(book: str, selection: str, odds: float, american: int, seconds: int, **more: str) -> dict[str, Any]:
        return {
            "sportsbook": book, "event_id": "e", "sport": "tennis", "home_team": "Ann", "away_team": "Bea",
            "market_type": "moneyline", "selection": selection, "odds_decimal": odds, "odds_american": american,
            "last_seen_at": NOW + timedelta(seconds=seconds), **more,
        }  # fmt: skip

    engine = oe.Engine()
    engine.step(
        [
            price("a", "Ann", 1.9, -111, 0),
            price("b", "Ann", 2.0, 100, -10, market_type="h2h", deep_link="https://first"),
            price("b", "Ann", 2.0, 101, 20, deep_link="https://second"),
            price("c", "Bea", 2.0, 100, 30),
            price("d", "Bea", 2.02, 102, -400),
        ],
        NOW + timedelta(seconds=40),
    )  # fmt: skip
    second = engine.table().filter(deep_link="https://second")["row_id"].item()
    for found in (engine.view(max_hold=5.0).opportunities().low_hold, oe.find_low_hold(engine.table(), max_hold=5.0)):
        side = found["side1"][0]
        assert side["books"] == ["b"]
        assert side["odds"]["american"] == 101.0
        assert side["deep_links"] == [{"sportsbook": "b", "deep_link": "https://second"}]
        assert side["odds_ids"] == [second]
