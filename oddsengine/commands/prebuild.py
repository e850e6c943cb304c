"""Compiles all kernels: for this machine, or those that come with the package.

    oddsengine compile
    python -m oddsengine.commands.prebuild [--for scan] [FOLDER]

The second is for builds of the package, and for a checkout.
"""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from oddsengine._cache import PREBUILT
from oddsengine.compiling.compilation import MADE_FOR, compile_kernels, prebuild

SWITCH = "ODDSENGINE_BUILD_KERNELS"  # 0: none are made


def compile_command(_: Namespace) -> None:
    signal.signal(signal.SIGTERM, _ended)
    compile_kernels(_report)


def _ended(*_: object) -> None:
    """End by an exception, so that the processes that compile end too."""
    sys.exit(128 + signal.SIGTERM)


def _report(text: str) -> None:
    print(f"oddsengine: {text}", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Make kernels of the package, and say how many; failure is no error, since they are then compiled on first use."""
    if os.environ.get(SWITCH) == "0":
        print(f"oddsengine: kernels are compiled on first use ({SWITCH}=0)")
        return
    parser = ArgumentParser(prog="python -m oddsengine.commands.prebuild")
    parser.add_argument("--for", dest="use", choices=MADE_FOR, default="all", help="make only the kernels of this")
    parser.add_argument("folder", nargs="?", type=Path, default=PREBUILT)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _ended)
    try:
        prebuild(_report, given.folder, given.use)
    except OSError as error:
        print(f"oddsengine: {error}; they are compiled on first use")


if __name__ == "__main__":
    main(sys.argv[1:])
