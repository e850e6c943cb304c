"""Compiles all kernels: for this machine, or those that come with the package.

    oddsengine compile
    python -m oddsengine.commands.prebuild [FOLDER]

The second is for builds of the package.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from oddsengine._cache import PREBUILT
from oddsengine.compilation import compile_kernels, prebuild

SWITCH = "ODDSENGINE_BUILD_KERNELS"  # 0: none are made


def compile_command(_: Namespace) -> None:
    compile_kernels(_report)


def _report(text: str) -> None:
    print(f"oddsengine: {text}", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Make kernels of the package, and say how many; failure is no error, since they are then compiled on first use."""
    if os.environ.get(SWITCH) == "0":
        print(f"oddsengine: kernels are compiled on first use ({SWITCH}=0)")
        return
    try:
        prebuild(_report, Path(arguments[0]) if arguments else PREBUILT)
    except OSError as error:
        print(f"oddsengine: {error}; they are compiled on first use")


if __name__ == "__main__":
    main(sys.argv[1:])
