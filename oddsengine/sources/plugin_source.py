"""Sources of plugins, held to what a source is: a fetcher that fails or reports nonsense costs its own prices only.

`PluginSource` runs one. It reports under the name of its feed only, its payloads are checked (`payload_checks`), and
whatever it raises is a `Failure` that names its package. Its texts are masked, and then cut. `UnusableSource` stands
for one that could not be made.
"""

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from oddsengine.bounds import excerpt, is_number, text_of
from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.payload_checks import check_payload, invalid_prices
from oddsengine.plugins import MOST_SAID, Plugin, described, first_of
from oddsengine.sources.failure import FAILED, KINDS, PLUGIN, Failure
from oddsengine.sources.receiver import Receiver, Source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_kinds import SourceKind
from oddsengine.sources.source_settings import FeedSettings, UnusableSettings

_INVALID = "some of its prices are invalid and were rejected"


def checked_kind(plugin: Plugin, kind: Any) -> SourceKind:
    """Return what a plugin has registered. Raises `PluginError` if it is no `SourceKind`."""
    if not isinstance(kind, SourceKind):
        raise plugin.error(f"{plugin.object} must be a SourceKind, got {excerpt(kind)}")
    if not (isinstance(kind.settings, type) and issubclass(kind.settings, FeedSettings)):
        raise plugin.error(f"its settings must be a subclass of FeedSettings, got {excerpt(kind.settings)}")
    if not callable(kind.fetcher):
        raise plugin.error(f"its fetcher must be a function, got {excerpt(kind.fetcher)}")
    for name in ("variables", "leagues"):
        table = getattr(kind, name)
        if not (isinstance(table, Mapping) and all(isinstance(text, str) for pair in table.items() for text in pair)):
            raise plugin.error(f"its {name} must be a mapping of strings to strings, got {excerpt(table)}")
    secrets = {name for name in kind.settings.__struct_fields__ if name.endswith("_env")}
    if strange := sorted(set(kind.variables) - secrets):
        raise plugin.error(f"its variables name {strange[0]!r}, which is not a setting that ends in _env")
    return kind


def made(plugin: Plugin, kind: SourceKind, feed: FeedSettings, env: Mapping[str, str], secrets: Secrets) -> Source:
    """Create the fetcher of a plugin; one that cannot be made is an `UnusableSource`, which says why."""
    try:
        fetcher = kind.fetcher(feed, env, secrets)
        runs = callable(getattr(fetcher, "run", None))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return UnusableSource(feed, str(plugin.error(f"its fetcher raises {described(error, secrets.clean)}")))
    if not runs:
        return UnusableSource(
            feed, str(plugin.error(f"its fetcher has no run, got {secrets.clean(excerpt(fetcher))}"))
        )  # fmt: skip
    return PluginSource(plugin, feed, fetcher, secrets)


class UnusableSource:
    """A source that reports why it cannot be used, and ends."""

    def __init__(self, feed: FeedSettings, reason: str) -> None:
        self.feed, self.reason = feed, reason

    @classmethod
    def of(cls, feed: UnusableSettings) -> "UnusableSource":
        """Return that of settings whose kind could not be loaded."""
        return cls(feed, feed.reason)

    async def run(self, receiver: Receiver) -> None:
        """Report it."""
        receiver.failed(self.feed.name, Failure(self.reason, fatal=True, kind=PLUGIN))


class PluginSource:
    """A fetcher of a plugin, of which every error is a `Failure`."""

    def __init__(self, plugin: Plugin, feed: FeedSettings, fetcher: Source, secrets: Secrets) -> None:
        self.plugin, self.feed = plugin, feed
        self._fetcher, self._secrets = fetcher, secrets

    async def run(self, receiver: Receiver) -> None:
        """Run it. Raises `Failure` for whatever it raises, and if it ends without having said so."""
        checked, task = CheckedReceiver(receiver, self.feed.name, self._secrets.clean), asyncio.current_task()
        assert task is not None
        try:
            await self._fetcher.run(checked)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except asyncio.CancelledError:
            if task.cancelling():
                raise
            raise self._failure("its run() raises CancelledError") from None
        except BaseException as error:
            if isinstance(first := first_of(error), Failure):
                raise _checked_failure(first, checked.text) from first.__cause__
            raise self._failure(f"its run() raises {described(error, self._secrets.clean)}") from error
        if not checked.ended:
            raise self._failure("its run() has ended without caught_up(..., ended=True)")

    def _failure(self, why: str) -> Failure:
        return Failure(f"{self.plugin.label} fails: {why}", kind=PLUGIN)


