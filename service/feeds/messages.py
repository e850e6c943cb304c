"""What a log has been told: a source that is tried again and again is not to fill it with one sentence."""

from datetime import datetime, timedelta

AGAIN = timedelta(minutes=10)


class RepeatedMessages:
    """What was last said of each thing, and when."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[str, datetime]] = {}

    def is_due(self, about: str, text: str, now: datetime) -> bool:
        """Whether to say something of a thing: it is not what was said last, or that is long ago."""
        last = self._said.get(about)
        if last is not None and last[0] == text and timedelta(0) <= now - last[1] < AGAIN:
            return False
        self._said[about] = text, now
        return True
