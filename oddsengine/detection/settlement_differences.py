"""In which cases the legs of an opportunity settle differently, and what that costs.

`catalog.terms` says what each leg settles on in a tie, a cancellation and so on. Cases in which two legs are
known to differ are listed; legs of unknown terms are not known to differ.

Of stakes in proportion to 1/d, leg i has the share s_i = (1/d_i) / S, where S is the sum of 1/d. In such a case a leg

- that is void returns s_i
- that pays half returns d_i s_i / 2 = 1 / (2 S)
- that stands returns 1 / S or nothing, and since not all legs stand, the winner may be one that does not: nothing
- that pays a fair price returns a sum that nobody knows beforehand

The result of a case is the sum less 1. A postponement or a retirement has several ways to go, according to which legs
stand; the worst one whose result is known counts. With overtime or a dead heat the legs are bets on different facts,
and the result is not computed.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, count, product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.catalog import Settlement, Terms
from oddsengine.columns import Bools, Floats, Ints, Longs
from oddsengine.detection import question as board
from oddsengine.detection.question import Question
from oddsengine.detection.result_columns import TEXTS
from oddsengine.detection.search import BestPrices
from oddsengine.identity.groups import distinct

_STANDS = "stands"
_NEXT = count(1)
_LIMITED = ("postponed", "retirement")
_SETTLED_ALIKE = ("tie", "cancelled", "did_not_play")  # whatever the result of the game

_NUMBERS = pl.List(pl.Float64)
_LISTED = {
    "case": pl.String, "sportsbook": pl.String, "terms": pl.String, "differ": pl.Boolean, "result_percent": pl.Float64,
    "source": pl.String, "date": pl.Date,
}  # fmt: skip


class LegTerms(NamedTuple):
    """The terms of one leg."""

    book: str
    terms: Terms


class TermsCase(NamedTuple):
    """A case in which legs differ: in words, and what each leg does in every way that it can go."""

    name: str
    text: str
    ways: tuple[tuple[str, ...], ...]  # by leg: `void`, `half`, `fair` or `stands`


@lru_cache(maxsize=4096)
def differing(legs: tuple[LegTerms, ...]) -> tuple[TermsCase, ...]:
    """List the cases in which legs are known to settle differently.

    Examples
    --------
    >>> legs = [LegTerms(book, catalog.terms(book, "nfl", "moneyline", "nfl")) for book in ("kalshi", "draftkings")]
    >>> for case in differing(tuple(legs)):
    ...     print(case.name, case.ways)
    tie (('half', 'void'),)
    cancelled (('fair', 'void'),)
    postponed (('fair', 'stands'), ('fair', 'void'))
    """
    out = []
    for name in catalog.CASES:
        rules: list[Settlement | None] = [getattr(leg.terms, name) for leg in legs]
        if len({rule.rule for rule in rules if rule is not None}) < 2:
            continue
        named = zip(legs, rules, strict=True)
        texts = [f"{leg.book} {rule or 'has unknown terms'}" for leg, rule in named]
        known = [rule for rule in rules if rule is not None]
        ways = tuple(_ways(name, known)) if len(known) == len(legs) else ()
        out.append(TermsCase(name, ", ".join(dict.fromkeys(texts)), ways))
    return tuple(out)


def _ways(name: str, rules: Sequence[Settlement]) -> Iterator[tuple[str, ...]]:
    """What the legs can do in a case.

    A bet stands up to a limit of which only the range may be known. Some stand and the others do not if the latest
    limit of each that stands is above the earliest limit of each that does not.
    """
    if name in _SETTLED_ALIKE:
        yield tuple(rule.pays for rule in rules)
    if name not in _LIMITED:
        return
    limits = list(dict.fromkeys(rule.limit for rule in rules))
    ranges = {rule.limit: rule.stands for rule in rules}
    for standing in product((True, False), repeat=len(limits)):
        of_limit = dict(zip(limits, standing, strict=True))
        latest = min((ranges[limit][1] for limit, stands in of_limit.items() if stands), default=np.inf)
        earliest = max((ranges[limit][0] for limit, stands in of_limit.items() if not stands), default=-np.inf)
        if not all(standing) and earliest < latest:
            yield tuple(_STANDS if of_limit[rule.limit] else rule.pays for rule in rules)


def results(case: TermsCase, implied: Floats) -> Floats:
    """Worst known result of a case as a fraction of the total stake, nan if none is known.

    Parameters
    ----------
    case
        A case in which the legs differ.
    implied
        1/odds of the legs, (n, legs).

    Examples
    --------
    >>> tie = TermsCase("tie", "", (("half", "void"),))
    >>> results(tie, np.array([[0.6, 0.38]])).round(4).tolist()
    [-0.102]
    """
    total = implied.sum(axis=1)
    worst = np.full(total.size, np.nan)
    for way in case.ways:
        if "fair" not in way:
            void = implied[:, [pays == "void" for pays in way]].sum(axis=1)
            worst = np.fmin(worst, (void + 0.5 * way.count("half")) / total - 1.0)
    return worst


class _Distinct(NamedTuple):
    """Distinct terms of some rows of the groups."""

    legs: list[LegTerms]
    rules: Longs  # (legs, cases): equal numbers are equal rules, 0 is unknown
    code: Longs  # per row: its place among them


@cache  # without a limit: `_leg` keeps the numbers
def _number(rule: tuple[Any, ...]) -> int:
    """Number a rule, so that legs are compared by numbers."""
    return next(_NEXT)


@lru_cache(maxsize=65536)
def _leg(book: str, sport: str, league: str, family: str, period: str) -> tuple[LegTerms, tuple[int, ...]]:
    terms = catalog.terms(book, sport, family, league, period)
    return LegTerms(book, terms), tuple(
        0 if rule is None else _number((*rule.rule, at)) for at, rule in enumerate(terms)
    )


def _distinct(question: Question, rows: Ints | Longs) -> _Distinct:
    """Look up the terms of each book, sport, league and kind of market once."""
    identity, g = question.board.identity, question.prices.groups
    ladder = g.ladder[g.market[rows]]
    events, kinds, books = distinct(g.event[ladder]), len(identity.kinds), max(len(identity.books), 1)
    places: dict[tuple[str, str], int] = {}
    of_event = [
        places.setdefault((sport.id, league), len(places))
        for sport, league in map(identity.sports.__getitem__, events.tolist())
    ]
    place = np.array(of_event, np.int64)[np.searchsorted(events, g.event[ladder])]
    keys, code = np.unique((place * kinds + g.kind[ladder]) * books + g.book[rows], return_inverse=True)
    named, found = list(places), []
    for key in keys.tolist():
        market, book = divmod(key, books)
        at, kind = divmod(market, kinds)
        found.append(_leg(identity.books[book], *named[at], identity.kinds[kind].family, identity.kinds[kind].period))
    rules = np.array([numbers for _, numbers in found], np.int64).reshape(-1, len(catalog.CASES))
    return _Distinct([leg for leg, _ in found], rules, code)


def columns(question: Question, best: BestPrices) -> dict[str, Any]:
    """Columns of opportunities with some legs.

    Whether the legs are known to settle differently, the worst known result in percent, and the cases.
    """
    rows, n, held = best.rows, best.total.size, best.rows >= 0
    of = _distinct(question, rows[held])
    code = np.full(rows.shape, -1, np.int64)
    code[held] = of.code
    unlike = np.flatnonzero(_unlike(np.vstack((of.rules, np.zeros_like(of.rules[:1])))[code]))
    differ, worst = np.zeros(n, bool), np.full(n, np.nan)
    if not unlike.size:
        none = {"terms": board.repeated([], n, TEXTS), "terms_results": board.repeated([], n, _NUMBERS)}
        return {"terms_differ": differ, "terms_worst_case": board.nullable(worst), **none}
    differ[unlike] = True
    place = np.full(n, unlike.size, np.uint32)  # the last of the lists is empty
    place[unlike] = np.arange(unlike.size)
    texts: list[list[str]] = [[]] * (unlike.size + 1)
    figures: list[list[float | None]] = [[]] * (unlike.size + 1)
    _, first, which = np.unique(_combined(code[unlike], len(of.legs)), return_index=True, return_inverse=True)
    for k, codes in enumerate(code[unlike[first]].tolist()):
        here = unlike[which == k]
        legs = [each for each in codes if each >= 0]
        implied = best.cost[here, : len(legs)]
        cases = differing(tuple(of.legs[each] for each in legs))
        result = 100.0 * np.stack([results(case, implied) for case in cases], axis=1)
        worst[here] = np.fmin.reduce(result, axis=1)
        stated = [f"{case.name}: {case.text}" for case in cases]
        for row, numbers in zip(place[here].tolist(), result.tolist(), strict=True):
            texts[row], figures[row] = stated, [None if math.isnan(number) else number for number in numbers]
    at = pl.Series(place)
    return {
        "terms_differ": differ,
        "terms_worst_case": board.nullable(worst),
        "terms": pl.Series(texts, dtype=TEXTS)[at],
        "terms_results": pl.Series(figures, dtype=_NUMBERS)[at],
    }


def _combined(code: Longs, most: int) -> Longs:
    """One number for the codes of all legs, each below `most`, or -1."""
    out = np.zeros(code.shape[0], np.int64)
    for leg in code.T:
        out = out * (most + 1) + leg + 1
    return out


def _unlike(rules: Longs) -> Bools:
    """Flag opportunities, (n, legs, cases), of which two legs have different rules in a case, 0 being unknown."""
    out = np.zeros(rules.shape[0], bool)
    for first, second in combinations(range(rules.shape[1]), 2):
        a, b = rules[:, first], rules[:, second]
        out |= ((a != b) & (a != 0) & (b != 0)).any(axis=1)
    return out


def listed(question: Question, legs: Ints, cost: Floats) -> pl.DataFrame:
    """The terms of one opportunity's legs, one row for each leg and case of which something is known.

    `cost` is what each leg costs, as in `BestPrices`.
    """
    some = _distinct(question, legs)
    each = [some.legs[at] for at in some.code.tolist()]
    unlike = {case.name: case for case in differing(tuple(each))}
    implied = cost[None, :]
    rows = []
    for name in catalog.CASES:
        rules: list[Settlement | None] = [getattr(leg.terms, name) for leg in each]
        if not any(rules):
            continue
        result = 100.0 * float(results(unlike[name], implied)[0]) if name in unlike else np.nan
        for leg, rule in zip(each, rules, strict=True):
            stated = (None, None, None) if rule is None else (str(rule), rule.source or None, rule.dated)
            rows.append((name, leg.book, stated[0], name in unlike, None if np.isnan(result) else result, *stated[1:]))
    return pl.DataFrame(rows, _LISTED, orient="row")


def tie_probability(question: Question, rows: Ints | Longs) -> Floats:
    """Probability of a tie for contracts that pay half in one; nan for other rows, and if it is unknown."""
    of = _distinct(question, rows)
    pays_half = np.array([(tie := leg.terms.tie) is not None and tie.pays == "half" for leg in of.legs], bool)[of.code]
    out = np.full(rows.size, np.nan)
    some = np.flatnonzero(pays_half)
    g, sports = question.prices.groups, question.board.identity.sports
    levels = [sports[event][0].level for event in g.event[g.ladder[g.market[rows[some]]]].tolist()]
    out[some] = [np.nan if level is None else level for level in levels]
    return out
