"""Text tables: aligned columns that fit a terminal, or full length in piped output.

Each column states whether, and in what order, it can be narrowed or dropped. In long names, first words are dropped:
"Golden State Warriors @ Denver Nuggets" becomes "Warriors @ Nuggets"; lines are never truncated. Unprintable
characters, such as escape sequences from a file, are replaced by a question mark.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from oddsengine.bounds import printable

_GAP = 2  # spaces between columns
_LUXURY = 7  # columns with a `drop` of at least this are dropped before any is narrowed
_PLACES = {  # first words that belong to the next one
    "Golden State", "Green Bay", "Kansas City", "Las Vegas", "Los Angeles", "New England", "New Jersey", "New Orleans",
    "New York", "Oklahoma City", "San Antonio", "San Diego", "San Francisco", "San Jose", "St. Louis", "Tampa Bay",
}  # fmt: skip
_BET = re.compile(r"(?P<who>.+?)(?P<what>(?: (?:over|under|yes|no))?(?: [+-]?[\d.]+)?)", re.IGNORECASE)
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False  # align right
    least: int = 0  # minimum width when narrowed; 0: never narrowed
    drop: int = 0  # columns with larger numbers are dropped first; 0: never
    names: bool = False  # cells are names, shortened from the front
    shared: bool = False  # on a terminal, shown once for consecutive rows of one item


def width_of(text: str) -> int:
    """Return the width of a text on a terminal.

    Examples
    --------
    >>> width_of("Jokić"), width_of("東京")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _cut(text: str, width: int) -> str:
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _shorten(text: str, width: int) -> str:
    """Shorten names: of a game, or with a side and a line behind.

    Examples
    --------
    >>> _shorten("Golden State Warriors @ Denver Nuggets", 24), _shorten("Nikola Jokić Over 26.5", 16)
    ('Warriors @ Nuggets', 'Jokić Over 26.5')
    """
    match = _BET.fullmatch(text)
    tail = match["what"] if match else ""
    sides = [side.split(" ") for side in (match["who"] if match else text).split(" @ ")]

    def joined() -> str:
        return " @ ".join(" ".join(words) for words in sides)

    while width_of(joined() + tail) > width and any(len(words) > 1 for words in sides):
        longest = max((words for words in sides if len(words) > 1), key=lambda words: len(" ".join(words)))
        del longest[: 2 if len(longest) > 2 and " ".join(longest[:2]) in _PLACES else 1]
    return _cut(joined(), max(2, width - len(tail))) + tail


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def _fitted(columns: Sequence[Column], natural: list[int], width: int) -> dict[int, int]:
    """Which columns are shown, and how wide, so that the line fits if it can."""
    visible = list(range(len(columns)))

    def needed(of: list[int]) -> int:
        least = sum(min(natural[i], columns[i].least or natural[i]) for i in of)
        return least + _GAP * (len(of) - 1)

    while len(visible) > 1 and sum(natural[i] + _GAP for i in visible) - _GAP > width:
        last = max(visible, key=lambda i: columns[i].drop)
        if columns[last].drop < _LUXURY:
            break
        visible.remove(last)
    while needed(visible) > width:
        last = max(visible, key=lambda i: columns[i].drop)
        if columns[last].drop == 0:
            break
        visible.remove(last)
    wide = {i: natural[i] for i in visible}
    over = sum(wide.values()) + _GAP * (len(visible) - 1) - width
    while over > 0:
        spare = [i for i in visible if columns[i].least and wide[i] > columns[i].least]
        if not spare:
            break
        wide[max(spare, key=lambda i: wide[i])] -= 1
        over -= 1
    return wide


def table(
    columns: Sequence[Column], groups: Sequence[Sequence[Sequence[str]]], width: int | None, *, bold: bool = False
) -> list[str]:
    """Lay rows out under their titles, and return the lines.

    A group has rows that belong together: the legs of one bet, or a single row. Without the width of a terminal,
    nothing is left out or cut, and cells shared by the rows of a group are repeated.

    Examples
    --------
    >>> table([Column("book"), Column("odds", right=True)], [[["acme", "1.9"]], [["b", "10"]]], None)
    ['book  odds', 'acme   1.9', 'b       10']
    """
    rows: list[list[str]] = []
    for group in groups:
        for at, cells in enumerate(group):
            hide = width is not None and at > 0
            rows.append(["" if hide and c.shared else printable(t) for c, t in zip(columns, cells, strict=True)])
    natural = [max([len(c.title), *(width_of(row[i]) for row in rows)]) for i, c in enumerate(columns)]
    wide = dict(enumerate(natural)) if width is None else _fitted(columns, natural, width)

    def line(cells: Sequence[str]) -> str:
        short = {
            i: _shorten(cells[i], w) if columns[i].names and width_of(cells[i]) > w else cells[i]
            for i, w in wide.items()
        }
        parts = [_pad(_cut(short[i], w), w, right=columns[i].right) for i, w in wide.items()]
        return (" " * _GAP).join(parts).rstrip()

    head = line([column.title for column in columns])
    return [f"{_BOLD}{head}{_PLAIN}" if bold else head, *(line(row) for row in rows)]
