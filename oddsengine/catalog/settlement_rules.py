"""Terms: what a bet settles on where a game does not end in the usual way, by book, sport, league and market.

terms.toml has the cases, the rules and their sources. What it does not say is unknown, which is not the same as equal.
"""

from collections.abc import Mapping
from datetime import date
from functools import cache, lru_cache
from typing import Any, NamedTuple

from oddsengine.catalog import data_files
from oddsengine.catalog.books import book, books
from oddsengine.catalog.leagues import league as league_of
from oddsengine.catalog.markets import FULL_GAME, families
from oddsengine.catalog.spelling import plain
from oddsengine.catalog.sports import sport as sport_of

SPORTSBOOKS, PROPS = "sportsbooks", "props"  # classes of books and of families
CASES = ("tie", "cancelled", "postponed", "retirement", "overtime", "dead_heat", "did_not_play")
PAYS = ("void", "half", "fair")
WITHIN = ("day", "week", "ever")
AFTER = ("ball", "match")
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "tie": PAYS, "cancelled": PAYS, "did_not_play": PAYS, "overtime": ("counts", "excluded"),
    "dead_heat": ("full", "divided"),
}  # fmt: skip
# Earliest and latest end. The last games of an NFL week are on Mondays, and it ends on Wednesday.
_HOURS = {"day": (0.0, 24.0), "week": (48.0, 168.0), "ever": (float("inf"), float("inf"))}
_SETS = {"ball": 0.0, "match": float("inf")}
_SAYS = {
    "void": "returns the stake", "half": "pays 0.50", "fair": "pays a fair price", "counts": "counts overtime",
    "excluded": "does not count overtime", "full": "pays in full", "divided": "divides the payout",
}  # fmt: skip
_LIMITS = {
    "day": "it is played on the same day", "week": "it is played in the same league week",
    "ball": "a ball has been played", "match": "the match is completed",
}  # fmt: skip


class Settlement(NamedTuple):
    """What a book does in one case."""

    case: str
    pays: str  # if the bet does not stand
    limit: float | str | None = None  # `within` of a postponement, `after` of a retirement; other bets never stand
    source: str = ""
    dated: date | None = None

    @property
    def rule(self) -> tuple[str, float | str | None]:
        """What two books are compared by; a bet that always stands pays nothing else."""
        return "" if self.limit == "ever" else self.pays, self.limit

    @property
    def stands(self) -> tuple[float, float]:
        """Between which numbers the limit lies up to which the bet stands.

        Hours of a postponement. Of a retirement, the sets completed, below 0: the fewer a book needs, the longer it
        stands.
        """
        if self.case == "retirement":
            sets = _SETS.get(self.limit, self.limit) if isinstance(self.limit, str) else self.limit
            return -float(sets or 0.0), -float(sets or 0.0)
        if isinstance(self.limit, str):
            return _HOURS[self.limit]
        return float(self.limit or 0.0), float(self.limit or 0.0)

    def __str__(self) -> str:
        """Say it, after the name of the book."""
        pays, limit = _SAYS[self.pays], self.limit
        if limit is None:
            return pays
        if limit == "ever":
            return "stands whenever it is played"
        if isinstance(limit, str):
            return f"{pays} unless {_LIMITS[limit]}"
        if self.case == "postponed":
            return f"{pays} unless it starts within {limit:g} hours"
        return f"{pays} unless {limit:g} {'set has' if limit == 1 else 'sets have'} been played"


class Terms(NamedTuple):
    """What a bet settles on in each case; None is unknown, or does not apply."""

    tie: Settlement | None = None
    cancelled: Settlement | None = None
    postponed: Settlement | None = None
    retirement: Settlement | None = None
    overtime: Settlement | None = None
    dead_heat: Settlement | None = None
    did_not_play: Settlement | None = None


