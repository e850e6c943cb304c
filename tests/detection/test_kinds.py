"""The list of kinds, and what `register` refuses. A registered one is everywhere: `service/test_registered_kind`."""

from dataclasses import replace
from typing import Any

import pytest

import oddsengine as oe
from oddsengine.detection.kinds import EV, KINDS, Order, Threshold, register, thresholds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "there is a kind 'ev' already"),
        ({"name": "mine"}, "thresholds of mine have names that are taken: max_profit, min_ev"),
        ({"thresholds": ()}, "the kind mine needs a threshold"),
        ({"schema": {name: of for name, of in EV.schema.items() if name not in ("league", "selection")}},
         "the kind mine needs league, selection"),
        ({"orders": {"start": Order("event_start_time")}}, "the kind mine needs an order by ev_percentage"),
        ({"orders": {"size": Order("size")}}, "the kind mine needs size"),
    ],
)  # fmt: skip
def test_a_kind_that_lists_cannot_show_is_refused(changes: dict[str, Any], message: str) -> None:
    own: dict[str, Any] = (
        {} if changes.keys() <= {"name"} else {"name": "mine", "thresholds": (Threshold("min_x", 0.0, float("inf")),)}
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        register(replace(EV, **(own | changes)))
    assert list(KINDS) == ["ev", "arbitrage", "low_hold", "middles"]


def test_thresholds_are_searched_for_as_fractions_and_the_others_are_out_of_reach() -> None:
    found = thresholds(min_ev=2.0, min_size=1.5, min_middle_ev=None)
    assert {name: column.tolist() for name, column in found.items()} == {
        "min_ev": [0.02], "min_profit": [float("inf")], "max_hold": [-float("inf")], "min_size": [1.5],
        "min_middle_ev": [-float("inf")], "max_profit": [float("inf")],
    }  # fmt: skip


def test_steps_of_views_leave_out_no_more_than_a_list() -> None:
    least, most = KINDS["ev"].threshold, KINDS["low_hold"].threshold
    assert [least.step(value) for value in (3.0, 0.0, -1e-8, -0.1, -3.0, -500.0)] == [0.0, 0.0, 0.0, -2.0, -5.0, -100.0]
    assert [most.step(value) for value in (0.0, 2.0, 2.1, 99.0)] == [2.0, 2.0, 5.0, 100.0]
    assert [KINDS["middles"].threshold.step(value) for value in (5.0, -2.0, -50.0)] == [0.0, -2.0, None]
    assert [least.lower(value) for value in (1.0, -4.0)] == [-2.0, -5.0]
    assert [most.lower(value) for value in (2.5, 7.0, 200.0)] == [5.0, 10.0, 100.0]


def test_an_unknown_threshold_is_an_error_that_names_all() -> None:
    with pytest.raises(TypeError, match="there is no threshold 'min_lead'; there are min_ev, min_profit, max_hold"):
        oe.Engine().view(min_lead=1.0)
    with pytest.raises(TypeError, match="there is no threshold 'min_lead'"):
        oe.find_all({}, min_lead=1.0)
