"""Prices in one call, without a server: `fetch` reads sources once, `source` iterates over what one delivers.

Both run the fetchers of the service, so they wait, retry and spend credits as a node does.
"""

import asyncio
import os
import threading
import warnings
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_type_hints

import msgspec

from oddsengine import catalog
from oddsengine.feeds import Game, Payload
from oddsengine.feeds.decoding import past
from oddsengine.feeds.display import displayable
from oddsengine.feeds.price_files import quotes_table
from oddsengine.feeds.venue_contracts import needs_of
from oddsengine.matching import Matcher, PlayerNames, Price, PriceIds, placed_quotes, price_of
from oddsengine.progress import Progress
from oddsengine.sources import SourceKind, create, read_feed, source_kind
from oddsengine.sources.failure import (
    FAILED,
    HTTP_FORBIDDEN,
    HTTP_UNAUTHORIZED,
    PLUGIN,
    RATE_LIMITED,
    TIMEOUT,
    Failure,
    FetchError,
)
from oddsengine.sources.receiver import Source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import SettingsError, SettingsTable, is_list
from oddsengine.tables.schema import OddsTable, OddsWarning
from oddsengine.tables.timestamps import aware

_GIVEN = "GIVEN"  # stands for a variable whose value is an argument
_ODDS = ("odds_decimal", "odds_american")
_WAITING = 100  # payloads that `source` holds until they are asked for


@dataclass
class SourceReport:
    """What a source delivered.

    `credits_left` and `credits_used` are those of its plan as it reported them, None if it has none. `warnings` say
    what is missing; `unmapped` counts market names outside the catalog by book and name.
    """

    payloads: int = 0
    quotes: int = 0
    credits_left: int | None = None
    credits_used: int | None = None
    warnings: list[str] = field(default_factory=list)
    unmapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


class FetchedOdds(OddsTable):
    """An odds table, and in `sources` the `SourceReport` of each source."""

    def __init__(self, table: OddsTable, sources: Mapping[str, SourceReport]) -> None:
        super().__init__(table, table.rejected, table.unpriced)
        self.sources = dict(sources)


class Reports:
    """A receiver that keeps what a fetcher reports; what it delivers goes to `take`."""

    ages = False

    def __init__(self, take: Callable[[Payload], Awaitable[None]]) -> None:
        self.report = SourceReport()
        self.failing: dict[str, Failure] = {}  # by part
        self.refused: Failure | None = None
        self.changed = asyncio.Event()  # something failed or is back, or the fetcher caught up
        self._caught_up = False
        self.seconds = 0.0  # that all of it takes, by the limits of the source
        self._take = take
        self._warning = ""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def deliver(self, source: str, payload: Payload, part: str = "") -> None:
        payload = await asyncio.to_thread(displayable, payload)
        self.report.payloads += 1
        self.report.quotes += len(payload.quotes)
        self.report.unmapped.update(payload.unmapped)
        self.report.refused.update(payload.refused)
        await self._take(payload)
        self.alive(source, part)

    async def received(self, source: str, place: str, body: bytes) -> None:
        """Only a node counts what is not known."""

    async def unreadable(self, source: str, body: bytes, reason: str) -> None:
        """A failure follows."""

    def expect(self, source: str, part: str, within: float, *, polled: bool = False) -> None:
        """Only a node judges how late a source is."""

    def alive(self, source: str, part: str = "") -> None:
        if self.failing.pop(part, None) is not None:
            self.changed.set()

    def failed(self, source: str, failure: Failure, part: str = "") -> None:
        self.failing[part] = failure
        self.refused = failure if failure.fatal else self.refused
        self.changed.set()

    def warn(self, source: str, reason: str, public: str = "") -> None:
        self._warning = reason

    def conflict(self, source: str, reason: str) -> None:
        """Only a node has to keep prices fresh."""

    def takes(self, source: str, seconds: float) -> None:
        self.seconds = seconds

    def credits(self, source: str, left: int | None, used: int | None, an_hour: float | None) -> None:
        self.report.credits_left, self.report.credits_used = left, used

    def written(self, source: str, at: datetime | None) -> None:
        """Only a node shows it."""

    def caught_up(self, source: str, *, ended: bool = False) -> None:
        self._caught_up = True
        self.report.warnings = [self._warning] if self._warning else []
        self.changed.set()

    @property
    def complete(self) -> bool:
        """Whether the fetcher has caught up, and nothing that failed is still to come."""
        return self._caught_up and not self.failing


