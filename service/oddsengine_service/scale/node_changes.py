"""The changes of a node that its log needs besides the steps, and what the writer's feeds say of theirs."""

from collections.abc import Iterable

from oddsengine.matching import Decision, Matcher
from oddsengine_service.feeds.status import BookStatus, SourceStatus
from oddsengine_service.replication import Replication
from oddsengine_service.scale.outbox import Outbox


class RemoteFeeds:
    """Sources and books with their states from the writer."""

    def __init__(self) -> None:
        self._sources: list[SourceStatus] = []
        self._books: list[BookStatus] = []

    def statuses(self) -> list[SourceStatus]:
        return self._sources

    def books(self) -> list[BookStatus]:
        return self._books

    def replace(self, sources: list[SourceStatus], books: list[BookStatus]) -> None:
        self._sources, self._books = sources, books


class Changes(Replication):
    """Puts the changes of a node into its outbox, once it has one."""

    feeds: RemoteFeeds
    decisions: dict[tuple[str, str], Decision]

    def __init__(self) -> None:
        super().__init__()
        self.outbox: Outbox | None = None
        self.feeds, self.decisions = RemoteFeeds(), {}

    def changed(self, kind: str, *what: object) -> None:
        if self.outbox is not None:
            self.outbox.add(kind, *what)

    def decided(self, matcher: Matcher, games: Iterable[tuple[str, str]] | None = None) -> None:
        now = {key: matcher.decision(*key) for key in (list(self.decisions) if games is None else games)}
        removed = [key for key, one in now.items() if one is None and key in self.decisions]
        new = [one for key, one in now.items() if one is not None and self.decisions.get(key) != one]
        if removed:
            self.changed("unmatch", *removed)
        if new:
            self.changed("match", *sorted(new, key=lambda one: one.number))
        for key in removed:
            del self.decisions[key]
        self.decisions.update((one.key, one) for one in new)
