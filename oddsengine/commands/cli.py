"""The arguments of each command; the commands themselves are in `oddsengine.commands`.

Tables fit the terminal; piped output is plain text without truncation. `oddsengine_cli` is the entry point.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from oddsengine.backtesting.placed_bets import BET_COLUMNS
from oddsengine.bounds import excerpt, printable
from oddsengine.catalog import place
from oddsengine.commands import (
    audit,
    backup_command,
    benchmark_command,
    catalog,
    clv_command,
    feed_commands,
    fills_command,
    grade,
    history_command,
    init,
    key_commands,
    mcp,
    plugins_command,
    prebuild,
    price,
    scan,
    serve,
    tape,
    terms_command,
    watch,
)  # fmt: skip
from oddsengine.commands.report import kind_words
from oddsengine.feeds.price_files import ODDS_FORMATS
from oddsengine.history.clv import GROUPINGS
from oddsengine.history.import_files import SOURCES
from oddsengine.maths.devig import DEVIG_METHODS
from oddsengine.tables.column_names import check_columns
from oddsengine.tables.files import reason_of
from oddsengine.tables.schema import ODDS_SCHEMA
from oddsengine.tables.timestamps import aware
from oddsengine.tape import SYNC

_PRICES = """prices are decimal (1.87), American with their sign (+150, -110) or fractional (5/2, evens);
a whole number of 100 or more without a sign is ambiguous and rejected: write 110.0 or +110"""
_METHODS = f"{', '.join(DEVIG_METHODS)}, or weights such as shin=0.5,power=0.5"


# ---- argument types ----


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("expected comma-separated names, got nothing")
    return names


def _rates(text: str) -> dict[str, float]:
    """Parse `book=0.02,other=0.05`."""
    rates = {}
    for part in _names(text):
        book, _, value = part.partition("=")
        try:
            rates[book.strip()] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected book=number, got {excerpt(part)}") from None
    return rates


def _columns(text: str, schema: Collection[str] = ODDS_SCHEMA, kind: str = "an odds table") -> dict[str, str | pl.Expr]:
    """Parse `Bookie=sportsbook,market_type==moneyline`."""
    columns: dict[str, str | pl.Expr] = {}
    for part in _names(text):
        name, is_value, target = part.partition("==")
        if not is_value:
            name, _, target = part.rpartition("=")
        if not name.strip() or not target.strip():
            raise argparse.ArgumentTypeError(f"expected column=name or name==value, got {excerpt(part)}")
        columns[name.strip()] = pl.lit(target.strip()) if is_value else target.strip()
    try:
        check_columns(columns, schema, kind)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return columns


def _bet_columns(text: str) -> dict[str, str | pl.Expr]:
    """Parse `Bet=selection,Status=result`."""
    return _columns(text, (*ODDS_SCHEMA, *BET_COLUMNS), "a table of bets")


def _sharp(text: str) -> list[str] | dict[str, float]:
    """Parse an order of preference, or weights."""
    names = _names(text)
    weighted = sum("=" in name for name in names)
    if 0 < weighted < len(names):
        raise argparse.ArgumentTypeError(f"expected a weight for every book or for none, got {excerpt(text)}")
    return _rates(text) if weighted else names


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-02-08T18:00:00Z, got {excerpt(text)}") from None
    return aware(moment)


def _place(text: str) -> str:
    try:
        return place(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _float(text: str) -> float:
    """Parse a number; nan if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _finite(expected: str, above: float = -math.inf) -> Callable[[str], float]:
    """Return a parser of finite numbers above a limit."""

    def parse(text: str) -> float:
        number = _float(text)
        if not above < number < math.inf:
            raise argparse.ArgumentTypeError(f"expected {expected}, got {excerpt(text)}")
        return number

    return parse


_number, _percent = _finite("a number"), _finite("a number of percent")
_positive = _finite("a number above 0", above=0.0)


def _money(text: str) -> list[float]:
    """Parse `10,100,1000`."""
    return [_positive(part) for part in _names(text)]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of 0 or more, got {excerpt(text)}")
    return int(text)


def _speed(text: str) -> float:
    speed = math.inf if text == "max" else _float(text)
    if not speed > 0.0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, or max, got {excerpt(text)}")
    return speed


# ---- arguments ----


