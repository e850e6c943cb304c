"""Why a search found nothing, in one sentence: the input is unusable, or there is no fair price to compare with."""

from dataclasses import replace

from oddsengine.detection import ev
from oddsengine.detection.question import Question, set_aside
from oddsengine.detection.sweep import Wants
from oddsengine.pricing.references import CLOSE
from oddsengine.tables.schema import OddsTable

_MOSTLY = 0.9  # share of rows


def no_valid_row(table: OddsTable) -> str:
    """Say what is wrong with the first row of a table without a valid one; empty if it has one, or no rows at all."""
    if table.height or not table.rejected.height:
        return ""
    row, field, value, reason, _ = table.rejected.row(0)
    return f"no valid row among {table.rejected.height:,}; row {row}: {field} {(value or '')[:80]!r}, {reason}"


def unusable(question: Question) -> str:
    """Say that no row is valid, or that guards reject nine in ten rows; else empty."""
    table = question.table
    if invalid := no_valid_row(table):
        return invalid
    rows, lost, listed = _rejections(question)
    return f"{lost:,} of {rows:,} rows are rejected: {listed}" if lost and lost >= _MOSTLY * rows else ""


def _rejections(question: Question) -> tuple[int, int, str]:
    """Number of rows, number of those that guards reject, and their commonest reasons."""
    table, counts = question.table, set_aside(question.prepared)
    rows, lost = table.height + table.rejected.height, sum(counts.values())
    if not lost:
        return rows, 0, ""
    most = sorted(counts.items(), key=lambda count: -count[1])[:3]
    listed = ", ".join(f"{name} {count:,}" for name, count in most)
    moment = question.moment()
    as_of = f"; ages are those at {moment:%Y-%m-%dT%H:%M:%SZ}" if most[0][0] == "stale" and moment else ""
    return rows, lost, f"{listed}{as_of}"


def no_fair_price(question: Question, sharp: object, option: str = "sharp") -> str:
    """Say that no usable price has a fair price, and what it needs; else empty.

    `sharp` is the reference as given, and `option` what the caller calls that parameter.
    """
    v = question.view
    rows, lost, listed = _rejections(question)
    also = f"; {lost:,} of {rows:,} rows are rejected: {listed}" if lost else ""
    if (
        not question.table.height
        or ev.find_hits(replace(question, wants=Wants.from_thresholds(min_ev=-100.0))).row.size
    ):
        return ""
    if v.method == CLOSE:
        return (
            "no fair price: +EV compares a price with at least two other books that quote the whole market, and no "
            f"usable price here has them; {option} names a reference instead{also}"
        )
    if sharp is not None:
        return f"no fair price: no usable price here is in a market that a {option} book quotes in full{also}"
    return (
        "no fair price: no usable price here is in a market that a sharp book of the catalog quotes in full; "
        f"{option} names a reference{also}"
    )
