"""Suppresses repeated log messages of a feed that keeps failing."""

from datetime import datetime, timedelta

AGAIN = timedelta(minutes=10)


class RepeatedMessages:
    """The last message on each subject, and its time."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[str, datetime]] = {}

    def is_due(self, about: str, text: str, now: datetime) -> bool:
        """Whether to log a message: it is new, or was last logged long ago."""
        last = self._said.get(about)
        if last is not None and last[0] == text and timedelta(0) <= now - last[1] < AGAIN:
            return False
        self._said[about] = text, now
        return True