_SHARED: dict[str, dict[str, Any]] = {
    "--config": dict(metavar="FILE", help="settings file (default: oddsengine.toml, if it exists)"),
    "--sample": dict(action="store_true", help="use the sample board"),
    "--columns": dict(
        type=_columns, metavar="A=B,C=D",
        help="columns of the file and what they are in an odds table, such as Bookie=sportsbook,Price=odds; "
        "market_type==moneyline is a value of all rows",
    ),
    "--include": dict(
        type=_names, default=[], metavar="A,B",
        help="also list +EV at prices that are suspect (too good to be true) or one_sided (quoted on one side only)",
    ),
    "--url": dict(help="URL of a node, such as https://odds.example.com"),
    "--key-env": dict(
        default="ODDSENGINE_API_KEY", metavar="NAME",
        help="variable that holds the node's API key (default %(default)s)",
    ),
    "--option": dict(
        action="append", default=[], metavar="NAME=VALUE",
        help="option of the object store (default: from the environment)",
    ),
}  # fmt: skip
"""Options of several commands."""


def _add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def _add_format(parser: argparse.ArgumentParser, *forms: str) -> None:
    """Add the format of a command without `--output`: a table, or one of these."""
    parser.add_argument("--format", choices=("table", *forms), default="table")


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="prices: .csv, .parquet, .json, .ndjson or .jsonl, a folder or a pattern of such files, or - for standard "
        "input; JSON may be a response of The Odds API",
    )
    _add_sample(parser)


def _add_sample(parser: argparse.ArgumentParser) -> None:
    _add_shared(parser, "--sample", "--columns")
    parser.add_argument(
        "--odds-format",
        choices=ODDS_FORMATS,
        help="odds format of The Odds API responses (default: detected from the prices)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("table", "json", "csv", "parquet"),
        help="default: table, or according to the suffix of --output",
    )
    parser.add_argument("--output", metavar="PATH", help="write to this file instead of standard output")
    parser.add_argument("--limit", type=_count, metavar="N", help="show at most N rows of each kind; 0 shows all")


def _add_guards(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--guards", type=_names, metavar="all|none|A,B",
        help="which guards run (default: all); all,NAME adds one of a plugin",
    )  # fmt: skip
    which.add_argument("--without", type=_names, metavar="A,B", help="all guards but these")
    parser.add_argument(
        "--now", type=_moment, metavar="ISO", help="time at which ages are measured (default: that of the newest price)"
    )


def _add_question(parser: argparse.ArgumentParser, *, of_table: bool = True) -> None:
    """Add options for books and references; some are only of a table of prices."""
    ask = parser.add_argument_group("books and references")
    ask.add_argument("--books", type=_names, metavar="A,B", help="only bet at these books")
    if of_table:
        ask.add_argument(
            "--location", type=_place, metavar="PLACE",
            help="only bet at books that are known to take bets in this country or state, such as GB or US-NJ",
        )  # fmt: skip
        ask.add_argument("--stake", type=_positive, metavar="MONEY", help="price exchange levels for this stake")
    ask.add_argument(
        "--sharp", type=_sharp, metavar="A,B|A=3,B=1", help="reference books in order of preference, or with weights"
    )
    ask.add_argument(
        "--method",
        metavar="NAME",
        help="fair price for +EV: close (default), estimated for the close from two other books, or from Pinnacle "
        f"where it was measured alone, or the reference with its margin removed by one of {_METHODS} (power with "
        "--sharp)",
    )
    ask.add_argument("--commission", type=_rates, metavar="BOOK=RATE", help="share of winnings, 0.02 for 2 %%")
    ask.add_argument("--include", **_SHARED["--include"])


def _add_thresholds(parser: argparse.ArgumentParser, *, of_table: bool = True) -> None:
    least = parser.add_argument_group("thresholds")
    for name, default, text in (
        ("min-ev", 1.0, "minimum EV"),
        ("max-ev", None, "maximum EV"),
        ("min-profit", 0.5, "minimum profit of arbitrages"),
        ("max-hold", 2.0, "maximum hold of low-hold markets"),
        ("min-middle-ev", 0.0, "minimum EV of middles"),
    ):
        if name == "max-ev" and not of_table:
            continue
        note = "" if default is None else f" (default {default:g})"
        least.add_argument(f"--{name}", type=_number, default=default, metavar="PCT", help=f"{text}, percent{note}")
    least.add_argument(
        "--min-size", type=_number, default=0.0, metavar="PTS", help="minimum distance between the lines of a middle"
    )


def _add_scan(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=scan.scan_command)
    _add_source(parser)
    live = parser.add_argument_group("live prices, instead of FILE (extra feeds; docs/fetch.md has the sources)")
    live.add_argument("--live", type=_names, metavar="A,B", help="read these sources once, such as kalshi,polymarket")
    live.add_argument("--sport", metavar="LEAGUE", help="the league to read, such as nfl")
    live.add_argument(
        "--set", action="append", default=[], metavar="SOURCE.NAME=VALUE",
        help="a setting of a source, such as the_odds_api.regions=eu; repeat for others",
    )  # fmt: skip
    parser.add_argument("--kind", choices=(*kind_words(), "all"), default="all", help="default: all")
    parser.add_argument("--rejected", action="store_true", help="list rejected rows with the reasons")
    _add_question(parser)
    _add_thresholds(parser)
    _add_guards(parser)
    _add_output(parser)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=scan.explain_command)
    parser.add_argument(
        "names", nargs="+", metavar="[FILE] ID", help="file of prices, and the opportunity's id from scan"
    )
    _add_sample(parser)
    _add_question(parser)
    _add_guards(parser)


