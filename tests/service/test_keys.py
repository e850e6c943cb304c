"""Keys: who is found, what is kept of a secret, who may manage which, and the endpoints of an account."""

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import stat
import threading
import time
import timeit
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import msgspec
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from oddsengine_service.accounts import keys as module
from oddsengine_service.accounts.database import Database, DatabaseError, StoreError
from oddsengine_service.accounts.keys import (
    FEATURES,
    BeyondError,
    KeysError,
    KeyStore,
    KeyTerms,
    UnfitError,
    UnknownKeyError,
    open_store,
)
from oddsengine_service.accounts.limits import Limits, Usage
from oddsengine_service.clock import Clock as NodeClock
from oddsengine_service.errors import Problem
from oddsengine_service.http.endpoints import Context
from oddsengine_service.replication import Replication
from oddsengine_service.routes import account as api
from oddsengine_service.settings import load
from oddsengine_service.tiers import TIERS, Caller

DEMOS = [f"demo_{tier}" for tier in TIERS]
NOON = datetime(2026, 2, 8, 12, tzinfo=UTC)


class Clock:
    """A time that a test sets."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at.timestamp()

    def __call__(self) -> float:
        return self.at


def opened(folder: Path, **more: Any) -> KeyStore:
    return KeyStore(folder / "keys.sqlite", folder / "keys.pepper", **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(folder: Path) -> Iterator[KeyStore]:
    found = opened(folder)
    yield found
    found.close()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[KeyStore]:
    found = opened(tmp_path / "demo", demo=True)
    yield found
    found.close()


def until(done: Callable[[], bool], most: float = 5.0) -> float:
    """Wait for something; how long it took."""
    start = time.monotonic()
    while not done():
        assert time.monotonic() - start < most, "it does not happen"
        time.sleep(0.005)
    return time.monotonic() - start


def caller(store: KeyStore, key: str) -> Caller:
    found = store.find(key)
    assert found is not None
    return found


# ---- who is found ----


def test_a_key_finds_who_has_it(store: KeyStore) -> None:
    made = store.create("acme", KeyTerms("pro"), "web")
    assert store.find(made.key) == Caller("acme", made.record.id, TIERS["pro"], 300, 0, TIERS["pro"].features)


@pytest.mark.parametrize(
    ("terms", "rate", "streams"),
    [
        (KeyTerms("free"), 12, 0),
        (KeyTerms("hobby", streaming=True), 120, 10),
        (KeyTerms("pro", rate=7), 7, 0),
        (KeyTerms("sharp", streaming=True, streams=3), 1000, 3),
        (KeyTerms("enterprise"), 6000, 100),
        (KeyTerms("enterprise", streaming=True), 6000, 100),
        (KeyTerms("enterprise", rate=20_000, streams=0), 20_000, 0),
    ],
    ids=str,
)
def test_limits_are_the_tiers_unless_the_key_has_its_own(
    store: KeyStore, terms: KeyTerms, rate: int, streams: int
) -> None:
    found = caller(store, store.create("acme", terms).key)
    assert (found.rate, found.streams) == (rate, streams)


def test_features_are_the_tiers_unless_the_key_has_its_own(store: KeyStore) -> None:
    assert caller(store, store.create("acme", KeyTerms("hobby")).key).features == TIERS["hobby"].features
    own = frozenset({"odds", "futures"})
    assert caller(store, store.create("acme", KeyTerms("hobby", own)).key).features == own
    assert caller(store, store.create("acme", KeyTerms("hobby", frozenset())).key).features == frozenset()


def test_the_form_of_a_key(store: KeyStore) -> None:
    made = [store.create("acme", KeyTerms("pro")) for _ in range(20)]
    for one in made:
        ident, dot, secret = one.key.partition(".")
        assert (ident, dot) == (one.record.id, ".")
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", secret)  # 43 * 6 bits hold 256
        assert quote(one.key, safe="") == one.key
    assert len({one.key.partition(".")[2] for one in made}) == len({one.record.id for one in made}) == 20


@pytest.mark.parametrize(
    "strange", ["", ".", "..", "a", "é.é", "\x00", "%", "'; --", "x" * 100_000, "\udc80", *DEMOS], ids=lambda s: s[:9]
)
def test_strange_keys_are_nobodys(store: KeyStore, strange: str) -> None:
    made = store.create("acme", KeyTerms("pro"))
    assert store.find(strange) is None
    assert store.find(f"{made.record.id}.{strange}") is None
    assert store.find(made.key + strange) is (None if strange else store.find(made.key))


def test_parts_of_keys_are_nobodys(store: KeyStore) -> None:
    one, two = store.create("acme", KeyTerms("pro")), store.create("acme", KeyTerms("pro"))
    secret = one.key.partition(".")[2]
    for wrong in (one.record.id, secret, f".{secret}", f"{two.record.id}.{secret}", one.key[:-1], one.key.upper()):
        assert store.find(wrong) is None
    assert store.find(one.key) is not None


def test_an_unknown_id_is_compared_as_a_known_one_is(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made = store.create("acme", KeyTerms("pro"))
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(module, "hmac", SimpleNamespace(compare_digest=compare))
    for wrong in (made.key[:-2] + "zz", "oe_ffffffffffff." + "z" * 43, "nothing"):
        compared.clear()
        assert store.find(wrong) is None
        assert compared == [(32, 32)] * 2, "the secret, and the one before it"


def test_who_is_known_is_found_in_about_the_time_of_a_hash(store: KeyStore) -> None:
    key = store.create("acme", KeyTerms("pro")).key
    pepper = secrets.token_bytes(32)
    found = min(timeit.repeat(lambda: store.find(key), number=5000, repeat=7))
    hashed = min(timeit.repeat(lambda: hashlib.blake2b(key.encode(), key=pepper).digest(), number=5000, repeat=7))
    assert found < 6 * hashed


# ---- what is kept ----


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_file_holds_a_secret(store: KeyStore, folder: Path) -> None:
    made = [store.create("acme", KeyTerms("pro"), "web") for _ in range(5)]
    rotated = store.rotate(made[0].record.id)
    store.revoke(made[1].record.id)
    for one in (*made, rotated):
        store.find(one.key)
        secret = one.key.partition(".")[2].encode()
        for held in (contents(folder), contents(folder.parent)):
            assert one.record.id.encode() in held  # what is looked for would be found
            assert secret not in held
            for plain in (hashlib.sha256, hashlib.blake2b, lambda b: hashlib.blake2b(b, digest_size=32)):
                for what in (secret, one.key.encode()):
                    assert plain(what).digest() not in held  # a hash that anybody can compute


def test_files_are_their_owners(folder: Path) -> None:
    before = os.umask(0)
    try:
        store = opened(folder)
        store.create("acme", KeyTerms("pro"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        store.close()
    finally:
        os.umask(before)
    assert {"keys.sqlite", "keys.pepper"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_keys_outlive_a_node(folder: Path) -> None:
    store = opened(folder)
    made = store.create("acme", KeyTerms("sharp", frozenset({"odds"}), True, 9, 4), "web")
    before = caller(store, made.key)
    store.close()
    again = opened(folder)
    assert again.find(made.key) == before
    assert again.record(made.record.id).terms == made.record.terms
    again.close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda pepper: pepper.unlink(), "is missing"),
        (lambda pepper: pepper.write_bytes(secrets.token_bytes(32)), "is not the pepper"),
        (lambda pepper: pepper.write_bytes(b"short"), "must have 32 bytes"),
    ],
    ids=["missing", "another", "short"],
)
def test_without_its_pepper_the_file_is_refused(folder: Path, spoil: Callable[[Path], Any], sentence: str) -> None:
    opened(folder).close()
    spoil(folder / "keys.pepper")
    with pytest.raises(KeysError, match=sentence) as refused:
        opened(folder)
    assert refused.tb, "which keeps what was not closed open"
    assert not [each for each in psutil.Process().open_files() if Path(each.path).parent == folder]


def test_a_pepper_that_is_there_is_used(folder: Path) -> None:
    opened(folder).close()
    pepper = (folder / "keys.pepper").read_bytes()
    (folder / "keys.sqlite").unlink()
    for _ in range(2):
        store = opened(folder)
        assert store.warning.startswith(f"{folder / 'keys.sqlite'} has no keys, but {folder / 'keys.pepper'} exists")
        store.close()
    assert (folder / "keys.pepper").read_bytes() == pepper
    (folder / "keys.sqlite").write_bytes(b"")
    store = opened(folder)
    assert "restore" in store.warning
    store.create("mia", KeyTerms("pro"))
    store.close()
    store = opened(folder)
    assert store.warning == ""
    store.close()


def test_other_files_are_refused_with_a_sentence(folder: Path) -> None:
    opened(folder).close()
    with sqlite3.connect(folder / "keys.sqlite") as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,), "or a newer format could not be told apart"
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(DatabaseError, match="another version"):
        opened(folder)
    for path in folder.iterdir():
        path.unlink()
    (folder / "keys.sqlite").write_bytes(b"no database at all " * 100)
    with pytest.raises(DatabaseError, match="not a database"):
        opened(folder)


def test_many_may_begin_at_once(tmp_path: Path) -> None:
    for turn in range(5):
        folder = tmp_path / str(turn)
        ready = threading.Barrier(6)
        stores: list[KeyStore] = []
        made: list[str] = []

        def begin(folder: Path = folder, ready: Any = ready, stores: Any = stores, made: Any = made) -> None:
            ready.wait()
            store = opened(folder)
            stores.append(store)
            made.append(store.create("acme", KeyTerms("pro")).key)

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 6
        assert all(store.find(key) for store in stores for key in made)
        for store in stores:
            store.close()


def test_secrets_are_in_no_text(store: KeyStore, caplog: pytest.LogCaptureFixture) -> None:
    made = store.create("acme", KeyTerms("pro"), "web")
    other = caller(store, store.create("other", KeyTerms("pro")).key)
    secret = made.key.partition(".")[2]
    texts = [repr(made), str(made), repr(made.record), repr(store.list()), repr(store), repr(caller(store, made.key))]
    for attempt in (
        lambda: store.record(made.key),
        lambda: store.revoke(made.key),
        lambda: store.rotate(made.key, other),
        lambda: store.create_like(other._replace(key=made.key), None, ""),
    ):
        with pytest.raises(UnknownKeyError) as refused:
            attempt()
        texts += ["".join(traceback.format_exception(refused.value)), repr(refused.value)]
    assert all(secret not in text for text in [*texts, caplog.text])
    assert made.record.id in texts[0]


# ---- changes ----


def test_a_revoked_key_stops_at_once_here(store: KeyStore) -> None:
    made, kept = store.create("acme", KeyTerms("pro")), store.create("acme", KeyTerms("pro"))
    assert store.find(made.key)
    assert not store.revoke(made.record.id).active
    assert store.find(made.key) is None
    assert store.find(kept.key)
    assert not store.revoke(made.record.id).active  # and stays so


def test_a_rotated_key_has_another_secret(store: KeyStore) -> None:
    made = store.create("acme", KeyTerms("pro"), "web")
    before = caller(store, made.key)
    again = store.rotate(made.record.id)
    assert again.key != made.key
    assert store.find(made.key) is None
    assert store.find(again.key) == before
    store.revoke(made.record.id)
    with pytest.raises(UnfitError, match="revoked"):
        store.rotate(made.record.id)
    assert store.find(again.key) is None


def test_an_old_secret_works_until_its_grace_period_ends(folder: Path) -> None:
    now = 1_000_000.0
    store = KeyStore(folder / "keys.sqlite", folder / "keys.pepper", clock=lambda: now)
    made = store.create("acme", KeyTerms("pro"), "web")
    before = caller(store, made.key)
    again = store.rotate(made.record.id, grace=60)
    old = before._replace(reads_only=True)
    assert (store.find(made.key), store.find(again.key)) == (old, before)
    assert again.record.old_until == datetime.fromtimestamp(now + 60, UTC)
    now += 59.0
    store._due = 0.0
    assert store.find(made.key) == old
    now += 1.0
    store._due = 0.0  # it looks every 0.25 s
    assert store.find(made.key) is None
    assert store.find(again.key) == before
    assert store.find(made.key) is None, "read from the file again"

    second = store.rotate(made.record.id, grace=60)
    third = store.rotate(made.record.id, grace=60)
    found = [store.find(one.key) for one in (made, again, second, third)]
    assert found == [None, None, old, before], "only the last one before"
    last = store.rotate(made.record.id)
    assert [store.find(one.key) for one in (second, third, last)] == [None, None, before]
    store.rotate(made.record.id, grace=60)
    store.revoke(made.record.id)
    assert store.find(last.key) is None, "neither secret of a revoked key works"
    for grace in (-1, 30 * 86_400 + 1):
        with pytest.raises(UnfitError, match=r"from 0 to 2,592,000 seconds, got"):
            store.rotate(store.create("acme", KeyTerms("pro")).record.id, grace=grace)
    store.close()


def test_an_old_secret_goes_to_another_store_and_a_key_without_one_to_an_older_version(tmp_path: Path) -> None:
    one, pepper = KeyStore(tmp_path / "a.sqlite", tmp_path / "pepper"), tmp_path / "pepper"
    other = KeyStore(tmp_path / "b.sqlite", pepper)
    made, plain = one.create("acme", KeyTerms("pro")), one.create("acme", KeyTerms("pro"))
    again = one.rotate(made.record.id, grace=600)
    rows = one.export_rows()
    assert ["old_hash" in row for row in rows] == [True, False]
    assert "old_until" not in rows[1]
    other.merge_rows(rows)
    assert all(other.find(each.key) is not None for each in (made, again, plain))
    one.rotate(made.record.id)
    other.merge_rows(one.export_rows())
    assert other.find(made.key) is other.find(again.key) is None
    one.close()
    other.close()


def test_a_retiered_key_has_other_rights(store: KeyStore) -> None:
    made = store.create("acme", KeyTerms("hobby", rate=5))
    assert caller(store, made.key).tier.id == "hobby"
    store.retier(made.record.id, tier="sharp", streaming=True)
    found = caller(store, made.key)
    assert (found.tier.id, found.rate, found.streams) == ("sharp", 5, 10)
    store.retier(made.record.id, rate=None)
    assert caller(store, made.key).rate == 1000
    with pytest.raises(UnfitError, match="does not support streaming"):
        store.retier(made.record.id, tier="free")
    assert caller(store, made.key).tier.id == "sharp"


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda s, i: s.revoke(i), lambda found: found is None),
        (lambda s, i: s.rotate(i), lambda found: found is None),
        (lambda s, i: s.retier(i, tier="hobby"), lambda found: found.tier.id == "hobby"),
        (lambda s, i: s.retier(i, rate=3), lambda found: found.rate == 3),
        (lambda s, i: s._writer.connection.execute("DELETE FROM keys WHERE id = ?", (i,)), lambda found: found is None),
    ],
    ids=["revoke", "rotate", "retier", "rate", "by hand"],
)
def test_a_change_elsewhere_is_seen_within_a_second(
    store: KeyStore, folder: Path, change: Callable[..., Any], seen: Callable[..., bool]
) -> None:
    made = store.create("acme", KeyTerms("pro"))
    other = opened(folder)
    assert not seen(store.find(made.key))
    change(other, made.record.id)
    assert until(lambda: seen(store.find(made.key))) < 1.0
    other.close()


def test_who_is_known_is_remembered_until_a_key_changes(store: KeyStore, folder: Path) -> None:
    made, other = store.create("acme", KeyTerms("pro")), store.create("acme", KeyTerms("pro"))
    store.find(made.key)
    until(lambda: store.record(made.record.id).used is not None)
    first = store.find(made.key)
    with sqlite3.connect(folder / "keys.sqlite") as file:
        file.execute("CREATE TABLE more (x)")
    file.close()
    time.sleep(0.3)
    assert store.find(made.key) is first  # another table says nothing of keys
    store.retier(other.record.id, rate=5)
    assert store.find(made.key) is not first


def test_the_last_day_of_use_is_kept(folder: Path) -> None:
    clock = Clock()
    store = opened(folder, clock=clock)
    made = store.create("acme", KeyTerms("pro"))
    assert store.record(made.record.id).used is None
    store.find(made.key)
    until(lambda: store.record(made.record.id).used == date(2026, 2, 8))
    clock.at += 86_400
    until(lambda: bool(store.find(made.key)) and store.record(made.record.id).used == date(2026, 2, 9))
    assert store.record(made.record.id).updated_at == NOON
    store.close()


def test_no_thread_finds_a_key_after_it_was_revoked(store: KeyStore) -> None:
    made = [store.create("acme", KeyTerms("pro")) for _ in range(20)]
    gone: set[str] = set()
    ended, wrong = threading.Event(), []

    def ask() -> None:
        while not ended.is_set():
            for one in made:
                before = one.key in gone
                if store.find(one.key) is not None and before:
                    wrong.append(one.record.id)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for one in made:
        store.revoke(one.record.id)
        gone.add(one.key)
        time.sleep(0.005)
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_key_revoked_during_a_refresh_is_not_found(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refresh has read the file before the change, and ends after it."""
    made = store.create("acme", KeyTerms("pro"))
    for _ in range(2):
        assert store.find(made.key) is not None
        store._stamps.submit(int).result()  # the use is stamped
        store._due = 0.0
    revoking = threading.Thread(target=store.revoke, args=[made.record.id])
    day = store._day

    def during() -> str:
        if not revoking.ident:
            revoking.start()
            revoking.join(0.5)  # it may wait for the refresh
        return day()

    monkeypatch.setattr(store, "_day", during)
    assert store.find(made.key) is not None
    revoking.join()
    assert store.find(made.key) is None


