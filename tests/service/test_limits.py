"""Limits: a minute's requests, streams at once, and what an account used, against a twin, a clock and threads."""

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.service_running import until

from oddsengine import catalog
from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.accounts.limits import USAGE_DAYS, Bucket, Limits, Room, Usage, UsageCounts, period
from oddsengine_service.errors import Problem
from oddsengine_service.http import access
from oddsengine_service.http.endpoints import Context
from oddsengine_service.replication import Replication
from oddsengine_service.routes.odds_routes import books_for
from oddsengine_service.tiers import TIERS, Account, Caller, books_of

SUNDAY = datetime(2026, 2, 8, 23, 59, 30, tzinfo=UTC)


class Clock:
    """A time that a test sets."""

    def __init__(self, at: datetime = SUNDAY) -> None:
        self.at = at.timestamp()

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[], None], count: int = 8) -> None:
    """Do it in several threads at once."""
    ready = threading.Barrier(count)

    def run() -> None:
        ready.wait()
        work()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- requests a minute ----


def test_a_minute_of_requests(clock: Clock) -> None:
    limits = Limits(clock=clock)
    reset = int(clock.at) + 30  # the minute of the clock ends, not one that began with the first request
    assert [limits.count_request("acme", 3) for _ in range(5)] == [
        Room(3, 2, reset, True),
        Room(3, 1, reset, True),
        Room(3, 0, reset, True),
        Room(3, 0, reset, False),
        Room(3, 0, reset, False),
    ]
    clock.at += 29.9
    assert not limits.count_request("acme", 3).allowed
    clock.at += 0.1
    assert limits.count_request("acme", 3) == Room(3, 2, reset + 60, True)


def test_each_account_and_address_has_its_own_minute(clock: Clock) -> None:
    limits = Limits(clock=clock)
    assert limits.count_request("acme", 1).allowed
    assert limits.count_request("other", 1).allowed
    assert limits.count_request("address acme", 1).allowed
    assert not limits.count_request("acme", 1).allowed


def test_keys_of_one_account_share_its_minute(clock: Clock) -> None:
    limits = Limits(clock=clock)
    for _ in range(12):
        limits.count_request("acme", 300)
    assert not limits.count_request("acme", 12).allowed
    assert limits.count_request("acme", 300).remaining == 300 - 14


@pytest.mark.parametrize(("who", "left"), [
    ("address 2001:db8::1", 7), ("address 2001:db8::2:3", 7), ("address 2001:db8::9%eth0", 7), ("2001:db8::1", 9),
    ("failed 2001:db8::1", 9), ("address 2001:db8:0:1::1", 9), ("address 2001:db8::", 7), ("address 1.2.3.4", 8),
    ("address ::ffff:1.2.3.4", 8), ("address 1.2.3.5", 9), ("address nowhere", 9),
])  # fmt: skip
def test_addresses_of_one_network_share_its_minute(clock: Clock, who: str, left: int) -> None:
    limits = Limits(clock=clock)
    for each in ("address 2001:db8::1", "address 2001:db8::ff:1", "address 1.2.3.4"):
        limits.count_request(each, 10)
    assert limits.room(who, 10).remaining == left + 1
    assert limits.count_request(who, 10).remaining == left


def test_requests_to_other_processes_count_in_their_minute(clock: Clock) -> None:
    minute = int(clock.at) // 60

    class Others(Replication):
        def requests_left(self, who: str, at: int, left: int, count: int = 0) -> int:
            return left - 7 * ((who, at) == ("acme", minute))

    limits = Limits(clock=clock, replication=Others())
    assert limits.count_request("acme", 10).remaining == limits.room("acme", 10).remaining == 2
    clock.at += 60.0
    assert limits.count_request("acme", 10).remaining == limits.room("acme", 10).remaining == 9


def test_looking_counts_nothing(clock: Clock) -> None:
    limits = Limits(clock=clock)
    assert limits.room("acme", 2) == Room(2, 2, int(clock.at) + 30, True)
    for remaining in (1, 0, 0):
        allowed = limits.room("acme", 2).allowed
        assert limits.count_request("acme", 2).allowed == allowed
        assert [limits.room("acme", 2).remaining for _ in range(3)] == [remaining] * 3
    assert not limits.room("acme", 2).allowed