def _add_markets(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=scan.markets_command)
    _add_source(parser)
    _add_guards(parser)
    _add_output(parser)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.description = "Say what each column of a table of odds is taken for, and what the table still needs."
    parser.set_defaults(run=scan.columns_command)
    parser.add_argument("file", metavar="FILE", help="prices: .csv, .parquet, .json, .ndjson or .jsonl")
    _add_shared(parser, "--columns")
    _add_format(parser, "json", "csv")


def _add_devig(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PRICES
    parser.set_defaults(run=price.devig_command)
    parser.add_argument("odds", nargs="+", metavar="PRICE", help="one price for each outcome")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--method", default="power", metavar="NAME", help=f"{_METHODS} (default power)")
    which.add_argument("--all-methods", action="store_true", help="all of them side by side")
    _add_format(parser, "json", "csv")


def _add_kelly(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PRICES
    parser.set_defaults(run=price.kelly_command)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--prob", metavar="P", help="probability of one bet")
    which.add_argument("--probs", metavar="P,P", help="of outcomes that exclude each other")
    parser.add_argument("--odds", required=True, metavar="PRICE[,PRICE]")
    parser.add_argument("--fraction", type=_number, default=1.0, help="part of the full stake, above 0 (default 1)")
    parser.add_argument("--bankroll", type=_number, help="show money too")
    _add_format(parser, "json", "csv")


def _add_stakes(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PRICES
    parser.set_defaults(run=price.stakes_command)
    parser.add_argument("odds", nargs="+", metavar="PRICE", help="the best price of each outcome")
    parser.add_argument("--total", type=_number, default=100.0, help="total stake (default 100)")
    parser.add_argument("--step", type=_number, help="round stakes to multiples of this, maximising the worst case")
    parser.add_argument("--limits", metavar="MAX,MAX", help="maximum stake on each outcome; inf for none")
    _add_format(parser, "json", "csv")


def _add_sides(parser: argparse.ArgumentParser) -> None:
    """Add the two prices of a hedge."""
    parser.epilog = _PRICES
    parser.add_argument("odds", metavar="PRICE", help="price of the bet")
    parser.add_argument("against", metavar="AGAINST", help="price of the other side")
    parser.add_argument(
        "--commission", type=_number, default=0.0, metavar="RATE",
        help="share of winnings that the book of the other side keeps, 0.02 for 2 %% (default 0)",
    )  # fmt: skip
    _add_format(parser, "json", "csv")


def _add_parlay(parser: argparse.ArgumentParser) -> None:
    parser.description = "Combine independent legs. Legs of one game are not independent."
    parser.epilog = _PRICES
    parser.set_defaults(run=price.parlay_command)
    parser.add_argument("odds", nargs="+", metavar="PRICE", help="the price of each leg")
    parser.add_argument("--probs", metavar="P,P", help="fair probabilities of the legs")
    parser.add_argument(
        "--boost",
        type=_percent,
        default=0.0,
        metavar="PCT",
        help="boost of the parlay's winnings in percent, such as 30",
    )
    parser.add_argument("--stake", type=_positive, metavar="MONEY", help="show what it pays")
    parser.add_argument(
        "--max-extra", type=_positive, metavar="MONEY", help="maximum that the boost adds to the winnings of --stake"
    )
    _add_format(parser, "json", "csv")


def _add_hedge(parser: argparse.ArgumentParser) -> None:
    parser.description = "Stakes on the other side of an open bet, for equal profit and for no loss."
    parser.set_defaults(run=price.hedge_command)
    parser.add_argument(
        "--stake", type=_positive, default=100.0, metavar="MONEY", help="stake of the bet (default 100)"
    )
    _add_sides(parser)


def _add_free_bet(parser: argparse.ArgumentParser) -> None:
    parser.description = "What is kept of a free bet by hedging it."
    parser.set_defaults(run=price.free_bet_command)
    parser.add_argument("--amount", type=_positive, default=100.0, metavar="MONEY", help="the free bet (default 100)")
    parser.add_argument("--returned", action="store_true", help="its stake is paid back with the winnings")
    _add_sides(parser)


_LINES = """lines are as books write them: of over and under (220.5 222.5), or of one team and the other (-2.5 +3.5)"""


def _add_middle(parser: argparse.ArgumentParser) -> None:
    parser.description = "Probability that two bets on one number both win, from the distribution of scores in a sport."
    parser.epilog = f"{_LINES}; {_PRICES}"
    parser.set_defaults(run=price.middle_command)
    parser.add_argument("sport", metavar="SPORT", help="a sport or league, such as basketball or nfl")
    parser.add_argument("market", metavar="MARKET", help="total, spread, or another market type with a line")
    parser.add_argument("line1", type=_number, metavar="LINE", help="line of the first bet")
    parser.add_argument("line2", type=_number, metavar="LINE", help="line of the second bet")
    parser.add_argument("--prob", default="0.5", metavar="P", help="fair, of the first bet at --at (default 0.5)")
    parser.add_argument("--at", type=_number, metavar="LINE", help="line of --prob (default: half way between them)")
    parser.add_argument("--league", default="", metavar="NAME", help="league with its own distribution, such as ncaaf")
    parser.add_argument(
        "--expected-total", type=_positive, metavar="N", help="expected sum of both sides, for spreads of goals or runs"
    )
    parser.add_argument("--odds", metavar="PRICE,PRICE", help="prices of the two bets: show stakes and EV")
    parser.add_argument("--total", type=_positive, default=100.0, metavar="MONEY", help="total stake (default 100)")
    _add_format(parser, "json", "csv")


_BATCHES = """a batch is a line of JSON with any of these:
  {"now": "2026-02-08T18:00:00Z", "quotes": [{"sportsbook": ...}, ...], "removed": [ID, ...],
   "complete": [BOOK, [BOOK, EVENT], ...], "events": [{"event_id": ..., "status": "live"}, ...]}
"now" defaults to the newest last_seen_at; an interrupted recording is valid and can be continued"""


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = _BATCHES, argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=tape.record_command)
    parser.add_argument("tape", metavar="TAPE", help="a folder; an existing tape is continued")
    parser.add_argument("--from", dest="source", metavar="FILE|-", help="batches, one per line; - is standard input")
    parser.add_argument("--simulate", type=_count, metavar="SEED", help="simulate a market with this seed instead")
    world = parser.add_argument_group("simulation")
    world.add_argument("--seconds", type=_count, default=60, metavar="N", help="duration in seconds (default 60)")
    world.add_argument("--events", type=_count, default=40, metavar="N", help="number of games (default 40)")
    world.add_argument("--hazards", action="store_true", help="add typical feed errors")
    parser.add_argument("--sync", choices=SYNC, default="block", help="when to flush to disk (default: block)")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=tape.replay_command)
    parser.add_argument("tape", metavar="TAPE", help="a tape written by record")
    parser.add_argument(
        "--speed",
        type=_speed,
        default=float("inf"),
        metavar="N|max",
        help="multiple of the recorded speed (default: max)",
    )
    parser.add_argument(
        "--from", dest="since", type=_moment, metavar="ISO", help="show only what happened from this time on"
    )
    parser.add_argument("--to", type=_moment, metavar="ISO", help="stop after this time")
    parser.add_argument(
        "--updates", metavar="FILE|-", help="write each update as a line of JSON, with the first active view"
    )
    parser.add_argument("--json", action="store_true", help="the summary as JSON")


def _add_archive(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=tape.archive_command)
    parser.add_argument("tapes", metavar="TAPES", help="a tape, or a folder of tapes")
    _add_dest(parser)


def _add_compact(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=tape.compact_command)
    parser.add_argument(
        "--keep-hours", type=_number, default=168.0, metavar="H",
        help="delete replaced files that are older than this (default: 168)",
    )  # fmt: skip
    _add_dest(parser)


def _add_dest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dest", metavar="DEST", help="a folder, or a URL such as s3://bucket/odds")
    _add_shared(parser, "--option")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")


def _add_clv(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=clv_command.clv_command)
    parser.add_argument("--data", metavar="FOLDER", help="data folder of a node (default: from the settings)")
    parser.add_argument("--tape", metavar="TAPE", help="replay this tape instead")
    parser.add_argument("--archive", metavar="DEST", help="replay this archive instead: a folder or a URL")
    _add_shared(parser, "--option")
    parser.add_argument("--by", choices=GROUPINGS, default="sportsbook", help="group by (default: sportsbook)")
    parser.add_argument("--min-ev", type=_percent, default=0.0, metavar="PCT", help="minimum EV when first shown")
    _add_shared(parser, "--config")
    _add_format(parser, "json", "csv")


_HISTORY = (
    "a tape, or a .parquet, .ndjson, .jsonl or .csv file with price intervals (seen_from, seen_to), "
    "opening and closing odds with results, or an odds table with last_seen_at"
)


def _add_grade(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=grade.grade_command)
    parser.add_argument("bets", metavar="BETS", help="your bets: a .csv, .parquet, .json, .ndjson or .jsonl file")
    parser.add_argument("history", metavar="HISTORY", help=f"{_HISTORY}, or seasons of football-data.co.uk")
    parser.add_argument(
        "--columns", type=_bet_columns, metavar="A=B,C=D",
        help="columns of the bets and what they are, such as Bet=selection,Status=result",
    )  # fmt: skip
    parser.add_argument(
        "--closing-odds", choices=("history", "bets"), default="history",
        help="CLV by the closing odds of the history, or by those of the bets where they have any (default: history)",
    )  # fmt: skip
    _add_processes(parser)
    parser.add_argument("--output", metavar="FILE", help="write the graded bets to this .csv, .parquet or .ndjson file")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    _add_shared(parser, "--option")


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=audit.audit_command)
    _add_history(parser, nargs="*")
    _add_shared(parser, "--columns")
    parser.add_argument(
        "--method",
        metavar="NAME",
        help=f"method for fair prices: close (default), or {_METHODS} (power with --sharp)",
    )
    parser.add_argument(
        "--sharp",
        type=_names,
        metavar="BOOKS",
        help="reference books in order of preference, instead of the fair price at the close",
    )
    parser.add_argument("--books", type=_names, metavar="BOOKS", help="only bet at these books (default: all)")
    _add_shared(parser, "--include")
    parser.add_argument(
        "--live", metavar="PATH",
        help="instead of HISTORY: grade what a node has recorded since the last time, and write the report that it "
        "serves at /truth; its data folder or its file of settings",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="TIME", help="with --live: do so again and again, such as every 1h, until stopped"
    )
    parser.add_argument(
        "--delay", action="append", default=[], metavar="TIME",
        help="how many prices still stood so much later, such as 10m, and what they were worth; repeat for others",
    )  # fmt: skip
    parser.add_argument(
        "--against", action="append", default=[], metavar="FILE|NAME",
        help="compare with a model's probabilities of the same prices, a .csv or .parquet file (docs/truth.md has the "
        "format), or with a fair price that a package registers (docs/plugins.md); repeat for others",
    )  # fmt: skip
    parser.add_argument("--shown", metavar="FILE", help="write the prices shown to a .parquet, .ndjson or .jsonl file")
    parser.add_argument(
        "--plot", metavar="FILE", help="plot EV at the close by EV shown, as a .svg, .png or .pdf file (extra plots)"
    )
    parser.add_argument("--json", action="store_true", help="the table as JSON")


