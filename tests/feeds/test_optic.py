"""OpticOdds' answers and frames as its contract has them, and otherwise."""

from typing import Any

from feeds.test_samples import FIXTURES, FRAMES, encoded, optic_frame, optic_row
from hypothesis import given
from support.contract_payloads import UNHEARD_OF, lost_rows, mutated

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.optic import OpticOdds
from oddsengine.feeds.venue_contracts import load

CONTRACT = load("optic")
FIRST: dict[str, Any] = FIXTURES["data"][0]
TWO = {"data": [FIRST, FIRST | {"id": "f2", "odds": [row | {"id": f"{row['id']}b"} for row in FIRST["odds"]]}]}


def read(document: Any) -> Payload:
    """What is offered: prices of a fixture that is halted are not."""
    payload = OpticOdds().read(encoded(document), ["DraftKings"])
    return payload._replace(quotes=[row for row in payload.quotes if row["is_active"]])


def other(payload: Payload) -> list[dict[str, Any]]:
    return [row for row in payload.quotes if row["event_id"] == "f2"]


def test_our_answers_and_frames_are_as_the_contract_says() -> None:
    assert CONTRACT.unknown("fixtures", FIXTURES) == []
    assert [CONTRACT.unknown("frame", frame) for _, frame in FRAMES] == [[], [], []]


def test_a_status_that_is_unheard_of_suspends_the_prices_of_its_fixture_and_is_counted() -> None:
    found = [
        (place, {row["event_id"] for row in lost}) for place, lost, _ in lost_rows(CONTRACT, "fixtures", TWO, read)
    ]
    assert found == [("data[0].status", {FIRST["id"]}), ("data[1].status", {"f2"})]
    reader = OpticOdds()
    reader.read(encoded(TWO))
    payload = reader.frame("fixture-status", encoded({"data": {"fixture_id": "f2", "new_status": UNHEARD_OF}}))
    assert {(row["event_id"], row["is_active"]) for row in payload.quotes} == {("f2", False)}
    assert payload.refused.total() == 1


@given(mutated(CONTRACT, "fixtures", TWO, ("data", 0)))
def test_whatever_comes_of_a_fixture_the_other_is_read(document: Any) -> None:
    assert other(read(document)) == other(read(TWO)) != []


FRAME = optic_frame(
    "odds",
    optic_row("o1", "Moneyline", "Boston Celtics", -200),
    optic_row("o2", "Moneyline", "Los Angeles Lakers", 170),
)


@given(mutated(CONTRACT, "frame", FRAME, ("data", 0)))
def test_whatever_price_comes_the_other_is_read(frame: Any) -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES))
    rows = reader.frame("odds", encoded(frame)).quotes
    assert [row["odds_american"] for row in rows if row["id"] == "o2"] == [170]


@given(mutated(CONTRACT, "frame", FRAMES[2][1]))
def test_whatever_change_comes_is_read_or_refused(frame: Any) -> None:
    reader = OpticOdds()
    reader.read(encoded(FIXTURES))
    try:
        payload = reader.frame("fixture-status", encoded(frame))
    except FeedError:
        return
    assert all(row["is_active"] is False for row in payload.quotes)
