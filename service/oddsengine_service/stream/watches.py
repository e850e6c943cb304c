"""The watches of a node, and the limits on their number and size."""

import threading

from oddsengine_service.stream.group_opportunities import OpportunityGroup
from oddsengine_service.stream.subscriber import Subscriber
from oddsengine_service.stream.watched_view import PendingWatch, ViewKey, Watch

MOST_WATCHES = 64  # sets of books and thresholds with followed opportunities
SHARE = 16  # of one account
MOST_ROWS = 50_000  # opportunities that one account's watches may hold for another to be added


class Watches:
    """Watches by view; for the hub's thread, but for `full`.

    The thread of reads asks how many opportunities they hold, so `open` is changed under the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.open: dict[ViewKey, Watch] = {}
        self.pending: dict[ViewKey, PendingWatch] = {}

    def full(self, account: str, view: ViewKey, replaced: Watch | None) -> bool:
        """Whether the watches of an account, besides that of a view and one, hold as many opportunities as they may."""
        with self._lock:
            watches = tuple(self.open.items())
        held = sum(
            len(watch.open)
            for key, watch in watches
            if watch.account == account and key != view and watch is not replaced
        )
        return held >= MOST_ROWS

    # ---- the hub's thread ----

    def add(self, watch: Watch) -> None:
        """Add a watch."""
        with self._lock:
            self.open[watch.view] = watch

    def remove(self, watch: Watch) -> None:
        """Close a watch, and remove it if it is there."""
        watch.close()
        with self._lock:
            if self.open.get(watch.view) is watch:
                del self.open[watch.view]

    def reset(self) -> None:
        """Remove all watches."""
        for watch in tuple(self.open.values()):
            self.remove(watch)
        self.pending.clear()

    def exceeded(self, subscriber: Subscriber, view: ViewKey) -> str:
        """The limit that would be exceeded if a subscriber had a view, empty if none.

        Watches that nobody needs after changes that are under way do not count.
        """
        account, only = subscriber.account, only_of(subscriber)
        replaced = {only, *(pending.replaced for pending in self.pending.values())}
        owners = {key: watch.account for key, watch in self.open.items() if watch not in replaced}
        owners |= {key: pending.account for key, pending in self.pending.items()} | {view: account}
        if list(owners.values()).count(account) > SHARE:
            return f"limit of {SHARE} different sets of books per account reached; end other streams"
        if len(owners) > MOST_WATCHES:
            return f"limit of {MOST_WATCHES} different sets of books of all accounts reached; retry later"
        if self.full(account, view, only):
            return f"limit of {MOST_ROWS:,} opportunities in the streams of an account reached; end other streams"
        return ""


def only_of(subscriber: Subscriber) -> Watch | None:
    """The watch that nobody but a subscriber needs."""
    for group in subscriber.requests.groups:
        if isinstance(group, OpportunityGroup) and group.members == group.watch.members == 1:
            return group.watch
    return None
