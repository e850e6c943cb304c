"""The commands that read a table of prices: `scan`, `markets`, `explain`, `columns`."""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import GUARDS, NAMES
from oddsengine.commands.output import bold, counted, echo, notice, terminal, wrapped, write
from oddsengine.commands.report import (
    EV,
    MARKETS,
    REJECTED,
    Report,
    csv_text,
    format_time,
    kind_words,
    records,
    report_of,
    some_kinds,
    table_text,
    with_same_bets,
)
from oddsengine.commands.text_tables import Column
from oddsengine.commands.text_tables import table as layout_table
from oddsengine.detection.book_names import absent, refused
from oddsengine.detection.empty import no_valid_row
from oddsengine.detection.explain import explain
from oddsengine.detection.finders import find_all, games_missed, markets, rejected, why_no_ev
from oddsengine.feeds.price_files import STANDARD_INPUT, columns_of, files_of, read_odds
from oddsengine.tables.files import write_table
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine.tables.schema import OddsTable, OddsWarning

_SLOW_READING, _SLOW = 1.0, 3.0  # seconds before a slow step is announced
_ON_TERMINAL = 50  # rows of each table on a terminal without --limit


def read(arguments: argparse.Namespace) -> OddsTable:
    """Read the prices of FILE or of the sample board, as the arguments say."""
    path = arguments.file
    if bool(path) == arguments.sample:
        given = f"both {path} and --sample" if path else "neither"
        raise ValueError(f"give either a FILE of prices or --sample, got {given}")
    if arguments.sample and arguments.columns:
        raise ValueError("--columns names the columns of a FILE, got --sample")
    if arguments.sample:
        path = str(SAMPLE_BOARD)
    files = [] if path == STANDARD_INPUT else files_of(path)
    size = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) / 1e6
    reading = f"reading {path} ({size:,.0f} MB)" if files else "reading standard input"
    with (
        notice(reading, _SLOW_READING),
        warnings.catch_warnings(record=True, action="always", category=OddsWarning) as raised,
    ):
        table = read_odds(path, columns=arguments.columns, odds_format=arguments.odds_format)
    for text in dict.fromkeys(str(each.message) for each in raised):
        print(f"{path}: {text}", file=sys.stderr)
    if invalid := no_valid_row(table):
        raise ValueError(f"{path}: {invalid}")
    return table


def _fetched(arguments: argparse.Namespace) -> OddsTable:
    """Read the sources of --live once."""
    if arguments.file or arguments.sample or arguments.columns:
        raise ValueError("give either --live or FILE, --sample and --columns, got both")
    if arguments.odds_format:
        raise ValueError("--odds-format is of a FILE, got --live")
    settings: dict[str, dict[str, Any]] = {name: {} for name in arguments.live}
    for text in arguments.set:
        where, equals, value = text.partition("=")
        source, dot, name = where.partition(".")
        if not (equals and dot and name) or source not in settings:
            raise ValueError(f"--set takes SOURCE.NAME=VALUE with a source of --live, got {excerpt(text)}")
        settings[source][name] = value
    if arguments.sport:
        for own in settings.values():
            own.setdefault("sport", arguments.sport)
    try:
        from oddsengine.sources import kind_names, source_kind  # noqa: PLC0415  needs the extra `feeds`
        from oddsengine.sources.failure import FetchError  # noqa: PLC0415
        from oddsengine.sources.fetching import fetch  # noqa: PLC0415
        from oddsengine.sources.source_settings import from_text  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    names = kind_names()
    for source, own in settings.items():
        kinds = get_type_hints(source_kind(source).settings, include_extras=True) if source in names else {}
        for name in own.keys() & kinds.keys():
            with suppress(msgspec.ValidationError):  # it is refused, by its name, where settings are read
                own[name] = from_text(own[name], kinds[name])
    try:
        table = fetch(settings) if len(settings) > 1 else fetch(*settings, **next(iter(settings.values())))
    except FetchError as error:
        raise ValueError(str(error)) from None
    for name, report in table.sources.items():
        print(f"{name}: {counted(report.quotes, 'price')}", file=sys.stderr)
    if invalid := no_valid_row(table):
        raise ValueError(f"{', '.join(settings)}: {invalid}")
    return table