# ---- who may do what ----


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        (KeyTerms("gold"), "tier must be one of free, hobby, pro, sharp, enterprise, got 'gold'"),
        (KeyTerms("pro", frozenset({"odds", "gossip"})), "got 'gossip'"),
        (KeyTerms("pro", rate=0), "rate must be"),
        (KeyTerms("pro", rate=10**9), "rate must be"),
        (KeyTerms("enterprise", streams=-1), "streams must be"),
        (KeyTerms("free", streaming=True), "free tier does not support streaming"),
        (KeyTerms("pro", streams=5), "require the streaming add-on"),
    ],
    ids=["tier", "feature", "rate", "too_fast", "streams", "free_streams", "no_add_on"],
)
def test_terms_that_no_key_can_have_are_refused(store: KeyStore, terms: KeyTerms, sentence: str) -> None:
    with pytest.raises(UnfitError, match=sentence):
        store.create("acme", terms)
    assert store.list() == []


@pytest.mark.parametrize("account", ["", "two words", "address 1.2.3.4", "demo_pro", "x" * 65, ".x", "a\n", "é"])
def test_names_of_accounts(store: KeyStore, account: str) -> None:
    with pytest.raises(UnfitError, match="account must be"):
        store.create(account, KeyTerms("pro"))


@pytest.mark.parametrize("name", ["x" * 101, "a\x1b[2J", "a\x00"])
def test_names_of_keys(store: KeyStore, name: str) -> None:
    with pytest.raises(UnfitError, match="name must be"):
        store.create("acme", KeyTerms("pro"), name)


