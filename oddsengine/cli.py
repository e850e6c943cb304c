"""The command line: `oddsengine scan`, `explain`, `markets`, `devig`, `kelly`, `stakes`.

Exit status 0, or 2 with one sentence on standard error for input that cannot be used. Tables fit the terminal; into
a pipe they are plain text, uncut. What a command needs is imported when it runs, so that help comes at once.
"""

import argparse
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import polars as pl

    from oddsengine.report import Report
    from oddsengine.schema import OddsTable

METHODS = ("multiplicative", "additive", "power", "shin", "odds_ratio", "logarithmic", "worst_case")
_FORMATS = ("table", "json", "csv", "parquet")
_KINDS = ("ev", "arb", "low-hold", "middles", "all")
_SLOW = 3.0  # seconds of silence before the detection says what it is doing; reading says so after one
_ON_TERMINAL = 50  # rows of each table on a terminal, unless --limit says otherwise
_INTERRUPTED, _BROKEN_PIPE = 130, 141

_EXAMPLES = """examples:
  oddsengine scan --sample
  oddsengine scan odds.csv --kind arb --books draftkings,fanduel,betmgm --min-profit 1
  oddsengine scan odds.parquet --sharp pinnacle=3,circa=1 --min-ev 2 --format json
  oddsengine scan odds.csv --rejected
  oddsengine explain odds.csv 3fb1a0c29d5e7784
  oddsengine devig 1.87 2.05 --method shin
  oddsengine kelly --prob 0.55 --odds +100 --fraction 0.5 --bankroll 1000
  oddsengine stakes 2.10 2.05 --total 100 --step 5
"""
_PRICES = """prices are decimal (1.87), American with their sign (+150, -110) or fractional (5/2, evens);
a whole number from 100 up without a sign could be either and is refused: write 110.0 or +110"""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


# ---- what the words of a command mean ----


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("expected names separated by commas, got nothing")
    return names


def _rates(text: str) -> dict[str, float]:
    """Read `book=0.02,other=0.05`."""
    found = {}
    for part in _names(text):
        book, _, value = part.partition("=")
        try:
            found[book.strip()] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected book=number, got {part!r}") from None
    return found


def _sharp(text: str) -> list[str] | dict[str, float]:
    """Read an order of preference, or weights."""
    names = _names(text)
    weighted = sum("=" in name for name in names)
    if 0 < weighted < len(names):
        raise argparse.ArgumentTypeError(f"give every book a weight or none, got {text!r}")
    return _rates(text) if weighted else names


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-02-08T18:00:00Z, got {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r}")
    return int(text)


def _price(text: str) -> float:
    """Decimal odds of a price in any of the three notations; the notation is told by its form."""
    from oddsengine.odds import american_to_decimal, fractional_to_decimal, parse_fractional

    text = text.strip()
    if re.fullmatch(r"[1-9]\d{2,}", text):
        raise argparse.ArgumentTypeError(f"{text} may be decimal or American: write {text}.0 or +{text}")
    try:
        if text[:1] in ("+", "-"):
            odds = float(american_to_decimal(float(text)))
        elif "/" in text or text.isalpha():
            odds = float(fractional_to_decimal(*parse_fractional(text)))
        else:
            odds = float(text)
    except ValueError:
        odds = 0.0
    if not 1.0 < odds < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no price: decimal above 1 (1.87), American (+150, -110) or fractional (5/2)"
        )
    return odds


def _prices(text: str) -> list[float]:
    return [_price(part) for part in _names(text)]


def _probability(text: str) -> float:
    try:
        found = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no probability: from 0 to 1, or 0% to 100%")
    return found


def _probabilities(text: str) -> list[float]:
    return [_probability(part) for part in _names(text)]


# ---- the parser ----


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oddsengine",
        description="Sports odds in, trustworthy opportunities out.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_scan(commands)
    _add_explain(commands)
    _add_markets(commands)
    _add_devig(commands)
    _add_kelly(commands)
    _add_stakes(commands)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="prices: .csv, .parquet, .ndjson or .jsonl")
    parser.add_argument("--sample", action="store_true", help="read the board that ships with the package")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=_FORMATS, help="default: table, or what the suffix of --output says")
    parser.add_argument("--output", metavar="PATH", help="write there instead of standard output")
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N rows of each kind; 0 is all")


