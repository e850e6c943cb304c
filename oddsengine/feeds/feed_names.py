"""Names of sports, leagues, books and markets in feeds, resolved by the catalog; results are cached."""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.catalog.spelling import plain
from oddsengine.feeds.payload import Game

THREE_WAY = "moneyline_3way"
_LINE = re.compile(r"(.+?)[ :]+\(?([-+]?\d{1,4}(?:\.\d{1,2})?)\)?")
_VERSUS = ((" vs ", True), (" vs. ", True), (" v ", True), (" @ ", False), (" at ", False))  # whether home is first
_ALTERNATE = frozenset({"alternate", "alternative", "alternates", "alt"})


class MarketName(NamedTuple):
    """A market name of a source, resolved; of one outside the catalog only the name is known."""

    name: str  # `market_type` of its quotes: the published name, or the source's own
    in_catalog: bool = False  # in the catalog, even if never used
    alternate: bool = False  # by its name
    prop: bool = False
    team: bool = False  # about one team's score
    fixed_line: bool = False  # the type itself implies the line


@lru_cache(maxsize=16384)
def market(name: str, sport: str = "", stat: str = "") -> MarketName:
    """Resolve a market name.

    A catalog name is used only if it has exactly the same meaning, including the period.

    Examples
    --------
    >>> market("spreads_h1", "basketball").name, market("alternate_totals").name, market("corner taken by")[:2]
    ('1st_half_point_spread', 'total_points', ('corner taken by', False))
    """
    kind = catalog.market_type(name, sport, stat)
    words = catalog.normalise(name).split()
    label = name
    if kind.usable:
        for candidate in (kind.base, f"{kind.period}_{kind.base}", f"{kind.period}_{kind.family}"):
            if catalog.market_type(candidate, sport, stat)._replace(name="", base="") == kind._replace(
                name="", base=""
            ):
                label = candidate
                break
    # An unusable type in the catalog has a base of its own, or is itself one of its names.
    listed = kind.usable or kind.base != name or "_".join(words) in _listed()
    return MarketName(
        label, listed, bool(_ALTERNATE.intersection(words)), kind.is_prop, kind.subject == "team",
        kind.fixed_line is not None,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _listed() -> frozenset[str]:
    return frozenset(catalog.market_type_names())


@lru_cache(maxsize=4096)
def book(name: str) -> str:
    """Return the id of a book.

    Examples
    --------
    >>> book("DraftKings"), book("betfair_ex_eu"), book("Corner Shop")
    ('draftkings', 'betfair_exchange', 'corner_shop')
    """
    return catalog.book(name).id or name


def aggregated_book(name: str) -> str:
    """Return the id of a book as an aggregator has it: what it publishes as Polymarket are mid prices.

    Examples
    --------
    >>> aggregated_book("DraftKings"), aggregated_book("Polymarket")
    ('draftkings', 'polymarket_mid')
    """
    id_ = book(name)
    return "polymarket_mid" if id_ == "polymarket" else id_


def league(name: str, sport: str) -> str:
    """Return the id of a league, or an empty string."""
    return catalog.league(name, sport).id if name else ""


@lru_cache(maxsize=4096)
def sport_and_league(key: str) -> tuple[str, str]:
    """Split a combined sport and league key.

    Examples
    --------
    >>> sport_and_league("americanfootball_nfl"), sport_and_league("soccer_epl")
    (('football', 'nfl'), ('soccer', 'england_premier_league'))
    >>> sport_and_league("quidditch_cup")
    ('quidditch', 'cup')
    """
    parts = plain(key).split("_")
    for n in range(1, len(parts) + 1):
        sport_ = catalog.sport("_".join(parts[:n]))
        if sport_.id in catalog.sports():
            return sport_.id, league("_".join(parts[n:]), sport_.id)
    return parts[0], "_".join(parts[1:])


def side_of(name: str, home: str, away: str) -> str:
    """Return which of two teams a name is, `home` or `away`; empty for neither, or if both are equal."""
    normalised = catalog.normalise(name)
    is_home, is_away = normalised == catalog.normalise(home), normalised == catalog.normalise(away)
    return "" if not normalised or is_home == is_away else "home" if is_home else "away"


def outcome_of(name: str, home: str, away: str) -> str:
    """Return the outcome that a name is: a side, or a word such as draw, over or yes; empty if neither.

    Examples
    --------
    >>> outcome_of("Fulham", "Fulham", "Chelsea"), outcome_of("Tie", "Fulham", "Chelsea"), outcome_of("2-1", "A", "B")
    ('home', 'draw', '')
    """
    return side_of(name, home, away) or catalog.selection_words().get(catalog.normalise(name), "")


def teams_of(name: str) -> tuple[str, str]:
    """Return home and away of the name of a game; two empty strings if it is not one.

    Examples
    --------
    >>> teams_of("Fulham vs Chelsea"), teams_of("Dallas @ Seattle"), teams_of("Masters 2026")
    (('Fulham', 'Chelsea'), ('Seattle', 'Dallas'), ('', ''))
    """
    for separator, home_first in _VERSUS:
        first, found, second = name.partition(separator)
        if found and first.strip() and second.strip():
            teams = first.strip(), second.strip()
            return teams if home_first else teams[::-1]
    return "", ""


def with_line(text: str) -> tuple[str, float | None]:
    """Split the name of an outcome and the line at its end.

    Examples
    --------
    >>> with_line("Fulham -0.75"), with_line("Over 2.5"), with_line("Chelsea (+3)"), with_line("Draw")
    (('Fulham', -0.75), ('Over', 2.5), ('Chelsea', 3.0), ('Draw', None))
    """
    match = _LINE.fullmatch(text.strip())
    return (match[1], float(match[2])) if match else (text.strip(), None)


def against(three_way: str, side: str, game: Game, handicap: str) -> dict[str, Any] | None:
    """Return the bet against an outcome of a soccer match: the other side with half a goal, or No to a draw.

    None for an outcome of another market, and outside soccer.

    Parameters
    ----------
    three_way
        The market of the side: the three-way result of the match, or of a part of it.
    handicap
        What the book calls handicaps, so that one bet has one name: `asian_handicap` or `point_spread`.

    Examples
    --------
    >>> game = Game("1", "soccer", "", "Fulham", "Chelsea")
    >>> against("1st_half_moneyline_3way", "home", game, "point_spread")
    {'market_type': '1st_half_point_spread', 'selection': 'Chelsea', 'selection_type': 'away', 'line': 0.5}
    >>> against("moneyline_3way", "draw", game, "point_spread")
    {'market_type': 'draw', 'selection': 'No', 'selection_type': 'no', 'line': None}
    """
    if game.sport != "soccer" or not three_way.endswith(THREE_WAY) or side not in ("home", "draw", "away"):
        return None
    if side == "draw":
        name = market(three_way.removesuffix(THREE_WAY) + "draw", game.sport).name
        return {"market_type": name, "selection": "No", "selection_type": "no", "line": None}
    name = market(three_way.removesuffix(THREE_WAY) + handicap, game.sport).name
    other, team = ("away", game.away) if side == "home" else ("home", game.home)
    return {"market_type": name, "selection": team, "selection_type": other, "line": 0.5}