def _add_fills(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=fills_command.fills_command)
    parser.add_argument("history", metavar="HISTORY", nargs="+", help=_HISTORY)
    _add_shared(parser, "--columns")
    parser.add_argument("--kind", choices=(*kind_words(), "all"), default="all", help="default: all")
    orders = parser.add_argument_group("orders")
    orders.add_argument(
        "--stakes", type=_money, default=[10.0, 100.0, 1000.0], metavar="A,B",
        help="amounts to take of each opportunity, in USD (default 10,100,1000)",
    )  # fmt: skip
    orders.add_argument(
        "--delay", action="append", default=[], metavar="[BOOK=]S[-S]",
        help="seconds until an order arrives, or a range (default 0.2-1 at exchanges, 2-8 at "
        "other books); repeat for others",
    )  # fmt: skip
    orders.add_argument(
        "--legs", choices=("thinnest", "together"), default="thinnest",
        help="send the leg with the least size first, then the others for the payout it got (default), or all together",
    )  # fmt: skip
    orders.add_argument(
        "--all-or-nothing", action="store_true", help="fill or kill: an order is filled in full or not at all"
    )
    orders.add_argument(
        "--rest", type=_finite("a number of seconds"), default=0.0, metavar="S",
        help="seconds that the unfilled remainder of an order stays in the book, at exchanges (default 0)",
    )  # fmt: skip
    orders.add_argument("--rates", type=_rates, metavar="GBP=1.27", help="worth of other currencies in USD")
    _add_question(parser, of_table=False)
    _add_thresholds(parser, of_table=False)
    parser.add_argument("--fair", metavar="FILE", help="constants written by calibrate (default: those of the catalog)")
    _add_processes(parser)
    parser.add_argument(
        "--by", type=_names, default=[], metavar="A,B",
        help="also group by these: sport, league, market_type, is_live, books; prints CSV unless --format json",
    )  # fmt: skip
    parser.add_argument("--attempts", metavar="FILE", help="write every attempt to a .parquet, .ndjson or .jsonl file")
    parser.add_argument("--orders", metavar="FILE", help="write every order to a .parquet, .ndjson or .jsonl file")
    _add_format(parser, "json", "csv")


