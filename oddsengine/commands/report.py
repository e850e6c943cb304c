"""Output of result frames: cells for people, rounded values for JSON and CSV.

Values are rounded here only: probabilities to six decimals, American odds to two, other figures to four; there is no
negative zero. Times are ISO 8601 in UTC with a Z. nan is null.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from string import ascii_uppercase
from typing import Any

import polars as pl

from oddsengine.commands.text_tables import Column
from oddsengine.commands.text_tables import table as text_table
from oddsengine.detection.kinds import KINDS, Kind
from oddsengine.detection.result_columns import number, outcome
from oddsengine.maths.odds import format_american
from oddsengine.maths.rounding import exact, reported_digits
from oddsengine.staking.same_bets import same_bets
from oddsengine.tables.schema import row_column
from oddsengine.tables.spreadsheets import safe_text

Row = Mapping[str, Any]
Cells = list[list[str]]  # the rows of one result

_NOTES = {
    "POTENTIALLY_STALE_ODDS": "ageing",
    "LIVE_STALE_ODDS": "ageing",
    "STALE_ODDS": "ageing",
    "VERY_STALE_ODDS": "old",
    "LIVE_GAME": "live",
    "LIVE_HIGH_PROFIT_SUSPICIOUS": "suspicious",
    "LOW_IMPLIED_TOTAL": "too good?",
    "GUARANTEED_PROFIT": "sure",
    "LARGE_GAP": "wide",
    "HIGH_PROBABILITY": "likely",
    "UNCONFIRMED": "unconfirmed",
}


# ---- cells ----


def _percent(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value + 0.0:.{digits}f}"


def decimal(value: float | None) -> str:
    """Format decimal odds with two or three decimals.

    Examples
    --------
    >>> decimal(2.5), decimal(1.909), decimal(17.0)
    ('2.50', '1.909', '17.00')
    """
    if value is None or not math.isfinite(value):
        return ""
    text = f"{value:.3f}"
    return text[:-1] if text.endswith("0") else text


def age(seconds: float | None) -> str:
    """Format an age.

    Examples
    --------
    >>> age(7.4), age(150.0), age(None)
    ('7s', '2m', '')
    """
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}" if size == 86400 else f"{seconds // size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _notes(row: Row, leg: Row, *more: str) -> str:
    """What to know of a bet: of a row, or of one of its legs, `leg`."""
    words = [_NOTES.get(name, name.lower().replace("_", " ")) for name in row["warnings"] if name != "SHARED_FEED"]
    if row.get("is_live") and "live" not in words:
        words.insert(0, "live")
    if row.get("is_alternate_line"):
        words.append("alt")
    if row.get("terms_differ"):
        words.append("terms differ")
    if "one_sided" in (row.get("flags") or ()):
        words.append("one side")
    if row.get("same_bet"):
        words.append(f"bet {row['same_bet']}")
    if delay := leg.get("bet_delay"):
        words.append(f"accepted after {delay:g} s")
    return ", ".join([*words, *(word for word in more if word)])


def _market(row: Row) -> str:
    period = row.get("market_segment")
    text = str(row["market_type"])
    return text if not period or period == "full_game" or period in text else f"{period} {text}"


def _share(value: float | None) -> str:
    return _percent(None if value is None else value * 100.0, 0)


def _ev(row: Row) -> Cells:
    fair = row["fair_probability"]
    same_feed = row["shared_feed"]
    return [
        [
            _percent(row["ev_percentage"]), row["sportsbook"], row["event_name"], _market(row),
            outcome(row, row),
            format_american(row["odds_american"]), decimal(row["odds_decimal"]),
            "" if fair is None else decimal(1.0 / fair),
            row["reference"] if row["reference"] in ("close", "model") else row["sharp_book"] or "",
            _percent(None if row["kelly_percent"] is None else row["kelly_percent"] * 100.0),
            _percent(row["confidence_score"], 0), _share(row.get("still_there")), age(row["oldest_odds_age_seconds"]),
            _notes(row, row, f"same feed: {' '.join(same_feed)}" if same_feed else ""), row["id"],
        ]
    ]  # fmt: skip


def _arbitrage(row: Row) -> Cells:
    first = [_percent(row["profit_percent"]), row["event_name"], _market(row)]
    old = age(row["oldest_odds_age_seconds"])
    return [
        [
            *first, outcome(row, leg), leg["sportsbook"],
            format_american(leg["odds_american"]), decimal(leg["odds_decimal"]), _percent(leg["stake_percent"]), old,
            _notes(row, leg), row["id"],
        ]
        for leg in row["legs"]
    ]  # fmt: skip


def _low_hold(row: Row) -> Cells:
    first = [_percent(row["hold_percentage"]), row["event_name"], _market(row)]
    old = age(row["oldest_odds_age_seconds"])
    sides = [row[name] for name in ("side1", "side2", "side3") if row[name] is not None]
    return [
        [
            *first, outcome(row, side), " ".join(side["books"]),
            format_american(side["odds_american"]), decimal(side["odds_decimal"]),
            _percent(None if side["fair_probability"] is None else side["fair_probability"] * 100.0), old,
            _notes(row, side), row["id"],
        ]
        for side in sides
        if side["selection"] is not None
    ]  # fmt: skip


def _middle(row: Row) -> Cells:
    inside = row["middle_numbers"]
    window = f"{inside[0]}..{inside[-1]}" if len(inside) > 2 else " ".join(map(str, inside))
    first = [
        _percent(row["expected_value"]), _percent(row["middle_probability"] * 100.0, 1),
        f"{_percent(row['worst_case_loss'], 1)}/{row['best_case_profit']:+.0f}", row["event_name"],
        _market(row),
    ]  # fmt: skip
    last = [window, _percent(row["quality_score"], 0), row["probability_source"], age(row["odds_age_seconds"])]
    return [
        [
            *first, outcome(row, side), side["sportsbook"],
            format_american(side["odds_american"]), decimal(side["odds_decimal"]),
            _percent(side["stake_percent"]), *last, _notes(row, side), row["id"],
        ]
        for side in (row["side1"], row["side2"])
    ]  # fmt: skip


def _rejected(row: Row) -> Cells:
    line = "" if row["line"] is None else number(row["line"])
    fault = f" ({row['field']}: {row['value']!r})" if row["field"] else ""
    return [
        [
            row["guard"], str(row[row_column(row)]), row["sportsbook"] or "", row["event_id"] or "",
            row["market_type"] or "", row["selection"] or "", line, decimal(row["odds_decimal"]),
            row["reason"] + fault,
        ]
    ]  # fmt: skip


def _markets(row: Row) -> Cells:
    return [
        [
            row["event_id"], row["period"], row["family"], row["subject"],
            "" if row["line"] is None else number(row["line"]), str(row["book_count"]), str(len(row["complete_books"])),
            "yes" if row["is_complete"] else "no", "main" if row["is_main_line"] else "",
            "live" if row["is_live"] else "", str(row["prices"]), str(row["rejected"] or ""), " ".join(row["books"]),
        ]
    ]  # fmt: skip


def _event() -> Column:
    return Column("Event", least=18, shared=True, names=True)


@dataclass(frozen=True, eq=False)
class Report:
    """How one frame is printed."""

    name: str  # key in JSON
    title: str
    columns: Sequence[Column]
    cells: Callable[[Row], Cells]


_US, _DEC = Column("US", right=True, drop=3), Column("Dec", right=True)
_AGE, _NOTE = Column("Age", right=True, shared=True, drop=5), Column("Notes", least=6, shared=True, drop=6)
_BET, _MARKET = Column("Bet", least=18, names=True), Column("Market", least=9, shared=True, drop=2)
_ID = Column("Id", shared=True, drop=9)

EV = Report(
    "ev", "+EV: prices that beat the fair price",
    [
        Column("EV %", right=True), Column("Book"), _event(), _MARKET, _BET, _US, _DEC,
        Column("Fair", right=True, drop=1), Column("By", drop=7), Column("Kelly %", right=True, drop=4),
        Column("Conf", right=True, drop=8), Column("10 min %", right=True, drop=8), _AGE, _NOTE, _ID,
    ],
    _ev,
)  # fmt: skip
ARBITRAGE = Report(
    "arbitrage", "Arbitrage: guaranteed profit across books",
    [
        Column("Profit %", right=True, shared=True), _event(), _MARKET, _BET, Column("Book"), _US, _DEC,
        Column("Stake %", right=True, drop=1), _AGE, _NOTE, _ID,
    ],
    _arbitrage,
)  # fmt: skip
LOW_HOLD = Report(
    "low_hold", "Low hold: markets that are cheap to bet on all sides",
    [
        Column("Hold %", right=True, shared=True), _event(), _MARKET, _BET, Column("Books", least=14), _US, _DEC,
        Column("Fair %", right=True, drop=4), _AGE, _NOTE, _ID,
    ],
    _low_hold,
)  # fmt: skip
MIDDLES = Report(
    "middles", "Middles: two lines that can both win",
    [
        Column("EV %", right=True, shared=True), Column("Both %", right=True, shared=True, drop=4),
        Column("Worst/best", right=True, shared=True, drop=5), _event(), _MARKET, _BET, Column("Book"), _US, _DEC,
        Column("Stake %", right=True, drop=2), Column("Wins both", shared=True, drop=3),
        Column("Quality", right=True, shared=True, drop=7), Column("By", shared=True, drop=8), _AGE, _NOTE, _ID,
    ],
    _middle,
)  # fmt: skip
REJECTED = Report(
    "rejected", "Rejected rows",
    [
        Column("Guard"), Column("Row", right=True), Column("Book"), Column("Event", least=14, drop=4),
        Column("Market", least=9, drop=3), Column("Selection", least=12, names=True),
        Column("Line", right=True, drop=5), Column("Dec", right=True, drop=6), Column("Reason", least=40),
    ],
    _rejected,
)  # fmt: skip
MARKETS = Report(
    "markets", "Markets",
    [
        Column("Event", least=16), Column("Period", drop=2), Column("Family"), Column("Subject", least=10),
        Column("Line", right=True), Column("Books", right=True), Column("Complete", right=True, drop=4),
        Column("All sides", drop=3), Column("Main"), Column("Live", drop=1), Column("Prices", right=True, drop=5),
        Column("Rejected", right=True), Column("Book ids", least=12, drop=9),
    ],
    _markets,
)  # fmt: skip
_REPORTS = {report.name: report for report in (EV, ARBITRAGE, LOW_HOLD, MIDDLES)}


def _bets(kind: Kind) -> Callable[[Row], Cells]:
    """The cells of a kind that was registered."""

    def cells(row: Row) -> Cells:
        return [
            [
                _percent(row[kind.value]), row["event_name"], _market(row), outcome(row, {**row, **leg}),
                leg["sportsbook"],
                format_american(leg["odds_american"]), decimal(leg["odds_decimal"]), age(row[kind.age]),
                _notes(row, leg), row["id"],
            ]
            for leg in row.get("legs", [row])
        ]  # fmt: skip

    return cells


def report_of(kind: Kind) -> Report:
    """How a kind is printed."""
    if kind.name not in _REPORTS:
        measure = f"{kind.measure[0].upper()}{kind.measure[1:]} %"
        _REPORTS[kind.name] = Report(
            kind.name, f"{kind.title}: {kind.about.rstrip('.')[0].lower()}{kind.about.rstrip('.')[1:]}",
            [
                Column(measure, right=True, shared=True), _event(), _MARKET, _BET, Column("Book"), _US, _DEC, _AGE,
                _NOTE, _ID,
            ],
            _bets(kind),
        )  # fmt: skip
    return _REPORTS[kind.name]


def kind_words() -> dict[str, Kind]:
    """The kinds by their words in commands."""
    return {kind.event_name.replace("_", "-"): kind for kind in KINDS.values()}


def some_kinds(word: str) -> list[Kind]:
    """The kinds that a word of a command means, which may be `all`."""
    return [kind for name, kind in kind_words().items() if word in (name, "all")]


def table_text(
    report: Report, shown: Sequence[Row], rows: int, width: int | None, *, bold: bool = False, more: str = ""
) -> str:
    """Format rows with a title; `more` is what shows all of the `rows` if fewer are shown."""
    title = f"{report.title} ({rows:,})"
    if not shown:
        return title + "\nnone"
    groups = [report.cells(row) for row in shown]
    left = [f"... and {rows - len(shown):,} more{more and f'; {more} shows all'}"] if rows > len(shown) else []
    return "\n".join([title, *text_table(report.columns, groups, width, bold=bold), *left])


def with_same_bets(ev: pl.DataFrame, rows: int) -> tuple[pl.DataFrame, list[str]]:
    """Letter the first rows that are one bet with others, and say what to stake on each such bet in all."""
    letters, notes = [""] * ev.height, []
    for at, one in enumerate(same_bets(ev, rows)):
        first = ev.row(one.rows[0], named=True)
        what = outcome(first, first | {"line": None})
        letter = ascii_uppercase[at % len(ascii_uppercase)] * (1 + at // len(ascii_uppercase))
        for row in one.rows:
            letters[row] = letter
        notes.append(
            f"the {len(one.rows)} rows on {what} (bet {letter}) are one bet: Kelly stakes {100.0 * one.kelly:.2f} % in "
            f"all, not {100.0 * one.apart:.2f} %"
        )
    return ev.head(rows).with_columns(same_bet=pl.Series(letters[:rows], dtype=pl.String)), notes


# ---- values ----


def format_time(time: datetime) -> str:
    """Format a time in UTC.

    Examples
    --------
    >>> format_time(datetime(2026, 2, 8, 19, 30, tzinfo=UTC))
    '2026-02-08T19:30:00Z'
    """
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plain(value: Any, name: str = "") -> Any:
    """Convert a value of a frame to JSON, rounded by the name of its field.

    Examples
    --------
    >>> plain({"ev_percentage": 1.23456789, "line": -0.0, "odds_american": float("nan")})
    {'ev_percentage': 1.2346, 'line': 0.0, 'odds_american': None}
    """
    if isinstance(value, float):
        return exact(value, reported_digits(name)) if math.isfinite(value) else None
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return {key: plain(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        if name == "deep_links":
            return {link["sportsbook"]: link["deep_link"] for link in value}
        return [plain(entry, name) for entry in value]
    return value


def records(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [{name: plain(value, name) for name, value in row.items()} for row in frame.iter_rows(named=True)]


def csv_text(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Format records as CSV; lists and objects are JSON in a cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in names])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        value = json.dumps(value, ensure_ascii=False)
    return safe_text(value) if isinstance(value, str) else value
