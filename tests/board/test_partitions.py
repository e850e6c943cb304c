"""The lists of partitions against plain Python lists: whatever comes and leaves, each holds its rows and no others."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.board.partitions import Partitions
from oddsengine.live.engine import Engine
from oddsengine.simulate import World


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 40, 900, 3000]))
def test_lists_hold_what_was_put_in(seed: int, most_partitions: int, most_rows: int) -> None:
    rng = random.Random(seed)
    partitions, naive = Partitions(), [list[int]() for _ in range(most_partitions)]
    partitions.count(most_partitions)
    partition = np.full(40 * most_rows, -1, np.int32)
    free = iter(range(partition.size))
    for _ in range(rng.randint(1, 12)):
        slots = [next(free) for _ in range(rng.randint(1, most_rows))]
        few = rng.sample(
            range(most_partitions), rng.randint(1, most_partitions)
        )  # a step that fills some, and adds to others
        for slot in slots:
            partition[slot] = rng.choice(few)
            naive[partition[slot]].append(slot)
        partitions.enrol(np.array(slots, np.int32), partition)
        here = [slot for each in naive for slot in each]
        gone = rng.sample(here, rng.randint(0, len(here) // 3))
        partitions.leave(np.array(gone, np.int32), partition)
        for slot in gone:
            naive[partition[slot]].remove(slot)
        if rng.random() < 0.1:
            partitions.pack(partitions.pool.size)
        found = partitions.slots_of(np.arange(most_partitions))
        ends = np.cumsum(partitions.size[:most_partitions])
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
