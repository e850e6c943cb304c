"""`feeds check`: fetch once from each feed and report what it delivers; only unknown market names are stored."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

import oddsengine
from oddsengine.catalog.reasons import reasons
from oddsengine.feeds.contract_types import NEW_FIELD
from oddsengine.feeds.payload_checks import unknown_names
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import FeedSettings, Source, contract_of, is_historical
from oddsengine.sources.drift import Drift
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_recording import Cleaned, Recorder, cleaned, going_through
from oddsengine.sources.source_settings import PolledSettings, TheOddsApiSettings
from oddsengine_service.board.writer import Writer
from oddsengine_service.clock import Clock
from oddsengine_service.feeds.build import source
from oddsengine_service.feeds.hub import Hub, UnmappedMarket
from oddsengine_service.feeds.quarantine import PayloadQuarantine
from oddsengine_service.feeds.status import Track
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
    unknown: int = 0  # values that came and that its contract does not know

    def cells(self) -> list[str]:
        counts = [self.events, self.quotes, len(self.books), sum(one.times for one in self.unmapped)]
        return [self.name, self.kind, self.status, *(f"{count:,}" for count in counts), self.reason]

    def plain(self) -> dict[str, Any]:
        return {**self._asdict(), "unmapped": [one._asdict() for one in self.unmapped]}


class Checked(NamedTuple):
    """The check of a feed, and the rows that were on the board at its end."""

    check: FeedCheck
    rows: pl.DataFrame


def state_file(settings: Settings) -> Path:
    return Path(settings.data.folder) / STATE


def quarantine(settings: Settings, secrets: Secrets) -> PayloadQuarantine:
    """Return the folder for payloads that failed to parse."""
    return PayloadQuarantine(
        Path(settings.data.folder) / "kept", settings.data.kept_files, settings.data.kept_bytes, secrets
    )


def check(
    settings: Settings, environ: Mapping[str, str], seconds: float, *, record: bool = False
) -> tuple[list[FeedCheck], dict[str, Cleaned]]:
    """Check all feeds concurrently, with a time limit for each; also returns recordings, if asked to record."""

    async def everything() -> tuple[list[FeedCheck], dict[str, Cleaned]]:
        secrets = Secrets()
        recorders = {
            name: Recorder(name, feed.kind, _recorded_settings(feed, secrets), oddsengine.__version__)
            for name, feed in (settings.feeds.items() if record else ())
        }
        with secrets.out_of_logs():
            tries = [
                _try(settings, feed, environ, secrets, seconds, recorders.get(name))
                for name, feed in settings.feeds.items()
            ]
            checked = list(await asyncio.gather(*tries))
        return checked, {
            name: cleaned(one.recording, secrets.values(), one.left_out) for name, one in recorders.items()
        }

    return asyncio.run(everything())


def _recorded_settings(feed: FeedSettings, secrets: Secrets) -> dict[str, Any]:
    """The settings of a feed that a recording says: those that are not the usual ones."""
    given = msgspec.to_builtins(feed)
    usual = {field.name: field.default for field in msgspec.structs.fields(feed)}
    changed = msgspec.json.encode(
        {name: value for name, value in given.items() if value != usual[name] and name not in ("name", "kind")}
    )
    settings: dict[str, Any] = msgspec.json.decode(secrets.clean_bytes(changed))
    return settings


async def _try(
    settings: Settings, feed: FeedSettings, environ: Mapping[str, str], secrets: Secrets, seconds: float,
    recorder: Recorder | None,
) -> FeedCheck:  # fmt: skip
    asked = feed
    if isinstance(feed, TheOddsApiSettings):
        asked = msgspec.structs.replace(feed, props=())  # would use too many credits for a check
    try:
        made = source(settings, asked, environ, secrets)
    except SettingsError as error:
        return FeedCheck(feed.name, feed.kind, "down", str(error), 0, 0, (), (), ())
    clock = None if is_historical(feed) else Clock().now
    hub = Hub(Writer(Engine()), Matcher(), clock=clock, payloads=quarantine(settings, secrets))
    with going_through(recorder):
        return (await run(hub, feed, made, seconds)).check


async def run(hub: Hub, feed: FeedSettings, made: Source, seconds: float) -> Checked:
    """Run a source until it has caught up, failed, or the time is over, and say what came."""
    track = hub.add(feed)
    running = asyncio.create_task(hub.watch(made))
    caught_up = asyncio.create_task(track.caught_up.wait())
    failed = asyncio.create_task(track.has_failed.wait())
    try:
        await asyncio.wait({running, caught_up, failed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        in_time = caught_up.done() or failed.done() or running.done()
        return Checked(_seen(hub, track, feed, made, in_time=in_time), hub.engine.table())
    finally:
        for task in (running, caught_up, failed):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await hub.close()


def _seen(hub: Hub, track: Track, feed: FeedSettings, made: Any, *, in_time: bool) -> FeedCheck:
    (status,) = hub.statuses()
    notes = []
    if not in_time and status.status in ("ok", "starting"):
        notes.append("not everything came in time; --seconds gives it more")
    cost = getattr(made, "cost", None)
    if cost is not None:
        notes.append(f"costs {cost()}")
        if isinstance(feed, TheOddsApiSettings) and feed.props:
            notes.append("props are not tried, and cost as much again for each event")
    board = hub.engine
    if board.size and not board.accepted and not is_historical(feed):
        notes.append(f"none of its prices is used, of {board.size:,} are rejected {reasons(board.rejected_counts())}")
    if unknown := unknown_names(known.game for known in hub.applier.games.known.values() if known.books):
        notes.append(f"{unknown}: prices of other feeds would never meet its own")
    if status.quarantined:
        notes.append(f"{status.quarantined} of its games are doubtful and kept apart")
    if track.unknown:
        notes.append("books not in the catalog: " + ", ".join(sorted(track.unknown)))
    if track.refused:
        notes.append("left out: " + ", ".join(f"{why} {n:,}" for why, n in track.refused.most_common()))
    if isinstance(feed, PolledSettings) and in_time and track.requests:
        a_day = 86_400.0 * min(track.requests / feed.interval, feed.rate)
        notes.append(f"about {round(a_day, -1):,.0f} requests a day: {track.requests} every {feed.interval:g} s")
    if (contract := contract_of(feed)) is not None and contract.needs:
        notes.append(f"a user needs {', '.join(contract.needs)}")
    notes += _unknown(track.drift)
    return FeedCheck(
        feed.name, feed.kind, status.status, status.reason, status.events, status.quotes, status.books,
        tuple(hub.unmapped()), tuple(notes), track.drift.counts.values,
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