class SourcePrices:
    """The prices of one source after all payloads, by the rules of a board, but not validated yet."""

    def __init__(self) -> None:
        self._quotes: dict[Price, list[dict[str, Any]]] = {}  # a payload may quote one twice
        self._ids = PriceIds()
        self.games: dict[str, Game] = {}
        self.futures = 0

    def apply(self, payload: Payload, now: datetime) -> None:
        """Apply a payload that arrived now."""
        for price in self._ids.removed(payload.removed, payload.quotes):
            self._quotes.pop(price, None)
        self._ids.forget(payload.removed)
        quoted: dict[Price, list[dict[str, Any]]] = {}
        for quote in payload.quotes:
            price, seen = price_of(quote), past(quote.get("last_seen_at"), now) or now
            earlier = self._quotes.get(price, (quote,))[-1]  # its price is that of a suspended quote without one
            odds = {name: earlier.get(name) for name in _ODDS} if _is_bare(quote) else {}
            quoted.setdefault(price, []).append({**quote, **odds, "last_seen_at": seen})
        complete = {(catalog.book(book).id, event) for book, event in payload.complete}
        for price, (quote, *_) in list(self._quotes.items()) if complete else ():
            book = catalog.book(quote["sportsbook"]).id
            if price not in quoted and complete & {(book, quote["event_id"]), (book, None)}:
                del self._quotes[price]
        for price, quotes in quoted.items():
            newest = max((_seen(quote) for quote in self._quotes.get(price, ())), default=None)
            if newest is None or (quotes := [quote for quote in quotes if _seen(quote) >= newest]):
                self._quotes[price] = quotes
        self._ids.learn(payload.quotes)
        self.games |= {game.id: game for game in payload.games}
        self.futures += len(payload.futures)

    def quotes(self) -> list[dict[str, Any]]:
        """Return all prices."""
        return [quote for quotes in self._quotes.values() for quote in quotes]


def _is_bare(quote: Mapping[str, Any]) -> bool:
    """Whether a quote is suspended and has no price."""
    return quote.get("is_active") is False and all(quote.get(name) is None for name in _ODDS)


def _seen(quote: Mapping[str, Any]) -> datetime:
    return aware(quote["last_seen_at"])


def fetch(
    name: str | Mapping[str, Mapping[str, Any]], /, *, timeout: float = 60.0, progress: bool = True, **settings: Any
) -> FetchedOdds:
    """Read one source, or several, once; needs the extra `[feeds]`.

    Parameters
    ----------
    name
        A kind of source: ``the_odds_api``, ``interface`` (a node), ``optic``, ``betfair``, ``kalshi``, ``polymarket``,
        ``sx_bet``, ``smarkets``, ``matchbook``, ``novig``, ``sportsgameodds``, ``odds_api_io``, ``table``,
        ``football_data`` or ``betfair_history``. Or several sources: a mapping of names to their settings, each with
        its `kind` unless that is its name.
    timeout
        Seconds until all sources must be read. Meanwhile failed requests are repeated, later each time.
    progress
        Show the number of prices on standard error, if that is a terminal or a notebook.
    **settings
        Of the source, as in `docs/feeds.md`: ``sports``, ``regions``, ``books``, ``markets``, ``url`` and others. A
        single value counts as a list of one, and ``sport="nba"`` as the source's name of that league. Secrets are
        arguments (``key``, ``session``, ``user``, ``password``), or environment variables that ``key_env`` and so on
        name; ``ODDS_API_KEY``, ``OPTICODDS_API_KEY``, ``BETFAIR_APP_KEY`` and ``BETFAIR_SESSION`` by default.

    Returns
    -------
    FetchedOdds
        An odds table for the finders. `.sources` says what each source delivered, and the credits that are left. Events
        have the ids of the source; those of several sources are matched and have common ids.

    Raises
    ------
    FetchError
        If a source was not read completely: `kind` says why, and nothing is returned.
    SettingsError
        If a setting is not valid, or a secret is missing.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> odds = fetch("table", path=str(SAMPLE_BOARD))
    >>> odds.height, odds.sources["table"].payloads
    (1951, 1)
    """
    if isinstance(name, str):
        named: Mapping[str, Mapping[str, Any]] = {name: settings}
    else:
        named = name
        if settings:
            raise SettingsError(f"settings of several sources are in the mapping, got {', '.join(settings)} beside it")
        if not named:
            raise SettingsError("fetch needs at least one source, got an empty mapping")
    secrets = Secrets()
    fetchers = {source_name: _fetcher(source_name, own, secrets) for source_name, own in named.items()}
    with secrets.out_of_logs(), Progress("prices") as bar:
        read = run_to_end(lambda: _read_all(fetchers, timeout, bar if progress else None))
    prices = {key: own for key, (own, _) in read.items()}
    reports = {key: report for key, (_, report) in read.items()}
    if len(prices) > 1:
        quotes = _common(prices, reports)
    else:
        quotes = [quote for own in prices.values() for quote in own.quotes()]
    for key, report in reports.items():
        for text in report.warnings:
            warnings.warn(f"{key}: {text}", OddsWarning, stacklevel=2)
    refused: Counter[str] = sum((report.refused for report in reports.values()), Counter())
    return FetchedOdds(quotes_table(quotes, refused, sum(own.futures for own in prices.values())), reports)


