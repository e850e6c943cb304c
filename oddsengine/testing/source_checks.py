"""What every source must do, as checks of a `SourceCase`; each raises `AssertionError` with what is wrong.

They run the source as a node runs that of a plugin, against the local server of the case.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from oddsengine.board.event_status import STATUSES
from oddsengine.catalog.reasons import reasons
from oddsengine.feeds import Game
from oddsengine.feeds.payload_checks import invalid_prices, unknown_names
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher, PlayerNames, placed_quotes, price_of
from oddsengine.sources.failure import PLUGIN, TIMEOUT, Failure
from oddsengine.testing.bad_bodies import BadBody
from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Answering, Request
from oddsengine.testing.output import assert_masked, captured
from oddsengine.testing.recorder import Delivery, Recorder
from oddsengine.testing.source_case import STOP_S, RunningSource, SourceCase, run_source

_AHEAD = timedelta(seconds=5)  # of clocks
_NEVER = datetime.min.replace(tzinfo=UTC)
_ASKED_S = 40.0  # of Retry-After
_MOST_REQUESTS = 150
_OBSERVED_S = 1200.0
_FAULTS = {  # reasons to reject a price that are those of a reader; the others are those of a book and its prices
    "bad_price", "price_mismatch", "other_game", "side_conflict", "unknown_outcome", "no_line", "stale",
    "started_not_live", "duplicate_outcome", "bad_value", "missing_value",
}  # fmt: skip
_HASTE: dict[str, Any] = {"interval": 0.05}


def prices_are_valid(case: SourceCase) -> None:
    """Prices are delivered: each is one, has its own id or none, and a game that is described."""

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        _check_prices(running.recorder)

    run_source(case, scenario)


def _check_prices(recorder: Recorder) -> None:
    games: set[str] = set()
    for delivery in recorder.deliveries:
        payload = delivery.payload
        games |= {game.id for game in payload.games}
        if wrong := invalid_prices(payload):
            raise AssertionError(f"a price must be a finite number above 1, got {wrong[0].get('odds_decimal')!r}")
        ids = [quote["id"] for quote in payload.quotes if quote.get("id")]
        if len(set(ids)) < len(ids):
            raise AssertionError(f"{len(ids) - len(set(ids))} ids are those of two prices")
        if unknown := {quote["event_id"] for quote in payload.quotes} - games:
            raise AssertionError(f"the game of a price must be among the games, got {min(unknown)!r}")


def prices_are_accepted(case: SourceCase) -> None:
    """A board accepts the prices, and the catalog knows the names of a game, so that other sources have it too."""

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        recorder = running.recorder
        quotes, games = recorder.quotes(), recorder.games()
        quoted = [games[ident] for ident in dict.fromkeys(quote["event_id"] for quote in quotes) if ident in games]
        _check_board(quotes, quoted, recorder.now())
        if unknown := unknown_names(quoted):
            raise AssertionError(f"{unknown}: prices of other sources would never meet its own")

    run_source(case, scenario)


def _check_board(quotes: list[dict[str, Any]], games: list[Game], now: datetime) -> None:
    """Put prices on a board as a node does; fail if it uses none of them, or rejects one that was read wrongly."""
    matcher, engine = Matcher(), Engine()
    matches = {game.id: matcher.match("mine", game) for game in games}
    events = {ident: match.event_id for ident, match in matches.items() if match.event_id is not None}
    if apart := [match.reason for match in matches.values() if match.event_id is None]:
        raise AssertionError(f"{len(apart)} of {len(matches)} games are kept apart: {apart[0]}")
    notices = [
        {"event_id": events[game.id], "status": game.status, "event_start_time": game.start}
        for game in games
        if game.status in STATUSES
    ]
    engine.step(placed_quotes(quotes, events, PlayerNames()), now, events=notices)
    why = engine.rejected_counts()
    if not engine.accepted or why.keys() & _FAULTS:
        names = {quote["market_type"] for quote in quotes} if "unmapped" in why else ()
        markets = f"; its markets are {', '.join(sorted(names)[:5])}" if names else ""
        raise AssertionError(f"the board must accept its prices, of {len(quotes)} it rejects {reasons(why)}{markets}")


def times_are_valid(case: SourceCase) -> None:
    """Times have a zone, none is in the future, and what is delivered again is seen again."""

    async def scenario(running: RunningSource) -> None:
        recorder = running.recorder
        _, began = await running.changed_price()
        times: dict[Any, datetime] = {}
        for at, delivery in enumerate(recorder.deliveries):
            for price, last in _seen(delivery):
                if at >= began and last <= times.get(price, _NEVER):
                    raise AssertionError(f"last_seen_at must move on with each delivery, stays {last}")
                times[price] = last

    run_source(case, scenario)


def _seen(delivery: Delivery) -> Iterator[tuple[Any, datetime]]:
    """The prices of a delivery, and when each was last seen; their times are checked."""
    for game in delivery.payload.games:
        if game.start is None:
            raise AssertionError(f"a game needs its start, that of {game.home or game.id} is None")
        _moment("start", game.start)
    for quote in delivery.payload.quotes:
        for name in ("last_seen_at", "odds_changed_at"):
            value: Any = quote.get(name)
            if value is not None or name == "last_seen_at":
                _moment(name, value)
                if value > delivery.now + _AHEAD:
                    raise AssertionError(f"{name} must not be in the future, got {value} at {delivery.now}")
        if not quote.get("event_start_time"):
            raise AssertionError("a price needs the event_start_time of its game, got None")
        _moment("event_start_time", quote["event_start_time"])
        yield price_of(quote), quote["last_seen_at"]


def _moment(name: str, value: Any) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise AssertionError(f"{name} must be a time with its zone, got {value!r}")


def ids_are_stable(case: SourceCase) -> None:
    """A price and a game keep their ids from delivery to delivery, also when the odds change."""

    async def scenario(running: RunningSource) -> None:
        await running.changed_price()
        _check_ids(running.recorder.deliveries)

    run_source(case, scenario)


def _check_ids(deliveries: Iterable[Delivery]) -> None:
    events: dict[Any, str] = {}
    prices: dict[Any, str] = {}
    places: dict[str, Any] = {}
    for delivery in deliveries:
        for ident in delivery.payload.removed:
            places.pop(ident, None)
        for game in delivery.payload.games:
            teams = game.sport, game.home, game.away, game.start
            if events.setdefault(teams, game.id) != game.id:
                raise AssertionError(f"the id of a game must stay, {events[teams]!r} becomes {game.id!r}")
        for quote in delivery.payload.quotes:
            price, ident = price_of(quote), quote.get("id") or ""
            if prices.setdefault(price, ident) != ident:
                raise AssertionError(f"the id of a price must stay, {prices[price]!r} becomes {ident!r}")
            if ident and places.setdefault(ident, price) != price:
                raise AssertionError(f"an id that moves to another price must be removed too, got {ident!r}")


def changed_prices_are_delivered(case: SourceCase) -> None:
    """A price that changes is delivered with its new odds, and no other price is lost."""

    async def scenario(running: RunningSource) -> None:
        before, _ = await running.changed_price()
        if lost := before.keys() - running.recorder.prices().keys():
            raise AssertionError(f"a changed price must not remove others, {len(lost)} of {len(before)} are gone")

    run_source(case, scenario)


def removed_prices_are_removed(case: SourceCase) -> None:
    """A price that is gone is removed, by its id or a complete book, or no longer active."""

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        before = running.recorder.prices()
        running.case.remove(running.server)
        await running.until(
            lambda: before.keys() - running.recorder.prices().keys(),
            "a price that is gone must be among `removed`, not quoted in a `complete` book, or not active,",
        )

    run_source(case, scenario)


def silence_is_reported(case: SourceCase) -> None:
    """A part says when it will report (`expect`), does so, and gives no sign of life while its vendor is silent."""

    async def scenario(running: RunningSource) -> None:
        recorder = running.recorder
        await running.first_prices()
        promised = {promise.part: promise.within for promise in recorder.promises}
        if missing := {delivery.part for delivery in recorder.deliveries} - promised.keys():
            raise AssertionError(f"each part must say within what it reports: no expect() of part {min(missing)!r}")
        longest = max(promised.values())
        await recorder.until(lambda: False, min(2.5 * longest, _OBSERVED_S))
        _check_promises(recorder)
        running.case.silence(running.server)
        silent = asyncio.get_running_loop().time()
        await recorder.until(lambda: False, 3.0 * longest)
        if [at for at, _ in recorder.signs if at > silent + longest]:
            raise AssertionError("it must not report alive() or deliver while its vendor is silent")

    run_source(case, scenario)


def _check_promises(recorder: Recorder) -> None:
    """Fail if a part was silent for longer than it had promised."""
    now = asyncio.get_running_loop().time()
    for part in {promise.part for promise in recorder.promises}:
        reports = [at for at, of in recorder.signs if of == part]
        for at, following in zip(reports, [*reports[1:], now], strict=True):
            within = [promise.within for promise in recorder.promises if promise.part == part and promise.at <= at][-1]
            if following - at > within + 1.0:
                raise AssertionError(f"part {part!r} promised to report within {within:g} s, took {following - at:g} s")


def limits_are_kept(case: SourceCase) -> None:
    """Requests keep to the `rate` of the settings, and to what the contract of the vendor allows."""

    async def scenario(running: RunningSource) -> None:
        if running.server.check is None and case.contract is not None:
            running.server.check = ContractCheck(case.contract)
        check = running.server.check
        if check is not None:
            check.pace = True
        loop, asked = asyncio.get_running_loop(), running.server.asked
        begun = loop.time()
        while len(asked) < _MOST_REQUESTS and loop.time() - begun < _OBSERVED_S:
            await running.recorder.until(lambda: len(asked) >= _MOST_REQUESTS, 60.0)
            if check is not None and check.violations:
                break
        if not asked:
            raise AssertionError("it must request something")
        if check is not None:
            check.assert_kept()
        if rate := getattr(running.feed, "rate", None):
            _check_rate([at for at, _ in asked], rate)

    run_source(case, scenario, **_hasty(case))


def _hasty(case: SourceCase) -> dict[str, Any]:
    return _HASTE if "interval" in case.source_kind.settings.__struct_fields__ else {}


def _check_rate(times: list[float], rate: float) -> None:
    """Fail if more requests came than a bucket of the tokens of one second lets through."""
    room = rate + 1.0
    for end, last in enumerate(times):
        for begin in range(end):
            count, most = end - begin + 1, room + rate * (last - times[begin] + 0.05)
            if count > most:
                raise AssertionError(f"{count} requests in {last - times[begin]:.1f} s, the rate is {rate:g} a second")


def waits_are_kept(case: SourceCase) -> None:
    """After status 429, no request comes until the wait of `Retry-After` is over, and then they go on."""

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        loop, refused = asyncio.get_running_loop(), []

        async def busy(_: Request, answering: Answering) -> bool:
            running.server.special = None
            refused.append(loop.time())
            await answering.answer({"error": "too many requests"}, 429, {"retry-after": f"{_ASKED_S:g}"})
            return True

        running.server.special = busy
        await running.until(lambda: refused and _after(running, refused[0] + 1.0), "it must go on after status 429")
        if early := [at for at in _after(running, refused[0] + 1.0) if at < refused[0] + _ASKED_S - 0.5]:
            raise AssertionError(
                f"Retry-After asked to wait {_ASKED_S:g} s, but a request came after {early[0] - refused[0]:.1f} s"
            )

    run_source(case, scenario, **_hasty(case))


def _after(running: RunningSource, moment: float) -> list[float]:
    return [at for at, _ in running.server.asked if at > moment]


def secrets_are_masked(case: SourceCase) -> None:
    """No secret is in what is logged, printed or reported, also if the vendor repeats it in an error."""

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        for status in (401, 500):
            await _repeat_request(running, status)
        assert_masked(running.secrets.values(), [*running.recorder.texts, *out.getvalue().splitlines()])

    with captured() as out:
        run_source(case, scenario)


async def _repeat_request(running: RunningSource, status: int) -> None:
    """Answer requests with all that they have, until a failure is reported."""
    failures = running.recorder.failures
    reported = len(failures)

    async def echo(request: Request, answering: Answering) -> bool:
        await answering.answer(repr((request.path, request.query, request.headers)).encode(), status)
        return True

    running.server.special = echo
    await running.until(lambda: len(failures) > reported, f"it must report status {status} as a failure")


def bad_bodies_are_refused(case: SourceCase) -> None:
    """What cannot be read is a `Failure` that says why and changes nothing; the body is saved, and the source goes on.

    Of a body of which only values are wrong, those may be left out instead.
    """

    async def scenario(running: RunningSource) -> None:
        await running.first_prices()
        for name, bad in case.bad_bodies.items():
            try:
                await _send_bad(running, bad)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None

    run_source(case, scenario)


async def _send_bad(running: RunningSource, bad: BadBody) -> None:
    """Answer with bad bodies until the source has reported something, then with good ones."""
    recorder, server = running.recorder, running.server
    before, failures = recorder.prices(), len(recorder.failures)
    deliveries, unread = len(recorder.deliveries), len(recorder.unread)
    sent: list[bytes] = []

    async def special(request: Request, answering: Answering) -> bool:
        if not request.path.endswith(running.case.priced):
            return False
        reply = server.reply(request)
        good = reply[0] if isinstance(reply, tuple) else reply
        sent.append(bad.made(good if isinstance(good, bytes) else answering.encoded(good)))
        await answering.answer(sent[-1])
        return True

    server.special = special
    await running.until(
        lambda: sent and (len(recorder.failures) > failures or len(recorder.deliveries) > deliveries + 1),
        "it must report something",
    )
    if len(recorder.failures) > failures:
        _check_failure(recorder.failures[failures].failure, recorder.unread[unread:], sent)
        if recorder.prices() != before:
            raise AssertionError("a body that is refused must leave the prices as they were")
    elif bad.whole:
        raise AssertionError("it must be refused, it was delivered as if it were good")
    _check_prices(recorder)
    server.special = None
    after = len(recorder.deliveries)
    await running.until(
        lambda: len(recorder.deliveries) > after and recorder.prices() == before,
        "it must go on with the next good body",
    )


def _check_failure(failure: Failure, unread: list[bytes], sent: list[bytes]) -> None:
    if failure.kind == PLUGIN:
        raise AssertionError(f"the reader must raise FeedError, got: {failure}")
    if failure.kind == TIMEOUT:
        raise AssertionError(f"it must be said what came, got: {failure}")
    if len(str(failure).split()) < 3:
        raise AssertionError(f"the failure must say what is wrong, got: {str(failure)!r}")
    if not any(body in saved for saved in unread for body in sent):
        raise AssertionError("the body must be saved: read it in web.parsed, or call receiver.unreadable()")


def it_stops_when_cancelled(case: SourceCase) -> None:
    """It ends soon after it is cancelled, in the middle of a request too, and leaves no task behind."""

    async def at_once(_: RunningSource) -> None:
        await asyncio.sleep(0)

    async def between(running: RunningSource) -> None:
        await running.first_prices()

    async def within_a_request(running: RunningSource) -> None:
        await running.first_prices()
        running.case.silence(running.server)
        asked = len(running.server.asked)
        await running.recorder.until(lambda: len(running.server.asked) > asked, 3.0)

    for moment in (at_once, between, within_a_request):

        async def scenario(running: RunningSource, moment: Callable[..., Any] = moment) -> None:
            await moment(running)
            if not await running.stop():
                raise AssertionError(f"it must end when it is cancelled, and goes on for over {STOP_S:g} s")
            own = {asyncio.current_task()}
            left = [task for task in asyncio.all_tasks() - own if "tcp." not in _name(task)]
            if left:
                raise AssertionError(f"it must cancel its tasks when it is cancelled, {_name(left[0])} runs on")

        run_source(case, scenario, **_hasty(case))


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", "")


SOURCE_CHECKS: tuple[Callable[[SourceCase], None], ...] = (
    prices_are_valid, prices_are_accepted, times_are_valid, ids_are_stable, changed_prices_are_delivered,
    removed_prices_are_removed, silence_is_reported, limits_are_kept, waits_are_kept, secrets_are_masked,
    bad_bodies_are_refused, it_stops_when_cancelled,
)  # fmt: skip
"""All of them, for `pytest.mark.parametrize`."""
