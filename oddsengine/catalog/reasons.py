"""Why prices are rejected: names, codes and sentences.

A row's verdict is a small integer: 0 for a price that is used, else a code of this module. `GUARDS` can be disabled by
name, and run in this order. `IDENTITY` reasons cannot be disabled. Guards of plugins get codes when they are first
named (`add`), which hold for this process.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oddsengine import catalog
from oddsengine.bounds import excerpt

GUARDS = (
    "bad_price",
    "price_mismatch",
    "other_game",
    "side_conflict",
    "unknown_outcome",
    "no_line",
    "stale",
    "started_not_live",
    "parlay_only",
    "mid_price_source",
    "duplicate_outcome",
    "ladder",
    "internal_conflict",
    "book_sum",
    "one_team_lines",
    "ladder_cross",
    "bias",
    "outlier",
    "few_witnesses",
    "flap",
    "upstream",
    "ev_cap",
)
IDENTITY = ("suspended", "unmapped", "ambiguous_moneyline", "bad_value", "missing_value")

NAMES = ["", *GUARDS, *IDENTITY]  # and those that were added
CODES = {name: code for code, name in enumerate(NAMES)}
MOST_CODES = 256
ACCEPTED = 0  # the code of a price that is used

# Sentence of each verdict; {x} is the measured number, {id} the reason of the raw label.
SENTENCES = {
    "bad_price": "the price is not a finite decimal above 1",
    "price_mismatch": "the American and the decimal price differ by more than 1 %",
    "other_game": "other books name another game for this event",
    "side_conflict": "the selection text and the selection type name different outcomes",
    "unknown_outcome": "the selection is not an outcome of the market",
    "no_line": "the line is missing, not in whole hundredths, or given for a market without lines",
    "stale": "last seen {x:.0f} s before now",
    "started_not_live": "marked pre-match {x:.0f} s after the event's start",
    "mid_price_source": "the source publishes mid prices or last trades, not offers",
    "parlay_only": "the operator accepts picks only in combination, not as single bets",
    "duplicate_outcome": "one book has two prices for one outcome, with a logit gap of {x:.2f}",
    "ladder": "the book's prices are out of order across lines by a logit gap of {x:.2f}",
    "internal_conflict": "two market names of the book contradict each other by a logit gap of {x:.2f}",
    "book_sum": "the book's own market sums to {x:.3f}",
    "one_team_lines": "{x:.0f} team-total lines and none with both teams: the team label is unreliable",
    "ladder_cross": "contradicts {x:.0f} other feeds across lines",
    "bias": "the book's prices on one side of these props are too generous, with a median logit gap of {x:.2f}",
    "outlier": "too generous by a logit gap of {x:.2f} compared with the median of the other books",
    "few_witnesses": "too generous compared with the only other books, which agree: unconfirmed until seen again",
    "flap": "the price has just jumped and come back",
    "upstream": "rejected by the node that the price comes from",
    "ev_cap": "an edge of {x:.1f} % is a data error",
    "suspended": "the price is suspended",
    "unmapped": "the market type does not settle in the same way everywhere",
    "ambiguous_moneyline": "a two-way moneyline in a sport with draws, or beside a selection that is not recognised",
    "bad_value": "the value is not valid",
    "missing_value": "the value is missing",
}
_ADDED: set[str] = set()  # names of guards of plugins


class TooManyGuardsError(ValueError):
    """There is no code for another guard."""


def add(name: str, text: str = "") -> int:
    """Return the code of a guard of a plugin, which says `text` of the prices that it rejects."""
    if name not in _ADDED:
        if len(NAMES) == MOST_CODES:
            raise TooManyGuardsError(f"a process can have {MOST_CODES - len(GUARDS) - len(IDENTITY) - 1} guards more")
        _ADDED.add(name)
        CODES[name] = len(NAMES)
        NAMES.append(name)
    SENTENCES[name] = text or SENTENCES.get(name, "")
    return CODES[name]


# Sentences for rows whose measured number changes while the verdict stays.
_LASTING = {
    "stale": "not seen for too long",
    "started_not_live": "marked pre-match after the event's start",
    "duplicate_outcome": "the book has two prices for this outcome",
    "ladder": "the book's prices are out of order across lines",
    "internal_conflict": "two market names of the book contradict each other",
    "book_sum": "the sum of the book's own prices in this market is implausible",
    "one_team_lines": "team totals for one team only: the team label is unreliable",
    "ladder_cross": "contradicts other books across lines",
    "bias": "the book's prices on one side of these props are too generous",
    "outlier": "too generous compared with the other books",
    "ev_cap": "an edge this large is a data error",
}
UNCOMPARED = frozenset({"unmapped", "ambiguous_moneyline"})
"""Verdicts on the market, not the price: it can be bet, but is not compared with others."""


_NOTICED = "the book's two sides sum to exactly 1: mid prices, not offers"


def sentence(name: str, measure: float) -> str:
    """Return why one row is rejected; `measure` is the guard's measurement, or nan."""
    if name == "mid_price_source" and measure == measure:  # noqa: PLR0124  nan: the catalog says so
        return _NOTICED
    return SENTENCES[name] if name in _ADDED else SENTENCES[name].format(x=measure)


