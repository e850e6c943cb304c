"""Payloads of parsers that are not ours: what is not a `Payload` is refused whole, and its first fault is named."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from feeds.test_samples import SAMPLES

from oddsengine.feeds import FeedError, Game, Payload
from oddsengine.feeds.merged_scores import ScoreReading
from oddsengine.feeds.payload_checks import check_payload, invalid_prices

NOW = datetime(2026, 2, 8, 18, tzinfo=UTC)
GAME = Game("1", "basketball", "nba", "Celtics", "Lakers", NOW)
QUOTE = {**GAME.fields, "id": "a", "sportsbook": "x", "market_type": "moneyline", "selection": "Celtics"}
SCORE = ScoreReading("1", "", 0, 3, 2)
GOOD = Payload(
    [GAME, GAME._replace(id="2", league="", home="", start=None)], (QUOTE | {"odds_decimal": 1.9}, QUOTE),
    [("x", None), ("x", "1")], ("a",), Counter({("x", "m"): 2}), Counter({"why": 1}),
    NOW.astimezone(timezone(timedelta(hours=2))), [SCORE], [{"id": "f", "sportsbook": "x"}],
)  # fmt: skip


def changed(record: Any, **fields: Any) -> Any:
    """A record with a field of a wrong type."""
    return record._replace(**fields)


def test_what_is_right_is_returned_as_it_is() -> None:
    assert check_payload(GOOD) is GOOD


@pytest.mark.parametrize("name", SAMPLES)
def test_our_parsers_pass(name: str) -> None:
    found = SAMPLES[name].make()(SAMPLES[name].data)
    payload = getattr(found, "payload", found)
    check_payload(payload if isinstance(payload, Payload) else Payload(payload.games))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "games": ({"games": "none"}, "games must be a list, got 'none'"),
    "a dict": ({"games": [GAME._asdict()]}, "games[0] must be a Game, got {'id'"),
    "an id": ({"games": [GAME, changed(GAME, id=1)]}, "games[1].id must be a text of 1 to 1,000 characters, got 1"),
    "no sport": ({"games": [GAME._replace(sport="")]}, "games[0].sport must be a text of 1 to"),
    "no team": ({"games": [changed(GAME, home=None)]}, "games[0].home must be a text of at most 1,000"),
    "naive": ({"games": [GAME._replace(start=datetime(2026, 2, 8))]}, "games[0].start must be a time with its zone"),
    "far": ({"games": [GAME._replace(start=NOW.replace(year=9999))]}, "games[0].start must be a time with its zone"),
    "a text": ({"games": [changed(GAME, start="soon")]}, "games[0].start must be a time with its zone"),
    "a quote": ({"quotes": [("x", 1.9)]}, "quotes[0] must be a dict with names of columns, got ('x', 1.9)"),
    "a column": ({"quotes": [QUOTE | {1: 2}]}, "quotes[0] must be a dict with names of columns, got"),
    "no event": ({"quotes": [QUOTE | {"event_id": 7}]}, "quotes[0].event_id must be a text of 1 to 1,000"),
    "no book": ({"quotes": [QUOTE, QUOTE | {"sportsbook": None}]}, "quotes[1].sportsbook must be a text"),
    "long": ({"quotes": [QUOTE | {"selection": "x" * 1001}]}, "quotes[0].selection must be a text of 1 to 1,000"),
    "id": ({"quotes": [QUOTE | {"id": 3}]}, "quotes[0].id must be a text"),
    "complete": ({"complete": ["x"]}, "complete[0] must be (book, event id or None), got 'x'"),
    "whose": ({"complete": [("", None)]}, "complete[0] must be a text"),
    "removed": ({"removed": [4]}, "removed[0] must be a text of 1 to 1,000 characters, got 4"),
    "unmapped": ({"unmapped": {("x", "m"): 1}}, "unmapped must be a Counter, got"),
    "pairs": ({"unmapped": Counter(["m"])}, "unmapped must be counts by (book, market), got ['m']"),
    "refused": ({"refused": Counter([3])}, "refused must be counts by reason, got [3]"),
    "moment": ({"moment": 1770573600}, "moment must be a time with its zone, from 1970 to 2100, got 1770573600"),
    "score": ({"scores": [{"home": 3}]}, "scores[0] must be a ScoreReading, got"),
    "points": ({"scores": [changed(SCORE, home="3")]}, "scores[0].home must be a whole number, got '3'"),
    "seen": ({"scores": [changed(SCORE, seen=None)]}, "scores[0].seen must be a whole number, got None"),
    "future": ({"futures": [{"id": 5}]}, "futures[0].id must be a text"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    changes, reason = WRONG[case]
    with pytest.raises(FeedError) as error:
        check_payload(GOOD._replace(**changes))
    assert str(error.value).startswith(reason)


@pytest.mark.parametrize(
    ("price", "is_one"),
    [(1.9, True), (2, True), (np.float32(1.9), True), ("1.95", True), (1.0, False), (-2.0, False), (0, False),
     (float("nan"), False), (float("inf"), False), (True, False), ([1.9], False), (10**400, True)],
)  # fmt: skip
def test_prices_that_are_none_are_counted(price: Any, is_one: bool) -> None:
    quote = QUOTE | {"odds_decimal": price}
    assert invalid_prices(Payload(quotes=[quote, quote | {"is_active": False}])) == ([] if is_one else [quote])