def test_the_longest_names_and_the_outermost_numbers_are_allowed(store: KeyStore) -> None:
    made = store.create("x" * 64, KeyTerms("enterprise", rate=1, streams=100_000), "x" * 100)
    assert (len(made.record.account), len(made.record.name)) == (64, 100)
    assert store.retier(made.record.id, rate=1_000_000, streams=0).terms.rate == 1_000_000


TERMS = st.builds(
    KeyTerms,
    st.sampled_from([*TIERS]),
    st.none() | st.frozensets(st.sampled_from(sorted(FEATURES))),
    st.booleans(),
    st.none() | st.integers(1, 10_000),
    st.none() | st.integers(0, 200),
)


@given(TERMS, st.sampled_from([*TIERS]))
def test_lowered_terms_give_no_right_more(terms: KeyTerms, tier: str) -> None:
    try:
        high = terms.checked().caller("a", "k")
    except UnfitError:
        return
    if TIERS[tier].rank > high.tier.rank:
        return
    low = terms.lowered(tier).checked().caller("a", "k")
    assert low.tier.id == tier
    assert low.rate <= high.rate
    assert low.features <= high.features
    assert low.streams <= max(high.streams, 0)
    if tier != terms.tier:  # where they differ from their tier, they may be above it
        assert low.rate == min(high.rate, TIERS[tier].rate)
        assert low.features == high.features & TIERS[tier].features