# The threshold meant by a guard's name, if it has several or is named differently.
MAIN_THRESHOLDS = {
    "price_mismatch": "price_mismatch",
    "stale": "stale_prematch_s",
    "mid_price_source": "mid_price_share",
    "duplicate_outcome": "duplicate_gap",
    "ladder": "ladder_gap",
    "internal_conflict": "conflict_gap",
    "book_sum": "book_sum_low",
    "one_team_lines": "one_team_lines",
    "ladder_cross": "cross_points",
    "bias": "bias_gap",
    "outlier": "outlier_main",
    "few_witnesses": "few_witnesses_agree",
    "flap": "flap_away",
    "ev_cap": "ev_cap",
}
# Applied when a table or catalog file is read, before any guard runs.
_NOT_A_CALLERS = ("price_mismatch",)

Guards = Iterable[str] | Mapping[str, float | bool] | None
"""Names of the guards to run (None: all of ours), or changes by name: a threshold, false, or true for a package's."""


def listed(guards: Guards) -> Guards:
    """The same, an iterator as a list, so that it can be read more than once."""
    is_iterator = isinstance(guards, Iterable) and not isinstance(guards, str | Mapping | Sequence)
    return [*guards] if is_iterator else guards  # type: ignore[misc]


def enabled(guards: Guards) -> frozenset[int]:
    """Return the codes of enabled guards of ours; None is all.

    Raises
    ------
    ValueError
        If a name is not a guard.

    Examples
    --------
    >>> sorted(NAMES[code] for code in enabled(["stale", "ladder"]))
    ['ladder', 'stale']
    """
    if isinstance(guards, Mapping):
        return enabled([name for name in GUARDS if guards.get(name) is not False])
    if isinstance(guards, str) or not isinstance(guards, Iterable | None):
        raise ValueError(f"guards must be a list of guard names, or changes by name, got {excerpt(guards)}")
    names = GUARDS if guards is None else tuple(guards)
    unknown = sorted(str(name) for name in names if name not in GUARDS and name not in _ADDED)
    if unknown:
        raise ValueError(f"unknown guard {', '.join(map(excerpt, unknown))}; allowed: {', '.join((*GUARDS, *_ADDED))}")
    return frozenset(CODES[name] for name in names if name in GUARDS)


def reason(name: str) -> str:
    """Return why a verdict rejects a price, without numbers.

    Examples
    --------
    >>> reason("stale")
    'not seen for too long'
    """
    return _LASTING.get(name) or SENTENCES[name]


def reasons(counts: Mapping[str, int]) -> str:
    """Say how many prices are rejected by each verdict.

    Examples
    --------
    >>> reasons({"suspended": 1_200, "bad_price": 1})
    '1,200 suspended (the price is suspended), 1 bad_price (the price is not a finite decimal above 1)'
    """
    return ", ".join(f"{times:,} {name} ({reason(name)})" for name, times in counts.items())


def thresholds_of(guards: Guards) -> catalog.Thresholds:
    """Return the thresholds of a user's `guards`.

    Raises
    ------
    ValueError
        If a name is neither a guard nor a threshold, or a value is invalid.

    Examples
    --------
    >>> thresholds_of({"stale": 300, "outlier_other": 0.3, "flap": False}).stale_prematch_s
    300.0
    """
    limits = catalog.thresholds()
    if not isinstance(guards, Mapping):
        return limits
    changes: dict[str, Any] = {}
    for name, value in guards.items():
        if isinstance(value, bool) and (name in GUARDS or name in _ADDED):
            continue
        field = MAIN_THRESHOLDS.get(name, name)
        if field in _NOT_A_CALLERS or name in _ADDED or (name in GUARDS and name not in MAIN_THRESHOLDS):
            raise ValueError(f"guards: {name} must be true or false, got {excerpt(value)}")
        if field not in limits._fields or field == "epsilon":
            allowed = ", ".join((*GUARDS, *(field for field in limits._fields if field != "epsilon")))
            raise ValueError(f"guards: {excerpt(name)} is neither a guard nor a threshold; allowed: {allowed}")
        if field in changes:
            raise ValueError(f"guards: {name} is {field}, which is already given")
        changes[field] = value
    return catalog.changed(limits, changes)