def _checked_failure(failure: Failure, text: Callable[[object], str]) -> Failure:
    """Return a failure as ours are: a plugin may have given it any values, or be of a class of its own."""
    wait, status = failure.wait, failure.status
    return Failure(
        text(failure),
        wait=wait if is_number(wait) and wait > 0.0 else None,
        fatal=bool(failure.fatal),
        kind=failure.kind if failure.kind in KINDS else FAILED,
        status=status if isinstance(status, int) else None,
    )


class CheckedReceiver:
    """The receiver of one feed. It raises `Failure` for a payload, and `TypeError` for a report, that is not one.

    `clean` masks secrets in the texts of reports.
    """

    def __init__(self, receiver: Receiver, feed: str, clean: Callable[[str], str]) -> None:
        self._receiver, self._feed, self._clean = receiver, feed, clean
        self._invalid: dict[str, str] = {}  # by part
        self._warning = ("", "")
        self.ended = False
        self.ages = receiver.ages

    def text(self, said: object) -> str:
        """A text of the plugin as others may read it: first masked, so that the cut leaves no part of a secret."""
        return self._clean(text_of(said))[:MOST_SAID]

    def _named(self, source: object, part: object = "") -> str:
        """Check whose report it is, and return its part, whose name others may read."""
        if source != self._feed:
            raise TypeError(f"a source reports as its own feed, {self._feed!r}, got {excerpt(source)}")
        _is(part, str, "part", "a string")
        return self.text(part)

    def now(self) -> datetime:
        return self._receiver.now()

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        part = self._named(source, part)
        try:
            check_payload(payload)
        except FeedError as error:
            raise Failure(self.text(f"its payload is refused: {error}"), kind=PLUGIN) from None
        self._count(part, invalid_prices(payload), len(payload.quotes))
        refused = Counter({self.text(why): count for why, count in payload.refused.items()})
        unmapped = Counter({(self.text(book), self.text(name)): n for (book, name), n in payload.unmapped.items()})
        await self._receiver.deliver(source, payload._replace(refused=refused, unmapped=unmapped), part)

    def _count(self, part: str, rows: list[dict[str, Any]], of: int) -> None:
        """Warn of invalid prices, until a payload of the part has none."""
        self._invalid.pop(part, None)
        if rows:
            price = self.text(excerpt(rows[0].get("odds_decimal")))
            self._invalid[part] = (
                f"{len(rows)} of the {of} prices of its last payload are invalid, such as odds_decimal {price}"
            )
        self._warn()

    def _warn(self) -> None:
        text = next(iter(self._invalid.values()), "")
        self._receiver.warn(self._feed, *((text, _INVALID) if text else self._warning))

    async def received(self, source: str, place: str, body: bytes) -> None:
        self._named(source)
        _is(place, str, "place", "a string")
        _is(body, bytes, "body", "bytes")
        await self._receiver.received(source, place, body)

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        self._named(source)
        _is(body, bytes, "body", "bytes")
        await self._receiver.unreadable(source, body, self.text(reason))

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        part = self._named(source, part)
        if not (_is(within, int | float, "within", "a number of seconds") and within > 0.0):
            raise TypeError(f"within must be a number of seconds above 0, got {excerpt(within)}")
        self._receiver.expect(source, part, within, polled=bool(polled))

    def alive(self, source: str, part: str = "") -> None:
        part = self._named(source, part)
        self._receiver.alive(source, part)

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        part = self._named(source, part)
        _is(failure, Failure, "failure", "a Failure")
        self._receiver.failed(source, _checked_failure(failure, self.text), part)

    def warn(self, source: str, reason: str, public: str = "") -> None:
        self._named(source)
        self._warning = self.text(reason), self.text(public)
        self._warn()

    def conflict(self, source: str, reason: str) -> None:
        self._named(source)
        self._receiver.conflict(source, self.text(reason))

    def takes(self, source: str, seconds: float) -> None:
        self._named(source)
        _is(seconds, int | float, "seconds", "a number")
        self._receiver.takes(source, seconds)

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        self._named(source)
        for name, value in (("left", left), ("used", used), ("an_hour", an_hour)):
            _is(value, int | float | None, name, "a number or None")
        self._receiver.credits(source, left, used, an_hour)

    def written(self, source: str, at: datetime | None) -> None:
        self._named(source)
        if at is not None and not (isinstance(at, datetime) and at.utcoffset() is not None):
            raise TypeError(f"at must be a time with its zone or None, got {excerpt(at)}")
        self._receiver.written(source, at)

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        self._named(source)
        self.ended |= bool(ended)
        self._receiver.caught_up(source, ended=bool(ended))


def line_of(thread: threading.Thread) -> str:
    """Where a thread is: file, line and function."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} ({frame.f_code.co_name})"


def _is(value: object, kind: Any, name: str, expected: str) -> bool:
    """Raise `TypeError` for a value of another type."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name} must be {expected}, got {excerpt(value)}")
    return True
