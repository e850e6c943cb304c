"""The commands `audit` and `calibrate`: grade the EV shown by the close, and fit your own constants."""

import argparse
import json
import os
import re
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import to_builtins

from oddsengine import catalog
from oddsengine.backtesting import audit, calibrate
from oddsengine.backtesting.audit_report import MOST_HOURS
from oddsengine.backtesting.delays import Delay
from oddsengine.backtesting.fitting import Fit
from oddsengine.backtesting.live_audit import follow_tapes, reference_sums
from oddsengine.backtesting.reference_rights import references, rights_text, with_rights
from oddsengine.backtesting.replay import opened, recorded_fair
from oddsengine.backtesting.truth_report import report_text
from oddsengine.bounds import excerpt
from oddsengine.commands.output import echo, service_needed
from oddsengine.feeds.price_files import read_odds
from oddsengine.plot import calibration
from oddsengine.plot.figure import library
from oddsengine.tables.files import check_target, write_table, write_whole

_SHOWN = (".parquet", ".ndjson", ".jsonl")
_LEAST_S = 60
_PICTURES = (".svg", ".png", ".pdf")
_NICE = 10
_OF_HISTORY = (
    "columns", "method", "sharp", "books", "include", "fair", "processes", "delay", "against", "shown", "plot"
)  # fmt: skip
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def audit_command(arguments: argparse.Namespace) -> None:
    if arguments.live is not None:
        _live_audit(arguments)
        return
    if arguments.every is not None:
        raise ValueError("--every repeats an audit of the tapes of a node: give --live too")
    if not arguments.history:
        raise ValueError("give a history, or --live with the data folder of a node")
    if arguments.shown is not None and not arguments.shown.endswith(_SHOWN):
        raise ValueError(f"--shown takes a .parquet, .ndjson or .jsonl file, got {excerpt(arguments.shown)}")
    if arguments.shown is not None:
        check_target(arguments.shown, [*arguments.history, *arguments.against])
    if arguments.plot is not None:  # before the audit, which takes long
        if not arguments.plot.endswith(_PICTURES):
            raise ValueError(f"--plot takes a .svg, .png or .pdf file, got {excerpt(arguments.plot)}")
        try:
            library()
        except ImportError as error:
            raise ValueError(str(error)) from None
    history = arguments.history
    if arguments.columns:
        history = [read_odds(path, columns=arguments.columns) for path in history]
    result = audit(
        history, method=arguments.method, sharp=arguments.sharp, books=arguments.books, include=arguments.include,
        fair=fair_file(arguments.fair), hours=arguments.hours, delays=arguments.delay,
        against={Path(path).stem: path for path in arguments.against} or None, processes=arguments.processes,
        progress=True,
    )  # fmt: skip
    if arguments.json:
        facts = {"observations": result.observations, "fair": result.fair, "waiting": result.waiting}
        tables = {"cells": result.table, "later": result.later, "against": result.against}
        tables["reliability"] = result.reliability
        document = {**facts, **{name: table.to_dicts() for name, table in tables.items()}}
        echo(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        echo(f"{result}\n")
    if arguments.shown is not None:
        write_table(result.shown, arguments.shown)
    if arguments.plot is not None:
        calibration(result, hours=arguments.hours).savefig(arguments.plot)


def _live_audit(arguments: argparse.Namespace) -> None:
    """Follow the tapes of a node, once or until the process is stopped."""
    if arguments.history:
        raise ValueError("give either a history or --live, got both")
    others = [name for name in _OF_HISTORY if getattr(arguments, name)] + ["hours"] * (arguments.hours != MOST_HOURS)
    if others:
        raise ValueError(f"--live is about what the node showed, and takes --every and --json; got --{others[0]} too")
    every = None if arguments.every is None else _seconds(arguments.every)
    folder = _data_folder(arguments.live)
    if hasattr(os, "nice"):
        os.nice(_NICE)  # the node on this machine comes first
    while True:
        begun = time.monotonic()
        try:
            report = follow_tapes(folder, progress=True)
            echo(f"{json.dumps(to_builtins(report), indent=2) if arguments.json else report_text(report)}\n")
            sys.stdout.flush()
        except (ValueError, OSError) as error:
            if every is None:
                raise
            print(f"oddsengine audit: {error}", file=sys.stderr, flush=True)  # the next time may succeed
        if every is None:
            return
        time.sleep(max(0.0, begun + every - time.monotonic()))


def _seconds(text: str) -> int:
    """Read `--every`: orders that are on their way at the end of an audit have no outcome, so it is not short."""
    try:
        seconds = Delay.read(text).seconds
    except ValueError:
        seconds = 0
    if seconds < _LEAST_S:
        raise ValueError(f"--every must be a time from 1 minute to 7 days, such as 15m or 1h, got {excerpt(text)}")
    return seconds


def _data_folder(path: str) -> Path:
    """The data folder that a path is, or that a file of settings names; its own catalog is applied."""
    if Path(path).is_dir():
        return Path(path)
    with service_needed():
        from oddsengine_service.settings import learn, load  # noqa: PLC0415  only with a file
    settings = load(path, os.environ)
    learn(settings)
    return Path(settings.data.folder)


def calibrate_command(arguments: argparse.Namespace) -> None:
    histories, output, fair = arguments.history, arguments.output, arguments.fair
    if arguments.data is not None:
        if histories:
            raise ValueError("give either a history or --data, got both")
        histories = sorted(str(path) for path in (Path(arguments.data) / "tapes").glob("*") if path.is_dir())
        file = Path(arguments.data) / "fair.toml"
        output, fair = output or str(file), fair or (str(file) if file.is_file() else None)
    if not histories:
        raise ValueError(
            f"{arguments.data} has no tapes; set tape = true in [data] to record them"
            if arguments.data
            else "give a history, or --data with the data folder of a node"
        )
    in_force = fair_file(fair)
    sums = pl.DataFrame() if arguments.data is None else reference_sums(arguments.data)
    found = references(sums)
    before = in_force or recorded_fair(opened(histories)) or catalog.fair_table()
    table, written = before, "rights and weights"
    try:
        fit = calibrate(histories, fair=in_force, hours=arguments.hours, processes=arguments.processes, progress=True)
    except ValueError as error:
        if not any(each.alone is not None for each in found):
            raise
        echo(f"The constants stay in use: {error}.\n")
    else:
        _show_fit(fit)
        if not fit.kept:
            table, written = fit.table, "fitted constants"
    if found:
        echo(f"books as the only reference, by the record of audit --live:\n{rights_text(found)}\n")
    table = with_rights(table, sums)
    if table == before:
        return
    text = toml(catalog.fair_changes(table._replace(name="calibrated")))
    if output is None:
        echo(text)
        return
    write_whole(Path(output), text.encode())  # a node may read it at any time
    echo(f"The {written} were written to {output}.\n")


def _show_fit(fit: Fit) -> None:
    echo(f"{fit.games} games with a close; first showings at EV >= 1 of the last third:\n")
    for row in fit.comparison.iter_rows(named=True):
        if row["shown"] is None:
            echo(f"  {row['table']:<9} n {row['graded']}\n")
            continue
        echo(
            f"  {row['table']:<9} n {row['graded']:>5}  shown {row['shown']:5.2f}  worth {row['worth']:5.2f} "
            f"+-{row['worth_se']:.2f}  bias {row['bias']:+.2f} +-{row['bias_se']:.2f}  ratio {row['ratio']:.2f}  "
            f"90 % range holds {row['inside_90']:.0f} %\n"
        )
    if fit.kept:
        echo("The fitted constants are no better on unseen games, so the current ones stay in use.\n")


def fair_file(path: str | None) -> catalog.FairTable | None:
    """Return the packaged table with the changes of a file; None without one."""
    if path is None:
        return None
    with Path(path).open("rb") as file:
        return catalog.amended_fair_table(tomllib.load(file))


def toml(content: dict[str, Any], path: str = "") -> str:
    """Format nested tables in the form of fair.toml.

    Examples
    --------
    >>> print(toml({"own": {"weight": 1.5}, "books": {"own": {"fanduel": 1.2}}}))
    [own]
    weight = 1.5
    [books.own]
    fanduel = 1.2
    <BLANKLINE>
    >>> print(toml({"alone": [{"book": "circa", "props": ["hockey"]}]}))
    [[alone]]
    book = "circa"
    props = ["hockey"]
    <BLANKLINE>
    """
    lists = {name: value for name, value in content.items() if isinstance(value, list) and _are_tables(value)}
    plain = {name: value for name, value in content.items() if not isinstance(value, dict) and name not in lists}
    keys = {name: name if _BARE.fullmatch(name) else json.dumps(name) for name in content}
    lines = [f"{keys[name]} = {json.dumps(value)}" for name, value in plain.items()]
    if path and lines:
        lines.insert(0, f"[{path}]")
    out = "".join(f"{line}\n" for line in lines)
    for name, tables in lists.items():
        at = f"{path}.{keys[name]}" if path else keys[name]
        out += "".join(f"[[{at}]]\n{toml(table)}" for table in tables)
    for name, value in content.items():
        if isinstance(value, dict):
            out += toml(value, f"{path}.{keys[name]}" if path else keys[name])
    return out


def _are_tables(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(each, dict) for each in values)
