"""The lists of units against plain Python lists: whatever comes and leaves, each unit holds its rows and no others."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.board.units import Units
from oddsengine.live.engine import Engine
from oddsengine.simulate import World


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 40, 900, 3000]))
def test_lists_hold_what_was_put_in(seed: int, most_units: int, most_rows: int) -> None:
    rng = random.Random(seed)
    units, naive = Units(), [list[int]() for _ in range(most_units)]
    units.count(most_units)
    unit = np.full(40 * most_rows, -1, np.int32)
    free = iter(range(unit.size))
    for _ in range(rng.randint(1, 12)):
        slots = [next(free) for _ in range(rng.randint(1, most_rows))]
        few = rng.sample(range(most_units), rng.randint(1, most_units))  # a step that fills some, and adds to others
        for slot in slots:
            unit[slot] = rng.choice(few)
            naive[unit[slot]].append(slot)
        units.enrol(np.array(slots, np.int32), unit)
        here = [slot for each in naive for slot in each]
        gone = rng.sample(here, rng.randint(0, len(here) // 3))
        units.leave(np.array(gone, np.int32), unit)
        for slot in gone:
            naive[unit[slot]].remove(slot)
        if rng.random() < 0.1:
            units.pack(units.pool.size)
        found = units.slots_of(np.arange(most_units))
        ends = np.cumsum(units.size[:most_units])
        assert [part.tolist() for part in np.split(found, ends[:-1])] == naive


def test_a_board_that_came_in_parts_is_the_board_that_came_at_once() -> None:
    """Large enough that lists grow past their room while others are packed."""
    batch = next(iter(World(7, events=8, live=0.3).run(100.0)))
    whole = Engine()
    whole.step(batch.quotes, batch.now, events=batch.events)
    expected = whole.view(min_ev=0.0).ids()
    for size in (150, 700, 2000):
        engine = Engine()
        for at in range(0, len(batch.quotes), size):
            last = at + size >= len(batch.quotes)
            engine.step(batch.quotes[at : at + size], batch.now, events=batch.events if last else [])
        assert engine.view(min_ev=0.0).ids() == expected