def _guards(arguments: argparse.Namespace) -> list[str] | None:
    """Return the guards to run; None is all."""
    unknown = sorted(set(arguments.without or []) - set(GUARDS))
    if unknown:
        raise ValueError(f"--without: unknown guards {', '.join(unknown)}; allowed: {', '.join(GUARDS)}")
    fixed = sorted({"bad_price", "unknown_outcome"} & set(arguments.without or []))
    if fixed:
        raise ValueError(
            f"--without {', '.join(fixed)}: cannot be disabled, because its rows have no usable price or market"
        )
    if arguments.without:
        return [name for name in GUARDS if name not in arguments.without]
    if arguments.guards in (None, ["all"]):
        return None
    if arguments.guards[0] == "all":  # and some of plugins
        return [*GUARDS, *arguments.guards[1:]]
    return [] if arguments.guards == ["none"] else list(arguments.guards)


def _question(arguments: argparse.Namespace, table: OddsTable, words: Sequence[str]) -> dict[str, Any]:
    """Build the arguments of a finder, after checking the names of books."""
    books = set(table["sportsbook"].unique().to_list())
    for word, names in (("--books", arguments.books), ("--commission", arguments.commission)):
        if strange := absent(names or (), books):
            raise refused(word, strange, books)
    if arguments.sharp and len(absent(arguments.sharp, books)) == len(set(arguments.sharp)):
        raise refused("--sharp", arguments.sharp, books)
    options = {name: getattr(arguments, name) for name in words}
    if arguments.location and "books" in options:
        options["books"] = _books_in(arguments.location, arguments.books or sorted(books))
    return {**options, "guards": _guards(arguments), "now": arguments.now}


def _books_in(location: str, books: Sequence[str]) -> list[str]:
    """Those of the books that take bets in a place. Raises `ValueError` if none is known to."""
    if here := [name for name in books if catalog.takes_bets(name, location)]:
        return here
    known = ", ".join(catalog.books_in(location)) or "of no book it is known whether it does"
    raise ValueError(f"--location {location}: none of {', '.join(books)} is known to take bets there; known: {known}")


def _placed(location: str, books: Sequence[str]) -> str:
    """Which books were used in a place, and of which it is not known."""
    answers = {name: catalog.places(name).takes_bets(location) for name in books}
    here, unknown = ([name for name in books if answers[name] is answer] for answer in (True, None))
    return f"{location}: {', '.join(here)}" + (f"; left out, not known: {', '.join(unknown)}" if unknown else "")


_QUESTION = ("books", "sharp", "method", "commission", "include")
_THRESHOLDS = ("min_ev", "max_ev", "min_profit", "max_hold", "min_size", "min_middle_ev")


def scan_command(arguments: argparse.Namespace) -> None:
    form = _format(arguments)
    if form in ("csv", "parquet") and arguments.kind == "all" and not arguments.rejected:
        raise ValueError(f"{form} can hold only one table; choose one with --kind {', '.join(kind_words())}")
    if not arguments.live and (arguments.sport or arguments.set):
        raise ValueError(f"{'--sport' if arguments.sport else '--set'} is of sources, and needs --live")
    began = time.perf_counter()
    table = _fetched(arguments) if arguments.live else read(arguments)
    with notice("finding opportunities", _SLOW):
        if arguments.rejected:
            frame = rejected(table, **_question(arguments, table, ("sharp", "method", "commission")))
            counts = dict(sorted(frame["guard"].value_counts().iter_rows()))
            if form == "table":
                frame = frame.sort("guard", maintain_order=True)
            results: dict[Report, pl.DataFrame] = {REJECTED: frame}
        else:
            with warnings.catch_warnings(action="ignore", category=OddsWarning):  # the summary says it
                everything = find_all(table, **_question(arguments, table, (*_QUESTION, "stake", *_THRESHOLDS)))
            counts = everything.rejected_counts
            results = {report_of(kind): everything[kind.name] for kind in some_kinds(arguments.kind)}
    newest = table["last_seen_at"].max() if table.height else None
    now = arguments.now or newest
    facts = {
        "now": format_time(now) if isinstance(now, datetime) else None,
        "rows_read": table.height + table.rejected.height,
        "rows_rejected_at_the_door": table.rejected.height,
        "set_aside": counts,
    }
    lines = _summary(table, counts, facts["now"], time.perf_counter() - began)
    if arguments.location and not arguments.rejected:
        lines.append(_placed(arguments.location, arguments.books or sorted(table["sportsbook"].unique())))
    if EV in results and not results[EV].height and "ev_cap" not in counts:
        question = _question(arguments, table, _QUESTION)
        lines += [why] if (why := why_no_ev(table, **question, option="--sharp")) else []
    lines += games_missed(table, **_question(arguments, table, ("guards", "now")))
    _show(results, facts, lines, arguments, form)


