"""Text tables: aligned columns that fit a terminal, or run at full length where nobody counts columns.

A column may be narrowed (its cells end in an ellipsis) and may be left out; which, and in what order, it says itself.
Cells are made safe to print: what is not printable, an escape sequence from a file for instance, shows as a question mark.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_GAP = 2  # spaces between columns
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Column:
    """How one column is laid out."""

    title: str
    right: bool = False  # numbers line up at their end
    least: int = 0  # it may be narrowed to so many characters; 0: never
    drop: int = 0  # the column with the largest number is left out first; 0: never
    shared: bool = False  # on a terminal, shown once for several rows of one thing


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal.

    Examples
    --------
    >>> width_of("Jokić"), width_of("東京")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _clean(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _cut(text: str, width: int) -> str:
    """Shorten a text to so many columns."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def _fitted(columns: Sequence[Column], natural: list[int], width: int) -> dict[int, int]:
    """Which columns are shown, and how wide, so that the line fits if it can."""
    shown = list(range(len(columns)))

    def needed(of: list[int]) -> int:
        least = sum(min(natural[i], columns[i].least or natural[i]) for i in of)
        return least + _GAP * (len(of) - 1)

    while needed(shown) > width:
        last = max(shown, key=lambda i: columns[i].drop)
        if columns[last].drop == 0:
            break
        shown.remove(last)
    wide = {i: natural[i] for i in shown}
    over = sum(wide.values()) + _GAP * (len(shown) - 1) - width
    while over > 0:
        spare = [i for i in shown if columns[i].least and wide[i] > columns[i].least]
        if not spare:
            break
        wide[max(spare, key=lambda i: wide[i])] -= 1
        over -= 1
    return wide


def table(
    columns: Sequence[Column], groups: Sequence[Sequence[Sequence[str]]], width: int | None, *, bold: bool = False
) -> list[str]:
    """Lay rows out under their titles.

    Parameters
    ----------
    columns
        One for each cell of a row.
    groups
        Rows that belong together: the legs of one bet, or a single row.
    width
        Of the terminal; None leaves nothing out, cuts nothing and repeats what rows share.
    bold
        Whether the titles stand out.

    Returns
    -------
    list of str
        Lines without line ends.

    Examples
    --------
    >>> table([Column("book"), Column("odds", right=True)], [[["acme", "1.9"]], [["b", "10"]]], None)
    ['book  odds', 'acme   1.9', 'b       10']
    """
    rows: list[list[str]] = []
    for group in groups:
        for at, cells in enumerate(group):
            hide = width is not None and at > 0
            rows.append(["" if hide and c.shared else _clean(t) for c, t in zip(columns, cells, strict=True)])
    natural = [max([len(c.title), *(width_of(row[i]) for row in rows)]) for i, c in enumerate(columns)]
    wide = dict(enumerate(natural)) if width is None else _fitted(columns, natural, width)

    def line(cells: Sequence[str]) -> str:
        parts = [_pad(_cut(cells[i], w), w, right=columns[i].right) for i, w in wide.items()]
        return (" " * _GAP).join(parts).rstrip()

    head = line([column.title for column in columns])
    return [f"{_BOLD}{head}{_PLAIN}" if bold else head, *(line(row) for row in rows)]
