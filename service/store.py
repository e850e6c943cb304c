"""What a node remembers of its callers, behind two small interfaces.

Today both are one process: `service.keys` keeps keys in an embedded database, `service.limits` counts in memory.
Several nodes over a shared store are a second implementation of these, and nothing else.
"""

from typing import NamedTuple, Protocol

from oddsengine_service.tiers import Caller


class Room(NamedTuple):
    """What is left of a caller's minute."""

    limit: int
    remaining: int
    reset: int  # Unix time at which the window ends
    allowed: bool


class Keys(Protocol):
    """Keys: who has which."""

    def find(self, key: str) -> Caller | None:
        """The caller who has this key now; None if nobody has. A revoked key is unknown within a second."""


class Limits(Protocol):
    """Requests a minute, and streams at once. Both count per account, or per address without a key."""

    def take(self, who: str, rate: int) -> Room:
        """Count one request."""

    def open(self, who: str, most: int) -> bool:
        """Take a stream's slot, if one is free."""

    def close(self, who: str) -> None:
        """Give a stream's slot back."""

    def streams(self, who: str) -> int:
        """Slots that are taken."""
