"""Why a search found nothing, in one sentence.

The input is unusable, or there is no fair price to compare with; otherwise the best prices are not good enough.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from oddsengine.columns import SECOND
from oddsengine.detection import arbitrages, ev
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import Question, rejected_counts
from oddsengine.pricing.close import SUSPECT
from oddsengine.pricing.model import MODEL
from oddsengine.pricing.one_sided import quoted
from oddsengine.pricing.references import CLOSE
from oddsengine.tables.column_names import place
from oddsengine.tables.schema import OddsTable

_MOSTLY = 0.9  # share of rows


def no_valid_row(table: OddsTable) -> str:
    """Say what is wrong with the first row of a table without a valid one; empty if it has one, or no rows at all."""
    if table.height or not table.rejected.height:
        return ""
    row, field, value, reason, _ = table.rejected.row(0)
    where = place(row, table.first_line)
    return f"no valid row among {table.rejected.height:,}; {where}: {field} {(value or '')[:80]!r}, {reason}"


def unusable(question: Question) -> str:
    """Say that no row is valid, or that guards reject nine in ten rows; else empty."""
    table = question.table
    if invalid := no_valid_row(table):
        return invalid
    rows, lost, listed = _rejections(question)
    return f"{lost:,} of {rows:,} rows are rejected: {listed}" if lost and lost >= _MOSTLY * rows else ""


def _rejections(question: Question) -> tuple[int, int, str]:
    """Number of rows, number of those that guards reject, and their commonest reasons."""
    table, counts = question.table, rejected_counts(question.prepared)
    rows, lost = table.height + table.rejected.height, sum(counts.values())
    if not lost:
        return rows, 0, ""
    most = sorted(counts.items(), key=lambda count: -count[1])[:3]
    old = most[0][0] == "stale" and 2 * lost >= rows
    about = {"stale": _too_old, "unknown_outcome": _without_teams}
    counts_ = [f"{name} {count:,}{about[name](question) if name in about else ''}" for name, count in most]
    return rows, lost, ", ".join(counts_) + (_of_days(question) if old else "")


def _too_old(question: Question) -> str:
    moment, limits = question.moment(), question.prices.limits
    if moment is None:
        return ""
    live = f", {limits.stale_live_s:g} s in play," if question.table["is_live"].any() else ""
    return f" (older than {limits.stale_prematch_s / 60.0:g} minutes{live} at {moment:%Y-%m-%dT%H:%M:%SZ})"


def _without_teams(question: Question) -> str:
    """Say which columns of teams a table does not have."""
    table = question.table
    missing = [name for name in ("home_team", "away_team") if table[name].null_count() == table.height]
    return f" (no {', no '.join(missing)})" if missing else ""


def _of_days(question: Question) -> str:
    """Say that prices of several days are no board."""
    seen = question.table["last_seen_at"].drop_nulls().cast(pl.Int64)
    first, last = seen.quantile(0.01), seen.quantile(0.99)
    days = 0.0 if first is None or last is None else (last - first) / (86_400.0 * SECOND)
    if days < 1.0:
        return ""
    return (
        f"; prices over {days:.0f} days are a history, not a board: backtest, audit and scan_history read it, and a "
        "filter on last_seen_at leaves one moment"
    )


def no_fair_price(question: Question, sharp: object, option: str = "sharp") -> str:
    """Say that no usable price has a fair price, and what it needs; else empty.

    `sharp` is the reference as given, and `option` what the caller calls that parameter.
    """
    v = question.prices
    rows, lost, listed = _rejections(question)
    also = f"; {lost:,} of {rows:,} rows are rejected: {listed}" if lost else ""
    if not question.table.height or ev.find_hits(replace(question, thresholds=thresholds(min_ev=-100.0))).row.size:
        return ""
    if v.method == MODEL:
        return f"no fair price: the model has a probability for none of the usable prices here{also}"
    if v.method == CLOSE:
        return (
            "no fair price: +EV compares a price with two other books that quote the whole market, or with a sharp "
            f"book that was measured alone, and no usable price here has them; {option} names a reference instead"
            f"{_suspect(question)}{_one_sided(question)}{also}"
        )
    wide = f", with a hold of at most {100.0 * v.limits.reference_wide:g} %"
    if sharp is not None:
        return f"no fair price: no usable price here is in a market that a {option} book quotes in full{wide}{also}"
    return (
        f"no fair price: no usable price here is in a market that a sharp book of the catalog quotes in full{wide}; "
        f"{option} names a reference{also}"
    )


def _suspect(question: Question) -> str:
    """Name the option for prices that have an estimate which is not trusted, if there are some."""
    v = question.prices
    if v.close is None or not ((v.close.flags & SUSPECT != 0) & ~np.isnan(v.close.row)).any():
        return ""
    return ", and suspect in include uses a sharp book that was not measured alone"


def _one_sided(question: Question) -> str:
    """Name the option for prices of one side, if there are some and it is not used."""
    v = question.prices
    if v.board is None or v.close is None or v.close.votes is not None:
        return ""
    some = quoted(v.groups, v.traits, v.columns.net, v.columns.reason, v.board.logits, v.board)
    return ", and one_sided in include uses books that quote one side only" if some.row.size else ""


def best_found(question: Question) -> str:
    """Say how many rows are usable, and how good the best price and the best arbitrage are."""
    rows, lost, listed = _rejections(question)
    text = f"{rows - lost:,} of {rows:,} rows are usable{f' (rejected: {listed})' if lost else ''}"
    cap = 100.0 * question.prices.limits.arbitrage_cap
    everything = thresholds(min_ev=-100.0, min_profit=-99.0, max_profit=cap)
    most = replace(question, thresholds=everything)
    hits = ev.find_hits(most)
    edge = hits.edge[~ev.over_cap(most, hits)]
    if edge.size:
        text += f"; the best price has an EV of {100.0 * edge.max():.2f} %"
    arbs = arbitrages.find_hits(most)
    total = arbs.legs.total[~arbitrages.over_cap(most, arbs)]
    if total.size:
        text += f"; all outcomes of a market, at the best prices of two books or more, pay {100.0 / total.min():.2f} %"
    return text