def _add_terms(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=terms_command.terms_command)
    parser.add_argument("first", metavar="A", help="a book, such as kalshi")
    parser.add_argument("second", metavar="B", help="another one, such as draftkings")
    parser.add_argument("--league", required=True, metavar="NAME", help="league of the game, such as nfl")
    parser.add_argument("--sport", metavar="NAME", help="its sport (default: that of the league)")
    parser.add_argument("--market", default="moneyline", metavar="NAME", help="market type (default: moneyline)")
    parser.add_argument("--odds", metavar="PRICE,PRICE", help="prices of both: what a case costs at worst")
    parser.add_argument("--stake", type=_positive, default=100.0, metavar="MONEY", help="on both (default 100)")
    _add_format(parser, "json")


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=audit.calibrate_command)
    _add_history(parser, nargs="*")
    parser.add_argument("--data", metavar="FOLDER", help="use the tapes in this data folder instead of HISTORY")
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="file for the fitted constants (default: print them; with --data, fair.toml in that folder)",
    )


def _add_benchmark(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare fair prices on past seasons. Files of football-data.co.uk are fetched once and kept in a cache "
        "folder, with their checksums."
    )
    parser.set_defaults(run=benchmark_command.benchmark_command)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    fair = actions.add_parser("fair", help="what the EV of each method is worth at the other books' close")
    fair.add_argument(
        "--data", metavar="PATH",
        help="files of your own instead: a folder of seasons, or a table of opening and closing prices",
    )  # fmt: skip
    fair.add_argument(
        "--seasons", metavar="YEARS", help="years in which the seasons begin, such as 2012-2018 (default: 2019-2025)"
    )
    fair.add_argument(
        "--method", action="append", default=[], metavar="MODULE:FUNCTION|NAME",
        help="compare a method of yours too, or a fair price that a package registers; repeat for others "
        "(docs/benchmark.md has what it gets and returns)",
    )  # fmt: skip
    fair.add_argument("--fair", metavar="FILE", help="constants written by calibrate (default: those of the catalog)")
    fair.add_argument(
        "--max-ev",
        type=_percent,
        metavar="PCT",
        help="take a larger EV for an error (default: 30, the cap of +EV bets)",
    )
    fair.add_argument("--cache", metavar="FOLDER", help="folder of the files (default: in the user's cache)")
    fair.add_argument("--refresh", action="store_true", help="fetch files again that are in the cache")
    fair.add_argument("--url", help="address of another copy of the files")
    fair.add_argument("--output", metavar="FILE", help="write the table to a .csv, .parquet or .ndjson file")
    fair.add_argument("--json", action="store_true", help="the table as JSON")


