"""Writing to the terminal or into a pipe: width, emphasis, characters it cannot show, and what takes long."""

import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_OURS = {"oddsengine", "oddsengine_service"}


def say(text: str) -> None:
    """Print a text; characters that the terminal cannot show become question marks."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        code = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.replace("…", "...").encode(code, "replace").decode(code))


def terminal() -> int | None:
    """Width of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def bold() -> bool:
    """Whether titles may stand out."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def service_needed() -> Iterator[None]:
    """Say what to install where a package of the service is not there; a missing module of ours is an error of ours."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _OURS:
            raise
        raise ValueError(
            f"this command needs the package {error.name}; run pip install 'oddsengine[service]'"
        ) from None


class Notice:
    """Say what takes so long, if it does."""

    def __init__(self, text: str, after: float) -> None:
        self._timer = threading.Timer(after, lambda: print(f"oddsengine: {text} ...", file=sys.stderr, flush=True))
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def wrapped(lines: Sequence[str]) -> str:
    """Break lines where the terminal ends."""
    width = terminal()
    if width is None:
        return "\n".join(lines)
    return "\n".join(textwrap.fill(line, max(20, width), subsequent_indent="  ") for line in lines)


def write(text: str, path: str | None) -> None:
    """Write a text to a file, or print it."""
    if path is None:
        say(text)
    else:
        Path(path).write_text(text, encoding="utf-8")
