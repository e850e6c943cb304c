"""What is sent instead of a good body: made of that, so that only as much is wrong as its name says."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class BadBody(NamedTuple):
    """What is made of a good body; `whole`: it has to be refused whole, otherwise its wrong parts may be left out."""

    made: Callable[[bytes], bytes]
    whole: bool = True


def _changed(body: bytes, leaf: Callable[[Any], Any]) -> bytes:
    """Return a JSON body with other values; one that is not JSON as it is, without its second half."""
    try:
        document = json.loads(body)
    except ValueError:
        return body[: len(body) // 2]

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(each) for name, each in value.items()}
        return [changed(each) for each in value] if isinstance(value, list) else leaf(value)

    return json.dumps(changed(document)).replace('"<huge>"', "1e400").encode()


def _is_number(value: Any) -> bool:
    """Whether a value is a number that is not whole, also as a text: whole ones may be ids."""
    try:
        return not isinstance(value, bool | int | None) and not float(value).is_integer()
    except (TypeError, ValueError, OverflowError):
        return False


def _huge(value: Any) -> Any:
    return value if not _is_number(value) else "1e400" if isinstance(value, str) else "<huge>"


def _negative(value: Any) -> Any:
    return value if not _is_number(value) else "-1.5" if isinstance(value, str) else -1.5


def _other_type(value: Any) -> Any:
    return [] if isinstance(value, str) else "five" if isinstance(value, int | float) else 5


BAD_BODIES: Mapping[str, BadBody] = {
    "HTML": BadBody(lambda _: b"<html><body>Please wait while we check your browser.</body></html>"),
    "an empty body": BadBody(lambda _: b""),
    "half a body": BadBody(lambda body: body[: len(body) // 2]),
    "not a text": BadBody(lambda _: b"\xff\xfe\x00\x01"),
    "a byte that is no text": BadBody(lambda body: body.replace(b'"', b'"\xff', 1) if b'"' in body else b"\xff"),
    "null": BadBody(lambda _: b"null"),
    "a number": BadBody(lambda _: b"7"),
    "a list of lists": BadBody(lambda _: b"[[1]]"),
    "deep lists": BadBody(lambda _: b"[" * 50_000),
    "values of other types": BadBody(lambda body: _changed(body, _other_type), whole=False),
    "huge numbers": BadBody(lambda body: _changed(body, _huge), whole=False),
    "negative numbers": BadBody(lambda body: _changed(body, _negative), whole=False),
}