def _add_history_import(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Read what others have recorded, and write one Parquet file of prices in order of time that audit, calibrate, "
        "backtest and scan_history take. Tapes and archives of a node are histories as they are."
    )
    parser.set_defaults(run=history_command.history_command)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    importing = actions.add_parser("import", help="read files of one source (docs/import.md has what is read as what)")
    importing.add_argument("source", metavar="SOURCE", help=", ".join(SOURCES))
    importing.add_argument(
        "files", nargs="+", metavar="FILES", help="files, folders with all that is in them, .tar archives; .gz and .bz2"
    )
    importing.add_argument(
        "--output", required=True, metavar="FILE", help="the .parquet file to write, when all is read"
    )
    importing.add_argument(
        "--odds-format", choices=ODDS_FORMATS, help="of The Odds API (default: detected from each response)"
    )
    importing.add_argument(
        "--timezone", metavar="NAME",
        help="time zone of the browser that collected OddsHarvester's odds histories, such as Europe/Paris; without it "
        "they are left out",
    )  # fmt: skip
    importing.add_argument("--json", action="store_true", help="the summary as JSON")


def _add_history(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("history", metavar="HISTORY", nargs=nargs, help=_HISTORY)
    parser.add_argument("--fair", metavar="FILE", help="constants written by calibrate (default: those of the catalog)")
    parser.add_argument(
        "--hours", type=_positive, default=72.0, metavar="H", help="maximum hours before the start (default 72)"
    )
    _add_processes(parser)


def _add_processes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--processes", type=int, metavar="N",
        help="how many play the games of a table side by side (default: one per core for half a million rows or more; "
        "a tape is played in one piece)",
    )  # fmt: skip


_CHECKED = "exit status: 0 if every feed is ok, otherwise 1"


