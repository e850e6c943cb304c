"""Problems: what goes wrong between a request and its answer, as the caller is told of it."""

from typing import Any

DOCS = "/docs"


class Problem(Exception):  # noqa: N818  what RFC 9457 calls it
    """An answer that is an error: its status, code and one sentence for a person."""

    def __init__(self, status: int, code: str, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.extra = status, code, message, extra

    def body(self) -> dict[str, Any]:
        """The error envelope."""
        return {"error": {"code": self.code, "message": self.message, "docs": f"{DOCS}#{self.code}", **self.extra}}


def invalid(message: str, code: str = "validation_error") -> Problem:
    """A parameter or body that cannot be used; the message names it, what came and what is allowed."""
    return Problem(400, code, message)


def unknown(what: str, name: str) -> Problem:
    """A single thing that does not exist."""
    return Problem(404, "not_found", f"there is no {what} {shown(name)}")


def shown(value: str, most: int = 60) -> str:
    """A caller's text in a message: quoted, and cut where it is long."""
    return repr(value if len(value) <= most else value[:most] + "...")
