"""Packed terms: what a term means as four numbers, of which the first three are sort keys.

Their bits are known to this module only. `pack` and `line_key` write them, `unpack` reads them; kernels have their own
of the last two.
"""

from typing import Any, NamedTuple

from oddsengine._jit import in_python, kernel

MOST_SUBJECTS = 1 << 24
UNREAD = 15  # side of a term whose outcome is not recognised

# Bits below the kind, the subject, the threshold, the market's name and the ways.
_KIND, _SUBJECT, _THRESHOLD, _NAME, _WAYS = 44, 20, 4, 17, 8
_OTHER_GAME = 1 << 16
_SUBJECT_MASK, _SIDE_MASK, _BYTE = MOST_SUBJECTS - 1, (1 << _THRESHOLD) - 1, 255
_ZERO = 1 << 30  # added to thresholds, which may be negative
LINE_BITS = 31 + _THRESHOLD
"""Bits of a line's sort key."""


class PackedTerm(NamedTuple):
    """Numbers of one term, or columns of several, that sort as the layout does."""

    ladder: Any  # kind, subject
    line: Any  # threshold, side
    ladder_with_draw: Any  # as `ladder`, for the kind with a draw
    rest: Any  # market name, whether it names another game, ways, verdict


class TermParts(NamedTuple):
    """What a term means: numbers, or columns of 64-bit integers."""

    kind: Any
    with_draw: Any  # the kind if the market has a draw
    subject: Any  # below `MOST_SUBJECTS`
    threshold: Any  # hundredths
    side: Any  # `UNREAD` if its outcome is not recognised
    name: Any  # the market's own
    two_way: Any  # 0 if it is no moneyline, see `raw_labels.moneyline`
    verdict: Any  # code of a reason, or 0
    other_game: Any  # 1 if it names another game than its event


def pack(parts: TermParts) -> PackedTerm:
    """Encode terms as numbers that sort."""
    return PackedTerm(
        ladder=parts.kind << _KIND | parts.subject << _SUBJECT,
        line=line_key(parts.threshold, parts.side),
        ladder_with_draw=parts.with_draw << _KIND | parts.subject << _SUBJECT,
        rest=parts.name << _NAME | parts.other_game * _OTHER_GAME | parts.two_way << _WAYS | parts.verdict,
    )


@kernel
def unpack_in_kernel(ladder: Any, line: Any, ladder_with_draw: Any, rest: Any) -> TermParts:
    """Decode packed terms.

    `ladder`, `line`, `ladder_with_draw` and `rest` are the fields of `PackedTerm`.
    """
    return TermParts(
        ladder >> _KIND, ladder_with_draw >> _KIND, (ladder >> _SUBJECT) & _SUBJECT_MASK,
        (line >> _THRESHOLD) - _ZERO, line & _SIDE_MASK, rest >> _NAME, (rest >> _WAYS) & _BYTE, rest & _BYTE,
        (rest & _OTHER_GAME) // _OTHER_GAME,
    )  # fmt: skip


@kernel
def line_key_in_kernel(threshold: Any, side: Any) -> Any:
    """Encode a line, in hundredths, and a side of it.

    `threshold` is the line, `side` the side.
    """
    return (threshold + _ZERO) << _THRESHOLD | side


def of_another_game(rest: Any, other_game: Any) -> Any:
    """Encode again whether terms name another game, in their last number."""
    return rest & ~_OTHER_GAME | other_game * _OTHER_GAME


unpack, line_key = in_python(unpack_in_kernel), in_python(line_key_in_kernel)
