"""A process that compiles the kernels that it reads, one line each, and answers with the names of their files."""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from oddsengine import _jit
from oddsengine._cache import Folders
from oddsengine._compilers import ANSWER
from oddsengine.compiling.loading import load


def main(arguments: Sequence[str]) -> None:
    """Compile into a folder until there is nothing more to read."""
    folder, portable = arguments
    folders = Folders.to_make(Path(folder), portable=bool(portable))
    _jit.making[:] = [folders]
    _jit.REPORTER.send = lambda _: None
    gc.disable()  # compilation creates many objects and little garbage
    for line in sys.stdin:
        kernel, signature = line.rstrip("\n").split("\t")
        try:
            load(kernel, signature)
        except Exception as error:
            sys.exit(f"{kernel}: {type(error).__name__}: {error}")
        print(ANSWER, *folders.used, flush=True)
        folders.used.clear()
