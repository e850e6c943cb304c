"""The entry point of the command line, `oddsengine COMMAND`.

Exit status 0, or 2 with a message on standard error for invalid input (`feeds check`: 1 if a feed is not ok). Only the
standard library is imported until a command is given, so that `--version` and `--help` answer at once: importing the
package takes half a second. `oddsengine.commands.cli` has the arguments of each command.
"""

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

COMMANDS = {
    "scan": "find opportunities in a file of prices",
    "explain": "explain one opportunity: prices, fair probability, prices not used",
    "markets": "list the markets of a file: books, completeness, main line",
    "columns": "say what the columns of a file of prices are taken for",
    "devig": "fair probabilities of one market",
    "kelly": "Kelly stakes as fractions of a bankroll",
    "stakes": "stakes with the same payout for every outcome",
    "parlay": "price and EV of independent legs together, with or without a boost",
    "hedge": "stakes on the other side of an open bet",
    "free-bet": "what is kept of a free bet by hedging it",
    "middle": "probability and EV of a middle from its two lines",
    "record": "apply batches of prices and record them to a tape",
    "replay": "replay a tape",
    "archive": "write tapes as Parquet, a Delta table that polars, DuckDB, Dask and Spark read",
    "compact": "merge the files of each past day and sport of an archive into one",
    "clv": "grade past +EV prices by the closing line",
    "grade": "grade bets that you placed by a history: CLV, EV at the close, results",
    "audit": "compare the EV shown over a history with the close of the other books",
    "fills": "how much of what a history shows could be had: orders, depth, the other leg",
    "terms": "whether bets at two books settle alike, and what it costs at worst if they do not",
    "calibrate": "fit the constants of the fair price to a history of at least 50 games",
    "benchmark": "compare fair prices on past seasons: what their EV was worth at the close",
    "history": "import what others have recorded into a history that audit and others take",
    "feeds": "test the configured feeds, or list unknown market names",
    "init": "write a settings file with comments, and make the first API key",
    "serve": "serve prices and opportunities over HTTP",
    "mcp": "Model Context Protocol server over standard input and output",
    "watch": "show the opportunities of a file, a tape or a node, again at each change",
    "keys": "create, list, revoke and change API keys",
    "backup": "write an archive of a node's data folder, while it runs",
    "catalog": "list the thresholds of guards and detectors",
    "plugins": "list the sources, targets and fair prices that installed packages add",
    "compile": "compile all kernels for the processor of this machine",
}
_EXAMPLES = """examples:
  oddsengine scan --sample
  oddsengine scan odds.csv --kind arb --books draftkings,fanduel,betmgm --min-profit 1
  oddsengine scan odds.parquet --sharp pinnacle=3,circa=1 --min-ev 2 --format json
  oddsengine scan odds.csv --rejected
  curl -s "$URL" | oddsengine scan -
  oddsengine explain odds.csv 3fb1a0c29d5e7784
  oddsengine devig 1.87 2.05 --method shin
  oddsengine kelly --prob 0.55 --odds +100 --fraction 0.5 --bankroll 1000
  oddsengine stakes 2.10 2.05 --total 100 --step 5
  oddsengine parlay +150 -110 --probs 42%,53% --boost 30
  oddsengine hedge +300 -120 --stake 50
  oddsengine middle nfl spread -2.5 +3.5 --odds -108,-110
  oddsengine record day.tape --simulate 7 --seconds 120 --hazards
  oddsengine replay day.tape --speed 10 --updates -
"""
_INTERRUPTED, _BROKEN_PIPE = 130, 141


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # has no parameters at run time
    """Parses a command with arguments that are added once it is given."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        name, *words = values
        super().__call__(parser, namespace, [name, *_package().prepare(name, self.choices[name], words)], option_string)


def _package() -> Any:
    return importlib.import_module("oddsengine.commands.cli")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="oddsengine",
        description="Find +EV bets, arbitrages, middles and low-hold markets in sports odds.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version, and which kernels run")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", action=_Commands)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser


def _installation() -> Any:
    """Load `oddsengine._installation` without its package."""
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "oddsengine", "_installation.py")
    spec = importlib.util.spec_from_file_location("oddsengine._installation", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(words: Sequence[str]) -> int:
    every = parser()
    arguments = every.parse_args(words)
    if arguments.version:
        installed = _installation()
        print(f"oddsengine {installed.__version__}\nkernels: {installed.kernels()}")
        return 0
    if arguments.command is None:
        every.error(f"no command given; choose one of {', '.join(COMMANDS)}, or see --help")
    status: int = _package().run(arguments)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command with arguments (None: `sys.argv[1:]`), and return its exit status.

    0; 1 if `feeds check` found a feed that is not ok; 2 for invalid input; 130 if interrupted; 141 if the output was
    closed.
    """
    # Python has no stream at all where the caller closed it (`>&-`).
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Remaining buffered output must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