@pytest.mark.parametrize("tier", [*TIERS])
def test_the_add_on_stays_in_every_lower_tier_that_may_have_it(tier: str) -> None:
    try:
        has = KeyTerms(tier, streaming=True).checked().streaming
    except UnfitError:
        has = False
    assert KeyTerms("enterprise", streaming=True).lowered(tier).streaming == has


def test_a_new_key_is_never_above_the_one_that_made_it(store: KeyStore) -> None:
    pro = caller(store, store.create("acme", KeyTerms("pro", frozenset({"odds", "ev"}), True, 50)).key)
    same, lower = store.create_like(pro, None, "same"), store.create_like(pro, "free", "lower")
    assert caller(store, same.key)._replace(key="") == pro._replace(key="")
    found = caller(store, lower.key)
    assert (found.account, found.tier.id, found.rate, found.streams) == ("acme", "free", 12, 0)
    assert found.features == {"odds"}
    with pytest.raises(BeyondError, match="cannot create a key of tier sharp"):
        store.create_like(pro, "sharp", "")
    with pytest.raises(UnfitError, match="tier must be"):
        store.create_like(pro, "gold", "")
    assert len(store.list("acme")) == 3


def test_a_key_that_lost_rights_makes_none_with_them(store: KeyStore) -> None:
    made = store.create("acme", KeyTerms("sharp"))
    before = caller(store, made.key)  # a request that was let in just before
    store.retier(made.record.id, tier="hobby")
    with pytest.raises(BeyondError):
        store.create_like(before, "pro", "")
    store.revoke(made.record.id)
    with pytest.raises(UnknownKeyError):
        store.create_like(before, "hobby", "")


