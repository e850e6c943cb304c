"""Names of the price columns of wide tables: which outcome, market, book and line a column such as `home_ml` is of.

A name is read word by word, whatever its case and separators: `AwaySpreadOdds`, `Pinnacle Home`, `over_2.5`. Words that
are none of `_WORDS` must be a book of the catalog; of another name it is not known what the column has, and its
`Cell` says so.
"""

import re
from typing import NamedTuple

from oddsengine import catalog

SIDES = {"home": ("home", "draw", "away"), "over": ("over", "under"), "yes": ("yes", "no")}
"""Outcomes of a market, by the first."""
_WORDS: dict[str, tuple[str, str]] = {
    "home": ("side", "home"),
    **dict.fromkeys(("draw", "draws", "tie", "tied", "x", "empate", "nul", "unentschieden", "remis"), ("side", "draw")),
    **dict.fromkeys(("away", "visitor", "visitors"), ("side", "away")),
    **{word: ("side", word) for word in ("over", "under", "yes", "no")},
    **dict.fromkeys(("ml", "moneyline", "h2h", "win"), ("market", "moneyline")),
    **dict.fromkeys(("spread", "handicap", "ah", "runline", "puckline"), ("market", "spread")),
    **dict.fromkeys(("total", "totals", "ou"), ("market", "total")),
    "btts": ("market", "both_teams_to_score"),
    **dict.fromkeys(("odds", "odd", "price", "prices"), ("kind", "price")),
    "line": ("kind", "line"),
    **dict.fromkeys(("decimal", "dec"), ("form", "odds_decimal")),
    **dict.fromkeys(("american", "us"), ("form", "odds_american")),
    **dict.fromkeys(("open", "opening", "opener"), ("when", "open")),
    **dict.fromkeys(("close", "closing", "closer"), ("when", "close")),
    **dict.fromkeys(("max", "best", "avg", "average", "mean", "min", "consensus"), ("derived", "derived")),
}
_NUMBERED = {"1": "home", "2": "away"}
_LETTERS = {"H": "home", "D": "draw", "A": "away"}
_NO_PRICE = frozenset(
    {
        "team", "name", "score", "goals", "goal", "pts", "record", "id", "abbr", "abbreviation", "code", "prob",
        "probability", "implied", "pct", "percent", "wins", "rank", "ranking", "rot", "rotation", "stake", "limit",
        "bet", "result", "form", "url", "link", "logo", "city", "league", "corners", "cards", "shots",
    }
)  # fmt: skip
_CAN_BE = frozenset({*_WORDS, *_NUMBERED, *(letter.casefold() for letter in _LETTERS), "points", "n", "0"})
_NO_STATES = frozenset({"id"})  # of a book, such as `fanduel_id`: it may be the id of a price
_PARTS = re.compile(r"\d+(?:\.\d+)?|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_JOINED = (("money line", "moneyline"), ("run line", "runline"), ("puck line", "puckline"), ("over under", "ou"))
_LINES = frozenset({"total", "ou", "total points", "total goals", "total runs", "over under line", "total line", "o u"})


class Cell(NamedTuple):
    """What a column of prices, or of lines, is of."""

    name: str
    kind: str  # price or line
    side: str  # "" of a line that both sides share
    market: str  # "" if the name does not say
    book: str = ""
    form: str = ""  # a column of `ODDS_SCHEMA`, if the name says the format
    when: str = ""  # open or close
    line: float | None = None  # if the name has it
    unknown: str = ""  # words that are no book of the catalog
    derived: bool = False  # of several books, such as an average
    bare: bool = False  # the name is that of an outcome, so that only its values say that it has prices

    @property
    def outcome(self) -> tuple[str, str, str, float | None]:
        """What two columns of prices must not have in common."""
        return self.book or self.unknown, self.market, self.side, self.line


def is_book(name: str) -> bool:
    """Whether the catalog has a book of a name.

    Examples
    --------
    >>> [is_book(name) for name in ("DraftKings", "hardrockbet_az", "betrivers_nj", "Average")]
    [True, True, True, False]
    """
    book = catalog.book(name)
    state = book.id.rpartition("_")[2]
    of_state = book.feed != "" and state in catalog.link_states() and state not in _NO_STATES
    return book.id in catalog.books() or of_state


def can_be(name: str) -> bool:
    """Whether a column may be of prices or lines by a word of its name, although it is not known what it is.

    Examples
    --------
    >>> [can_be(name) for name in ("point_spread", "Pinnacle Line", "home_score", "Away %", "attendance")]
    [True, True, False, False, False]
    """
    words = {part.casefold() for part in _PARTS.findall(name)}
    return "%" not in name and not words & _NO_PRICE and bool(words & _CAN_BE)


def cell(name: str) -> Cell | None:
    """Read the name of a column; None if it is not of prices or lines.

    Examples
    --------
    >>> cell("home_ml")[1:4], cell("Pinnacle Away")[2:5], cell("over_2.5")[1:4], cell("home_score")
    (('price', 'home', 'moneyline'), ('away', '', 'Pinnacle'), ('price', 'over', 'total'), None)
    """
    if "%" in name:
        return None
    if name in _LETTERS:
        return Cell(name, "price", _LETTERS[name], "", bare=True)
    parts = _PARTS.findall(name)
    words = " ".join(part.casefold() for part in parts)
    if words in _LINES:
        return Cell(name, "line", "", "total")
    for several, one in _JOINED:
        words = words.replace(several, one)
    words_ = words.split()
    if not words_:
        return None
    found: dict[str, str] = {}
    rest: list[str] = []
    numbers: list[str] = []
    for word in words_:
        sort, value = _WORDS.get(word, ("", ""))
        if sort and sort not in found:
            found[sort] = value
        elif word[0].isdigit():
            numbers.append(word)
        else:
            rest.append(word)
    if "side" not in found and len(numbers) == 1 and numbers[0] in _NUMBERED:
        found["side"] = _NUMBERED[numbers.pop()]
    side, market = found.get("side", ""), found.get("market", "")
    line = _number(numbers)
    if numbers and (line is None or side not in ("over", "under")):
        rest, line = [*rest, *numbers], None
    book = _book(name, parts, rest)
    if _NO_PRICE & set(words_) and not (book and _NO_PRICE & {word.casefold() for word in _PARTS.findall(book)}):
        return None
    if not side and market == "total" and book and found.get("kind") != "price":
        return Cell(name, "line", "", "total", book)
    if not side:
        return None
    if side in ("over", "under"):
        market = market or "total"
    is_line = found.get("kind") == "line" or (market == "spread" and "kind" not in found and "form" not in found)
    if is_line:
        market = market or ("total" if side in ("over", "under") else "spread")
    return Cell(
        name, "line" if is_line else "price", side, market, book, found.get("form", ""), found.get("when", ""), line,
        "" if book else " ".join(rest), "derived" in found, not found.keys() & {"kind", "market", "form"},
    )  # fmt: skip


def _number(digits: list[str]) -> float | None:
    """The line that a name has: 2.5, or 2_5."""
    text = ".".join(digits)
    return float(text) if text.count(".") == 1 else None


def _book(name: str, parts: list[str], rest: list[str]) -> str:
    """The book of a name, as it is written there; empty if the catalog has none."""
    if not rest:
        return ""
    own = [part for part in parts if part.casefold() in rest]
    start, end = name.find(own[0]), name.rfind(own[-1]) + len(own[-1])
    for text in (name[start:end], "".join(own), " ".join(own)):
        if is_book(text):
            return text.strip(" _.-")
    return ""