@pytest.mark.usefixtures("often")
def test_threads_together_get_what_one_would() -> None:
    for _ in range(20):
        limits = Limits(clock=Clock())
        rooms: list[Room] = []
        together(lambda limits=limits, rooms=rooms: rooms.extend(limits.count_request("acme", 100) for _ in range(25)))  # type: ignore[misc]
        assert sorted(room.remaining for room in rooms) == [0] * 100 + [*range(100)]
        assert sum(room.allowed for room in rooms) == 100


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 30.0, 60.0]))))
def test_minutes_count_as_their_twin(steps: list[tuple[str, float]]) -> None:
    clock = Clock()
    limits = Limits(clock=clock)
    twin: dict[tuple[str, int], int] = {}
    for who, later in steps:
        clock.at += later
        minute = int(clock.at) // 60
        twin[who, minute] = twin.get((who, minute), 0) + 1
        assert limits.count_request(who, 1000).remaining == 1000 - twin[who, minute]
        for other in "abc":
            assert limits.room(other, 1000).remaining == 1000 - twin.get((other, minute), 0)


@given(
    st.sampled_from([0.25, 1.0, 8.0]), st.sampled_from([1.0, 20.0]),
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 4.0, 100.0]), st.sampled_from([0.0, 0.5, 1.0, 16.0])), max_size=8),
)  # fmt: skip
def test_a_bucket_fills_at_its_rate_up_to_its_burst(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    """What is left is the burst less what was taken, and less what it could not gain when it was full."""
    bucket, now, spent, lost = Bucket(rate, burst, 50.0), 50.0, 0.0, 0.0
    for wait, tokens in steps:
        now += wait
        lost = max(lost, (now - 50.0) * rate - spent)
        spent += tokens
        assert bucket.take_tokens(now, tokens) == burst + (now - 50.0) * rate - spent - lost


def test_many_addresses_need_bounded_memory(clock: Clock) -> None:
    limits = Limits(clock=clock, most=1000)
    for at in range(5000):
        limits.count_request(f"address {at}", 12)
        assert len(limits) <= 1000
    assert limits.count_request("address 4999", 12).remaining == 10  # the newest are still counted
    clock.at += 120
    for at in range(500):
        limits.count_request(f"address {at}", 12)
    assert len(limits) == 500  # what ended is gone


# ---- streams ----


def test_slots_are_taken_and_given_back() -> None:
    limits = Limits()
    assert [limits.open("acme", 2) for _ in range(3)] == [True, True, False]
    assert limits.open("other", 1)
    assert (limits.streams("acme"), limits.streams("other"), limits.streams("nobody")) == (2, 1, 0)
    limits.close("acme")
    assert limits.open("acme", 2)
    assert not limits.open("acme", 1)  # its tier fell meanwhile
    for _ in range(2):
        limits.close("acme")
    assert limits.streams("acme") == 0
    assert not limits.open("acme", 0)


def test_a_slot_is_given_back_once() -> None:
    limits = Limits()
    limits.open("acme", 1)
    limits.close("acme")
    with pytest.raises(RuntimeError, match="acme has no open stream"):
        limits.close("acme")
    assert limits.streams("acme") == 0


@pytest.mark.usefixtures("often")
def test_threads_never_have_more_slots_than_there_are() -> None:
    limits, most, worst, taken = Limits(), 3, [0], [0]
    held = threading.Semaphore(most)

    def work() -> None:
        for _ in range(300):
            if limits.open("acme", most):
                if not held.acquire(blocking=False):
                    worst[0] += 1
                    limits.close("acme")
                    continue
                taken[0] += 1
                time.sleep(0)
                held.release()
                limits.close("acme")

    together(work)
    assert worst == [0]
    assert taken[0] > 0
    assert limits.streams("acme") == 0
    assert [limits.open("acme", most) for _ in range(most + 1)] == [True] * most + [False]


# ---- what an account used ----


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.sqlite"


def test_days_weeks_and_months(file: Path, clock: Clock) -> None:
    """The 8th of February 2026 is a Sunday, its week began on the 2nd; on the 1st of March one is in a new month."""
    usage = Usage(file, 60.0, clock)
    limits = Limits(usage, clock=clock)

    def on(month: int, day: int, count: int) -> None:
        clock.at = datetime(2026, month, day, 12, tzinfo=UTC).timestamp()
        for _ in range(count):
            limits.count_request("acme", 10**6)
        usage.flush()

    for month, day, count in ((1, 31, 1), (2, 1, 10), (2, 2, 100), (2, 8, 1000)):
        on(month, day, count)
    assert limits.used("acme") == UsageCounts(1000, 1100, 1110)
    on(2, 9, 10_000)
    assert limits.used("acme") == UsageCounts(10_000, 10_000, 11_110)
    on(3, 1, 2)
    assert limits.used("acme") == UsageCounts(2, 2, 2)
    assert limits.used("other") == UsageCounts(0, 0, 0)
    usage.close()


def test_a_week_reaches_into_the_month_before(file: Path) -> None:
    clock = Clock(datetime(2026, 3, 31, 12, tzinfo=UTC))
    usage = Usage(file, 60.0, clock)
    usage.add("acme", clock())
    clock.at += 86_400
    usage.add("acme", clock())
    usage.flush()
    assert usage.used("acme") == UsageCounts(1, 2, 1)
    usage.close()


def test_what_waits_counts_too_and_midnight_divides_it(file: Path, clock: Clock) -> None:
    usage = Usage(file, 60.0, clock)
    usage.add("acme", clock())
    clock.at += 60
    usage.add("acme", clock())
    assert usage.used("acme") == UsageCounts(1, 1, 2)
    usage.flush()
    assert usage.used("acme") == UsageCounts(1, 1, 2)
    usage.close()


def test_only_answered_requests_of_accounts_are_used(file: Path, clock: Clock) -> None:
    usage = Usage(file, 60.0, clock)
    limits = Limits(usage, clock=clock)
    for who in ("acme", "address 1.2.3.4", "failed 1.2.3.4"):
        for _ in range(5):
            limits.count_request(who, 3)
    usage.close()
    with sqlite3.connect(file) as held:
        assert held.execute("SELECT account, requests FROM usage").fetchall() == [("acme", 3)]
    held.close()


def test_without_a_file_nothing_is_used() -> None:
    limits = Limits()
    limits.count_request("acme", 3)
    assert limits.used("acme") == UsageCounts(0, 0, 0)


def test_usage_is_written_now_and_then_and_outlives_a_node(file: Path) -> None:
    usage = Usage(file, every=0.05)
    usage.add("acme", time.time())
    with sqlite3.connect(file) as held:
        until = time.monotonic() + 5.0
        while not (rows := held.execute("SELECT requests FROM usage").fetchall()):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert rows == [(1,)]
    held.close()
    usage.add("acme", time.time())
    usage.close()
    other = Usage(file)
    assert other.used("acme").this_month in (1, 2)  # a month may have begun
    other.close()


def test_two_nodes_add_to_one_file(file: Path, clock: Clock) -> None:
    one, two = Usage(file, 60.0, clock), Usage(file, 60.0, clock)
    for usage, count in ((one, 3), (two, 4), (one, 5)):
        for _ in range(count):
            usage.add("acme", clock())
        usage.flush()
    assert one.used("acme") == two.used("acme") == UsageCounts(12, 12, 12)
    one.close()
    two.close()


def test_totals_of_all_processes_only_rise(file: Path, clock: Clock) -> None:
    usage, today = Usage(file, 60.0, clock), int(clock()) // 86_400
    usage.add("acme", clock())
    usage.flush()
    for total, known in ((5, 5), (3, 5), (7, 7)):
        usage.adopt_totals({("acme", today): total, ("other", today): 2})
        assert usage.this_month("acme") == known
        assert usage.totals() == {("acme", today): known, ("other", today): 2}
        assert usage.used("acme").today == known
    usage.close()


def test_requests_of_this_month_are_counted_without_the_file(file: Path, clock: Clock) -> None:
    usage = Usage(file, 60.0, clock)
    limits = Limits(usage, clock=clock)
    for _ in range(3):
        limits.count_request("acme", 5)
    usage.flush()
    limits.count_request("acme", 5)
    assert (limits.this_month("acme"), limits.this_month("other")) == (4, 0)
    usage.close()
    again = Usage(file, 60.0, clock)
    assert again.this_month("acme") == again.used("acme").this_month == 4
    clock.at = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert again.this_month("acme") == 0
    again.add("acme", clock())
    again.flush()
    assert again.this_month("acme") == 1
    again.close()


@pytest.mark.usefixtures("often")
def test_nothing_is_lost_while_it_is_written(file: Path, clock: Clock) -> None:
    usage = Usage(file, 0.001, clock)
    seen, months = list[int](), list[int]()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            seen.append(usage.used("acme").today)
            months.append(usage.this_month("acme"))

    watcher = threading.Thread(target=watch)
    watcher.start()

    def work() -> None:
        for _ in range(500):
            usage.add("acme", clock())

    together(work, 4)
    ended.set()
    watcher.join()
    assert seen == sorted(seen)
    assert months == sorted(months)
    assert usage.used("acme").today == usage.this_month("acme") == 2000
    usage.close()
    with sqlite3.connect(file) as held:
        assert held.execute("SELECT sum(requests) FROM usage").fetchall() == [(2000,)]
    held.close()


def test_what_cannot_be_written_waits(file: Path, clock: Clock) -> None:
    usage = Usage(file, 60.0, clock)
    usage.add("acme", clock())
    with sqlite3.connect(file) as held:
        held.execute("ALTER TABLE usage RENAME TO gone")
    usage.flush()
    assert usage.failure.endswith("no such table: usage")
    usage.add("acme", clock())
    held.execute("ALTER TABLE gone RENAME TO usage")
    held.commit()
    held.close()
    usage.flush()
    assert usage.failure == ""
    assert usage.used("acme") == UsageCounts(2, 2, 2)
    usage.close()


def test_an_error_of_any_kind_is_reported_and_usage_is_written_afterwards(file: Path) -> None:
    """What fails is no database and no file, such as a name that has no encoding."""
    reports: list[str] = []
    usage = Usage(file, 0.002, on_failure=reports.append)
    usage.add("bob\udcff", time.time())
    until(lambda: bool(reports))
    assert reports[0].startswith("usage is not written: UnicodeEncodeError: ")
    assert usage._thread.is_alive()
    usage._batch.clear()
    usage.add("ann", time.time())
    until(lambda: usage.failure == "")
    with sqlite3.connect(file) as held:
        assert held.execute("SELECT account FROM usage").fetchall() == [("ann",)]
    held.close()
    usage.close()


@pytest.mark.parametrize(
    "name", ["", "ann lee", "address 10.0.0.7", "bob\udcff", "-x", "demo_pro", "a" * 65, "f\u00fcr"]
)
def test_an_account_of_an_application_has_the_name_of_an_api_account(name: str) -> None:
    with pytest.raises(ValueError, match="account must be 1 to 64 letters, digits and"):
        Account(name, "pro").caller()
    assert Account("ann.lee+2@example.com").caller().account == "ann.lee+2@example.com"


def test_old_days_are_forgotten(file: Path, clock: Clock) -> None:
    usage = Usage(file, 60.0, clock)
    for days in (0, USAGE_DAYS - 1, 1):
        clock.at += 86_400 * days
        usage.add("acme", clock())
        usage.flush()
    usage.add("acme", clock() + 86_400)
    clock.at += 86_400
    usage.flush()
    usage.close()
    with sqlite3.connect(file) as held:
        assert held.execute("SELECT count(*) FROM usage").fetchall() == [(3,)]
    held.close()


@pytest.mark.parametrize("month", range(1, 13))
def test_a_period_is_a_month(month: int) -> None:
    start, end = period((datetime(2026, month, 1, tzinfo=UTC) + timedelta(days=26, hours=3)).timestamp())
    assert (start.month, start.day, start.hour) == (month, 1, 0)
    assert end == datetime(2026 + month // 12, month % 12 + 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("reset", "wait"), [(90, 1), (100, 1), (101, 1), (102, 2), (160, 60)])
def test_a_refused_caller_waits_until_the_minute_ends(reset: int, wait: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "time", SimpleNamespace(time=lambda: 100.9))
    problem = access.limited(Room(5, 0, reset, allowed=False), "requests")
    assert problem.message == f"rate limit of 5 requests a minute exceeded; retry in {wait} s"
    assert problem.extra == {"retry_after": wait}


def test_usage_that_is_closed_holds_neither_a_file_nor_the_process(tmp_path: Path) -> None:
    usage = Usage(tmp_path / "usage.sqlite")
    assert usage._thread.daemon  # also where nobody closes it
    usage.close()
    assert not usage._thread.is_alive()
    with pytest.raises(DatabaseError, match="closed"):
        usage.used("acme")


# ---- books of tiers ----


def test_books_of_a_tier() -> None:
    sets = [books_of(tier) for tier in ("free", "hobby", "pro")]
    assert [len(some or ()) for some in sets] == [TIERS[tier].books for tier in ("free", "hobby", "pro")]
    assert all((low or set()) < (high or set()) for low, high in pairwise(sets))
    assert books_of("sharp") is books_of("enterprise") is None


def test_books_of_an_answer() -> None:
    anything: Any = None

    def books(tier: str, requested: list[str] | None, added: Sequence[str] = ()) -> frozenset[str] | None:
        caller = Caller("acme", "k", TIERS[tier], 1, 0, TIERS[tier].features)
        return books_for(Context(caller, {}, {}, None, anything, anything, ()), requested, added)

    first, second = sorted(books_of("free") or ())
    other = next(book for book in catalog.books() if book not in (first, second))
    assert books("free", None) == frozenset((first, second))
    assert books("free", [first], [second]) == frozenset((first, second))
    assert books("free", [first]) == frozenset((first,))
    assert books("sharp", None) is None
    assert books("sharp", [other], [first]) == frozenset((other, first))
    for requested, added in (([other], []), ([first], [other])):
        with pytest.raises(Problem, match=f"{other} requires the"):
            books("free", requested, added)