@pytest.mark.parametrize(
    "higher",
    [KeyTerms("pro"), KeyTerms("hobby", rate=999), KeyTerms("hobby", FEATURES), KeyTerms("hobby", streaming=True)],
    ids=["tier", "rate", "features", "streams"],
)
def test_a_key_does_not_rotate_one_with_more_rights(store: KeyStore, higher: KeyTerms) -> None:
    low = caller(store, store.create("acme", KeyTerms("hobby")).key)
    high = store.create("acme", higher)
    with pytest.raises(BeyondError, match="has more rights"):
        store.rotate(high.record.id, low)
    assert store.find(high.key)
    assert caller(store, store.rotate(low.key, caller(store, high.key)).key) == low


def test_a_key_manages_its_own_account_only(store: KeyStore) -> None:
    mine = caller(store, store.create("acme", KeyTerms("enterprise")).key)
    theirs = store.create("other", KeyTerms("free"))
    for attempt in (store.record, store.revoke, store.rotate):
        with pytest.raises(UnknownKeyError, match="unknown key"):
            attempt(theirs.record.id, mine)
    assert [record.account for record in store.list("acme")] == ["acme"]
    assert store.find(theirs.key)


def test_an_account_has_so_many_keys(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ACTIVE", 3)
    monkeypatch.setattr(module, "MOST_REVOKED", 2)
    made = [store.create("acme", KeyTerms("pro")) for _ in range(3)]
    with pytest.raises(UnfitError, match="revoke one first"):
        store.create("acme", KeyTerms("pro"))
    store.create("other", KeyTerms("pro"))
    for _ in range(5):
        store.revoke(made[-1].record.id)
        made.append(store.create("acme", KeyTerms("pro")))
    records = store.list("acme")
    assert sum(record.active for record in records) == 3
    assert sum(not record.active for record in records) == 2
    assert all(store.find(one.key) for one in (*made[:2], made[-1]))


# ---- other stores ----


def test_keys_of_another_store_are_taken(store: KeyStore, folder: Path, tmp_path: Path) -> None:
    made = store.create("acme", KeyTerms("pro", frozenset({"odds"}), True, 9, 4), "web")
    gone = store.create("acme", KeyTerms("free"))
    store.revoke(gone.record.id)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "keys.pepper").write_bytes((folder / "keys.pepper").read_bytes())
    offered: list[dict[str, Any]] = []

    class Offered(Replication):
        def key_changed(self, row: dict[str, Any]) -> None:
            offered.append(row)

    other = opened(tmp_path / "other", replication=Offered())
    assert other.pepper_check == store.pepper_check
    assert other.merge_rows(store.export_rows()) == 2
    assert (caller(other, made.key), other.find(gone.key), offered) == (caller(store, made.key), None, [])
    store.retier(made.record.id, rate=8)
    assert other.merge_rows(store.export_rows()[:1], offer=True) == 1
    assert caller(other, made.key).rate == 8
    assert offered == other.export_rows()[:1] == store.export_rows()[:1]
    for wrong in ({"id": "oe_1"}, {**store.export_rows()[0], "more": 1}):
        with pytest.raises(UnfitError, match="a key has the fields"):
            other.merge_rows([wrong])
    other.close()


def test_a_closed_store_holds_no_file(folder: Path) -> None:
    store = opened(folder)
    store.close()
    for file in (store._reader.connection, store._writer.connection):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            file.execute("SELECT 1")


