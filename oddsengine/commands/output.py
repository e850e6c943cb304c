"""Terminal output: width, emphasis, unsupported characters, and notices of slow steps."""

import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from oddsengine.tables.files import replaced

_OURS = {"oddsengine", "oddsengine_service"}


def echo(text: str) -> None:
    """Print a text, replacing characters that the terminal cannot show by question marks."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        code = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.replace("…", "...").encode(code, "replace").decode(code))


def terminal() -> int | None:
    """Return the width of the terminal; None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def bold() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def service_needed() -> Iterator[None]:
    """Explain what to install if a package of the service is missing; a missing module of our own raises."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _OURS:
            raise
        raise ValueError(
            f"this command needs the package {error.name}; run pip install 'oddsengine[service]'"
        ) from None


@contextmanager
def notice(text: str, after: float) -> Iterator[None]:
    """Announce a step if it takes longer than some seconds."""
    timer = threading.Timer(after, lambda: print(f"oddsengine: {text} ...", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def wrapped(lines: Sequence[str]) -> str:
    width = terminal()
    if width is None:
        return "\n".join(lines)
    # "stale 6" is one item of a list: no line ends between the word and its number.
    joined = [re.sub(r"(?<=[a-z_]) (?=[\d,]+(,|$))", "\0", line) for line in lines]
    return "\n".join(textwrap.fill(line, max(20, width), subsequent_indent="  ").replace("\0", " ") for line in joined)


def write(text: str, path: str | None) -> None:
    if path is None:
        echo(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


@contextmanager
def new_file(file: Path) -> Iterator[IO[bytes]]:
    """A file that only its owner can read; an earlier one of that name stays whole until all is written.

    What is no file, such as a device or a pipe, is written to. Raises `ValueError` if it cannot be written.
    """
    try:
        with replaced(file) as new, open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            yield out
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {(error.strerror or str(error)).lower()}") from None


def counted(n: int, one: str, several: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "batch", "batches"), counted(2_000, "quote")
    ('1 batch', '2,000 quotes')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"
