"""The log against real servers: order, fencing, retries, the lease, snapshots."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import zstandard
from service.feeds.test_gamestate import declared, quote
from support.nats_running import Servers, servers, wait_for

from oddsengine.feeds import Game, Payload
from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine_service.feeds.hub import Hub
from oddsengine_service.history.closing_store import Closings
from oddsengine_service.history.past import Past
from oddsengine_service.node import Node
from oddsengine_service.scale import shard_log as log_module
from oddsengine_service.scale.closings import PendingClosings, stored
from oddsengine_service.scale.follower import Follower, opened
from oddsengine_service.scale.link import LogConnection
from oddsengine_service.scale.log_messages import unpacked
from oddsengine_service.scale.node_changes import Changes
from oddsengine_service.scale.outbox import Outbox, TooLargeError
from oddsengine_service.scale.shard_log import LogMessage, LostError, RefusedError, SharedLog
from oddsengine_service.settings import Settings, SettingsError, load

DAY = 24.0, 64 << 20


def settings_of(found: Servers, **more: str) -> Settings:
    environ = {"ODDSENGINE_SCALE_SERVERS": ",".join(found.urls), "ODDSENGINE_SCALE_ROLE": "gateway",
               "ODDSENGINE_SCALE_LEASE_S": "1", **more}  # fmt: skip
    return load(None, environ)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("nats")) as found:
        yield found


def link_to(found: Servers, **more: str) -> LogConnection:
    link = LogConnection(settings_of(found, **more), {}, lambda *_: None)
    link.call(link.connect(), 60.0)
    return link


def log_of(link: LogConnection) -> SharedLog:
    log = SharedLog(link, "board")
    link.call(log.open(*DAY), 60.0)
    return log


def test_why_a_stream_cannot_be_created_is_reported(one: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a server alone for which three were configured, or three without room for the log."""
    monkeypatch.setattr(log_module, "_UNANSWERED_S", 0.2)
    link, said = link_to(one, ODDSENGINE_SCALE_REPLICAS="3", ODDSENGINE_SCALE_SHARD="three"), list[str]()
    try:
        opening = link.start(SharedLog(link, "board").open(*DAY, said.append))
        wait_for(lambda: bool(said), "the reason")
        opening.cancel()
    finally:
        link.close()
    assert said[0] == "stream board-three cannot be opened: replicas > 1 not supported in non-clustered mode"


@pytest.fixture
def links(one: Servers, request: pytest.FixtureRequest) -> Iterator[tuple[LogConnection, LogConnection]]:
    """Two connections to a shard of the test's own."""
    shard = "".join(c for c in request.node.name if c.isalnum()).lower()
    both = link_to(one, ODDSENGINE_SCALE_SHARD=shard), link_to(one, ODDSENGINE_SCALE_SHARD=shard)
    try:
        yield both
    finally:
        for link in both:
            link.close()


async def taken(messages: AsyncIterator[LogMessage | None], n: int) -> list[LogMessage]:
    found: list[LogMessage] = []
    async for message in messages:
        if message is not None:
            found.append(message)
        if len(found) == n:
            break
    return found


def test_messages_come_in_order_with_their_epoch(links: tuple[LogConnection, LogConnection]) -> None:
    link, other = links
    log, follower = log_of(link), log_of(other)
    for at in range(5):
        assert link.call(log.append(b"%d" % at, at, 3)) == at + 1
    found = other.call(taken(follower.follow(2), 3))
    assert found == [(3, 3, b"2"), (4, 3, b"3"), (5, 3, b"4")]


def test_a_message_in_the_wrong_place_is_refused(links: tuple[LogConnection, LogConnection]) -> None:
    first, second = map(log_of, links)
    assert links[0].call(first.append(b"a", 0, 1)) == 1
    with pytest.raises(RefusedError):
        links[1].call(second.append(b"b", 0, 2))
    with pytest.raises(RefusedError):
        links[1].call(second.append(b"b", 7, 2))
    with pytest.raises(RefusedError):  # even with an epoch that both believe to have
        links[1].call(second.append(b"b", 0, 1))
    assert links[1].call(second.bounds()).last == 1