def _summary(table: OddsTable, counts: Mapping[str, int], now: Any, seconds: float) -> list[str]:
    invalid = dict(sorted(table.rejected["guard"].value_counts().iter_rows()))
    results = {name: counts[name] for name in ("ev_cap", "profit_cap") if name in counts}
    guards = {n: counts.get(n, 0) - invalid.get(n, 0) for n in NAMES if n not in results}
    guards = {name: n for name, n in guards.items() if n > 0}
    books, events = (table[name].n_unique() for name in ("sportsbook", "event_id"))
    lines = [
        f"{table.height + table.rejected.height:,} rows read: {books} books, {events} events, "
        f"as of {now or 'an unknown time'}; {seconds:.2f} s",
        f"{table.rejected.height:,} invalid" + _listed(invalid),
        f"{sum(guards.values()):,} rejected" + _listed(guards),
    ]
    if results:
        lines.append(f"{sum(results.values()):,} above the plausibility cap" + _listed(results))
    return lines


def _listed(counts: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{name} {n:,}" for name, n in counts.items()) if counts else ""


def markets_command(arguments: argparse.Namespace) -> None:
    form = _format(arguments)
    table = read(arguments)
    with notice("listing markets", _SLOW):
        frame = markets(table, guards=_guards(arguments), now=arguments.now)
    _show({MARKETS: frame}, {}, [f"{frame.height:,} markets of {table.height:,} prices"], arguments, form)


def columns_command(arguments: argparse.Namespace) -> None:
    rows = columns_of(arguments.file, columns=arguments.columns)
    if arguments.format == "json":
        echo(json.dumps(rows.to_dicts(), indent=2, ensure_ascii=False) + "\n")
    elif arguments.format == "csv":
        echo(csv_text(rows.to_dicts(), rows.columns))
    else:
        cells = [[[text or "" for text in row]] for row in rows.select("column", "taken_for", "example", "why").rows()]
        titles = [Column("column"), Column("taken for"), Column("example"), Column("why", least=20)]
        echo("\n".join([*layout_table(titles, cells, terminal(), bold=bold()), ""]))


def explain_command(arguments: argparse.Namespace) -> None:
    if len(arguments.names) != 2 - arguments.sample:
        expected = "one ID with --sample" if arguments.sample else "a FILE and an ID"
        raise ValueError(f"explain takes {expected}, got {' '.join(arguments.names)}")
    arguments.file = None if arguments.sample else arguments.names[0]
    table = read(arguments)
    with notice("explaining the opportunity", _SLOW):
        question = _question(arguments, table, (*_QUESTION, "stake"))
        text = str(explain(table, arguments.names[-1], **question))
    echo(text.rstrip("\n") + "\n")


def _format(arguments: argparse.Namespace) -> str:
    """Return the output format: as given, or by the suffix of the output file."""
    suffix = Path(arguments.output or "").suffix.lower()
    forms = {"": "table", ".txt": "table", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
    if not arguments.format and suffix not in forms:
        raise ValueError(
            f"--output {arguments.output}: unknown suffix; use {', '.join(list(forms)[1:])}, or set --format"
        )
    form = str(arguments.format or forms[suffix])
    if form == "parquet" and suffix != ".parquet":
        raise ValueError(f"parquet needs an --output file that ends in .parquet, got {arguments.output or 'none'}")
    return form


def _show(
    results: Mapping[Report, pl.DataFrame],
    facts: Mapping[str, Any],
    summary: Sequence[str],
    arguments: argparse.Namespace,
    form: str,
) -> None:
    """Print frames in a format; the summary goes to standard error for data formats."""
    limit = arguments.limit
    if limit is None and form == "table" and terminal() and not arguments.output:
        limit = _ON_TERMINAL
    cut = {report: frame.head(limit) if limit else frame for report, frame in results.items()}
    if form == "parquet":
        write_table(next(iter(cut.values())), arguments.output)
    elif form == "json":
        document = {**facts, **{report.name: records(frame) for report, frame in cut.items()}}
        write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", arguments.output)
    elif form == "csv":
        frame = next(iter(cut.values()))
        write(csv_text(records(frame), frame.columns), arguments.output)
    else:
        width, strong = (None, False) if arguments.output else (terminal(), bold())
        parts = []
        for report, frame in cut.items():
            lettered, notes = with_same_bets(results[report], frame.height) if report is EV else (frame, [])
            text = table_text(report, lettered.to_dicts(), results[report].height, width, bold=strong, more="--limit 0")
            parts.append("\n".join([text, *([wrapped(notes)] if notes else [])]))
        write("\n\n".join([*parts, wrapped(summary)]) + "\n", arguments.output)
        return
    print(wrapped(summary), file=sys.stderr)