def _add_feeds(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=feed_commands.feeds_command)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("check", "fetch once from each feed and report what it delivers"),
        ("unmapped", "list market names of the last run or check that the catalog does not have, and lines for yours"),
    ):
        action = actions.add_parser(name, help=text, epilog=_CHECKED if name == "check" else None)
        _add_shared(action, "--config")
        action.add_argument(
            "--seconds", type=_positive, default=20.0, metavar="N", help="time limit per feed (default 20)"
        )
        _add_format(action, "json", *(["toml"] if name == "unmapped" else []))
        if name == "unmapped":
            action.add_argument("--check", action="store_true", help="fetch from the feeds now instead")
        else:
            action.add_argument(
                "--record", metavar="FOLDER",
                help="also keep what was sent and received, without secrets: a file per feed, such as for a bug report",
            )  # fmt: skip
            action.add_argument("--yes", action="store_true", help="write the files of --record without asking")
    replay = actions.add_parser("replay", help="read what --record kept as the feed would, and show the rows")
    replay.add_argument("recording", metavar="FILE", help="a file of `feeds check --record`, or a folder of them")
    _add_format(replay, "json")


def _add_catalog(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=catalog.catalog_command)
    parser.add_argument(
        "files", nargs="*", metavar="FILE",
        help="catalog files of your own (`data.catalog`), or folders of *.toml, to check and apply together; if two "
        "set a key, the later one wins, but the files of one folder must agree",
    )  # fmt: skip
    parser.add_argument("--changed", action="store_true", help="only thresholds that the files change")
    parser.add_argument(
        "--diff", action="store_true", help="list all that the files change in the built-in catalog, key by key"
    )
    parser.add_argument(
        "--against", action="append", metavar="FILE",
        help="with --diff: compare with this file or folder instead of the built-in catalog; may be repeated",
    )  # fmt: skip
    _add_format(parser, "json", "csv")


def _add_plugins(parser: argparse.ArgumentParser) -> None:
    parser.description = "List what installed packages register; nothing of it is imported."
    parser.set_defaults(run=plugins_command.plugins_command)
    _add_format(parser, "json")


def _own_limit(text: str) -> int | str:
    """Parse a limit of a key; `tier` resets it."""
    return text if text == "tier" else _count(text)


def _add_init(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=init.init_command)
    _add_shared(parser, "--config")
    parser.add_argument("--account", default="me", metavar="NAME", help="account of the first key (default: me)")


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=key_commands.keys_command)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="create a key and print it; it cannot be shown again")
    create.add_argument(
        "--account", required=True, metavar="NAME", help="account that the key belongs to; limits are per account"
    )
    create.add_argument("--tier", required=True, metavar="TIER", help="free, hobby, pro, sharp or enterprise")
    create.add_argument("--name", default="", metavar="TEXT", help="display name")
    create.add_argument("--streaming", action="store_true", help="include the streaming add-on")
    create.add_argument("--rate", type=_count, metavar="N", help="requests per minute (default: from the tier)")
    create.add_argument("--streams", type=_count, metavar="N", help="concurrent streams (default: from the tier)")
    create.add_argument("--features", type=_names, metavar="A,B", help="only these features (default: from the tier)")
    listing = actions.add_parser("list", help="list keys, without their secrets")
    listing.add_argument("--account", metavar="NAME", help="only keys of this account")
    listing.add_argument("--all", action="store_true", help="include revoked keys")
    revoke = actions.add_parser("revoke", help="revoke a key permanently")
    rotate = actions.add_parser(
        "rotate", help="replace a key's secret and print the new key; the old one stops working"
    )
    rotate.add_argument(
        "--grace", type=_count, default=0, metavar="SECONDS", help="how long the old secret stays valid (default 0)"
    )
    tier = actions.add_parser("tier", help="change the tier, add-ons and limits of a key")
    for action in (revoke, rotate, tier):
        action.add_argument("id", metavar="ID", help="id of the key: the part before the dot")
    tier.add_argument("tier", metavar="TIER", help="free, hobby, pro, sharp or enterprise")
    tier.add_argument("--streaming", action=argparse.BooleanOptionalAction, help="add or remove the streaming add-on")
    tier.add_argument("--rate", type=_own_limit, metavar="N|tier", help="requests per minute")
    tier.add_argument("--streams", type=_own_limit, metavar="N|tier", help="concurrent streams")
    tier.add_argument("--features", type=_names, metavar="A,B|tier", help="only these features")
    export = actions.add_parser("export", help="write all keys to a file, hashed, for a backup")
    importing = actions.add_parser("import", help="import keys from an export; the pepper must be the same")
    for action in (export, importing):
        action.add_argument(
            "file", metavar="FILE", help="one JSON object per line" + ("; - is standard output" * (action is export))
        )
    for action in (create, listing, revoke, rotate, tier, export, importing):
        _add_shared(action, "--config")
        action.add_argument("--json", action="store_true", help="as JSON")