def test_a_message_whose_acknowledgement_was_lost_is_stored_once(links: tuple[LogConnection, LogConnection]) -> None:
    log = log_of(links[0])
    assert links[0].call(log.append(b"a", 0, 1)) == 1
    assert links[0].call(log.append(b"a", 0, 1)) == 1  # the same again: known by its id
    assert links[0].call(log.append(b"b", 1, 1)) == 2
    assert links[0].call(log.append(b"a", 0, 1)) == 1
    assert links[0].call(log.bounds()).last == 2


def test_closing_lines_wait_for_room_on_a_full_disk(links: tuple[LogConnection, LogConnection], tmp_path: Path) -> None:
    """A process whose disk is full goes on, and has all of them once there is room."""
    log, told = SharedLog(links[0], "records"), list[str]()
    links[0].call(log.open(*DAY), 60.0)
    recorded = PendingClosings(lambda: True)
    at = datetime(2026, 2, 8, 18, tzinfo=UTC)
    past = Past(engine := Engine(), tmp_path / "writer", store=recorded, method="power")
    prices = ("pinnacle", "Celtics", 1.95), ("pinnacle", "Lakers", 1.95), ("fanduel", "Celtics", 2.15)
    rows = [
        {
            "sportsbook": book, "event_id": f"e{n}", "sport": "basketball", "league": "nba", "home_team": "Celtics",
            "away_team": "Lakers", "market_type": "moneyline", "selection": team, "odds_decimal": odds,
            "event_start_time": at + timedelta(minutes=1), "last_seen_at": at,
        }
        for n in range(30)
        for book, team, odds in prices
    ]  # fmt: skip
    past.follow(engine.step(rows, at))
    past.follow(engine.step([], at + timedelta(minutes=1)))
    past.settle()
    sequence = 0
    while (body := recorded.first()) is not None:
        sequence = links[0].call(log.append(body, sequence, 1))
        recorded.stored()
    assert sequence >= 31
    closings = Closings(tmp_path / "closing.sqlite")
    file = closings.database.connection
    (pages,) = file.execute("PRAGMA page_count").fetchone()
    (most,) = file.execute("PRAGMA max_page_count").fetchone()
    file.execute(f"PRAGMA max_page_count = {pages}")
    storing = links[0].start(stored(log, closings, told.append))
    wait_for(lambda: any("database or disk is full" in text for text in told) or storing.done(), "the full disk")
    assert not storing.done()
    file.execute(f"PRAGMA max_page_count = {most}")
    wait_for(lambda: all(closings.closing(f"e{n}") is not None for n in range(30)), "closing lines")
    assert (closings.bets().height, told[-1]) == (30, "")
    storing.cancel()
    closings.close()
    past.close()


def test_only_one_holds_the_lease(links: tuple[LogConnection, LogConnection]) -> None:
    first, second = map(log_of, links)
    lease = links[0].call(first.lease("one"))
    assert lease is not None
    assert links[1].call(second.lease("two")) is None
    assert links[0].call(lease.renew())
    links[0].call(lease.release())
    after = links[1].call(second.lease("two"))
    assert after is not None
    assert after.epoch > lease.epoch
    assert not links[0].call(lease.renew())


def test_a_lease_that_nobody_renews_ends(links: tuple[LogConnection, LogConnection]) -> None:
    first, second = map(log_of, links)
    assert links[0].call(first.lease("one")) is not None
    took = wait_for(lambda: links[1].call(second.lease("two")) is not None, "the lease", 30.0)
    assert took > 0.5


