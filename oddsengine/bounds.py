"""Numbers within bounds: the check of a parameter, and what its error says of a value that was given."""

from collections.abc import Callable
from math import inf, isfinite
from numbers import Real
from typing import Any, TypeGuard

_MOST = 100  # characters of a value in a message


def excerpt(value: Any) -> str:
    """A value that was given, for a message: as Python writes it, in one line, and if that is long, its beginning.

    Examples
    --------
    >>> excerpt(25), excerpt("dk"), len(excerpt("x" * 10_000_000))
    ('25', "'dk'", 105)
    """
    if isinstance(value, str | bytes) and len(value) > _MOST:
        more = "..." if isinstance(value, str) else b"..."
        return repr(value[:_MOST] + more)  # type: ignore[operator]  # both are of one type
    text = text_of(value, repr)
    if "\n" in text:  # a table or an array
        text = " ".join(text.split())
    return text if len(text) <= _MOST + 5 else shortened(text)


def text_of(value: Any, convert: Callable[[Any], str] = str) -> str:
    """The text of an object of a plugin, which may raise where it is asked for it.

    Examples
    --------
    >>> class Nameless:
    ...     def __str__(self):
    ...         raise OSError
    >>> text_of(25), text_of(Nameless())
    ('25', '<a Nameless without a text: OSError>')
    """
    try:
        return convert(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<a {type(value).__name__} without a text: {type(error).__name__}>"


def printable(text: str) -> str:
    """A text without control characters, which could change the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def shortened(text: str) -> str:
    """A text for a message, without quotes: if it is long, its beginning."""
    return text if len(text) <= _MOST else text[:_MOST] + "..."


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number; booleans are not."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an integer above all floats
        return False


def check_number(
    name: str, value: Any, least: float = -inf, *, above: float = -inf, most: float = inf, optional: bool = False
) -> None:
    """Raise if a parameter is not a finite number within bounds, or None if that is allowed.

    Examples
    --------
    >>> check_number("size", 0.5, above=0.0, most=1.0)
    >>> check_number("size", 25, above=0.0, most=1.0)
    Traceback (most recent call last):
    ...
    ValueError: size must be above 0 and at most 1, got 25
    """
    if value is None and optional:
        return
    if is_number(value) and least <= value <= most and value > above:
        return
    raise ValueError(
        f"{name} must be {'None or ' if optional else ''}{_allowed(least, above, most)}, got {excerpt(value)}"
    )


def check_bool(name: str, value: Any) -> None:
    """Raise if a parameter is neither True nor False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {excerpt(value)}")


def _allowed(least: float, above: float, most: float) -> str:
    if isfinite(most) and isfinite(least):
        return f"from {_text(least)} to {_text(most)}"
    if isfinite(most) and isfinite(above):
        return f"above {_text(above)} and at most {_text(most)}"
    if isfinite(above):
        return f"a finite number above {_text(above)}"
    if isfinite(least):
        return f"a finite number of at least {_text(least)}"
    return "a finite number" + (f" of at most {_text(most)}" if isfinite(most) else "")


def _text(bound: float) -> str:
    return f"{bound:,.15g}"