def test_a_read_waits_less_for_a_lock_than_a_change(store: KeyStore) -> None:
    waits = [
        file.execute("PRAGMA busy_timeout").fetchone()[0]
        for file in (store._reader.connection, store._writer.connection)
    ]
    assert waits == [250, 5000]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    base = Database(None)
    base.file = tmp_path / "gone" / "keys.sqlite"
    for code, named in ((sqlite3.SQLITE_CANTOPEN, True), (sqlite3.SQLITE_BUSY, False)):
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = code
        with pytest.raises(StoreError) as refused, base.reading():
            raise error
        assert str(refused.value).endswith("/gone must be a folder that can be written") is named


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can be someone else")
def test_a_file_of_another_user_is_named_as_such(tmp_path: Path) -> None:
    """As after root has restored a backup."""
    with TemporaryDirectory() as name:  # others may not enter that of the test
        folder = Path(name)
        folder.chmod(0o777)
        Database(folder / "keys.sqlite", ["CREATE TABLE facts (n)"]).close()
        os.setresuid(65534, 65534, 0)
        try:
            with pytest.raises(StoreError) as refused:
                Database(folder / "keys.sqlite", ["CREATE TABLE facts (n)"])
        finally:
            os.setresuid(0, 0, 0)
    assert str(refused.value).endswith("; the user of this process must be able to read and write it")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED), 503).items(),
        *dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_CANTOPEN), 503).items(),
        (sqlite3.SQLITE_PERM, 503), (sqlite3.SQLITE_FULL, 507), (sqlite3.SQLITE_CORRUPT, None), (None, None),
    ],
)  # fmt: skip
def test_what_a_caller_hears_of_a_broken_database(code: int | None, status: int | None) -> None:
    """A database that will work again has a status of its own; another error is one of ours."""
    error = sqlite3.DatabaseError("no")
    if code is not None:
        error.sqlite_errorcode = code
    with pytest.raises(DatabaseError) as refused, Database(None).reading():
        raise error
    assert isinstance(refused.value, StoreError) is (status is not None)
    if isinstance(refused.value, StoreError):
        problem = refused.value
        name = "unavailable" if status == 503 else "insufficient_storage"
        assert (problem.status, problem.code, problem.extra.get("retry_after")) == (
            status, name, 1 if status == 503 else None,
        )  # fmt: skip


# ---- the demonstration ----


def test_lowered_terms_keep_what_the_lower_tier_may_have() -> None:
    terms = KeyTerms("sharp", streaming=True, streams=3)
    assert terms.lowered("pro") == KeyTerms("pro", streaming=True, streams=3)
    assert terms.lowered("free") == KeyTerms("free")
    assert KeyTerms("sharp", streams=3).lowered("pro") == KeyTerms("pro")
    assert terms.lowered("sharp") is terms


def test_demonstration_keys(demo: KeyStore) -> None:
    found = {key: caller(demo, key) for key in DEMOS}
    assert [(one.account, one.tier.id) for one in found.values()] == [(f"demo_{tier}", tier) for tier in TIERS]
    assert [one.streams for one in found.values()] == [0, 0, 10, 10, 100]
    assert demo.find("demo_gold") is None
    assert demo.find("demo_pro.x") is None


def test_demonstration_keys_are_in_no_file(demo: KeyStore, tmp_path: Path) -> None:
    pro = caller(demo, "demo_pro")
    demo.record("demo_pro", pro)
    held = contents(tmp_path / "demo")
    assert all(key.encode() not in held for key in DEMOS)


def test_keys_that_a_demonstration_made_end_with_it(demo: KeyStore, tmp_path: Path) -> None:
    made = demo.create_like(caller(demo, "demo_pro"), None, "mine")
    assert caller(demo, made.key).account == "demo_pro"
    real = opened(tmp_path / "demo")
    assert real.find(made.key) is None
    assert real.find("demo_pro") is None
    real.close()


def test_demonstration_keys_are_fixed(demo: KeyStore) -> None:
    pro = caller(demo, "demo_pro")
    for attempt in (demo.revoke, demo.rotate):
        with pytest.raises(UnfitError, match="demo key"):
            attempt("demo_pro", pro)
        with pytest.raises(UnknownKeyError):
            attempt("demo_free", pro)
    assert demo.find("demo_pro") == pro


# ---- against a twin ----