def test_the_newest_snapshot_that_fits(links: tuple[LogConnection, LogConnection]) -> None:
    log = log_of(links[0])
    assert links[0].call(log.load(lambda _: True, bytes)) is None
    for sequence in (9, 10, 200, 1000):
        links[0].call(log.save({"sequence": str(sequence), "form": "1"}, b"%d" % sequence * 100_000))
    about, data = links[0].call(log.load(lambda about: int(about["sequence"]) < 1000, bytes))
    assert (about["sequence"], data) == ("200", b"200" * 100_000)
    assert links[0].call(log.load(lambda about: about["sequence"] == "9", bytes)) is None  # three are kept


def test_a_damaged_snapshot_is_passed_over(
    links: tuple[LogConnection, LogConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, log = links[0], log_of(links[0])
    monkeypatch.setattr(log_module, "_LOAD_S", 1.0)

    async def lose_a_part(name: str) -> None:
        jetstream = link.client.jetstream()
        part = (await (await jetstream.object_store("snapshots")).get_info(name)).nuid
        await jetstream.purge_stream("OBJ_snapshots", subject=f"$O.snapshots.C.{part}")

    whole = zstandard.compress(msgspec.msgpack.encode({"epoch": 7}))
    for sequence, data in enumerate((whole, whole[:-3], whole), 1):
        link.call(log.save({"sequence": str(sequence)}, data))
    link.call(lose_a_part(f"{link.scale.shard}.{3:020}"))
    about, held = link.call(log.load(lambda _: True, opened), 10.0)
    assert (about["sequence"], held) == ("1", {"epoch": 7})


def test_a_server_that_is_killed_and_one_that_is_wiped(tmp_path: Path) -> None:
    with servers(tmp_path) as found:
        link = link_to(found)
        try:
            log = log_of(link)
            link.call(log.append(b"a", 0, 1))
            found[0].kill()
            waiting = link.start(log.append(b"b", 1, 1))
            found[0].start()
            assert waiting.result(60.0) == 2  # sent again until it was stored
            found[0].kill()
            found[0].wipe()
            lost = link.start(log.append(b"c", 2, 1))
            following = link.start(taken(log.follow(2), 1))
            found[0].start()
            for each in (lost, following):
                with pytest.raises(LostError):
                    each.result(60.0)
        finally:
            link.close()


def test_a_log_that_seems_shorter_is_waited_for(
    links: tuple[LogConnection, LogConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, other = links
    log, follower = log_of(link), log_of(other)
    for at in range(3):
        link.call(log.append(b"%d" % at, at, 1))
    following = other.start(taken(follower.follow(4), 1))
    for at in range(3, 5):
        link.call(log.append(b"%d" % at, at, 1))
    assert following.result(60.0) == [(5, 1, b"4")]
    monkeypatch.setattr(log_module, "_LATE_S", 0.2)
    with pytest.raises(LostError, match="holds messages 1 to 5; the next to read is 8"):
        other.call(taken(follower.follow(7), 1), 60.0)


def test_a_step_that_no_message_holds_is_refused_and_the_next_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.scale.outbox.STALLED_S", 1e9)  # kernels may have to be compiled
    node = Node(Engine(), None, None)  # type: ignore[arg-type]
    outbox = Outbox(node, lambda: None, lambda: 140_000)
    now = datetime(2026, 2, 8, tzinfo=UTC)
    rng = random.Random(1)

    def quotes(n: int) -> list[dict[str, object]]:
        return [
            {"sportsbook": "a", "event_id": f"e{at}", "market_type": "moneyline", "selection": rng.randbytes(9).hex(),
             "odds_decimal": 1.5 + rng.random()} for at in range(n)
        ]  # fmt: skip

    try:
        node.step(quotes(10), now)
        for _ in range(6):
            node.step(quotes(500), now)
        with pytest.raises(TooLargeError, match=r"a step of 9,000 quotes makes a message of \d+,\d+ bytes, .* 140,000"):
            node.step(quotes(9000), now)
        assert node.engine.number == 7
        sent = []
        while outbox.first():
            entries, body = outbox.fitting()
            assert len(body) < 140_000 - 65_536
            assert unpacked(body)[0].value.number == entries[0].value.number
            sent += [entry.value.number for entry in entries]
            outbox.stored(len(entries))
        assert sent == list(range(1, 8))
    finally:
        node.close()


def test_a_take_over_keeps_every_event_id() -> None:
    """Two sources spell teams differently; whoever takes over hears of them in the other order."""
    now = datetime(2026, 2, 8, 18, tzinfo=UTC)
    spelled = {
        "one": [("a1", "FC Hintertupfing United", "Unterwasser Rovers"), ("a2", "Oberdorf Town FC", "Niederwald")],
        "two": [("b1", "Hintertupfing Utd", "Unterwasser Rovers FC"), ("b2", "Oberdorf Town", "Niederwald FC")],
    }

    async def deliver(hub: Hub, *names: str) -> dict[tuple[str, str], str]:
        for name in names:
            hub.add(declared(name))
            games = [Game(i, "soccer", "alpine_cup", h, a, now + timedelta(hours=2)) for i, h, a in spelled[name]]
            await hub.deliver(name, Payload(games, [quote(game, name) for game in games]))
        await hub.close()
        return {key: game.event for key, game in hub.applier.games.known.items() if game.event is not None}

    def nodes() -> Node:
        return Node(Engine(), None, None)  # type: ignore[arg-type]

    changes = Changes()
    first, second, alone = Node(Engine(), None, None, replication=changes), nodes(), nodes()  # type: ignore[arg-type]
    try:
        outbox = changes.outbox = Outbox(first, lambda: None, lambda: 8_000_000)
        follower = Follower(second, Changes())
        before = asyncio.run(deliver(Hub(first, Matcher(), clock=lambda: now, replication=changes), "one", "two"))
        assert len(before) == 4
        assert len(set(before.values())) == 2
        sequence = 0
        while outbox.first():
            entries, body = outbox.fitting()
            follower.apply(LogMessage(sequence := sequence + 1, 1, body))
            outbox.stored(len(entries))
        assert second.engine.state_hash() == first.engine.state_hash()
        taking_over = Hub(second, Matcher(), clock=lambda: now)
        taking_over.applier.adopt(follower.decisions.values())
        assert asyncio.run(deliver(taking_over, "two", "one")) == before
        assert second.engine.table()["event_id"].n_unique() == 2
        anew = asyncio.run(deliver(Hub(alone, Matcher(), clock=lambda: now), "two", "one"))
        assert anew != before  # what would happen without
    finally:
        for node in (first, second, alone):
            node.close()


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nats-py leaves silent servers open
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_two_of_three_go_on(tmp_path: Path, number: int) -> None:
    with servers(tmp_path, 3) as found:
        link = link_to(found, ODDSENGINE_SCALE_REPLICAS="3")
        try:
            log = log_of(link)
            for at in range(20):
                link.call(log.append(b"%d" % at, at, 1))
            leader = found.leader()
            leader.kill(number)
            for at in range(20, 40):
                assert link.call(log.append(b"%d" % at, at, 1), 60.0) == at + 1
            bodies = [message.body for message in link.call(taken(log.follow(0), 40), 60.0)]
            assert bodies == [b"%d" % at for at in range(40)]
        finally:
            link.close()
            if number == signal.SIGSTOP:
                leader.kill(signal.SIGCONT)


def test_settings_that_do_not_fit() -> None:
    server = {"ODDSENGINE_SCALE_SERVERS": "nats://127.0.0.1:4222", "ODDSENGINE_SCALE_ROLE": "gateway"}
    assert load(None, {}).scale is None
    for name, value in {"ROLE": "boss", "SERVERS": "http://x", "REPLICAS": "0", "SHARD": "a b"}.items():
        with pytest.raises(SettingsError, match=f"ODDSENGINE_SCALE_{name} must be"):
            load(None, {**server, f"ODDSENGINE_SCALE_{name}": value})
    named = load(None, {**server, "ODDSENGINE_SCALE_CREDENTIALS_ENV": "NOWHERE"})
    with pytest.raises(SettingsError, match="NOWHERE"):
        LogConnection(named, {}, lambda *_: None)
