"""Fees of Kalshi: of series and events, their announced changes, waivers, and what of it is priced anew at once."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from feeds.test_kalshi import NOW, encoded, fees, listed, named, reader, told
from hypothesis import given
from hypothesis import strategies as st
from support.contract_payloads import lost_rows, payloads
from support.kalshi import (
    EVENT,
    START,
    TARGETS,
    Json,
    delta,
    error,
    event,
    event_page,
    fee_changes,
    fee_update,
    lifecycle,
    markets_page,
    milestone,
    over,
    snapshot,
    targets_page,
    winners,
)

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.feeds.kalshi import KalshiMarkets
from oddsengine.feeds.venue_contracts import load
from oddsengine.testing.local_servers import iso

CONTRACT, SERIES = load("kalshi"), "KXNFLTOTAL"

HALF = {"fee_type": "quadratic", "fee_multiplier": 0.5}


def charged(payload: Payload) -> set[float | None]:
    """The own fees of quotes that can be bet."""
    return {row.get("contract_fee") for row in payload.quotes if row["is_active"]}


def halved() -> KalshiMarkets:
    """A reader of a game whose series has half the usual fee."""
    made = reader()
    made.add_series("KXNFLGAME", encoded({"series": HALF}), NOW)
    assert charged(listed(made, "KXNFLGAME", *winners())) == {0.035}
    return made


def override(kind: str | None, multiplier: Any) -> Json:
    return {"fee_type_override": kind, "fee_multiplier_override": multiplier}


@pytest.mark.parametrize(
    ("series", "of_event", "fee"),
    [
        ({"fee_type": "quadratic_with_combo_maker_fees", "fee_multiplier": 1}, None, None),
        (HALF, override("quadratic_with_combo_maker_fees", None), 0.035),
        (HALF, override(None, 1), None),
        (HALF, override(None, "2"), 0.14),
        ({"fee_type": "flat", "fee_multiplier": 0.5}, override("quadratic", None), 0.035),
    ],
)
def test_what_an_event_leaves_out_is_that_of_its_series(series: Json, of_event: Any, fee: float | None) -> None:
    assert fees(series, of_event) == {fee}


@pytest.mark.parametrize("kind", ["flat", "margin_market_maker_program_fees", "something_new"])
def test_an_unknown_type_drops_its_markets_and_counts_them(kind: str) -> None:
    left_out = fees(HALF, override(kind, None))
    assert isinstance(left_out, Payload)
    assert left_out.refused["a market whose fee is of another form"] == 2
    assert [game.id for game in left_out.games] == ["m1"], "the game stays"


def test_a_change_of_an_event_is_priced_at_once_and_can_be_cleared() -> None:
    made = halved()
    changed = told(made, fee_update(1, None, 1))
    assert (charged(changed), len(changed.quotes)) == ({None}, 2)
    assert charged(told(made, fee_update(2, "quadratic_with_combo_maker_fees", 2))) == {0.14}
    gone = told(made, fee_update(3, "flat", None))
    assert (len(gone.removed), not gone.quotes, gone.refused["a market whose fee is of another form"]) == (2, True, 2)
    assert charged(told(made, fee_update(4, None, None))) == {0.035}
    assert not told(made, fee_update(5, None, 3, event_ticker="KXNFLGAME-ANOTHER")).quotes


def test_a_gap_before_a_change_of_a_fee_is_a_gap_in_the_statuses() -> None:
    made = halved()
    told(made, fee_update(1, None, 1))
    assert told(made, fee_update(3, None, 2)).refused == {"a gap in the statuses of markets": 1}
    assert made.statuses_lost


def test_an_announced_change_counts_from_its_time_on() -> None:
    made = halved()
    first, second = fee_changes(events=[(EVENT, None, 1)]), fee_changes(series=[("KXNFLGAME", "quadratic", 0.25)])
    made.add_fee_changes([encoded(second)], [encoded(first)])
    assert not made.reprice(START - timedelta(seconds=1)).quotes
    assert charged(made.reprice(START)) == {None}
    assert not made.reprice(START).quotes, "once"
    assert charged(told(made, fee_update(1, None, None))) == {0.0175}, "that of the series has changed too"


def test_the_latest_announcement_counts() -> None:
    made = halved()
    nothing = [encoded(fee_changes())]
    made.add_fee_changes(nothing, [encoded(fee_changes(events=[(EVENT, None, 1)]))])
    made.add_fee_changes(nothing, nothing)
    assert not made.reprice(START + timedelta(days=1)).quotes
    wrong = fee_changes(events=[(EVENT, None, 1)])
    wrong["event_fee_changes"][0]["scheduled_ts"] = None
    assert made.add_fee_changes(nothing, [encoded(wrong)]).refused == {"a change of a fee without a time": 1}


def test_a_list_of_events_with_another_fee_is_priced_at_once() -> None:
    made = halved()
    page = event_page(milestone())
    page["events"][0] |= override(None, 1)
    assert charged(made.add_events("KXNFLGAME", [encoded(page)], NOW)) == {None}
    assert not made.add_events("KXNFLGAME", [encoded(page)], NOW).quotes


def test_a_list_that_is_older_than_a_change_does_not_undo_it() -> None:
    made, page = halved(), [encoded(event_page(milestone()))]
    told(made, fee_update(1, None, 1))
    assert not made.add_events("KXNFLGAME", page, NOW + timedelta(seconds=5)).quotes
    assert charged(made.add_events("KXNFLGAME", page, NOW + timedelta(seconds=65))) == {0.035}


def test_a_waived_fee_is_none_until_the_waiver_ends() -> None:
    made = reader()
    until = iso(NOW + timedelta(minutes=5))
    seattle, dallas = winners()
    waived = listed(made, "KXNFLGAME", seattle | {"fee_waiver_expiration_time": until}, dallas)
    assert {(row["market_id"], row.get("contract_fee")) for row in waived.quotes} == {(f"{EVENT}-SEA", 0.0)}
    assert not made.reprice(NOW + timedelta(minutes=4)).quotes
    assert charged(made.reprice(NOW + timedelta(minutes=5))) == {None}
    assert not made.reprice(NOW + timedelta(minutes=6)).quotes


def test_the_better_price_of_a_side_is_the_one_after_the_fee() -> None:
    """No of Dallas at 0.60 costs 0.6168 with its fee; Yes of Seattle costs 0.61, as its fee is waived."""
    made = reader()
    seattle, dallas = winners()
    free = seattle | {"fee_waiver_expiration_time": iso(NOW + timedelta(minutes=5))}
    found = listed(made, "KXNFLGAME", free, dallas)
    (home,) = (row for row in found.quotes if row["selection_type"] == "home")
    assert (home["market_id"], home["odds_decimal"]) == (f"{EVENT}-SEA", pytest.approx(1.0 / 0.61))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"market_type": "scalar"}, "a market that is not binary"),
        ({"notional_value_dollars": "100.0000"}, "a market whose contracts do not pay 1 USD"),
    ],
)
def test_contracts_that_pay_something_else_are_left_out(more: Json, reason: str) -> None:
    made = reader("KXNFLTOTAL")
    listed(made, "KXNFLGAME", *winners())
    found = listed(made, "KXNFLTOTAL", over("KXNFLTOTAL", 45.5, **more), over("KXNFLTOTAL", 46.5))
    assert {row["line"] for row in found.quotes} == {46.5}
    assert found.refused == {reason: 1}


def test_recorded_fields_are_those_of_a_binary_market() -> None:
    given = [one | {"market_type": "binary", "notional_value_dollars": "1.0000"} for one in winners()]
    made = reader()
    assert len(listed(made, "KXNFLGAME", *given).quotes) == 2
    assert not named(made).quotes


# ---- payloads made from the contract ----


def whole(given: dict[str, Any]) -> Payload:
    """What a turn reads of a series of totals beside the winners."""
    made = KalshiMarkets()
    first = made.add_events("KXNFLGAME", [encoded(given["events"])], NOW)
    made.add_series(SERIES, encoded(given["one_series"]), NOW)
    made.add_targets(encoded(given["structured_targets"]), TARGETS, NOW)
    last = made.read_markets(SERIES, [encoded(given["markets"])], NOW)
    return last._replace(refused=first.refused + last.refused)


def documents() -> dict[str, Any]:
    page = event_page(milestone(events=(EVENT, event(SERIES))))
    page["events"] = [one | {"event_ticker": event(SERIES)} | override("quadratic", 1) for one in page["events"]]
    series = {"ticker": SERIES, "fee_type": "quadratic", "fee_multiplier": 1}
    return {
        "events": page, "one_series": {"series": series}, "structured_targets": targets_page(),
        "markets": markets_page(over(SERIES, 45.5), over(SERIES, 46.5)),
    }  # fmt: skip


def test_our_exchange_answers_as_the_contract_says() -> None:
    assert len(whole(documents()).quotes) == 4
    for name, document in documents().items():
        assert [one for one in CONTRACT.unknown(name, document) if one.kind != NEW_FIELD] == []
    changes = fee_changes(events=[(EVENT, None, 1)], series=[(SERIES, "flat", 1)])
    cursor, by_name = changes.pop("cursor"), {name: {name: rows} for name, rows in changes.items()}
    assert CONTRACT.unknown("event_fee_changes", by_name["event_fee_changes"] | {"cursor": cursor}) == []
    assert CONTRACT.unknown("series_fee_changes", by_name["series_fee_change_arr"]) == []
    messages = [
        snapshot("M", 1, [("0.59", "1")], []), delta("M", 2, "0.4", "1.00"), error(25, "overflow", 2, 3),
        lifecycle("M", 1, "metadata_updated", floor_strike=4.5), fee_update(2, None, 0.5),
    ]  # fmt: skip
    for message in messages:
        assert CONTRACT.unknown("message", message) == []


def test_a_value_that_is_unheard_of_costs_its_row_and_is_counted() -> None:
    places = set()
    for name in ("events", "one_series", "markets"):
        usual = documents()
        if name == "one_series":  # the event says nothing itself then
            usual["events"]["events"] = [{"event_ticker": event(SERIES)}]

        def read_with(changed: Any, name: str = name, usual: dict[str, Any] = usual) -> Payload:
            return whole(usual | {name: changed})

        for place, lost, _ in lost_rows(CONTRACT, name, usual[name], read_with):
            places.add(place.rpartition(".")[2])
            assert len(lost) == (2 if name == "markets" else 4), place
    assert places == {"fee_type_override", "fee_type", "status", "market_type", "strike_type"}


@given(st.fixed_dictionaries({name: payloads(CONTRACT, name) for name in documents()}))
def test_payloads_of_the_contract_are_read(given_: dict[str, Any]) -> None:
    with suppress(FeedError):
        for row in whole(given_).quotes:
            assert row["odds_decimal"] > 1.0
