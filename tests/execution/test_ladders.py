"""Ladders of a board, read together, beside each by itself in plain Python."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import inf
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oddsengine as oe
from oddsengine import catalog
from oddsengine.board.state import Board
from oddsengine.columns import Ints
from oddsengine.execution.ladders import BoardLadders, Ladder, Ladders
from oddsengine.execution.watched import WatchedPrices
from oddsengine.identity.layout import ON

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RATES = {"USD": 1.0, "GBP": 1.25, "USDC": 1.0}
OWN = {"betfair_exchange": 0.03}
ODDS = st.sampled_from([1.5, 2.0, 2.5, 2.52, 4.0])
STAKE = st.sampled_from([0.0, 0.5, 20.0, 33.3, 300.1])


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def price(book: str, **values: Any) -> dict[str, Any]:
    return {"sportsbook": book, "odds_decimal": 2.0, "is_live": False, "is_active": True} | values


PRICES = st.fixed_dictionaries(
    {
        "sportsbook": st.sampled_from(["kalshi", "betfair_exchange", "matchbook", "novig", "fanduel", "polymarket"]),
        "odds_decimal": ODDS,
        "is_live": st.booleans(),
        "is_active": st.booleans(),
        "levels": maybe(st.lists(st.fixed_dictionaries({"odds_decimal": ODDS, "stake": STAKE}), max_size=6)),
        "max_bet": maybe(STAKE),
        "commission": maybe(st.sampled_from([0.0, 0.01])),
        "contract_fee": maybe(st.sampled_from([0.0, 0.05])),
        "min_bet": maybe(st.sampled_from([0.0, 2.0])),
        "bet_step": maybe(st.sampled_from([0.01, 0.4, 0.5])),
        "bet_delay": maybe(st.sampled_from([0.0, 5.0])),
    }
)


def expected(row: Mapping[str, Any], rates: Mapping[str, float], own: Mapping[str, float]) -> tuple[Any, ...] | None:
    """What a ladder has of a price, but for its ids."""
    book, odds = catalog.book(row["sportsbook"]), row["odds_decimal"]
    given_fee, given_rate = row.get("contract_fee"), row.get("commission")
    fee = book.contract_fee(live=row["is_live"]) if given_fee is None or book.id in own else given_fee
    rate = own.get(book.id, book.commission if given_rate is None else given_rate)
    sizes = [(each["odds_decimal"], each["stake"]) for each in row.get("levels") or ()]
    sizes = sorted((each for each in sizes if each[0] <= odds), reverse=True) or [(odds, row.get("max_bet") or inf)]
    if book.currency and book.currency not in rates and sizes[0][1] != inf:
        return None
    worth, units = rates.get(book.currency, 1.0), dict[float, float]()
    for at, stake in sizes:
        if stake > 0.0:
            units[at] = units.get(at, 0.0) + stake * worth * (1.0 + (at - 1.0) * (1.0 - rate))
    levels = []
    for at, some in units.items():
        cost = 1.0 / (1.0 + (at - 1.0) * (1.0 - rate))
        levels.append((at, cost, fee * cost * (1.0 - cost), some))
    levels.sort(key=lambda level: level[1] + level[2])
    step = row.get("bet_step") or 0.0
    is_whole = step > 0.0 and abs(step * odds - 1.0) < 0.02
    rules = (row.get("min_bet") or 0.0) * worth, 0.0 if is_whole else step * worth, worth if is_whole else 0.0
    delay = round((row.get("bet_delay") or 0.0) * 1e6)
    return book.id, levels, row["is_active"], row["is_live"], book.fee_step * worth, *rules, delay


def engine_of(rows: list[dict[str, Any]]) -> oe.Engine:
    """An engine with each price in an event of its own."""
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        event_id=pl.format("e{}", pl.int_range(pl.len())), market_type=pl.lit("total_points"), line=220.5,
        selection=pl.lit("Over"), last_seen_at=pl.lit(NOW),
    )  # fmt: skip
    engine = oe.Engine()
    engine.step(table, NOW)
    return engine


def slots_of(board: Board) -> Ints:
    slots: Ints = np.flatnonzero(board.rows.state[: board.rows.top] == ON).astype(np.int32)
    return slots


def facts(ladder: Ladder | None) -> tuple[Any, ...] | None:
    if ladder is None:
        return None
    return (
        ladder.book.id, [each for level in ladder.levels for each in level], ladder.is_active, ladder.is_live,
        *ladder[7:],
    )  # fmt: skip


def flat(wanted: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return wanted and (wanted[0], [each for level in wanted[1] for each in level], *wanted[2:])


@example([price("fanduel", levels=[{"odds_decimal": 2.0, "stake": stake} for stake in (300.1, 0.1, 0.1)])], True)
@given(st.lists(PRICES, min_size=1, max_size=8), st.booleans())
def test_ladders_are_read_as_their_prices_say(rows: list[dict[str, Any]], knows: bool) -> None:
    rates = RATES if knows else {"USD": 1.0}
    ladders = Ladders(OWN.items(), rates, strict=False)
    with engine_of(rows).still() as board:
        slots = slots_of(board)
        events = board.facts(slots).frame()[board.facts(slots).places(slots).tolist()]["event_id"]
        for event, ladder in zip(events, ladders.of_slots(board, slots), strict=True):
            assert flat(expected(rows[int(event[1:])], rates, OWN)) == facts(ladder)
        assert [ladders.of_slots(board, slots[at : at + 1])[0] for at in range(slots.size)] == ladders.of_slots(
            board, slots
        )


def test_a_size_in_a_currency_without_a_rate_is_an_error_that_names_it() -> None:
    with engine_of([price("fanduel"), price("matchbook", max_bet=5.0)]).still() as board:
        with pytest.raises(ValueError, match="sizes at matchbook are in GBP: give its exchange rate"):
            Ladders(rates={"USD": 1.0}).of_slots(board, slots_of(board))
        assert sum(each is None for each in Ladders(strict=False).of_slots(board, slots_of(board))) == 1


def test_prices_that_are_gone_have_no_ladder_and_others_are_read_once() -> None:
    with engine_of([price("fanduel"), price("novig")]).still() as board:
        ids = board.rows.id[slots_of(board)].tolist()
        shown = BoardLadders(Ladders(), board)
        gone, *found = shown.of_ids([1, *ids])
        assert gone is None
        assert [ladder.row for ladder in found if ladder] == ids
        assert all(a is b for a, b in zip(found, shown.of_slots(slots_of(board).tolist()), strict=True))
        assert shown.seen_at([1, *ids]) == [-1, *([round(NOW.timestamp() * 1e6)] * 2)]


def test_looks_that_nobody_can_ask_for_are_forgotten() -> None:
    with engine_of([price("fanduel")]).still() as board:
        (ladder,) = Ladders().of_slots(board, slots_of(board))
    assert ladder is not None
    looks = [ladder._replace(seen=at) for at in range(5)]
    prices = WatchedPrices()
    prices.watch(looks[0], 0)
    for at in (1, 2, 3):
        prices.begin(since=at - 2)
        prices.change(ladder.row, looks[at], at)
    assert prices.around(ladder.row, 1, looks[4]) == [(looks[1], False), (looks[2], False)]
    assert prices.around(ladder.row, 2, looks[4]) == [(looks[2], True), (looks[3], False)]
    assert prices.around(ladder.row, 3, looks[4]) == []
    assert prices.shown(ladder.row, before=True) == looks[2]
    prices.begin(since=3)
    prices.change(ladder.row, looks[4], 4)
    assert prices.around(ladder.row, 2, looks[0])[0] == (looks[0], False)  # as it was shown to who asks
