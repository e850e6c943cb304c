"""Headers of `/v4`, which count credits."""

from functools import lru_cache

from oddsengine_service.accounts.limits import WINDOW_S, Room, period


@lru_cache(maxsize=1024)
def _later(minute: int) -> int:
    """The minutes of the month of a minute that come after it."""
    _, end = period(float(minute * WINDOW_S))
    return round(end.timestamp()) // WINDOW_S - minute - 1


def credits_of(room: Room | None, used: int) -> list[tuple[bytes, bytes]]:
    """The headers that count credits.

    Used are the requests of the account in this month; remaining is what the rate limit allows in the rest of it, so
    the sum falls with every minute in which fewer requests are made. A request costs one; `room` is None for a request
    that is charged to nobody.
    """
    remaining = last = 0
    if room is not None:
        remaining, last = room.remaining + room.limit * _later(room.reset // WINDOW_S - 1), int(room.allowed)
    return [
        (b"x-requests-remaining", b"%d" % remaining), (b"x-requests-used", b"%d" % used),
        (b"x-requests-last", b"%d" % last),
    ]  # fmt: skip