def _add_backup(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a tar archive of the data folder (keys, usage, bets, closing lines and other files), without the pepper "
        "and tapes. The node may be running. To restore it, stop the node, unpack it into an empty data folder, add "
        "the pepper, and start the node."
    )
    parser.set_defaults(run=backup_command.backup_command)
    parser.add_argument("file", metavar="FILE", help="the archive; - is standard output")
    _add_shared(parser, "--config")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=serve.serve_command)
    parser.add_argument(
        "--demo", action="store_true", help="simulated market with demo keys; on localhost without --host"
    )
    parser.add_argument(
        "--live", type=_names, metavar="A,B",
        help="serve prices of these sources, such as kalshi,polymarket, with demo keys; on localhost without --host",
    )  # fmt: skip
    parser.add_argument("--sport", type=_names, metavar="LEAGUE,...", help="the leagues of --live, such as nfl,nba")
    _add_shared(parser, "--config")
    parser.add_argument("--host", help="address to bind to (default 127.0.0.1)")
    parser.add_argument("--port", type=_count, help="port to bind to (default 8000)")
    parser.add_argument(
        "--log-requests", action="store_true",
        help="log every request; without it, a log on a terminal has those with a server error only",
    )  # fmt: skip


def _add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.description = "Serve tools for language models to a client that starts this command."
    parser.set_defaults(run=mcp.mcp_command)
    parser.add_argument("file", nargs="?", metavar="FILE", help="prices: CSV, Parquet or NDJSON")
    _add_shared(parser, "--columns", "--sample", "--url", "--key-env")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.description = "Draw the tables of scan again at each change, until interrupted or until the tape ends."
    parser.set_defaults(run=watch.watch_command)
    _add_source(parser)
    parser.add_argument("--tape", metavar="FOLDER", help="a tape, replayed")
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="N|max", help="multiple of the recorded speed (default 1)"
    )
    _add_shared(parser, "--url", "--key-env")
    parser.add_argument("--kind", choices=(*kind_words(), "all"), default="all", help="default: all")
    parser.add_argument("--books", type=_names, metavar="BOOK,...", help="only these books")
    parser.add_argument(
        "--filter", default="", metavar="WORDS",
        help="only rows that contain all words; >2 is a value of at least 2 %%, <2 of at most 2 %%",
    )  # fmt: skip
    parser.add_argument(
        "--every", type=_positive, metavar="SECONDS", help="seconds between refreshes (default 1, for a node 5)"
    )


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compile all kernels for the processor of this machine, into the first writable folder of the cache "
        "(ODDSENGINE_CACHE, if it is set). They are used instead of those that come with oddsengine. Takes about a "
        "minute, and no time if nothing has changed."
    )
    parser.set_defaults(run=prebuild.compile_command)


# ---- entry point ----

_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "scan": _add_scan, "explain": _add_explain, "markets": _add_markets, "columns": _add_columns,
    "devig": _add_devig, "kelly": _add_kelly,
    "stakes": _add_stakes, "parlay": _add_parlay, "hedge": _add_hedge, "free-bet": _add_free_bet,
    "middle": _add_middle, "record": _add_record, "replay": _add_replay, "archive": _add_archive,
    "compact": _add_compact, "clv": _add_clv, "grade": _add_grade, "audit": _add_audit, "calibrate": _add_calibrate,
    "fills": _add_fills, "terms": _add_terms,
    "benchmark": _add_benchmark, "history": _add_history_import,
    "feeds": _add_feeds,
    "init": _add_init,
    "serve": _add_serve, "mcp": _add_mcp, "watch": _add_watch, "keys": _add_keys, "backup": _add_backup,
    "catalog": _add_catalog, "plugins": _add_plugins,
    "compile": _add_compile,
}  # fmt: skip


def prepare(command: str, parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Add a command's arguments to its parser, and return the words to parse."""
    _ARGUMENTS[command](parser)
    return _joined(words)


def _joined(words: Sequence[str]) -> list[str]:
    """Join a list of prices that starts with a minus to its option; argparse would take it for an option."""
    out: list[str] = []
    for word in words:
        if out and out[-1] == "--odds" and re.match(r"-\d", word):
            out[-1] = f"--odds={word}"
        else:
            out.append(word)
    return out


def run(arguments: argparse.Namespace) -> int:
    """Run a command, and return its exit status."""
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        print(f"oddsengine {arguments.command}: {_reason(error)}", file=sys.stderr)
        return 2
    return 0


def _reason(error: ValueError | OSError) -> str:
    """Describe an error in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return printable(f"{error.filename}: {reason_of(error)}")
    return printable(re.sub(r" \(os error \d+\)", "", " ".join(str(error).split())))
