"""The command `watch`: the tables of `scan`, drawn again when a file, a tape or a node has changed.

On a terminal each drawing replaces the last one, and the rows fit the screen. Other output has all rows, drawing after
drawing.
"""

import argparse
import itertools
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from oddsengine.bounds import printable
from oddsengine.commands.mcp import api_key
from oddsengine.commands.output import bold, echo, service_needed, terminal
from oddsengine.commands.report import report_of, some_kinds, table_text
from oddsengine.commands.scan import read
from oddsengine.detection.finders import Opportunities, find_all
from oddsengine.detection.kinds import Kind
from oddsengine.feeds.price_files import STANDARD_INPUT, files_of
from oddsengine.tables.schema import OddsWarning
from oddsengine.tape import Tape, engine_for, play

Lists = Mapping[Kind, Sequence[Mapping[str, Any]]]
_LEAST: dict[str, Any] = dict(min_ev=1.0, min_profit=0.0, max_hold=2.0, min_middle_ev=0.0)
_CLEAR = "\x1b[H\x1b[2J"
_MOST = 50  # rows of each table on a terminal


class _Shot(NamedTuple):
    """What there is at one time; `failure` is why it is not newer."""

    title: str
    lists: Lists
    failure: str = ""


def watch_command(arguments: argparse.Namespace) -> None:
    sources = [name for name in ("file", "sample", "tape", "url") if getattr(arguments, name)]
    if len(sources) != 1:
        raise ValueError(f"give exactly one of FILE, --sample, --tape and --url, got {' and '.join(sources) or 'none'}")
    drawn: Any = None
    for shot in {"tape": _of_tape, "url": _of_node}.get(sources[0], _of_file)(arguments):
        if (shot, size := shutil.get_terminal_size()) != drawn:
            drawn = shot, size
            _draw(shot, arguments.filter.lower().split(), size.lines)


# ---- sources ----


def _of_file(arguments: argparse.Namespace) -> Iterator[_Shot]:
    def found() -> Lists:
        with warnings.catch_warnings(action="ignore", category=OddsWarning):  # tables may be empty
            return _lists(find_all(read(arguments), books=arguments.books, **_LEAST), arguments)

    return _polled(arguments.file or "the sample board", found, partial(_stamp, arguments.file), arguments.every or 1.0)


def _stamp(path: str | None) -> object:
    """What differs once a file, or a file of a folder or a pattern, has changed."""
    try:
        files = [] if path in (None, STANDARD_INPUT) else files_of(path)
        return [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    except (ValueError, OSError):
        return None  # reading it says why


def _of_tape(arguments: argparse.Namespace) -> Iterator[_Shot]:
    """Replay a tape at its speed, and look at it every so often and at its end."""
    tape = Tape(arguments.tape)
    engine = engine_for(tape)
    view = engine.view(arguments.books, **_LEAST)

    def shot(ended: str = "") -> _Shot:
        now = "" if engine.now is None else f"  {engine.now:%Y-%m-%d %H:%M:%S}"
        return _Shot(f"{arguments.tape}{now}{ended}", _lists(view.opportunities(), arguments))

    due, first, began = 0.0, None, time.monotonic()
    for _, update in play(tape, engine):
        first = update.now if first is None else first
        at = began + (update.now - first) / 1e6 / arguments.speed
        while (now := time.monotonic()) >= due or now < at:
            if now >= due:
                yield shot()
                due = time.monotonic() + (arguments.every or 1.0)
            time.sleep(max(0.0, min(at, due) - time.monotonic()))
    yield shot("  ended")


def _of_node(arguments: argparse.Namespace) -> Iterator[_Shot]:
    with service_needed():
        import httpx2  # noqa: PLC0415  of the service
    base = f"{arguments.url.rstrip('/').removesuffix('/api/v1')}/api/v1"
    headers = {"X-API-Key": api_key(arguments.key_env)}
    books = f"&sportsbook={','.join(arguments.books)}" if arguments.books else ""

    def found() -> Lists:
        lists, refused = {}, ""
        for kind in some_kinds(arguments.kind):
            least = kind.threshold
            limit = f"{least.listed}={_LEAST.get(least.name, least.usual)}"
            try:
                answer = client.get(f"{base}/opportunities/{kind.name}?{limit}&sort={kind.best_first}{books}&limit=200")
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ValueError(f"{arguments.url}: {type(error).__name__}: {error}") from None
            if answer.status_code == 200:
                lists[kind] = [kind.row(row) for row in answer.json()["data"]]
                continue
            refused = answer.json()["error"]["message"] if "json" in answer.headers.get("content-type", "") else ""
            refused = refused or f"{arguments.url} answered {answer.status_code}"
            if answer.status_code != 403:  # not included in the key's tier
                raise ValueError(refused)
        if not lists:
            raise ValueError(refused)
        return lists

    with httpx2.Client(headers=headers, timeout=20.0) as client:
        yield from _polled(base, found, itertools.count().__next__, arguments.every or 5.0)


def _polled(title: str, found: Callable[[], Lists], stamp: Callable[[], object], every: float) -> Iterator[_Shot]:
    """Look again whenever the stamp has changed; what was found before stays while that fails."""
    seen = stamp()
    shot = _Shot(title, found())
    while True:
        yield shot
        time.sleep(every)
        if (new := stamp()) != seen:
            seen = new
            try:
                shot = _Shot(title, found())
            except (ValueError, OSError) as error:
                shot = shot._replace(failure=" ".join(str(error).split()))


def _lists(result: Opportunities, arguments: argparse.Namespace) -> Lists:
    return {kind: result[kind.name].to_dicts() for kind in some_kinds(arguments.kind)}


# ---- drawing ----


def _draw(shot: _Shot, words: Sequence[str], lines: int) -> None:
    """Print the tables; on a terminal, as many rows of each as fit its lines."""
    width, failure = terminal(), printable(shot.failure)
    if failure and width is None:
        print(f"oddsengine watch: {failure}", file=sys.stderr, flush=True)
        return
    lists = {kind: [row for row in rows if _fits(kind, row, words)] for kind, rows in shot.lists.items()}
    for kind, rows in lists.items():
        rows.sort(key=lambda row: row[kind.value], reverse=kind.rises)
    for most in (None,) if width is None else range(min(_MOST, lines), 0, -1):
        tables = [
            table_text(report_of(kind), rows[:most], len(rows), width, bold=bold()) for kind, rows in lists.items()
        ]
        head = [line[:width] for line in (shot.title, failure) if line]
        text = "\n".join([*head, "\n\n".join(tables)])
        if text.count("\n") + 1 < lines:
            break
    if width is None:
        echo(f"{text}\n\n")
    else:  # a small terminal shows the beginning
        echo(_CLEAR + "\n".join(text.split("\n")[: lines - 1]) + "\n")
    sys.stdout.flush()


def _fits(kind: Kind, row: Mapping[str, Any], words: Sequence[str]) -> bool:
    """Whether a row has all words; `>2` is a minimum of its value in percent, `<0` a maximum."""
    cells = report_of(kind).cells(row) if words else []
    text = " ".join([str(row["sport"]), str(row["league"]), *itertools.chain(*cells)]).lower()
    for word in words:
        if word[:1] in "<>" and word[1:].replace(".", "", 1).replace("-", "", 1).isdigit():
            if (row[kind.value] < float(word[1:])) == (word[0] == ">"):
                return False
        elif word not in text:
            return False
    return True
