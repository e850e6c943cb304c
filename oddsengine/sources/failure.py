"""A request that failed."""


class Failure(Exception):  # noqa: N818  it is expected, and not a bug
    """A failed request; the message is for the operator and contains no secrets."""

    def __init__(self, reason: str, *, wait: float | None = None, fatal: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait  # the wait that the source asks for
        self.fatal = fatal  # retrying will not help: an invalid key, for example
