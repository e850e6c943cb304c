"""Problems: errors of a request, as reported to the caller."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

DOCS = "/docs"
INTERNAL = "an internal error occurred; the request id identifies it in the logs"
TYPES = {
    "object": "an object", "array": "an array", "str": "a string", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "null", "datetime": "a time (RFC 3339, such as 2026-02-08T18:00:00Z)",
}  # fmt: skip
"""What a type allows, in the terms of JSON."""
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?", re.ASCII)
_BESIDE = ("retry_after", "required_tier")  # given both beside `error` and inside it
_KEY = re.compile(r"(oe_[0-9a-f]{12}\.)[\w-]+")


class Problem(Exception):  # noqa: N818  what RFC 9457 calls it
    """An error response: its status, code and a message of one sentence."""

    def __init__(self, status: int, code: str, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.extra = status, code, message, extra

    def body(self, origin: str) -> dict[str, Any]:
        """The error envelope; `origin` is the node's address, which links to the documentation."""
        error = {"code": self.code, "message": self.message, "docs": f"{origin}{DOCS}#{self.code}", **self.extra}
        return {"error": error, **{name: self.extra[name] for name in _BESIDE if name in self.extra}}


def invalid(message: str, code: str = "validation_error") -> Problem:
    """Invalid parameter or body; the message says what was wrong, what was given and what is allowed."""
    return Problem(400, code, message)


def unknown(what: str, name: str) -> Problem:
    """A single thing that does not exist."""
    return Problem(404, "not_found", f"there is no {what} {quoted(name)}")


def no_such_path(path: str, page: str) -> Problem:
    """A path that nothing is served at; `page` lists those that exist."""
    return Problem(404, "not_found", f"no such path: {masked(path)[:100]}; see {page}")


def wrong_method(path: str, method: str, allowed: Iterable[str]) -> Problem:
    """A request with a method that its path does not have."""
    methods = sorted(allowed)
    message = f"method must be {one_of(methods)} for {masked(path)[:100]}, got {method[:20]}"
    return Problem(405, "method_not_allowed", message, allow=", ".join(methods))


def must_be(what: str, allowed: str, got: str) -> str:
    """The message for a value that is not allowed; without a name it is the whole of an input."""
    return f"{f'{what} must be' if what else 'expected'} {allowed}, got {got}"


def one_of(allowed: Sequence[str]) -> str:
    """The allowed values, for a message.

    Examples
    --------
    >>> one_of(["json", "csv"]), one_of(["event"])
    ('one of json, csv', 'event')
    """
    return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]


def quoted(value: str, most: int = 60) -> str:
    """A caller's text for a message: quoted, shortened, and with keys masked."""
    value = masked(value)
    return repr(value if len(value) <= most else value[:most] + "...")


def origin_of(host: bytes) -> str:
    """The base URL of a node from a `Host` header, else localhost.

    Examples
    --------
    >>> origin_of(b"odds.example.com:8000"), origin_of(b"a/b")
    ('http://odds.example.com:8000', 'http://localhost')
    """
    name = host.decode("latin-1")
    return f"http://{name}" if _HOST.fullmatch(name) else "http://localhost"


def masked(text: str) -> str:
    """A text with keys cut after their ids.

    Examples
    --------
    >>> masked("GET /account/keys/oe_5c0d21be9f47.Jx3o")
    'GET /account/keys/oe_5c0d21be9f47.****'
    """
    return _KEY.sub(r"\1****", text)
