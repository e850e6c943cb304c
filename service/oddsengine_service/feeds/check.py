"""`feeds check`: fetch once from each feed and report what it delivers; only unknown market names are stored."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from oddsengine.feeds.contract import needs_of, venues
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import KINDS, FeedSettings
from oddsengine.sources.drift import Drift
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.settings import TheOddsApiSettings
from oddsengine_service.clock import Clock
from oddsengine_service.feeds.build import source
from oddsengine_service.feeds.hub import Hub, UnmappedMarket
from oddsengine_service.feeds.quarantine import PayloadQuarantine
from oddsengine_service.feeds.status import OK, Track
from oddsengine_service.node import Writer
from oddsengine_service.settings import Settings, SettingsError

STATE, CHECKED = "feeds.json", "feeds-checked.json"  # of a run, and of the last check


class FeedCheck(NamedTuple):
    """Result of checking a feed."""

    name: str
    kind: str
    status: str
    reason: str
    events: int
    quotes: int
    books: tuple[str, ...]
    unmapped: tuple[UnmappedMarket, ...]
    notes: tuple[str, ...]

    def cells(self) -> list[str]:
        counts = [self.events, self.quotes, len(self.books), sum(one.times for one in self.unmapped)]
        return [self.name, self.kind, self.status, *(f"{count:,}" for count in counts), self.reason]

    def plain(self) -> dict[str, Any]:
        return {**self._asdict(), "unmapped": [one._asdict() for one in self.unmapped]}


def state_file(settings: Settings) -> Path:
    return Path(settings.data.folder) / STATE


def quarantine(settings: Settings, secrets: Secrets) -> PayloadQuarantine:
    """Return the folder for payloads that failed to parse."""
    return PayloadQuarantine(
        Path(settings.data.folder) / "kept", settings.data.kept_files, settings.data.kept_bytes, secrets
    )


def check(settings: Settings, environ: Mapping[str, str], seconds: float) -> list[FeedCheck]:
    """Check all feeds concurrently, with a time limit for each."""

    async def everything() -> list[FeedCheck]:
        secrets = Secrets()
        with secrets.out_of_logs():
            tries = [_try(settings, feed, environ, secrets, seconds) for feed in settings.feeds.values()]
            return list(await asyncio.gather(*tries))

    return asyncio.run(everything())


async def _try(
    settings: Settings, feed: FeedSettings, environ: Mapping[str, str], secrets: Secrets, seconds: float
) -> FeedCheck:
    if isinstance(feed, TheOddsApiSettings):
        feed = msgspec.structs.replace(feed, props=())  # would use too many credits for a check
    try:
        made = source(settings, feed, environ, secrets)
    except SettingsError as error:
        return FeedCheck(feed.name, feed.kind, "down", str(error), 0, 0, (), (), ())
    clock = None if KINDS[feed.kind].historical else Clock().now
    hub = Hub(Writer(Engine()), Matcher(), clock=clock, payloads=quarantine(settings, secrets))
    track = hub.add(feed)
    running = asyncio.create_task(made.run(hub))
    caught_up = asyncio.create_task(track.caught_up.wait())
    failed = asyncio.create_task(track.has_failed.wait())
    try:
        await asyncio.wait({running, caught_up, failed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return _seen(hub, track, feed, settings, made, in_time=caught_up.done() or failed.done() or running.done())
    finally:
        for task in (running, caught_up, failed):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await hub.close()


def _seen(hub: Hub, track: Track, feed: FeedSettings, settings: Settings, made: Any, *, in_time: bool) -> FeedCheck:
    (status,) = hub.statuses()
    notes = []
    if not in_time and status.status in ("ok", "starting"):
        notes.append("not everything came in time; --seconds gives it more")
    cost = getattr(made, "cost", None)
    if cost is not None:
        notes.append(f"costs {cost()}")
        props = settings.feeds[feed.name]
        if isinstance(props, TheOddsApiSettings) and props.props:
            notes.append("props are not tried, and cost as much again for each event")
    if status.quarantined:
        notes.append(f"{status.quarantined} of its games are doubtful and kept apart")
    if track.unknown:
        notes.append("books not in the catalog: " + ", ".join(sorted(track.unknown)))
    if track.refused:
        notes.append("left out: " + ", ".join(f"{why} {n:,}" for why, n in track.refused.most_common()))
    notes += _unknown(track.drift)
    if status.status != OK and feed.kind in venues():
        notes.append(needs_of(feed.kind))
    return FeedCheck(
        feed.name, feed.kind, status.status, status.reason, status.events, status.quotes, status.books,
        tuple(hub.unmapped()), tuple(notes),
    )  # fmt: skip


def _unknown(drift: Drift) -> list[str]:
    """Say what came that the contract of a feed does not know."""
    values = [
        f"not in its contract{', and a price depends on it' if one.decides else ''}: {one} ({drift.seen[one]:,} times)"
        for one in drift.values()
    ]
    fields = sorted(one.path for one in drift.seen if one.kind == NEW_FIELD)
    return values + ([f"fields that its contract does not have: {', '.join(fields)}"] if fields else [])


def unmapped_in(checked: Sequence[FeedCheck]) -> list[UnmappedMarket]:
    """Return market names that are not in the catalog, most frequent first."""
    return sorted((one for each in checked for one in each.unmapped), key=lambda one: (-one.times, one))


def store(settings: Settings, checked: Sequence[FeedCheck]) -> None:
    """Store the unknown market names for `unmapped_of`, if the data folder can be written."""
    path = Path(settings.data.folder) / CHECKED
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(_StoredCheck(unmapped_in(checked))))


class _StoredCheck(msgspec.Struct):
    unmapped: list[UnmappedMarket] = []


def unmapped_of(settings: Settings) -> list[UnmappedMarket]:
    """Return market names of the last run or check that were not in the catalog, most frequent first.

    Raises `SettingsError` if there was none.
    """
    path = state_file(settings)
    try:
        checked = path.with_name(CHECKED)
        if checked.exists() and not (path.exists() and path.stat().st_mtime_ns > checked.stat().st_mtime_ns):
            path = checked
        return msgspec.json.decode(path.read_bytes(), type=_StoredCheck).unmapped
    except FileNotFoundError:
        raise SettingsError(f"{path}: no data yet; run `oddsengine serve` or `oddsengine feeds check` first") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
