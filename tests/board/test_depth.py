"""The pool of levels and fees beside plain dicts."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.board.row_depth import Depth
from oddsengine.board.row_links import FEES, LADDER, LEVELS_AT, RULES, SEPARATOR
from oddsengine.tables.levels import levels_text

levels = st.lists(st.tuples(st.sampled_from([1.5, 2.0, 2.2]), st.sampled_from([0.0, 5.0, 70.0])), max_size=4)
charge = st.none() | st.sampled_from([0.0, 0.02])
prices = st.none() | st.tuples(levels, charge, charge, st.sampled_from(["", "5.0"]))
puts = st.lists(st.tuples(st.integers(0, 3), prices), min_size=20, max_size=80)


def text(given: Any) -> str | None:
    if given is None:
        return None
    ladder, *fees, delay = given
    own = [levels_text(ladder), *("" if each is None else str(each) for each in fees)]
    own += ["", "", delay] if delay else []  # omitted if they are empty
    return SEPARATOR.join([*[""] * LEVELS_AT, *own]) if any(own) else "x"


@given(puts)
def test_rows_have_what_they_were_given_last(given: Any) -> None:
    """In a pool that is packed often."""
    depth, held, parts = Depth(least=6), dict[int, Any](), np.zeros(4, np.uint8)
    most = 0
    for slot, own in given:
        parts[slot] = depth.put(slot, text(own))
        held[slot] = own
        most = max(most, sum(len(each[0]) for each in held.values() if each))
        assert depth._used <= max(6, 2 * most) + 4
    slots = np.arange(4)
    for wanted in (True, False):
        taken = depth.take(slots, parts, levels=wanted)
        ladders = {slot: sorted(own[0], reverse=True) for slot, own in held.items() if own and own[0] and wanted}
        fees = {slot: own[1:3] for slot, own in held.items() if own and own[1:3] != (None, None)}
        if not (ladders or fees):
            assert taken is None
            continue
        assert taken is not None
        pairs = zip(taken.levels.at.tolist(), taken.levels.odds.tolist(), taken.levels.stake.tolist(), strict=True)
        assert list(pairs) == [(slot, *level) for slot in sorted(ladders) for level in ladders[slot]]
        assert taken.charged.tolist() == sorted(fees)
        rates = [[None if np.isnan(each) else each for each in column] for column in (taken.commission, taken.fee)]
        assert list(zip(*rates, strict=True)) == [fees[slot] for slot in sorted(fees)]
    assert [bool(part & LADDER) for part in parts] == [bool(held.get(at) and held[at][0]) for at in range(4)]
    assert [bool(part & FEES) for part in parts] == [
        bool(held.get(at) and held[at][1:3] != (None, None)) for at in range(4)
    ]
    assert [bool(part & RULES) for part in parts] == [bool(held.get(at) and held[at][3]) for at in range(4)]
    assert depth.is_empty == (not parts.any())
