"""Books of Kalshi's stream on either scale, subscriptions that end, and lines that move."""

from datetime import timedelta
from typing import Any

import pytest
from feeds.test_kalshi import DAL, NOW, SEA, encoded, listed, prices, reader, told
from support.kalshi import (
    Json,
    delta,
    error,
    event,
    event_page,
    lifecycle,
    markets_page,
    milestone,
    over,
    snapshot,
    winners,
)

from oddsengine.feeds.kalshi import KalshiMarkets
from oddsengine.testing.local_servers import iso

SERIES = "KXNFLTOTAL"
TOTAL = f"{event(SERIES)}-45.5"
YES, NO = [("0.5700", "100.00"), ("0.1000", "9.00")], [("0.4200", "200.00"), ("0.0500", "7.00")]
TURNED = [("0.5800", "200.00"), ("0.9500", "7.00")]


def one() -> KalshiMarkets:
    made = reader()
    listed(made, "KXNFLGAME", winners()[0])
    return made


@pytest.mark.parametrize(("no", "more"), [(NO, "0.4250"), (TURNED, "0.5750")])
def test_the_scale_of_no_is_seen_in_the_books(no: list[tuple[str, str]], more: str) -> None:
    made = one()
    both = {("moneyline", "home", None): 0.58, ("moneyline", "away", None): 0.43}
    assert prices(told(made, snapshot(SEA, 1, YES, no))) == both
    better = told(made, delta(SEA, 2, more, "3.00"))
    assert prices(better)["moneyline", "home", None] == 0.575
    crossed = told(made, snapshot(SEA, 3, YES, TURNED if no is NO else NO))
    assert ({row["is_active"] for row in crossed.quotes}, crossed.refused) == (
        {False},
        {"a book whose prices cross": 1},
    )


def test_a_book_that_shows_no_scale_is_requested_once_more_and_read_as_was_asked() -> None:
    made, alone = one(), [("0.4200", "200.00")]
    held = told(made, snapshot(SEA, 1, [], alone))
    assert (made.doubtful, {row["is_active"] for row in held.quotes}) == ([SEA], {False})
    again = told(made, snapshot(SEA, 2, [], alone))
    assert (made.doubtful, prices(again)) == ([], {("moneyline", "home", None): 0.42})


def test_books_that_were_read_on_the_wrong_scale_are_doubtful_once_another_shows_it() -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    for seq in (1, 2):
        told(made, snapshot(SEA, seq, [], [("0.4200", "200.00")]))
    assert made.doubtful == []
    told(made, snapshot(DAL, 3, [("0.4100", "1")], [("0.5850", "50.00"), ("0.0500", "1")]))
    assert made.doubtful == [SEA]
    assert prices(told(made, snapshot(SEA, 4, [], [("0.4200", "200.00")])))["moneyline", "home", None] == 0.58


@pytest.mark.parametrize("code", [7, 10, 25])
def test_a_subscription_that_ends_suspends_its_books_only(code: int) -> None:
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    told(made, snapshot(SEA, 1, YES, NO, sid=2))
    told(made, snapshot(DAL, 1, [("0.4100", "1"), ("0.2", "1")], [("0.5850", "50.00")], sid=3))
    told(made, error(code, "gone", 2, 2))
    assert made.doubtful == [SEA]
    assert not told(made, error(27, "too many", 3, 2)).quotes
    assert not told(made, snapshot(SEA, 1, YES, NO, sid=4)).refused
    assert made.doubtful == []


def total() -> KalshiMarkets:
    made = reader(SERIES)
    listed(made, "KXNFLGAME", *winners())
    listed(made, SERIES, over(SERIES, 45.5, updated_time=iso(NOW)))
    told(made, snapshot(TOTAL, 1, YES, NO))
    return made


def moved(seq: int = 1, **strike: Any) -> Json:
    return lifecycle(TOTAL, seq, "metadata_updated", **strike)


def test_a_line_that_moves_is_another_bet_at_once() -> None:
    made = total()
    payload = told(made, moved(floor_strike=47.5))
    assert {row["line"] for row in payload.quotes} == {47.5}
    assert len(payload.removed) == 2
    assert not {*payload.removed} & {row["id"] for row in payload.quotes}
    again = told(made, delta(TOTAL, 2, "0.4250", "1.00"))
    assert {(row["line"], row["selection_type"]) for row in again.quotes} == {(47.5, "over")}
    assert {row["line"] for row in made.alive(NOW + timedelta(seconds=30)).quotes} == {47.5}


def test_another_form_of_a_strike_moves_the_line_too() -> None:
    made = total()
    payload = told(made, moved(strike_type="greater", floor_strike=47))
    assert {row["line"] for row in payload.quotes} == {47.5}
    assert {row["line"] for row in told(made, moved(2, strike_type="greater_or_equal")).quotes} == {46.5}
    unclear = told(made, moved(3, strike_type="less"))
    assert (len(unclear.removed), list(unclear.quotes)) == (2, [])


def test_a_list_that_is_older_than_a_line_does_not_bring_it_back() -> None:
    made = total()
    told(made, moved(floor_strike=47.5))

    def list_at(seconds: float, line: float, updated: float) -> set[float]:
        page = markets_page(over(SERIES, line, updated_time=iso(NOW + timedelta(seconds=updated))) | {"ticker": TOTAL})
        read = made.read_markets(SERIES, [encoded(page)], NOW + timedelta(seconds=seconds))
        return {row["line"] for row in read.quotes}

    assert list_at(5.0, 45.5, 0.0) == {47.5}
    assert list_at(9.0, 48.5, 8.0) == {48.5}, "it was updated since"
    assert list_at(10.0, 49.5, 8.0) == {49.5}, "and nothing has been said since then"
    told(made, moved(2, floor_strike=50.5))
    assert list_at(11.0, 49.5, 8.0) == {50.5}
    assert list_at(75.0, 49.5, 8.0) == {49.5}, "no list is so old"


def test_a_line_that_moves_while_its_teams_are_not_known_takes_its_old_prices_away() -> None:
    """The game's winner names a third team, so it is not clear who plays; the total moves meanwhile."""
    made = KalshiMarkets()
    game = milestone(events=(event("KXNFLGAME"), event(SERIES)), details={})
    made.add_events("KXNFLGAME", [encoded(event_page(game))], NOW)
    listed(made, "KXNFLGAME", *winners())
    before = listed(made, SERIES, over(SERIES, 45.5))
    told(made, snapshot(TOTAL, 1, YES, NO))
    gone = told(made, lifecycle(SEA, 1, "metadata_updated", custom_strike={"football_team": "another"}))
    assert len(gone.removed) == 2
    assert set(told(made, moved(2, floor_strike=47.5)).removed) == {row["id"] for row in before.quotes}
    assert not told(made, delta(TOTAL, 2, "0.4250", "1.00")).quotes
    assert not made.alive(NOW + timedelta(seconds=30)).quotes


def test_a_single_book_does_not_decide_about_the_scale() -> None:
    """The first snapshot crosses on the scale that all are on: what the others show counts."""
    made = reader()
    listed(made, "KXNFLGAME", *winners())
    told(made, snapshot(SEA, 1, [("0.3000", "5")], [("0.2900", "5")]))
    told(made, snapshot(DAL, 2, [("0.6800", "5")], [("0.7000", "5")]))
    assert made.doubtful == [SEA]
    for seq in (3, 4):
        again = told(made, snapshot(SEA, seq, [("0.3000", "5")], [("0.3200", "5")]))
    assert (made.doubtful, prices(again)["moneyline", "home", None]) == ([], 0.32)