def _add_guards(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--guards", metavar="all|none|A,B", help="which guards run (default: all)")
    which.add_argument("--without", type=_names, metavar="A,B", help="all guards but these")
    parser.add_argument("--now", type=_moment, metavar="ISO", help="when ages are judged (default: newest price)")


def _add_question(parser: argparse.ArgumentParser) -> None:
    """Add whose prices may be bet and what is fair."""
    ask = parser.add_argument_group("whose prices")
    ask.add_argument("--books", type=_names, metavar="A,B", help="only prices of these books may be bet")
    ask.add_argument("--sharp", type=_sharp, metavar="A,B|A=3,B=1", help="reference books in order, or their weights")
    ask.add_argument("--method", default="power", metavar="NAME", help=f"how margin is removed: {', '.join(METHODS)}")
    ask.add_argument("--commission", type=_rates, metavar="BOOK=RATE", help="share of winnings, 0.02 for 2 %%")


def _add_thresholds(parser: argparse.ArgumentParser) -> None:
    least = parser.add_argument_group("what is worth showing")
    for name, default, text in (
        ("min-ev", 0.0, "least edge of a +EV price"),
        ("max-ev", None, "largest edge of a +EV price"),
        ("min-profit", 0.5, "least profit of an arbitrage"),
        ("max-hold", 2.0, "largest hold of a low-hold market"),
        ("min-middle-ev", 0.0, "least expected value of a middle"),
    ):
        shown = "" if default is None else f" (default {default:g})"
        least.add_argument(f"--{name}", type=float, default=default, metavar="PCT", help=f"{text}, percent{shown}")
    least.add_argument("--min-size", type=float, default=0.0, metavar="PTS", help="least distance of a middle's lines")


def _add_scan(commands: Any) -> None:
    parser = commands.add_parser("scan", help="find opportunities in a file of prices")
    _add_source(parser)
    parser.add_argument("--kind", choices=_KINDS, default="all", help="default: all")
    parser.add_argument("--rejected", action="store_true", help="list what is kept from the detectors, and why")
    _add_question(parser)
    _add_thresholds(parser)
    _add_guards(parser)
    _add_output(parser)
    parser.set_defaults(run=_scan)


def _add_explain(commands: Any) -> None:
    parser = commands.add_parser("explain", help="show what stands behind one opportunity")
    parser.add_argument("names", nargs="+", metavar="[FILE] ID", help="prices, and the id that scan shows")
    parser.add_argument("--sample", action="store_true", help="read the board that ships with the package")
    _add_question(parser)
    _add_guards(parser)
    parser.set_defaults(run=_explain)


def _add_markets(commands: Any) -> None:
    parser = commands.add_parser("markets", help="list the markets of a file: books, completeness, main line")
    _add_source(parser)
    _add_guards(parser)
    _add_output(parser)
    parser.set_defaults(run=_markets)


def _add_devig(commands: Any) -> None:
    parser = commands.add_parser("devig", help="fair probabilities of one market", epilog=_PRICES)
    parser.add_argument("odds", nargs="+", type=_price, metavar="PRICE", help="one price for each outcome")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--method", default="power", metavar="NAME", help=f"{', '.join(METHODS)} (default power)")
    which.add_argument("--all-methods", action="store_true", help="all of them side by side")
    parser.add_argument("--format", choices=_FORMATS[:3], default="table")
    parser.set_defaults(run=_devig)


def _add_kelly(commands: Any) -> None:
    parser = commands.add_parser("kelly", help="how much of a bankroll to stake", epilog=_PRICES)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--prob", type=_probability, metavar="P", help="probability of one bet")
    which.add_argument("--probs", type=_probabilities, metavar="P,P", help="of outcomes that exclude each other")
    parser.add_argument("--odds", type=_prices, required=True, metavar="PRICE[,PRICE]")
    parser.add_argument("--fraction", type=float, default=1.0, help="part of the full stake, above 0 (default 1)")
    parser.add_argument("--bankroll", type=float, help="show money too")
    parser.add_argument("--format", choices=_FORMATS[:3], default="table")
    parser.set_defaults(run=_kelly)


def _add_stakes(commands: Any) -> None:
    parser = commands.add_parser("stakes", help="stakes that pay the same whatever happens", epilog=_PRICES)
    parser.add_argument("odds", nargs="+", type=_price, metavar="PRICE", help="the best price of each outcome")
    parser.add_argument("--total", type=float, default=100.0, help="money to stake in all (default 100)")
    parser.add_argument("--step", type=float, help="stakes in whole steps, the best worst case for at most the total")
    parser.add_argument("--format", choices=_FORMATS[:3], default="table")
    parser.set_defaults(run=_stakes)


# ---- printing ----


def _say(text: str) -> None:
    """Print a text; characters that the terminal cannot show become question marks."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        code = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.replace("…", "...").encode(code, "replace").decode(code))


def _terminal() -> int | None:
    """Width of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _bold() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class _Notice:
    """Say what takes so long, if it does."""

    def __init__(self, text: str, after: float = 1.0) -> None:
        self._timer = threading.Timer(after, lambda: print(f"oddsengine: {text} ...", file=sys.stderr, flush=True))
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _small(rows: list[dict[str, Any]], form: str, note: str, facts: Mapping[str, Any]) -> None:
    """Print the few rows of a calculation: texts in a table, numbers in JSON and CSV."""
    from oddsengine.layout import Column, table
    from oddsengine.report import csv_text, plain

    names = list(rows[0])
    if form == "json":
        document = {**facts, "outcomes": [plain(row) for row in rows]}
        _say(json.dumps(plain(document), indent=2, ensure_ascii=False) + "\n")
    elif form == "csv":
        _say(csv_text([plain(row) for row in rows], names))
    else:
        cells = [[_figure(name, row[name]) for name in names] for row in rows]
        titles = [Column(name.replace("_", " "), right=True) for name in names]
        lines = table(titles, [[row] for row in cells], _terminal(), bold=_bold())
        _say("\n".join([*lines, "", note]) + "\n")


def _figure(name: str, value: float | None) -> str:
    from oddsengine.report import american, decimal

    if value is None or value != value:
        return "-"
    if name.endswith("american"):
        return american(value)
    if name.endswith(("odds", "price")):
        return decimal(value)
    if name in ("stake", "pays"):
        return f"{value + 0.0:.2f}"
    return f"{value * 100.0 + 0.0:.2f} %"


# ---- tables of prices ----


def _read(arguments: argparse.Namespace) -> "OddsTable":
    from oddsengine.tables import read_odds

    path = arguments.file
    if bool(path) == arguments.sample:
        given = f"both {path} and --sample" if path else "neither"
        raise ValueError(f"give either a FILE of prices or --sample, got {given}")
    if arguments.sample:
        from oddsengine.sample import SAMPLE_BOARD

        path = str(SAMPLE_BOARD)
    size = os.path.getsize(path) / 1e6 if os.path.isfile(path) else 0.0
    with _Notice(f"reading {path} ({size:,.0f} MB)"):
        return read_odds(path)


def _guards(arguments: argparse.Namespace) -> list[str] | None:
    """Which guards run; None is all of them."""
    from oddsengine.reasons import GUARDS

    unknown = sorted(set(arguments.without or []) - set(GUARDS))
    if unknown:
        raise ValueError(f"--without takes guards; {', '.join(unknown)} is not one of {', '.join(GUARDS)}")
    if arguments.without:
        return [name for name in GUARDS if name not in arguments.without]
    if arguments.guards in (None, "all"):
        return None
    return [] if arguments.guards == "none" else _names(arguments.guards)


def _question(arguments: argparse.Namespace, table: "OddsTable", words: Sequence[str]) -> dict[str, Any]:
    """Gather the keyword arguments of a finder, having checked that the books exist."""
    known = set(table["sportsbook"].unique().to_list())
    for word, given in (("--books", arguments.books), ("--commission", arguments.commission)):
        strange = sorted(set(given or ()) - known)
        if strange:
            raise ValueError(f"{word}: no prices of {', '.join(strange)}; the books are {', '.join(sorted(known))}")
    if arguments.sharp and not known.intersection(arguments.sharp):
        raise ValueError(
            f"--sharp: no prices of {', '.join(arguments.sharp)}; the books are {', '.join(sorted(known))}"
        )
    asked = {name: getattr(arguments, name) for name in words}
    return {**asked, "guards": _guards(arguments), "now": arguments.now}


_SCAN_WORDS = (
    "books", "sharp", "method", "commission", "min_ev", "max_ev", "min_profit", "max_hold", "min_size", "min_middle_ev",
)  # fmt: skip


def _scan(arguments: argparse.Namespace) -> None:
    from oddsengine.opportunities import find_all, rejected
    from oddsengine.report import KINDS, REJECTED, Report, moment

    form = _format(arguments)
    if form in ("csv", "parquet") and arguments.kind == "all" and not arguments.rejected:
        raise ValueError(f"{form} holds one table: choose one with --kind ev, arb, low-hold or middles")
    began = time.perf_counter()
    table = _read(arguments)
    with _Notice("looking for opportunities", _SLOW):
        if arguments.rejected:
            frame = rejected(table, **_question(arguments, table, ("sharp", "method", "commission")))
            counts = dict(sorted(frame["guard"].value_counts().iter_rows()))
            if form == "table":
                frame = frame[sorted(range(frame.height), key=frame["guard"].to_list().__getitem__)]
            found: dict[Report, pl.DataFrame] = {REJECTED: frame}
        else:
            everything = find_all(table, **_question(arguments, table, _SCAN_WORDS))
            counts = everything.set_aside
            kinds = [k for k in KINDS if arguments.kind in (k, "all")]
            found = {KINDS[k]: getattr(everything, KINDS[k].name) for k in kinds}
    newest = table["last_seen_at"].max() if table.height else None
    now = arguments.now or newest
    facts = {
        "now": moment(now) if isinstance(now, datetime) else None,
        "rows_read": table.height + table.rejected.height,
        "rows_rejected_at_the_door": table.rejected.height,
        "set_aside": counts,
    }
    lines = _summary(table, counts, facts["now"], time.perf_counter() - began)
    _show(found, facts, lines, arguments, form)


def _summary(table: "OddsTable", counts: Mapping[str, int], now: Any, seconds: float) -> list[str]:
    """Say in a few lines what was read, what was set aside, and how long it took."""
    from oddsengine.reasons import NAMES

    door = dict(sorted(table.rejected["guard"].value_counts().iter_rows()))
    results = {name: counts[name] for name in ("ev_cap", "profit_cap") if name in counts}
    guards = {n: counts.get(n, 0) - door.get(n, 0) for n in NAMES if n not in results}
    guards = {name: n for name, n in guards.items() if n > 0}
    books, events = (table[name].n_unique() for name in ("sportsbook", "event_id"))
    lines = [
        f"{table.height + table.rejected.height:,} rows read: {books} books, {events} events, "
        f"as of {now or 'an unknown time'}; {seconds:.2f} s",
        f"{table.rejected.height:,} rejected at the door" + _listed(door),
        f"{sum(guards.values()):,} set aside" + _listed(guards),
    ]
    if results:
        lines.append(f"{sum(results.values()):,} over the cap of what is believed" + _listed(results))
    return lines


def _listed(counts: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{name} {n:,}" for name, n in counts.items()) if counts else ""


def _markets(arguments: argparse.Namespace) -> None:
    from oddsengine.opportunities import markets
    from oddsengine.report import MARKETS

    form = _format(arguments)
    table = _read(arguments)
    with _Notice("looking at the markets"):
        frame = markets(table, guards=_guards(arguments), now=arguments.now)
    _show({MARKETS: frame}, {}, [f"{frame.height:,} markets of {table.height:,} prices"], arguments, form)


def _explain(arguments: argparse.Namespace) -> None:
    from oddsengine.explain import explain

    if len(arguments.names) != 2 - arguments.sample:
        wanted = "one ID with --sample" if arguments.sample else "a FILE and an ID"
        raise ValueError(f"explain takes {wanted}, got {' '.join(arguments.names)}")
    arguments.file = None if arguments.sample else arguments.names[0]
    table = _read(arguments)
    with _Notice("looking for it"):
        question = _question(arguments, table, ("books", "sharp", "method", "commission"))
        text = str(explain(table, arguments.names[-1], **question))
    _say(text.rstrip("\n") + "\n")


def _format(arguments: argparse.Namespace) -> str:
    """The form of the output: as asked, or as the file to write is called."""
    suffix = Path(arguments.output or "").suffix.lower()
    form = str(arguments.format or {".json": "json", ".csv": "csv", ".parquet": "parquet"}.get(suffix, "table"))
    if form == "parquet" and suffix != ".parquet":
        raise ValueError(f"parquet needs --output with a name that ends in .parquet, got {arguments.output or 'none'}")
    return form


def _show(
    found: "Mapping[Report, pl.DataFrame]",
    facts: Mapping[str, Any],
    summary: Sequence[str],
    arguments: argparse.Namespace,
    form: str,
) -> None:
    """Print frames in the form that was asked for; the summary stays out of data."""
    from oddsengine.report import csv_text, records
    from oddsengine.tables import write_table

    limit = arguments.limit
    if limit is None and form == "table" and _terminal() and not arguments.output:
        limit = _ON_TERMINAL
    cut = {report: frame.head(limit) if limit else frame for report, frame in found.items()}
    if form == "parquet":
        write_table(next(iter(cut.values())), arguments.output)
    elif form == "json":
        document = {**facts, **{report.name: records(frame) for report, frame in cut.items()}}
        _write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", arguments.output)
    elif form == "csv":
        frame = next(iter(cut.values()))
        _write(csv_text(records(frame), frame.columns), arguments.output)
    else:
        parts = [_table(report, frame, found[report].height, bool(arguments.output)) for report, frame in cut.items()]
        _write("\n\n".join([*parts, _wrapped(summary)]) + "\n", arguments.output)
        return
    print(_wrapped(summary), file=sys.stderr)


def _wrapped(lines: Sequence[str]) -> str:
    import textwrap

    width = _terminal()
    if width is None:
        return "\n".join(lines)
    return "\n".join(textwrap.fill(line, max(20, width), subsequent_indent="  ") for line in lines)


def _table(report: "Report", frame: "pl.DataFrame", height: int, to_file: bool) -> str:  # noqa: FBT001
    from oddsengine.layout import table

    title = f"{report.title} ({height:,})"
    if not frame.height:
        return title + "\nnone"
    groups = [report.cells(row) for row in frame.iter_rows(named=True)]
    lines = table(report.columns, groups, None if to_file else _terminal(), bold=_bold() and not to_file)
    more = height - frame.height
    return "\n".join([title, *lines, *([f"... and {more:,} more; --limit 0 shows all"] if more else [])])


def _write(text: str, path: str | None) -> None:
    if path is None:
        _say(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


# ---- calculations ----


def _devig(arguments: argparse.Namespace) -> None:
    from oddsengine.devig import devig
    from oddsengine.odds import decimal_to_american

    odds = arguments.odds
    if len(odds) < 2:
        raise ValueError("a market has two outcomes or more, got one price")
    total = sum(1.0 / price for price in odds)
    methods = METHODS if arguments.all_methods else (arguments.method,)
    fair = {method: devig(odds, method).tolist() for method in methods}
    rows: list[dict[str, Any]] = []
    for at, price in enumerate(odds):
        row: dict[str, Any] = {"odds": price, "american": float(decimal_to_american(price)), "implied": 1.0 / price}
        if arguments.all_methods:
            row |= {method: chances[at] for method, chances in fair.items()}
        else:
            p = fair[arguments.method][at]
            row |= {"fair_probability": p, "fair_odds": 1.0 / p, "fair_american": float(decimal_to_american(1.0 / p))}
        rows.append(row)
    note = f"{' '.join(methods) if len(methods) == 1 else 'all methods'}: the prices imply {total * 100.0:.2f} %"
    note += f", a margin of {(total - 1.0) * 100.0 + 0.0:.2f} %"
    empty = [method for method, chances in fair.items() if chances[0] != chances[0]]
    if empty:
        note += f"; no answer for these prices: {', '.join(empty)}"
    facts = {"methods": list(methods), "implied_total": total * 100.0}
    _small(rows, arguments.format, note, facts)


def _kelly(arguments: argparse.Namespace) -> None:
    from oddsengine.kelly import kelly, kelly_exclusive

    bank, odds = arguments.bankroll, arguments.odds
    if bank is not None and not 0.0 < bank < float("inf"):
        raise ValueError(f"--bankroll must be a finite number above 0, got {bank:g}")
    probs = arguments.probs or [arguments.prob]
    if len(probs) != len(odds):
        raise ValueError(f"every probability needs one price, got {len(probs)} and {len(odds)}")
    if sum(probs) > 1.0 + 1e-9:
        raise ValueError(f"probabilities of outcomes that exclude each other sum to at most 1, got {sum(probs):g}")
    if arguments.probs:
        stakes = kelly_exclusive(probs, odds, arguments.fraction).tolist()
    else:
        stakes = [float(kelly(probs[0], odds[0], arguments.fraction))]
    rows = []
    for p, price, share in zip(probs, odds, stakes, strict=True):
        row = {"probability": p, "odds": price, "edge": p * price - 1.0, "share": share}
        rows.append(row if bank is None else {**row, "stake": share * bank})
    note = f"stake {sum(stakes) * 100.0:.2f} % of the bankroll"
    note += "" if bank is None else f", {sum(stakes) * bank:.2f} of {bank:.2f}"
    note += "" if arguments.fraction == 1.0 else f", at {arguments.fraction:g} of full Kelly"
    _small(rows, arguments.format, note, {"fraction": arguments.fraction, "bankroll": bank})


def _stakes(arguments: argparse.Namespace) -> None:
    from oddsengine.arbitrage import arbitrage_stakes, hold, round_stakes

    odds, total, step = arguments.odds, arguments.total, arguments.step
    if len(odds) < 2:
        raise ValueError("a market has two outcomes or more, got one price")
    if not 0.0 < total < float("inf"):
        raise ValueError(f"--total must be a finite number above 0, got {total:g}")
    stakes = (arbitrage_stakes(odds, total) if step is None else round_stakes(odds, total, step).stakes).tolist()
    staked = sum(stakes)
    least = min(price * stake for price, stake in zip(odds, stakes, strict=True)) - staked
    rows = [
        {"odds": price, "implied": 1.0 / price, "stake": stake, "pays": price * stake}
        for price, stake in zip(odds, stakes, strict=True)
    ]
    held = float(hold(odds)) * 100.0
    if staked == 0.0:
        note = f"staking nothing is best: the hold is {held + 0.0:.2f} %, and no stakes in steps of {step:g} gain"
    else:
        word = "wins" if least >= 0 else "loses"
        note = f"{word} {abs(least):.2f} on {staked:.2f} at worst, {abs(least) / staked * 100.0:.2f} %; hold {held + 0.0:.2f} %"
    _small(rows, arguments.format, note, {"staked": staked, "profit": least, "hold_percentage": held})


# ---- entry ----


def _joined(words: Sequence[str]) -> list[str]:
    """Bind a list of prices that begins with a minus to its option, which argparse would take for an option itself."""
    out: list[str] = []
    for word in words:
        if out and out[-1] == "--odds" and re.match(r"-\d", word):
            out[-1] = f"--odds={word}"
        else:
            out.append(word)
    return out


def _run(words: Sequence[str]) -> int:
    parser = _parser()
    arguments = parser.parse_args(_joined(words))
    if arguments.version:
        from oddsengine import __version__

        _say(f"oddsengine {__version__}\n")
        return 0
    if arguments.command is None:
        parser.error("name a command: scan, explain, markets, devig, kelly or stakes; --help shows examples")
    run: Callable[[argparse.Namespace], None] = arguments.run
    try:
        run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        text = " ".join(str(error).split())
        print(f"oddsengine {arguments.command}: {text}", file=sys.stderr)
        return 2
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv
        Its words; None takes those of the process.

    Returns
    -------
    int
        Exit status: 0, 2 for input that cannot be used, 130 if interrupted, 141 if nobody reads the output.
    """
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # What is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