class TwoStores(RuleBasedStateMachine):
    """Two nodes over one file do what a dict does."""

    made = Bundle("made")

    @initialize(folder=st.builds(lambda: Path(os.environ["KEYS_TWIN"]) / secrets.token_hex(4)))
    def begin(self, folder: Path) -> None:
        self.folder = folder
        self.stores = [opened(folder), opened(folder)]
        self.key_of: dict[str, str] = {}  # id to its key
        self.expected: dict[str, tuple[str, KeyTerms]] = {}  # active keys: account and terms
        self.seen: set[str] = set()  # every key there ever was

    def _took(self, made: Any) -> str:
        self.seen.add(made.key)
        ident: str = made.record.id
        self.key_of[ident] = made.key
        self.expected[made.key] = made.record.account, made.record.terms
        return ident

    @rule(target=made, at=st.integers(0, 1), account=st.sampled_from(["a", "b"]), terms=TERMS)
    def create(self, at: int, account: str, terms: KeyTerms) -> str:
        try:
            return self._took(self.stores[at].create(account, terms))
        except UnfitError:
            return self._took(self.stores[at].create(account, KeyTerms(terms.tier)))

    @rule(target=made, at=st.integers(0, 1), by=made, tier=st.sampled_from([*TIERS]))
    def create_like(self, at: int, by: str, tier: str) -> str:
        known = self.expected.get(self.key_of[by])
        if known is None or TIERS[tier].rank > TIERS[known[1].tier].rank:
            account, terms = known or ("a", KeyTerms("enterprise"))
            with pytest.raises(BeyondError if known else UnknownKeyError):
                self.stores[at].create_like(terms.caller(account, by), tier, "")
            return by
        return self._took(self.stores[at].create_like(known[1].caller(known[0], by), tier, ""))

    @rule(at=st.integers(0, 1), ident=made)
    def revoke(self, at: int, ident: str) -> None:
        self.stores[at].revoke(ident)
        self.expected.pop(self.key_of[ident], None)

    @rule(at=st.integers(0, 1), ident=made)
    def rotate(self, at: int, ident: str) -> None:
        known = self.expected.pop(self.key_of[ident], None)
        if known is None:
            with pytest.raises(UnfitError):
                self.stores[at].rotate(ident)
        else:
            self._took(self.stores[at].rotate(ident))

    @rule(at=st.integers(0, 1), ident=made, terms=TERMS)
    def retier(self, at: int, ident: str, terms: KeyTerms) -> None:
        try:
            record = self.stores[at].retier(ident, **terms.__dict__)
        except UnfitError:
            return
        assert record.terms == terms
        if self.key_of[ident] in self.expected:
            self.expected[self.key_of[ident]] = record.account, terms

    @rule(at=st.integers(0, 1))
    def reopen(self, at: int) -> None:
        self.stores[at].close()
        self.stores[at] = opened(self.folder)

    @invariant()
    def same(self) -> None:
        for store in self.stores:
            for key in self.seen:
                known = self.expected.get(key)
                assert store.find(key) == (known and known[1].caller(known[0], key.partition(".")[0]))
            active = {record.id: (record.account, record.terms) for record in store.list() if record.active}
            assert active == {key.partition(".")[0]: known for key, known in self.expected.items()}

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()


def test_two_stores_agree_with_a_dict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS_TWIN", str(tmp_path))
    monkeypatch.setattr(module, "_LOOK_S", 0.0)  # the other node need not wait
    monkeypatch.setattr(module, "_REMEMBERED", 3)
    machine: Any = TwoStores.TestCase
    machine("runTest").runTest()


# ---- settings ----


def test_the_settings_name_the_files(tmp_path: Path) -> None:
    apart = tmp_path / "apart" / "pepper"
    environ = {"ODDSENGINE_DATA_FOLDER": str(tmp_path / "d"), "ODDSENGINE_KEYS_PEPPER": str(apart)}
    environ["ODDSENGINE_KEYS_FILE"] = "who.sqlite"
    open_store(load(None, environ)).close()
    assert apart.exists()
    assert (tmp_path / "d" / "who.sqlite").exists()


# ---- endpoints ----

ENDPOINTS = {(one.method, one.path): one for one in api.endpoints}


class Node:
    """What the endpoints of an account need of a node."""

    def __init__(self, keys: KeyStore, usage: Usage | None = None) -> None:
        self.keys, self.limits, self.clock = keys, Limits(usage), NodeClock()

    def ask(self, who: Caller, method: str, path: str, body: Any = None, **values: str) -> Any:
        """Answer as the service does: the body, through JSON."""
        endpoint = ENDPOINTS[method, path]
        if endpoint.body is not None:
            body = msgspec.convert(body, endpoint.body)
        any_node: Any = self
        found = endpoint.response(Context(who, endpoint.query(), values, body, any_node, any_node, ()))
        assert found.status == endpoint.status
        answer = msgspec.json.decode(found.body)
        assert answer["success"] is True
        return answer


KEY_FIELDS = {"id", "id_masked", "name", "tier", "is_active", "created_at", "updated_at"}


def test_every_endpoint_is_never_kept_and_needs_a_key() -> None:
    assert {(one.cache, one.key, one.query_key) for one in api.endpoints} == {("never", "needed", False)}
    assert len(ENDPOINTS) == 6


def test_account(store: KeyStore) -> None:
    made = store.create("acme", KeyTerms("sharp", streaming=True), "web")
    found = Node(store).ask(caller(store, made.key), "GET", "/account")["data"]
    assert found == {
        "key_id": made.record.id,
        "tier": "sharp",
        "rate_limit": {"requests_per_minute": 1000, "max_books": 999},
        "features": {name: name in TIERS["sharp"].features for name in FEATURES} | {"streaming": True},
        "streaming": {"enabled": True, "max_connections": 10},
        "key": {"id": made.record.id, "id_masked": f"{made.record.id}.****"},
        "limits": {"requests_per_minute": 1000, "max_streams": 10, "odds_delay_seconds": 0, "max_books": 999},
        "add_ons": ["streaming"],
    }
    free = Node(store).ask(caller(store, store.create("acme", KeyTerms("free")).key), "GET", "/account")["data"]
    assert free["rate_limit"] == {"requests_per_minute": 12, "max_books": 2}
    assert free["streaming"] == {"enabled": False, "max_connections": 0}
    assert (free["limits"]["odds_delay_seconds"], free["add_ons"]) == (60, [])


