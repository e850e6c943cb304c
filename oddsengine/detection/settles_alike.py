"""Whether two contracts of two venues settle alike: what is known of both, what is not, and the worst case in money."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt, is_number
from oddsengine.detection.settlement_differences import LegTerms, differing, results

_MOST = 1e6  # of odds, and of money


class SettledCase(NamedTuple):
    """What two bets do in one case."""

    case: str  # one of `catalog.CASES`
    first: str | None  # None: unknown
    second: str | None
    alike: bool | None  # None: unknown, since one of them is
    result: float | None  # the worst result of both, in money; None if it is unknown, or they settle alike
    sources: tuple[str, ...]  # where the rules are stated


class Settled(NamedTuple):
    """Whether two bets settle alike.

    Parameters
    ----------
    alike
        False: they differ in at least one case; None: not known.
    worst_case
        The lowest result in money that is known, of `stake` on both sides of the market together.
    stake, books
        Of the question.
    cases
        What both do in each case that matters.

    Examples
    --------
    >>> leg = {"sport": "baseball", "league": "mlb", "market_type": "moneyline"}
    >>> found = settles_alike(leg | {"sportsbook": "fanduel"}, leg | {"sportsbook": "draftkings"})
    >>> found.alike, [each.case for each in found.cases]
    (True, ['cancelled', 'postponed'])
    """

    alike: bool | None
    worst_case: float | None
    stake: float
    books: tuple[str, str]
    cases: tuple[SettledCase, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Cases in which the rule of one or both is unknown."""
        return tuple(each.case for each in self.cases if each.alike is None)

    def __str__(self) -> str:
        """In words, a line for each case."""
        said = {True: "settle alike", False: "do not settle alike", None: "may not settle alike: rules are unknown"}
        lines = [f"{' and '.join(self.books)} {said[self.alike]}"]
        if self.worst_case is not None:
            lines[0] += f"; at worst {self.worst_case:+.2f} of {self.stake:g} staked"
        for each in self.cases:
            result = "" if each.result is None else f" ({each.result:+.2f})"
            mark = {True: "=", False: "differ" + result, None: "unknown"}[each.alike]
            lines.append(f"  {each.case.replace('_', ' '):<12} {mark:<16} {each.first or '?'} | {each.second or '?'}")
        return "\n".join(lines)


def settles_alike(first: Mapping[str, Any], second: Mapping[str, Any], *, stake: float = 100.0) -> Settled:
    """Say whether bets on both sides of a market settle alike where a game does not end in the usual way.

    Parameters
    ----------
    first, second
        Legs of an arbitrage, or rows of an odds table: ``sportsbook``, ``sport``, ``market_type``, and where it matters
        ``league`` and ``market_segment``. With ``odds_decimal`` or ``net_odds`` of both, the worst case is computed.
    stake
        Money on both, in proportion to 1 / odds.

    Returns
    -------
    Settled
        `alike` is True only if the rules of both are known in each case that matters.

    Raises
    ------
    ValueError
        If the catalog has no rules for a book (it lists those it has), a field is missing, or odds are invalid.

    Examples
    --------
    >>> leg = {"sport": "football", "league": "nfl", "market_type": "moneyline"}
    >>> kalshi = leg | {"sportsbook": "kalshi", "odds_decimal": 1.7}
    >>> found = settles_alike(kalshi, leg | {"sportsbook": "draftkings", "odds_decimal": 2.5})
    >>> found.alike, round(found.worst_case, 2), found.unknown
    (False, -8.93, ())
    """
    check_number("stake", stake, above=0.0, most=_MOST)
    legs, cost = [], []
    for name, leg in (("the first leg", first), ("the second leg", second)):
        legs.append(_read(name, leg))
        cost.append(_cost(name, leg))
    place, another = (each[2] for each in legs)
    if place != another:
        raise ValueError(f"both legs must be of one sport, market, league and period, got {place} and {another}")
    implied = np.array([[each for each in cost if each is not None]])
    unlike = {each.name: each for each in differing(tuple(each for each, *_ in legs))}
    wanted = {case for _, cases, _ in legs for case in cases}
    cases = []
    for name in (case for case in catalog.CASES if case in wanted):
        rules = [getattr(leg.terms, name) for leg, *_ in legs]
        known = all(rule is not None for rule in rules)
        result = float(results(unlike[name], implied)[0]) if name in unlike and implied.size == 2 else np.nan
        one, other = (None if rule is None else str(rule) for rule in rules)
        sources = tuple(dict.fromkeys(rule.source for rule in rules if rule is not None and rule.source))
        alike = name not in unlike if known else None
        cases.append(SettledCase(name, one, other, alike, None if np.isnan(result) else stake * result, sources))
    usual = [stake * (1.0 / float(implied.sum()) - 1.0)] if implied.size == 2 else []  # one of them wins
    worst = min([*usual, *(each.result for each in cases if each.result is not None)], default=None)
    answers = {each.alike for each in cases}
    alike = False if False in answers else None if None in answers or not cases else True
    return Settled(alike, worst, float(stake), (legs[0][0].book, legs[1][0].book), tuple(cases))


def _read(name: str, leg: Mapping[str, Any]) -> tuple[LegTerms, tuple[str, ...], tuple[str, ...]]:
    """The terms of a leg, the cases in which it needs a rule, and what these depend on."""
    if not isinstance(leg, Mapping):
        raise ValueError(f"{name} must be a mapping with sportsbook, sport and market_type, got {excerpt(leg)}")
    for field in ("sportsbook", "sport", "market_type"):
        if not isinstance(leg.get(field), str) or not leg[field]:
            raise ValueError(f"{name} must have a {field}, got {excerpt(leg.get(field))}")
    book = catalog.book(leg["sportsbook"]).id
    if book not in (known := catalog.books_with_terms()):
        raise ValueError(
            f"the catalog has no settlement rules for {excerpt(leg['sportsbook'])}; it has them for {', '.join(known)}"
        )
    sport, league = leg["sport"], leg.get("league") or ""
    if catalog.sport(sport).id not in catalog.sports():
        raise ValueError(f"{name} must have a sport of {', '.join(catalog.sports())}, got {excerpt(sport)}")
    if not isinstance(league, str):
        raise ValueError(f"{name} must have the league as text, got {excerpt(league)}")
    texts = (leg["market_type"], leg.get("stat_category") or "", leg.get("market_segment") or "")
    kind = catalog.meaning(catalog.sport(sport).id, *texts)
    if not kind.usable:
        raise ValueError(f"{name} has a market_type that is not known, got {excerpt(leg['market_type'])}")
    within = catalog.sport(sport).id
    place = within, kind.family, catalog.league(league, within).id if league else "", kind.period
    return LegTerms(book, catalog.terms(book, *place)), catalog.cases_of(*place), place


def _cost(name: str, leg: Mapping[str, Any]) -> float | None:
    odds = leg.get("net_odds") or leg.get("odds_decimal")
    if odds is None:
        return None
    if not is_number(odds) or not 1.0 < odds <= _MOST:
        raise ValueError(f"{name} must have odds above 1 and at most {_MOST:,.0f}, got {excerpt(odds)}")
    return 1.0 / float(odds)
