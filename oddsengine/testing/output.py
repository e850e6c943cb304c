"""All that is logged or printed while something is tested."""

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def captured() -> Iterator[io.StringIO]:
    """Return what is logged, whatever its level, or printed, within a with statement."""
    out, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(out), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(out), redirect_stderr(out):
            yield out
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def assert_masked(secrets: Iterable[str], texts: Iterable[str]) -> None:
    """Raise `AssertionError` for the first text with a secret, which is masked in the message."""
    every = list(texts)
    for secret in secrets:
        if text := next((text for text in every if secret in text), ""):
            raise AssertionError(f"a secret must not be logged or reported: {text.replace(secret, '***')[:300]}")