async def source(name: str, /, **settings: Any) -> AsyncGenerator[Payload, None]:
    """Iterate over the payloads of one source as they arrive; needs the extra `[feeds]`.

    A stream is followed and resumed, other sources are asked again every `interval` seconds, until the iteration ends;
    end it early with `contextlib.aclosing`. The first payloads are what `fetch` would return.

    Parameters
    ----------
    name
        A kind of source, as in `fetch`.
    **settings
        As in `fetch`.

    Raises
    ------
    FetchError
        If the source refuses the key or the request. Other failures are logged and tried again.
    SettingsError
        If a setting is not valid, or a secret is missing.

    Examples
    --------
    >>> async def prices():
    ...     async for payload in source("table", path="prices.csv", interval=5.0):
    ...         print(len(payload.quotes))
    """
    secrets = Secrets()
    fetcher = _fetcher(name, settings, secrets)
    queue: asyncio.Queue[Payload] = asyncio.Queue(_WAITING)
    receiver = Reports(queue.put)
    running = asyncio.create_task(fetcher.run(receiver))
    waiting: asyncio.Task[Payload] = asyncio.create_task(queue.get())
    try:
        with secrets.out_of_logs():
            while not (running.done() and queue.empty() and not waiting.done()):
                changed = asyncio.create_task(receiver.changed.wait())
                await asyncio.wait({running, waiting, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                receiver.changed.clear()
                if waiting.done():
                    payload, waiting = waiting.result(), asyncio.create_task(queue.get())
                    yield payload
                elif receiver.refused is not None:
                    raise _error(name, receiver.refused, fetcher)
            _ended(running, name, fetcher)
    finally:
        for task in (running, waiting):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def _fetcher(name: str, settings: Mapping[str, Any], secrets: Secrets) -> Source:
    """Create a fetcher from arguments; its secrets are masked."""
    kind = source_kind(settings.get("kind", name))
    table, env = read_arguments(name, kind, settings)
    feed = read_feed(SettingsTable("fetch", name, table, {}, set()), name)
    secrets.add(*env.values())
    return create(feed, env, secrets)


def read_arguments(
    name: str, kind: SourceKind, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:  # fmt: skip
    """Return the table of settings that arguments are, and the secrets by the names of their settings."""
    table = {"kind": name, **settings}
    fields = {field.name: field for field in msgspec.structs.fields(kind.settings)}
    if "sport" in table and "sport" not in fields:
        table["sports"] = [kind.leagues.get(text, text) for text in _listed(table.pop("sport"))]
    hints = get_type_hints(kind.settings, include_extras=True)
    values: dict[str, str] = {}
    for variable in [text for text in fields if text.endswith("_env")]:
        argument = variable.removesuffix("_env")
        if (value := table.pop(argument, None)) is not None:
            values[variable], table[variable] = str(value), _GIVEN
            continue
        default = kind.variables.get(variable, "")
        if variable not in table and default and (fields[variable].required or os.environ.get(default)):
            table[variable] = default
        if named := table.get(variable):
            values[variable] = os.environ.get(named, "").strip()
            if not values[variable]:
                raise SettingsError(
                    f"{name} needs {argument}=..., or the environment variable {named}, which is not set"
                )
    for text, value in table.items():
        if text in hints and is_list(hints[text]) and isinstance(value, str):
            table[text] = [value]
        elif isinstance(value, tuple | set | frozenset):
            table[text] = list(value)
        elif isinstance(value, os.PathLike):
            table[text] = os.fspath(value)
    return table, {variable: values.get(variable, "") for variable in fields if variable.endswith("_env")}


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


async def _read_all(
    fetchers: Mapping[str, Source], timeout: float, progress: Progress | None
) -> dict[str, tuple[SourcePrices, SourceReport]]:
    """Read all sources, or raise the error of the first that fails; the others are stopped."""
    tasks = {name: asyncio.create_task(_read(name, fetcher, timeout, progress)) for name, fetcher in fetchers.items()}
    try:
        await asyncio.gather(*tasks.values())
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {name: task.result() for name, task in tasks.items()}


async def _read(
    name: str, fetcher: Source, timeout: float, progress: Progress | None
) -> tuple[SourcePrices, SourceReport]:
    """Run a fetcher until it has delivered all that there is at first."""
    prices, count = SourcePrices(), 0

    async def take(payload: Payload) -> None:
        nonlocal count
        prices.apply(payload, datetime.now(UTC))
        count += len(payload.quotes)
        if progress is not None:
            progress(None, count, name)

    receiver = Reports(take)
    running = asyncio.create_task(fetcher.run(receiver))
    try:
        async with asyncio.timeout(timeout):
            while not (receiver.complete or running.done()):
                changed = asyncio.create_task(receiver.changed.wait())
                await asyncio.wait({running, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                receiver.changed.clear()
                if receiver.refused is not None:
                    raise _error(name, receiver.refused, fetcher)
        if running.done():
            _ended(running, name, fetcher)
            if receiver.failing:
                raise _error(name, next(iter(receiver.failing.values())), fetcher)
    except TimeoutError:
        last = next(iter(receiver.failing.values()), None)
        if last is not None:
            raise _error(name, last, fetcher) from None
        slow = receiver.seconds > timeout
        why = (
            f"; its limits let all of it take {receiver.seconds:.0f} s, which is the least for timeout" if slow else ""
        )
        raise FetchError(name, TIMEOUT, f"not everything came within {timeout:g} s{why}") from None
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await running
    if receiver.report.warnings and not receiver.report.payloads:
        raise FetchError(name, FAILED, receiver.report.warnings[0])
    return prices, receiver.report


def _ended(running: asyncio.Task[None], name: str, fetcher: Source) -> None:
    """Raise what a fetcher has ended with."""
    try:
        running.result()
    except Failure as failure:
        raise _error(name, failure, fetcher) from failure.__cause__


def _error(name: str, failure: Failure, fetcher: Source) -> FetchError:
    """The error of a failure, with what to do about it."""
    advice = ""
    if failure.status in (HTTP_UNAUTHORIZED, HTTP_FORBIDDEN):
        advice = "; check the key" if hasattr(fetcher.feed, "key_env") else f"; {needs_of(fetcher.feed.kind)}"
    elif failure.kind == RATE_LIMITED and failure.wait:
        advice = f"; it asks to wait {failure.wait:g} s"
    url = getattr(fetcher.feed, "url", "") or getattr(fetcher.feed, "path", "")
    kind = FAILED if failure.kind == PLUGIN else failure.kind
    return FetchError(name, kind, f"{failure}{advice}" + (f" ({url})" if url else ""))


def _common(prices: Mapping[str, SourcePrices], reports: Mapping[str, SourceReport]) -> list[dict[str, Any]]:
    """Match the games of several sources, and return their quotes under common ids."""
    matcher, players = Matcher(), PlayerNames()
    for name, own in prices.items():
        for game in own.games.values():
            matcher.match(name, game)
    quotes = []
    for name, own in prices.items():
        matches = {ident: matcher.match(name, game).event_id for ident, game in own.games.items()}
        events = {ident: event for ident, event in matches.items() if event is not None}
        if doubtful := len(matches) - len(events):
            reports[name].warnings.append(f"{doubtful} of its games are doubtful and left out")
        quotes += placed_quotes(own.quotes(), events, players)
    return quotes


def run_to_end(work: Callable[[], Any]) -> Any:
    """Run a coroutine to its end; in a thread of its own where an event loop is running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(asyncio.run(work()))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="fetch", daemon=True).start()
    return result.result()