class _Entry(NamedTuple):
    books: frozenset[str]
    sports: frozenset[str] | None
    leagues: frozenset[str] | None
    families: frozenset[str] | None
    periods: frozenset[str] | None
    settlements: Mapping[str, Settlement]

    def applies(self, book_id: str, sport: str, league: str, family: str, period: str) -> bool:
        """Whether a price meets the conditions."""
        is_prop = family in families() and families()[family].is_prop
        classes = {family, PROPS} if is_prop else {family}
        return (
            (book_id in self.books or (SPORTSBOOKS in self.books and _is_sportsbook(book_id)))
            and (self.sports is None or sport in self.sports)
            and (self.leagues is None or league in self.leagues)
            and (self.families is None or not classes.isdisjoint(self.families))
            and (self.periods is None or period in self.periods)
        )


def _is_sportsbook(book_id: str) -> bool:
    """Whether the catalog has it as a book that takes single bets at prices of its own."""
    entry = books().get(book_id)
    return entry is not None and not (entry.exchange or entry.mid_price or entry.parlay_only)


def _settlement(case: str, given: Any, source: str, of: date | None) -> Settlement:
    if isinstance(given, Mapping):
        limit = given["within" if case == "postponed" else "after"]
        return Settlement(case, given.get("pays", "void"), limit, source, of)
    return Settlement(case, given, None, source, of)


def shipped_terms() -> dict[str, dict[str, Any]]:
    """The entries of the package, by id."""
    table: dict[str, dict[str, Any]] = data_files.toml("terms.toml")["terms"]
    return table


@cache
def _entries() -> tuple[_Entry, ...]:
    """The entries, those of your own file last."""
    own = data_files.own.changes.get("terms", {})
    table = data_files.amended("terms", shipped_terms())
    made = []
    for id_, entry in sorted(table.items(), key=lambda each: each[0] in own):  # stable
        source = entry.get("source", "your own catalog file" if id_ in own else "")
        given = {case: _settlement(case, entry[case], source, entry.get("date")) for case in CASES if case in entry}
        some = {key: frozenset(map(plain, entry[key])) if key in entry else None for key in _Entry._fields[1:5]}
        names = frozenset(name if name == SPORTSBOOKS else book(name).id for name in entry["books"])
        made.append(_Entry(names, **some, settlements=given))
    return tuple(made)


@cache
def books_with_terms() -> tuple[str, ...]:
    """Ids of the books of which at least one rule is known."""
    named = {name for entry in _entries() for name in entry.books}
    return tuple(id_ for id_ in books() if id_ in named or (SPORTSBOOKS in named and _is_sportsbook(id_)))


@cache
def cases_of(sport: str, family: str, league: str = "", period: str = FULL_GAME) -> tuple[str, ...]:
    """The cases in which bets on such a market need a rule: those that one is known of at any book."""
    within = sport_of(sport).id
    place = within, league_of(league, within).id if league else "", family, period
    applying = (entry for entry in _entries() if any(entry.applies(book_id, *place) for book_id in books()))
    named = {case for entry in applying for case in entry.settlements}
    return tuple(case for case in CASES if case in named)


@lru_cache(maxsize=65536)
def terms(book_id: str, sport: str, family: str, league: str = "", period: str = FULL_GAME) -> Terms:
    """Return what a bet settles on where a game does not end in the usual way.

    Parameters
    ----------
    book_id
        Id, name or alias of a book.
    sport, league
        Id or alias.
    family
        Family of the market, such as `moneyline` or `player_points`; see `market_type`.
    period
        Period of the market, such as `1st_half`.

    Examples
    --------
    >>> kalshi, kings = (terms(book, "football", "moneyline", "nfl") for book in ("kalshi", "draftkings"))
    >>> str(kalshi.tie), str(kings.tie), str(kalshi.postponed)
    ('pays 0.50', 'returns the stake', 'pays a fair price unless it starts within 48 hours')
    >>> kings.retirement, terms("corner_shop", "football", "moneyline", "nfl").tie
    (None, None)
    """
    within = sport_of(sport).id
    place = book(book_id).id, within, league_of(league, within).id if league else "", family, period
    found: dict[str, Settlement] = {}
    for entry in _entries():
        if entry.applies(*place):
            found.update(entry.settlements)
    return Terms(**found)