def test_account_usage(store: KeyStore, folder: Path) -> None:
    usage = Usage(folder / "keys.sqlite", every=60.0)
    node = Node(store, usage)
    who = caller(store, store.create("acme", KeyTerms("hobby", streaming=True)).key)
    for _ in range(7):
        room = node.limits.count_request(who.account, who.rate)
    node.limits.open(who.account, who.streams)
    found = node.ask(who, "GET", "/account/usage")["data"]
    requests = found["requests"]
    assert (requests["today"], requests["this_week"], requests["this_month"]) == (7, 7, 7)
    limit = requests["limit"]
    assert set(limit) == {"per_minute", "remaining", "resets_at"}
    assert (limit["per_minute"], limit["remaining"]) == (120, 113)
    assert limit["resets_at"].endswith("Z")
    assert datetime.fromisoformat(limit["resets_at"]).timestamp() == room.reset
    assert found["streams"] == {"active": 1, "max": 10}
    start, end = (datetime.fromisoformat(found["period"][name]) for name in ("start", "end"))
    assert start <= datetime.now(UTC) < end
    usage.close()


def test_managing_keys(store: KeyStore) -> None:
    node = Node(store)
    who = caller(store, store.create("acme", KeyTerms("pro"), "first").key)
    made = node.ask(who, "POST", "/account/keys", {"name": " web "})["data"]
    assert set(made) == KEY_FIELDS | {"key"}
    assert (made["name"], made["tier"], made["is_active"]) == ("web", "pro", True)
    assert made["id_masked"].startswith(made["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["created_at"])
    assert store.find(made["key"])
    listed = node.ask(who, "GET", "/account/keys")["data"]
    assert [set(one) for one in listed] == [KEY_FIELDS, KEY_FIELDS]
    assert [one["name"] for one in listed] == ["first", "web"]
    rotated = node.ask(who, "POST", "/account/keys/{id}/rotate", id=made["id"])["data"]
    new, old = rotated.pop("new_key"), rotated.pop("old_key")
    assert set(rotated) == KEY_FIELDS | {"key"}
    assert new == rotated
    assert old == {"id": made["id"], "revoked": True, "expires_at": rotated["updated_at"]}
    assert store.find(made["key"]) is None
    assert caller(store, rotated["key"]).key == made["id"]
    gone = node.ask(who, "DELETE", "/account/keys/{id}", id=made["id"])["data"]
    assert gone == {"deleted": True, "key_id": made["id"], "message": "The key was revoked."}
    assert store.find(rotated["key"]) is None
    assert [one["is_active"] for one in node.ask(who, "GET", "/account/keys")["data"]] == [True, False]


@pytest.mark.parametrize(
    ("method", "path", "body", "which", "status", "code"),
    [
        ("POST", "/account/keys", {"tier": "sharp"}, "", 403, "tier_restricted"),
        ("POST", "/account/keys", {"tier": "gold"}, "", 400, "validation_error"),
        ("POST", "/account/keys", {"name": "\x07"}, "", 400, "validation_error"),
        ("DELETE", "/account/keys/{id}", None, "theirs", 404, "not_found"),
        ("DELETE", "/account/keys/{id}", None, "none", 404, "not_found"),
        ("POST", "/account/keys/{id}/rotate", None, "theirs", 404, "not_found"),
        ("POST", "/account/keys/{id}/rotate", None, "higher", 403, "tier_restricted"),
        ("POST", "/account/keys/{id}/rotate", None, "revoked", 400, "validation_error"),
    ],
)
def test_what_cannot_be_managed(
    store: KeyStore, method: str, path: str, body: Any, which: str, status: int, code: str
) -> None:
    made = {
        "mine": store.create("acme", KeyTerms("pro")),
        "theirs": store.create("other", KeyTerms("pro")),
        "higher": store.create("acme", KeyTerms("sharp")),
        "revoked": store.create("acme", KeyTerms("pro")),
    }
    store.revoke(made["revoked"].record.id)
    ident = made[which].record.id if which in made else "oe_none"
    with pytest.raises(Problem) as refused:
        Node(store).ask(caller(store, made["mine"].key), method, path, body, id=ident)
    assert (refused.value.status, refused.value.code) == (status, code)
    assert len(store.list()) == 4


def test_what_the_disk_did_is_not_the_callers_fault(store: KeyStore) -> None:
    who = caller(store, store.create("acme", KeyTerms("pro")).key)
    with store._writing() as writer:  # not between the statements of the stamp's own transaction
        writer.execute("ALTER TABLE keys RENAME TO gone")
    with pytest.raises(DatabaseError, match="no such table") as failed:
        Node(store).ask(who, "POST", "/account/keys", {})
    assert not isinstance(failed.value, Problem)
