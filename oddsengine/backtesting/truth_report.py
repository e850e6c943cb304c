"""The figures of a node's record (`history.truth_file`), of graded prices.

They are withheld until `LEAST_GAMES` games have been graded, because those of fewer say nothing. All are of prices
first shown at an EV of 1 or more, as in an audit.
"""

from datetime import date
from typing import Any

import polars as pl

from oddsengine.backtesting.audit_report import selected_prices
from oddsengine.backtesting.cells import cell, with_error
from oddsengine.backtesting.fitting import LEAST_GAMES
from oddsengine.backtesting.reference_rights import references, rights_text
from oddsengine.history.truth_file import GROUPS, Figures, FillShare, Group, TruthReport, Week
from oddsengine.tables.timestamps import timestamp

THRESHOLD = 1.0  # %: minimum EV of the prices
_SURE = 2.0  # standard errors: a larger bias is no coincidence
_DIGITS = 4


def truth_report(
    shown: pl.DataFrame, sums: pl.DataFrame, shares: list[FillShare], now: int | None, fair: str, waiting: int,
    left_out: list[str],
) -> TruthReport:  # fmt: skip
    """Make the report of graded prices (`SHOWN_SCHEMA`) and of books as references (`reference_samples.SUMS`).

    `shares` are those of `fill_record`, `now` is the time of the last step, microseconds.
    """
    prices = selected_prices(shown).filter(pl.col("threshold") == THRESHOLD)
    games = prices.drop_nulls("worth")["event"].n_unique()
    missing = max(0, LEAST_GAMES - games)
    start = start_of()
    prices = prices.with_columns(week=week_of(start))
    total = Figures(**_figures(prices, missing))
    weeks = [
        Week(week=week, begins=str(date.fromisoformat(f"{week}-1")), **_figures(part, missing))
        for (week,), part in sorted(prices.partition_by("week", as_dict=True).items())
    ]
    groups = [
        _group(by, str(value), _figures(part, missing))
        for by in GROUPS
        for (value,), part in sorted(prices.drop_nulls(by).partition_by(by, as_dict=True).items())
    ]
    until = None if now is None else timestamp(now)
    return TruthReport(
        read_until=until, fair=fair, games_missing=missing, games_waiting=waiting, summary=_summary(total, missing),
        total=total, weeks=weeks, groups=groups, references=references(sums), left_out=left_out,
        fills=shares,
    )  # fmt: skip


def start_of() -> pl.Expr:
    """The start of the game of a graded price, unix seconds: `t` is rounded down, `hours` are not."""
    return (pl.col("t") + pl.col("hours") * 3600.0 - 1e-3).ceil().cast(pl.Int64)


def week_of(seconds: pl.Expr) -> pl.Expr:
    """Return the ISO week of unix seconds, in UTC.

    Examples
    --------
    >>> pl.select(week_of(pl.lit(1798761600))).item()
    '2026-W53'
    """
    return pl.from_epoch(seconds, time_unit="s").dt.strftime("%G-W%V")


def _figures(prices: pl.DataFrame, missing: int) -> dict[str, Any]:
    of = cell(prices)
    counts = {"prices": of["n"], "graded": of["graded"], "games": of["events"]}
    if missing:
        return counts
    names = {
        "avg_ev": "shown", "avg_worth": "worth", "worth_error": "worth_se", "bias": "bias", "bias_error": "bias_se"
    }  # fmt: skip
    values = {name: of[column] for name, column in names.items()}
    return counts | {name: None if value is None else round(value, _DIGITS) for name, value in values.items()}


def _group(by: str, value: str, figures: dict[str, Any]) -> Group:
    group = Group(by=by, value=value, biased=False, **figures)
    group.biased = group.games >= LEAST_GAMES and _is_biased(group)
    return group


def _is_biased(figures: Figures) -> bool:
    """Whether the bias is no coincidence."""
    bias, error = figures.bias, figures.bias_error
    return bias is not None and error is not None and abs(bias) > _SURE * error


def _summary(total: Figures, missing: int) -> str:
    if missing:
        were = "is" if missing == 1 else "are"
        return (
            f"{missing} of {LEAST_GAMES} games {were} missing: {total.games} have been graded, and figures of fewer "
            "say nothing"
        )
    shown = f"shown at {total.avg_ev:.2f} %, worth {total.avg_worth:.2f} +-{total.worth_error:.2f} %"
    if _is_biased(total):
        return f"{shown}: {'too much' if (total.bias or 0.0) > 0.0 else 'too little'} was shown"
    return f"{shown}: no difference beyond the error"


def _fill_text(of: FillShare) -> str:
    ends = dict.fromkeys((f"{of.whole_least:.0f}", f"{of.whole_most:.0f}"))
    return f"{of.kind:<28} n {of.shown:>5}  for ${of.stake:g}: {' to '.join(ends)}"


def report_text(report: TruthReport) -> str:
    """Format a report as plain text."""
    until = "" if report.read_until is None else f", read until {report.read_until[:19]}Z"
    lines = [f"{report.summary}; fair table {report.fair}{until}"]
    rows: list[tuple[str, Figures]] = [(week.week, week) for week in report.weeks]
    rows += [(f"{group.by} {group.value}", group) for group in report.groups if group.biased]
    for name, of in rows:
        figures = ""
        if of.avg_ev is not None:
            row = {"worth": of.avg_worth, "worth_se": of.worth_error, "bias": of.bias, "bias_se": of.bias_error}
            worth, bias = with_error(row, "worth"), with_error(row, "bias", sign="+")
            figures = f"  shown {of.avg_ev:5.2f}  worth {worth:>13}  bias {bias}"
        lines.append(f"{name:<28} n {of.graded:>5}  games {of.games:>4}{figures}".rstrip())
    if any(group.biased for group in report.groups):
        lines.append("the bias of these groups is more than two standard errors: oddsengine calibrate would help")
    if any(each.alone is not None for each in report.references):
        lines += ["books as the only reference:", rights_text(report.references)]
    if report.fills:
        lines.append("percent of those shown that could be taken in full:")
        lines += [_fill_text(each) for each in report.fills if each.sportsbooks is None]
    if report.games_waiting:
        lines.append(f"{report.games_waiting} games are not graded yet")
    return "\n".join([*lines, *(f"left out: {why}" for why in report.left_out)])
