"""Interning and sorting of rows, against plain Python."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.identity.groups import Groups, intern, mix
from oddsengine.identity.layout import BOOK_BITS, ON, Lists, PriceColumns, TermColumns, gather, listed
from oddsengine.identity.linked_outcomes import rules
from oddsengine.identity.packed_terms import TermParts, pack


def naive_intern(values: list[int], skipped: list[bool]) -> tuple[list[int], list[int]]:
    seen: dict[int, int] = {}
    first = []
    codes = []
    for at, (value, skip) in enumerate(zip(values, skipped, strict=True)):
        if skip:
            codes.append(-1)
            continue
        if value not in seen:
            seen[value] = len(seen)
            first.append(at)
        codes.append(seen[value])
    return codes, first


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 5), st.booleans()), max_size=60))
def test_intern_equals_a_dictionary(rows: list[tuple[int, bool]]) -> None:
    values, skipped = [v for v, _ in rows], [s for _, s in rows]
    codes, first = intern(np.array(values, np.uint64), np.array(skipped, np.uint8))
    assert (codes.tolist(), first.tolist()) == naive_intern(values, skipped)


def test_intern_outgrows_its_table() -> None:
    values = mix(np.arange(300_000) % 70_001)
    codes, first = intern(values)
    assert codes.tolist() == (np.arange(300_000) % 70_001).tolist()
    assert first.tolist() == list(range(70_001))


def test_intern_of_hashes_that_share_all_low_bits() -> None:
    values = np.arange(500, dtype=np.uint64) << np.uint64(52)
    assert intern(values)[0].tolist() == list(range(500))


def test_mix_is_the_same_on_every_machine() -> None:
    assert mix(np.array([1, 2]), 3).tolist() == [0x335ACD389306E933, 0xE89599519E51F02B]


ROW = st.tuples(
    st.integers(0, 1),  # event
    st.integers(0, 1),  # live
    st.integers(0, 1),  # kind: 0 of two outcomes, 1 of three
    st.integers(0, 1),  # subject
    st.sampled_from([-250, 0, 50]),  # threshold
    st.integers(0, 2),  # outcome
    st.integers(0, 3),  # book
    st.integers(0, 1),  # name
    st.sampled_from([1.5, 2.0, 3.0]),
    st.integers(0, 3),  # time
)
OUTCOMES = (2, 3)


NO_RULES = rules((), ())


def gathered(rows: Sequence[tuple[int, int, int, int, int, int, int, int, float, int]]) -> Groups:
    """The layout of rows, one term each; a partition for each event and live flag."""
    columns = [np.array(c) for c in zip(*rows, strict=True)] or [np.empty(0, np.int64)] * 10
    event, live, kind, subject, threshold, side, book, name, odds, seen = columns
    n, partition = event.size, (event * 2 + live).astype(np.int32)
    pool, start, size = listed(np.arange(n, dtype=np.int32), partition, 4)
    zero = 0 * kind
    packed = pack(TermParts(kind, kind, subject, threshold, side, name, zero, zero, zero))
    place = np.stack(packed, axis=1).astype(np.int64)
    none, some = np.zeros(n, np.uint8), np.arange(4, dtype=np.int32)
    return gather(
        PriceColumns(
            np.arange(n) << BOOK_BITS | book, odds.astype(float), seen.astype(np.int64), seen.astype(np.int64),
            none + np.uint8(ON), none, none,
        ),
        TermColumns(place, np.zeros(n, np.uint32), some, some, np.array(OUTCOMES)),
        NO_RULES._replace(start=np.zeros(len(OUTCOMES) + 1, np.int64)),
        Lists(start, size, pool, some // 2, (some % 2).astype(np.uint8)),
        np.flatnonzero(size),
        mismatch=True,
    ).groups  # fmt: skip


@given(st.lists(ROW, min_size=1, max_size=40))
def test_rows_are_sorted_with_offsets(rows: list[tuple[int, int, int, int, int, int, int, int, float, int]]) -> None:
    rows = [r for r in rows if r[5] < OUTCOMES[r[2]]] or [(0, 0, 0, 0, 0, 0, 0, 0, 2.0, 0)]
    g = gathered(rows)

    # In order: event, live, kind, subject, threshold, outcome, book, name, price, newest first.
    def place(r: tuple[float, ...]) -> tuple[float, ...]:
        return (*r[:9], -r[9])

    got = [rows[i] for i in g.row]
    assert [place(r) for r in got] == sorted(place(r) for r in rows)
    assert g.odds.tolist() == [r[8] for r in got]
    assert g.side.tolist() == [r[5] for r in got]

    # Offsets: every market has all its outcomes, empty ones too, and each row lies in its own.
    ladders = sorted({r[:4] for r in rows})
    assert list(zip(g.event.tolist(), g.live.tolist(), g.kind.tolist(), g.subject.tolist(), strict=True)) == ladders
    markets = sorted({r[:5] for r in rows})
    assert g.threshold.tolist() == [m[4] for m in markets]
    assert g.outcomes.tolist() == [OUTCOMES[m[2]] for m in markets]
    for m, key in enumerate(markets):
        for k in range(OUTCOMES[key[2]]):
            s = g.segments[m] + k
            inside = [got[i] for i in range(g.rows[s], g.rows[s + 1])]
            assert inside == [r for r in got if r[:5] == key and r[5] == k]
    assert g.rows[-1] == len(rows)


def test_a_layout_of_nothing() -> None:
    g = gathered([])
    assert g.row.size == 0
    assert g.rows.tolist() == [0]


@pytest.mark.parametrize("n", [0, 1])
def test_mix_lengths(n: int) -> None:
    assert mix(np.zeros(n, np.int64), 7).size == n
