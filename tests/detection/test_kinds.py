"""The list of kinds, and what `register` refuses. A registered one is everywhere: `service/test_registered_kind`."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import oddsengine as oe
from oddsengine.detection.kinds import EV, KINDS, Bound, Figure, Order, Threshold, register, thresholds
from oddsengine.live.key import ViewKey
from oddsengine.tables.sample import SAMPLE_BOARD

MINE: dict[str, Any] = {
    "name": "mine", "one": "mine", "event": "", "thresholds": (Threshold("min_x", 0.0, float("inf")),),
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "ev"}, "ev has a name that is taken, ev"),
        ({"name": "arb"}, "arb has a name that is taken, arb"),
        ({"name": "all", "event": "mine"}, "all has a name that is taken, all"),
        ({"name": "low-hold"}, "low-hold needs a name of small letters, digits and _, got 'low-hold'"),
        ({"one": "middle"}, "mine has a word for one that is taken, middle"),
        ({"event": "arb"}, "mine has an event that is taken, arb"),
        ({"thresholds": EV.thresholds}, "mine has thresholds whose names are taken: max_profit, min_ev"),
        ({"thresholds": ()}, "mine needs a threshold of its main figure, with a usual value"),
        ({"thresholds": (Threshold("books", 0.0, float("inf")),)},
         "mine has thresholds and bounds that do not begin with min_ or max_: books"),
        ({"bounds": (Bound("ev_percentage", "limit"),)},
         "mine has thresholds and bounds that do not begin with min_ or max_: limit"),
        ({"schema": {name: of for name, of in EV.schema.items() if name not in ("league", "selection")}},
         "mine needs the columns league, selection"),
        ({"schema": {**EV.schema, "day": pl.Date}},
         "mine has columns of other types than String, Boolean, Int64, UInt32, Float64, Datetime, lists and structs: "
         "day"),
        ({"schema": {**EV.schema, "odds_american": pl.String, "event_start_time": pl.String, "warnings": pl.String}},
         "mine has columns of other types than the fields of these names in lists: odds_american is String, not "
         "Float64; event_start_time is String, not Datetime(time_unit='us', time_zone='UTC'); warnings is String, not "
         "List(String)"),
        ({"schema": {**EV.schema, "best": pl.List(pl.Struct({"odds_decimal": pl.Int64}))}},
         "mine has columns of other types than the fields of these names in lists: best.odds_decimal is Int64, not "
         "Float64"),
        ({"schema": {**EV.schema, "start": pl.Float64}, "published": {"start": "start_time"}},
         "mine has columns of other types than the fields of these names in lists: start is Float64, not "
         "Datetime(time_unit='us', time_zone='UTC')"),
        ({"schema": {**EV.schema, "lead": pl.Int64}, "value": "lead"},
         "mine needs a main figure of the type Float64, and lead is Int64"),
        ({"orders": {"start": Order("event_start_time")}}, "mine needs an order by ev_percentage"),
        ({"orders": {"size": Order("size")}}, "mine needs the columns size"),
        ({"odds": (1, 2)}, "mine has 2 odds, but no legs"),
        ({"figures": (Figure("legs", lambda figures: figures[0]),)},
         "mine needs figures with names of their own, not detected_at, event_id, id, kind, legs, market_type, "
         "player_name, unconfirmed"),
    ],
)  # fmt: skip
def test_a_kind_that_would_fail_later_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^the kind ") as error:
        register(replace(EV, **(MINE | changes)))
    assert str(error.value) == f"the kind {message}"
    assert list(KINDS) == ["ev", "arbitrage", "low_hold", "middles"]


def test_it_is_too_late_for_another_kind_once_there_is_a_view() -> None:
    oe.Engine().view()
    with pytest.raises(RuntimeError, match=r": it is too late to register the kind mine$"):
        register(replace(EV, **MINE))
    assert "mine" not in KINDS


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


def test_a_view_of_a_tape_whose_kinds_are_not_known_here_has_the_others() -> None:
    wanted = ViewKey.from_parameters(["fanduel"], None, None, None, ["ev", "middles"], min_ev=1.0)
    content = wanted.content
    assert ViewKey.of_content(content) == wanted
    elsewhere = content | {"kinds": ("ev", "standout", "middles"), "min_lead": 2.0}
    assert ViewKey.of_content(elsewhere) == wanted
    assert ViewKey.of_content(content | {"kinds": ("standout",)}).kinds == ()
    fewer = {name: value for name, value in content.items() if name != "max_hold"}
    assert ViewKey.of_content(fewer) == wanted


def test_opportunities_are_not_a_tuple() -> None:
    with pytest.raises(TypeError, match="'Opportunities' object is not iterable"):
        tuple(oe.find_all(oe.read_odds(SAMPLE_BOARD)))  # type: ignore[arg-type]
