"""A short view of results: the tables of `oddsengine scan`, for interactive sessions and notebooks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

import polars as pl

from oddsengine.bounds import excerpt, printable
from oddsengine.commands.output import bold, terminal, wrapped
from oddsengine.commands.report import (
    EV,
    MARKETS,
    REJECTED,
    Report,
    report_of,
    table_text,
    with_same_bets,
)
from oddsengine.commands.text_tables import Column
from oddsengine.detection.finders import Opportunities
from oddsengine.detection.kinds import KINDS
from oddsengine.staking.same_bets import GROUPED_BY
from oddsengine.staking.stakes import Portfolio
from oddsengine.tables.frames import IntoFrame, to_polars

_STAKED = replace(
    EV, title="Stakes", columns=[Column("Stake", right=True), *EV.columns],
    cells=lambda row: [[f"{row['stake']:.2f}", *cells] for cells in EV.cells(row)],
)  # fmt: skip


class _Part(NamedTuple):
    report: Report
    frame: pl.DataFrame
    rows: int
    notes: Sequence[str] = ()


class ShortView:
    """Results as text, and as tables in a notebook; created by `show`."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts

    def __repr__(self) -> str:
        """Return the tables of `oddsengine scan`, as wide as the terminal."""
        width, strong = terminal(), bold()
        return "\n\n".join(
            "\n".join(
                [
                    table_text(part.report, part.frame.to_dicts(), part.rows, width, bold=strong, more="rows=0"),
                    *([wrapped(part.notes)] if part.notes else []),
                ]
            )
            for part in self._parts
        )

    def _repr_html_(self) -> str:
        return "\n".join(map(_html, self._parts))


def _html(part: _Part) -> str:
    report, frame, rows, notes = part
    more = f"<p>... and {rows - frame.height:,} more; rows=0 shows all</p>" if rows > frame.height else ""
    lines = [line for row in frame.iter_rows(named=True) for line in report.cells(row)]
    used = [at for at, column in enumerate(report.columns) if column.title != "Id"]
    head = "".join(_cell("th", report.columns[at], report.columns[at].title) for at in used)
    body = "".join(f"<tr>{''.join(_cell('td', report.columns[at], line[at]) for at in used)}</tr>\n" for line in lines)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>" if lines else "<p>none</p>"
    return f"<p><b>{escape(report.title)} ({rows:,})</b></p>\n{table}\n{more}" + "".join(
        f"\n<p>{escape(note)}</p>" for note in notes
    )


def _cell(tag: str, column: Column, text: str) -> str:
    return f'<{tag} style="text-align: {"right" if column.right else "left"}">{escape(printable(text))}</{tag}>'


def show(result: IntoFrame | Opportunities | Portfolio, rows: int = 20) -> ShortView:
    """Show a result in the columns that matter, as `oddsengine scan` does.

    Parameters
    ----------
    result
        A result of `find_ev`, `find_arbitrage`, `find_low_hold`, `find_middles`, `find_all`, `markets` or `rejected`,
        filtered and sorted as you like; it must have their columns. Or the `Portfolio` of such bets.
    rows
        How many rows to show of each kind; 0 is all.

    Returns
    -------
    ShortView
        Its text is as wide as the terminal; a notebook shows tables.

    Raises
    ------
    ValueError
        If it is no such result, or lacks a column.

    Examples
    --------
    >>> import oddsengine as oe
    >>> odds = pl.DataFrame(
    ...     {
    ...         "event_id": "e1",
    ...         "market_type": "total_points",
    ...         "sportsbook": ["pinnacle", "pinnacle", "fanduel"],
    ...         "selection": ["Over", "Under", "Over"],
    ...         "line": 220.5,
    ...         "odds_decimal": [1.95, 1.95, 2.1],
    ...     }
    ... )
    >>> str(oe.show(oe.find_ev(odds, sharp="pinnacle"))).splitlines()[0]
    '+EV: prices that beat the fair price (1)'
    """
    if not isinstance(rows, int) or rows < 0:
        raise ValueError(f"rows must be a whole number of 0 or more, got {excerpt(rows)}")
    if isinstance(result, Portfolio):
        return ShortView([_part(_STAKED, result.bets, rows)])
    if isinstance(result, Opportunities):
        return ShortView([_part(report_of(KINDS[name]), frame, rows) for name, frame in result.frames.items()])
    try:
        frame = to_polars(result)
    except TypeError as error:
        raise TypeError(f"result: {error}") from None
    report = next((report for name, report in _known_by() if name in frame.columns), None)
    if report is None:
        raise ValueError(
            "show needs a result of find_ev, find_arbitrage, find_low_hold, find_middles, find_all, markets or "
            f"rejected; got the columns {', '.join(frame.columns[:20]) or 'none'}"
        )
    return ShortView([_part(report, frame, rows)])


def _known_by() -> Iterator[tuple[str, Report]]:
    """The columns by which results are known, and what they are; +EV is last: an arbitrage has an EV, too."""
    yield from (("complete_books", MARKETS), ("guard", REJECTED))
    yield from ((kind.value, report_of(kind)) for kind in reversed(list(KINDS.values())))


def _part(report: Report, frame: pl.DataFrame, rows: int) -> _Part:
    cut = frame.head(rows) if rows else frame
    for row in cut.head(1).iter_rows(named=True):
        try:
            report.cells(row)
            _ = [row[name] for name in (GROUPED_BY if report is EV else ())]
        except KeyError as error:
            raise ValueError(f"show needs all columns of the result, this table lacks {error}") from None
    if report is not EV:
        return _Part(report, cut, frame.height)
    lettered, notes = with_same_bets(frame, cut.height)
    return _Part(report, lettered, frame.height, notes)
