"""Packed terms say what was packed, and sort as the layout does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oddsengine.identity.packed_terms import (
    MOST_SUBJECTS,
    UNREAD,
    TermParts,
    line_key,
    line_key_in_kernel,
    of_another_game,
    pack,
    unpack,
    unpack_in_kernel,
)

KINDS = st.integers(0, (1 << 19) - 1)
PARTS = st.builds(
    TermParts,
    kind=KINDS,
    with_draw=KINDS,
    subject=st.integers(0, MOST_SUBJECTS - 1),
    threshold=st.integers(-(1 << 30), (1 << 30) - 1),
    side=st.integers(0, UNREAD),
    name=st.integers(0, 1 << 40),
    two_way=st.integers(0, 255),
    verdict=st.integers(0, 255),
    other_game=st.integers(0, 1),
)


@given(PARTS)
def test_unpacking_gives_what_was_packed(parts: TermParts) -> None:
    packed = pack(parts)
    assert all(number < 1 << 63 for number in packed)
    assert unpack(*packed) == parts
    assert TermParts(*map(int, unpack_in_kernel(*map(np.int64, packed)))) == parts
    columns = np.array([packed, packed])
    assert [column.tolist() for column in unpack(*columns.T)] == [[number] * 2 for number in parts]


@given(PARTS, PARTS)
def test_ladders_and_lines_sort(a: TermParts, b: TermParts) -> None:
    one, other = pack(a), pack(b)
    assert (one.ladder < other.ladder) == ((a.kind, a.subject) < (b.kind, b.subject))
    assert (one.ladder_with_draw < other.ladder_with_draw) == ((a.with_draw, a.subject) < (b.with_draw, b.subject))
    assert (one.line < other.line) == ((a.threshold, a.side) < (b.threshold, b.side))


@given(PARTS, st.integers(0, UNREAD), st.integers(0, 1))
def test_parts_can_be_replaced(parts: TermParts, side: int, other_game: int) -> None:
    packed = pack(parts)
    assert line_key(parts.threshold, side) == pack(parts._replace(side=side)).line
    assert line_key_in_kernel(np.int64(parts.threshold), np.int64(side)) == line_key(parts.threshold, side)
    assert of_another_game(packed.rest, other_game) == pack(parts._replace(other_game=other_game)).rest
