"""Why a price is kept away from the detectors: names, codes and sentences.

A row's verdict is one small integer: 0 for a price that is used, else a code of this page. `GUARDS` can be
switched off by name, in this order they run. `IDENTITY` says what a price is, and has no switch.
"""

from collections.abc import Iterable

GUARDS = (
    "bad_price",
    "price_mismatch",
    "side_conflict",
    "unknown_outcome",
    "no_line",
    "stale",
    "started_not_live",
    "mid_price_source",
    "parlay_only",
    "duplicate_outcome",
    "ladder",
    "internal_conflict",
    "book_sum",
    "one_team_lines",
    "ladder_cross",
    "bias",
    "outlier",
    "flap",
    "upstream",
    "ev_cap",
)
IDENTITY = ("suspended", "unmapped", "ambiguous_moneyline", "bad_value", "missing_value")

NAMES = ("", *GUARDS, *IDENTITY)
CODES = {name: code for code, name in enumerate(NAMES)}

# What each verdict says of one row; {x} is the number that was measured, {id} the wording's own reason.
SENTENCES = {
    "bad_price": "the price is not a finite decimal above 1",
    "price_mismatch": "the American and the decimal price differ by more than 1 %",
    "side_conflict": "the selection text and the selection type name different outcomes",
    "unknown_outcome": "the selection is none of the market's outcomes",
    "no_line": "the line is missing, is not in whole hundredths, or stands on a market that has none",
    "stale": "last seen {x:.0f} s before now",
    "started_not_live": "marked pre-match {x:.0f} s after the event's start",
    "mid_price_source": "the source publishes mid prices, not offers",
    "parlay_only": "the operator accepts picks only in combination, never as a single bet",
    "duplicate_outcome": "one book, one outcome, two prices: a logit gap of {x:.2f}",
    "ladder": "the book's prices over lines run the wrong way by a logit gap of {x:.2f}",
    "internal_conflict": "two market names of the book give this outcome, a logit gap of {x:.2f} apart",
    "book_sum": "the book's own market sums to {x:.3f}",
    "one_team_lines": "{x:.0f} team-total lines and none for both teams: the team label is unreliable",
    "ladder_cross": "contradicts {x:.0f} other feeds across lines",
    "bias": "the book's side of these props is generous throughout: a median logit gap of {x:.2f}",
    "outlier": "too generous by a logit gap of {x:.2f} against the median of the other books",
    "flap": "the price has just left a value and come back",
    "upstream": "the node that the price comes from rejects it",
    "ev_cap": "an edge of {x:.1f} % is a data error",
    "suspended": "the price is suspended",
    "unmapped": "the market type is not one that is settled the same everywhere",
    "ambiguous_moneyline": "a two-way moneyline where a draw is possible",
    "bad_value": "the value does not read",
    "missing_value": "the value is missing",
}


# What a row says for as long as the verdict holds, where the sentence has a number that moves.
_LASTING = {
    "stale": "not seen for too long",
    "started_not_live": "marked pre-match after the event's start",
    "duplicate_outcome": "the book gives this outcome two prices",
    "ladder": "the book's prices over lines run the wrong way",
    "internal_conflict": "two market names of the book contradict each other",
    "book_sum": "the book's own prices of this market do not add up",
    "one_team_lines": "team totals for one team only: the team label is unreliable",
    "ladder_cross": "contradicts other books across lines",
    "bias": "the book's side of these props is generous throughout",
    "outlier": "too generous against the other books",
    "ev_cap": "an edge this large is a data error",
}
UNCOMPARED = frozenset({"unmapped", "ambiguous_moneyline"})
"""Verdicts on the market, not on the price: it can be bet, but the detectors do not compare it."""


def enabled(guards: Iterable[str] | None) -> frozenset[int]:
    """Codes of the guards that are on; None means all of them.

    Raises
    ------
    ValueError
        If a name is no guard.

    Examples
    --------
    >>> sorted(NAMES[code] for code in enabled(["stale", "ladder"]))
    ['ladder', 'stale']
    """
    names = GUARDS if guards is None else tuple(guards)
    unknown = sorted(set(names) - set(GUARDS))
    if isinstance(guards, str) or unknown:
        came = guards if isinstance(guards, str) else ", ".join(unknown)
        raise ValueError(f"guards takes a list of guard names; {came!r} is not one of {', '.join(GUARDS)}")
    return frozenset(CODES[name] for name in names)


def reason(name: str) -> str:
    """Why a verdict sets a price aside, in words and without numbers.

    Examples
    --------
    >>> reason("stale")
    'not seen for too long'
    """
    return _LASTING.get(name) or SENTENCES[name]
