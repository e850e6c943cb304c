"""Requests that failed."""

UNREACHABLE, REFUSED, RATE_LIMITED, TIMEOUT, FAILED = "unreachable", "refused", "rate_limited", "timeout", "failed"
PLUGIN = "plugin"  # raises something unexpected, or delivers what is no payload
HTTP_UNAUTHORIZED, HTTP_FORBIDDEN = 401, 403
_TOO_MANY, _REFUSED = 429, {400, 401, 402, 403, 404, 405, 410, 422}  # statuses

_IN_WORDS = {
    UNREACHABLE: "it cannot be reached",
    REFUSED: "it refuses the request or the key",
    RATE_LIMITED: "it limits the requests",
    TIMEOUT: "it does not answer in time",
    FAILED: "it fails, or what it sends cannot be used",
    PLUGIN: "its plugin fails, or delivers what is not a payload",
}

KINDS = tuple(_IN_WORDS)


class Failure(Exception):  # noqa: N818  it is expected, and not a bug
    """A failed request; the message is for the operator and contains no secrets."""

    def __init__(
        self, reason: str, *, wait: float | None = None, fatal: bool = False, kind: str = FAILED,
        status: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.wait = wait  # the wait that the source asks for
        self.fatal = fatal  # retrying will not help: an invalid key, for example
        self.kind = kind
        self.status = status  # of an HTTP response

    @property
    def public(self) -> str:
        """What failed, in words without addresses, names of files, and texts of the source."""
        return _IN_WORDS[self.kind] + (f" (status {self.status})" if self.status else "")


def of_status(status: int, text: str = "", wait: float | None = None) -> Failure:
    """Return the failure that an HTTP response is."""
    kind = RATE_LIMITED if status == _TOO_MANY else REFUSED if status in _REFUSED else FAILED
    reason = f"status {status}" + (f": {text}" if text else "")
    return Failure(reason, wait=wait, fatal=kind == REFUSED, kind=kind, status=status)


class FetchError(RuntimeError):
    """A source could not be read.

    `source` is its name. `kind` is `unreachable` (no network, an unknown host, no server), `refused` (its key or
    request, so that trying again does not help), `rate_limited`, `timeout`, or `failed`.
    """

    def __init__(self, source: str, kind: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source, self.kind = source, kind
