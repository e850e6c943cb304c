"""Reads of open opportunities, as often as their number allows."""

import time
from collections.abc import Callable, Hashable

from oddsengine_service.monitoring import log
from oddsengine_service.pool import Turns
from oddsengine_service.stream.jobs import Job, Jobs
from oddsengine_service.stream.watched_view import OpportunityId, ViewSnapshot, Watch
from oddsengine_service.stream.watches import Watches

READ_EVERY_S = 0.05  # between two reads of what is open; longer where a read is slow


class Reads:
    """Reads in a thread of their own, so that prices do not wait: accounts take turns, and pause after each read.

    `run` is that thread, and `put` is for any; all else is for the hub's thread, in which `settle` is called with what
    was read.
    """

    def __init__(
        self, watches: Watches, jobs: Jobs, settle: Callable[[Watch, set[OpportunityId], ViewSnapshot], None]
    ) -> None:
        self._watches, self._jobs, self._settle = watches, jobs, settle
        self._turns = Turns()
        self._next_at = 0.0
        self._pauses: dict[Hashable, float] = {}  # until when reads are suspended for an account

    def put(self, account: str, read: Job, *, first: bool = False) -> None:
        """Add a read, or the next part of one before the account's other reads."""
        self._turns.put(account, read, first=first)

    def patience(self) -> float | None:
        """How long to wait for a job before reading open opportunities."""
        due = [self._pauses.get(watch.payer, 0.0) for watch in self._watches.open.values() if watch.outdated]
        return max(0.0, max(self._next_at, min(due)) - time.monotonic()) if due else None

    def begin(self) -> None:
        """Have outdated opportunities read again."""
        now = time.monotonic()
        self._next_at = now + READ_EVERY_S
        self._pauses = {payer: until for payer, until in self._pauses.items() if until > now}
        due = [each for each in self._watches.open.values() if each.outdated and each.payer not in self._pauses]
        alone = len(due) == 1 and not self._watches.pending  # nobody waits for the end of a long read
        for watch in due:
            outdated = watch.begin_read(whole=alone)
            self._turns.put(watch.payer, lambda w=watch, s=outdated: self._read(w, s))  # type: ignore[misc]

    def _end(self, watch: Watch, outdated: set[OpportunityId], found: ViewSnapshot, spent: float) -> None:
        """Pause an account as long as its read took; where others wait too, three times as long, and pauses add up."""
        payer, now = watch.payer, time.monotonic()
        if any(each.payer != payer for each in self._watches.open.values()):
            self._pauses[payer] = max(now, self._pauses.get(payer, 0.0)) + 3.0 * spent
        else:
            self._pauses[payer] = now + spent
        self._settle(watch, outdated, found)

    def end(self) -> None:
        """End the thread after the read that is under way."""
        self._turns.end()

    # ---- the thread of reads ----

    def run(self, failed: Job) -> None:
        """Read until the end; a failure leads to a job of the hub's thread."""
        while (read := self._turns.next()) is not None:
            try:
                read()
            except Exception as error:
                log.failure(b"-", "(stream)", error)
                self._jobs.put(failed)
            del read  # it refers to a watch

    def _read(self, watch: Watch, outdated: set[OpportunityId]) -> None:
        began = time.monotonic()
        found = watch.read_open(outdated)
        spent = time.monotonic() - began
        self._jobs.put(lambda: self._jobs.after_update(found.number, lambda: self._end(watch, outdated, found, spent)))
