"""API keys in an embedded database.

    oe_5c0d21be9f47.Jx3o...        id, a dot, and a secret of 256 bits

The file does not contain keys, but their hashes with a pepper, which is in a separate file; a copy of the database
alone is useless. A key is looked up by its id and compared in constant time, with a decoy for unknown ids.

A key that was rotated may keep its old secret for a while: its hash, and until when it is valid, are in the same row.
The old secret only reads: with it, nobody makes a key that outlives it, or takes the key from its owner.

Since the same keys are used again and again, callers are cached by their key. A counter in the database that every
change of a key increments keeps the cache valid: it is read at most four times a second, and when it has changed, the
cache is cleared. So a change of a key, by this process or another one, takes effect within a second.
Replacing an open file is not noticed: stop the node before restoring a backup.

Accounts that begin with `demo_` exist only in the demo. Their five fixed keys are not stored.
"""

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from oddsengine_service.accounts.database import RETRY_S, WAIT_S, Database, StoreError
from oddsengine_service.errors import one_of, quoted
from oddsengine_service.replication import ALONE, Replication
from oddsengine_service.settings import Settings
from oddsengine_service.tiers import ADD_ON_STREAMS, DEMO, TIERS, Caller, check_account

MOST_ACTIVE, MOST_REVOKED = 100, 100  # keys per account: more active ones are rejected; older revoked ones are deleted
MOST_NAME, MOST_RATE, MOST_STREAMS = 100, 1_000_000, 100_000
# No control characters, and no bidirectional or invisible ones.
NAME_PATTERN = "^[^\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*$"
FEATURES = frozenset[str]().union(*(tier.features for tier in TIERS.values()))
_MOST_KEY = 200  # maximum length of a key
_LOOK_S = 0.25
_REMEMBERED = 10_000
_READ_WAIT_S = 0.25  # for another process's lock
_PEPPER = 32  # bytes
MOST_GRACE = 30 * 86_400  # seconds that an old secret may stay valid
_VERSION = 2
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, account TEXT NOT NULL, name TEXT NOT NULL, tier TEXT NOT NULL,
    features TEXT, streaming INTEGER NOT NULL, rate INTEGER, streams INTEGER, active INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, used TEXT, old_hash BLOB, old_until INTEGER
)""",
    "CREATE INDEX IF NOT EXISTS keys_account ON keys (account)",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value)",
    "INSERT OR IGNORE INTO facts VALUES ('changes', 0)",
    """CREATE TRIGGER IF NOT EXISTS keys_changed
    AFTER UPDATE OF id, hash, account, tier, features, streaming, rate, streams, active ON keys
    BEGIN UPDATE facts SET value = value + 1 WHERE name = 'changes'; END""",
    """CREATE TRIGGER IF NOT EXISTS keys_deleted
    AFTER DELETE ON keys BEGIN UPDATE facts SET value = value + 1 WHERE name = 'changes'; END""",
)
_COLUMNS = "hash, id, account, name, tier, features, streaming, rate, streams, active, created_at, updated_at, used"
_ALL = f"{_COLUMNS}, old_hash, old_until"  # the last two of a secret that a rotation replaced


class KeysError(ValueError):
    """The keys cannot be read or changed; the message is one sentence without secrets."""


class UnfitError(KeysError):
    """The request is not valid."""

    status, code = 400, "validation_error"


class UnknownKeyError(KeysError):
    """No such key, or not in the account."""

    status, code = 404, "not_found"


class BeyondError(KeysError):
    """More rights than the caller has."""

    status, code = 403, "tier_restricted"


# ---- rights of a key ----


@dataclass(frozen=True)
class KeyTerms:
    """The rights of a key: its tier, and where it differs from the tier; None means as in the tier."""

    tier: str
    features: frozenset[str] | None = None
    streaming: bool = False  # the streaming add-on
    rate: int | None = None  # requests per minute
    streams: int | None = None  # concurrent streams

    def checked(self) -> "KeyTerms":
        if self.tier not in TIERS:
            raise UnfitError(f"tier must be {one_of(tuple(TIERS))}, got {quoted(self.tier)}")
        if self.features is not None and (strange := sorted(self.features - FEATURES)):
            raise UnfitError(f"features must be a list of {', '.join(sorted(FEATURES))}, got {quoted(strange[0])}")
        for name, value, low, most in (("rate", self.rate, 1, MOST_RATE), ("streams", self.streams, 0, MOST_STREAMS)):
            if value is not None and not low <= value <= most:
                raise UnfitError(f"{name} must be a whole number from {low} to {most:,}, got {value}")
        tier = TIERS[self.tier]
        if self.streaming and not tier.rank:
            raise UnfitError(f"the {self.tier} tier does not support streaming")
        if self.streams and not (self.streaming or tier.streams):
            raise UnfitError(f"streams require the streaming add-on on the {self.tier} tier")
        return self

    def caller(self, account: str, ident: str) -> Caller:
        tier = TIERS[self.tier]
        streams = max(tier.streams, ADD_ON_STREAMS if self.streaming and tier.rank else 0)
        return Caller(
            account,
            ident,
            tier,
            tier.rate if self.rate is None else self.rate,
            streams if self.streams is None else self.streams,
            tier.features if self.features is None else self.features,
        )

    def lowered(self, tier: str) -> "KeyTerms":
        """Terms in a lower or equal tier, with no more rights than these."""
        if tier == self.tier:
            return self
        low = TIERS[tier]
        streaming = self.streaming and low.rank > 0
        return KeyTerms(
            tier,
            None if self.features is None else self.features & low.features,
            streaming,
            None if self.rate is None else min(self.rate, low.rate),
            self.streams if streaming else None,
        )


@dataclass(frozen=True)
class Record:
    """A key without its secret."""

    id: str
    account: str
    name: str
    terms: KeyTerms
    active: bool
    created_at: datetime
    updated_at: datetime
    used: date | None  # last day of use, UTC
    old_until: datetime | None = None  # until when the secret before the last rotation is valid

    @property
    def caller(self) -> Caller:
        return self.terms.caller(self.account, self.id)

    @property
    def mask(self) -> str:
        """The key with its secret masked."""
        return f"{self.id}.****"


@dataclass(frozen=True)
class CreatedKey:
    """A newly created key; its secret cannot be read again."""

    record: Record
    key: str = field(repr=False)


# ---- the file ----


def _record(row: Any) -> Record:
    _, ident, account, name, tier, features, streaming, rate, streams, active, created, updated, used, _, until = row
    own = None if features is None else frozenset(features.split())
    return Record(
        ident,
        account,
        name,
        KeyTerms(tier, own, bool(streaming), rate, streams),
        bool(active),
        datetime.fromtimestamp(created, UTC),
        datetime.fromtimestamp(updated, UTC),
        None if used is None else date.fromisoformat(used),
        None if until is None else datetime.fromtimestamp(until, UTC),
    )


def _row(row: Any) -> dict[str, Any]:
    """A row as plain data; only one with an old secret has fields for it."""
    *plain, old_hash, old_until = row
    fields = {**dict(zip(_COLUMNS.split(", "), plain, strict=True)), "hash": row[0].hex(), "used": None}
    return fields if old_hash is None else {**fields, "old_hash": old_hash.hex(), "old_until": old_until}


def _columns(terms: KeyTerms) -> dict[str, Any]:
    features = None if terms.features is None else " ".join(sorted(terms.features))
    return {**vars(terms), "features": features}


class KeyStore:
    """Keys in an SQLite file. All methods are thread-safe; `find` is fast enough for the event loop."""

    def __init__(
        self, file: Path, pepper: Path, *, demo: bool = False, clock: Callable[[], float] = time.time,
        replication: Replication = ALONE,
    ) -> None:  # fmt: skip
        self._demo, self._clock, self._replication = demo, clock, replication
        self._writer = Database(file, _SCHEMA, _VERSION, wait=WAIT_S)
        try:
            with self._writer.transaction() as writer:  # its lock excludes other processes
                self._pepper, self.warning = _read_pepper(writer, file, pepper)
            self._reader = Database(file, wait=_READ_WAIT_S)
        except BaseException:
            self._writer.close()
            raise
        self._keyed = hashlib.blake2b(key=self._pepper, digest_size=32)
        self._fixed = _fixed(datetime.fromtimestamp(int(clock()), UTC)) if demo else {}
        self._callers = {ident: record.caller for ident, record in self._fixed.items()}
        self._cached = dict(self._callers)
        self._decoy = secrets.token_bytes(32)  # compared for unknown ids
        self._due = 0.0
        self._ends = float("inf")  # when the first cached old secret is no longer valid
        self._failure = ""  # of the last read
        self._seen: Any = None  # the file's version, the counter of changes, the day
        self._stamps = ThreadPoolExecutor(1, thread_name_prefix="keys")

    def close(self) -> None:
        self._stamps.shutdown()
        self._reader.close()
        self._writer.close()

    # ---- authentication ----

    def find(self, key: str) -> Caller | None:
        if time.monotonic() >= self._due:
            self._refresh()
        if self._failure:
            raise StoreError(self._failure)
        return self._cached.get(key) or self._read(key)

    def revoked(self, key: str) -> bool:
        """Whether a key that is not valid was once."""
        if len(key) > _MOST_KEY or not key.isascii():
            return False
        with self._read_or_wait() as reader:
            found = reader.execute(
                "SELECT 1 FROM keys WHERE id = ? AND hash = ? AND NOT active", (key.partition(".")[0], self._hash(key))
            )
            return found.fetchone() is not None

    def _hash(self, key: str) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(key.encode())
        return keyed.digest()

    def _refresh(self) -> None:
        """Clear the cache if a key changed, an old secret is no longer valid, or a new day began."""
        with self._read_or_wait() as reader:
            now = time.monotonic()
            if now < self._due:
                return
            ((version,),) = reader.execute("PRAGMA data_version").fetchall()
            day = self._day()
            if self._clock() >= self._ends:
                self._cached, self._ends = dict(self._callers), float("inf")
            if self._seen is None or (version, day) != (self._seen[0], self._seen[2]):
                ((changes,),) = reader.execute("SELECT value FROM facts WHERE name = 'changes'").fetchall()
                if self._seen is None or (changes, day) != self._seen[1:]:
                    self._cached = dict(self._callers)
                self._seen = version, changes, day
            self._due, self._failure = now + _LOOK_S, ""

    def _read(self, key: str) -> Caller | None:
        if len(key) > _MOST_KEY or not key.isascii():
            return None
        cached = self._cached  # taken before reading the file: if a change comes in between, this one is discarded
        ident, digest = key.partition(".")[0], self._hash(key)
        with self._read_or_wait() as reader:
            rows = reader.execute("SELECT hash, old_hash, old_until FROM keys WHERE id = ?", (ident,)).fetchall()
            new, old, until = rows[0] if rows else (self._decoy, None, None)
            until = until or 0
            is_new = hmac.compare_digest(new, digest)
            is_old = hmac.compare_digest(old or self._decoy, digest) and until > self._clock()
            if not (is_new or is_old):
                return None
            rows = reader.execute(
                f"SELECT {_ALL} FROM keys WHERE id = ? AND ? IN (hash, old_hash) AND active",
                (ident, digest),
            ).fetchall()
        if not rows:
            return None
        if is_old and not is_new:
            self._ends = min(self._ends, until)
        record = _record(rows[0])
        if record.account.startswith(DEMO) and not self._demo:
            return None
        if len(cached) >= _REMEMBERED:
            cached = self._cached = dict(self._callers)
        caller = cached[key] = record.caller if is_new else record.caller._replace(reads_only=True)
        if str(record.used) != self._day():
            self._stamps.submit(self._stamp, record.id)
        return caller

    def _stamp(self, ident: str) -> None:
        with self._writing() as writer:
            writer.execute("UPDATE keys SET used = ? WHERE id = ?", (self._day(), ident))

    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self._clock()))

    # ---- management ----

    def list(self, account: str | None = None) -> "list[Record]":
        """All keys of an account (None: of all), including revoked ones, oldest first."""
        where, values = ("", ()) if account is None else ("WHERE account = ?", (account,))
        fixed = [record for record in self._fixed.values() if account in (None, record.account)]
        with self._writer.reading() as writer:
            rows = writer.execute(f"SELECT {_ALL} FROM keys {where} ORDER BY rowid", values).fetchall()
        return fixed + [_record(row) for row in rows]

    @property
    def is_used(self) -> bool:
        """Whether a key of this file has been used."""
        with self._writer.reading() as writer:
            return writer.execute("SELECT 1 FROM keys WHERE used IS NOT NULL LIMIT 1").fetchone() is not None

    def record(self, ident: str, by: Caller | None = None) -> Record:
        with self._writer.reading() as writer:
            return self._own(writer, ident, by)

    def create(self, account: str, terms: KeyTerms, name: str = "") -> CreatedKey:
        """Create a key with any terms; for the operator."""
        try:
            check_account(account)
        except ValueError as error:
            raise UnfitError(str(error)) from None
        terms, name = terms.checked(), _named(name)
        with self._writing() as writer:
            return self._insert(writer, account, terms, name)

    def create_like(self, by: Caller, tier: str | None, name: str) -> CreatedKey:
        """Create a key with the rights of the caller's key, or those of a lower tier."""
        tier = by.tier.id if tier is None else tier
        name = _named(name)
        if tier not in TIERS:
            raise UnfitError(f"tier must be {one_of(tuple(TIERS))}, got {quoted(tier)}")
        with self._writing() as writer:
            maker = self._asking(writer, by)
            if TIERS[tier].rank > TIERS[maker.terms.tier].rank:
                raise BeyondError(f"this key's tier is {maker.terms.tier}, and it cannot create a key of tier {tier}")
            return self._insert(writer, maker.account, maker.terms.lowered(tier), name)

    def revoke(self, ident: str, by: Caller | None = None) -> Record:
        """Revoke a key permanently; no effect if it is already revoked."""
        with self._writing() as writer:
            record = self._changeable(writer, ident, by)
            return self._change(writer, ident, active=False) if record.active else self._changed(writer, ident)

    def rotate(self, ident: str, by: Caller | None = None, grace: int = 0) -> CreatedKey:
        """Rotate a key; the old secret stops working after `grace` seconds, and one before it at once."""
        if not 0 <= grace <= MOST_GRACE:
            raise UnfitError(f"the grace period must be from 0 to {MOST_GRACE:,} seconds, got {grace:,}")
        with self._writing() as writer:
            record = self._changeable(writer, ident, by)
            if not record.active:
                raise UnfitError(f"key {quoted(record.id)} is revoked; create a new one")
            if by is not None and not _within(record.caller, self._asking(writer, by).caller):
                raise BeyondError(f"key {quoted(record.id)} has more rights than the API key of this request")
            key = _new_key(record.id)
            (before,) = writer.execute("SELECT hash FROM keys WHERE id = ?", (record.id,)).fetchone()
            old, until = (before, int(self._clock()) + grace) if grace else (None, None)
            return CreatedKey(self._change(writer, record.id, hash=self._hash(key), old_hash=old, old_until=until), key)

    def retier(self, ident: str, **changed: Any) -> Record:
        """Change fields of a key's `KeyTerms`; for the operator."""
        with self._writing() as writer:
            record = self._changeable(writer, ident, None)
            return self._change(writer, record.id, **_columns(replace(record.terms, **changed).checked()))

    # ---- replication ----

    def export_rows(self) -> "Sequence[dict[str, Any]]":
        """All keys as plain data, with hashes instead of secrets."""
        with self._writer.reading() as writer:
            rows = writer.execute(f"SELECT {_ALL} FROM keys ORDER BY rowid").fetchall()
        return [_row(row) for row in rows]

    def merge_rows(self, rows: "Iterable[Mapping[str, Any]]", *, offer: bool = False) -> int:
        """Store keys from another store. Returns their number. With `offer`, they are replicated.

        Raises `UnfitError` if a row is not valid.
        """
        needed, names = _COLUMNS.split(", "), _ALL.split(", ")
        n = 0
        with self._writing() as writer:
            for row in rows:
                if set(row) not in (set(needed), set(names)):
                    raise UnfitError(f"a key has the fields {', '.join(needed)}, got {', '.join(map(str, row))[:200]}")
                values = [
                    bytes.fromhex(row[name]) if name.endswith("hash") and name in row else row.get(name)
                    for name in names
                ]
                writer.execute(
                    f"INSERT INTO keys ({_ALL}) VALUES ({', '.join('?' * len(names))}) "
                    "ON CONFLICT (id) DO UPDATE SET "
                    + ", ".join(f"{name} = excluded.{name}" for name in names if name not in ("id", "used")),
                    values,
                )
                n += 1
                if offer:
                    self._changed(writer, row["id"])
        return n

    @property
    def pepper_check(self) -> str:
        """A value that identifies the pepper without revealing it."""
        return _check(self._pepper).hex()

    def _change(self, writer: sqlite3.Connection, ident: str, **columns: Any) -> Record:
        columns["updated_at"] = int(self._clock())
        names = ", ".join(f"{name} = ?" for name in columns)
        writer.execute(f"UPDATE keys SET {names} WHERE id = ?", (*columns.values(), ident))
        return self._changed(writer, ident)

    def _changed(self, writer: sqlite3.Connection, ident: str) -> Record:
        """A changed key, offered for replication."""
        row = writer.execute(f"SELECT {_ALL} FROM keys WHERE id = ?", (ident,)).fetchone()
        self._replication.key_changed(_row(row))
        return self._own(writer, ident, None)

    # ---- helpers ----

    def _insert(self, writer: sqlite3.Connection, account: str, terms: KeyTerms, name: str) -> CreatedKey:
        (active,) = writer.execute("SELECT count(*) FROM keys WHERE account = ? AND active", (account,)).fetchone()
        if active >= MOST_ACTIVE:
            raise UnfitError(f"limit of {active} keys per account reached; revoke one first")
        writer.execute(
            "DELETE FROM keys WHERE account = ?1 AND NOT active AND id NOT IN (SELECT id FROM keys "
            "WHERE account = ?1 AND NOT active ORDER BY updated_at DESC, rowid DESC LIMIT ?2)",
            (account, MOST_REVOKED),
        )
        key = _new_key("oe_" + secrets.token_hex(6))
        ident, now = key.partition(".")[0], int(self._clock())
        values = (self._hash(key), ident, account, name, *_columns(terms).values(), True, now, now, None)
        writer.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})", values)
        return CreatedKey(self._changed(writer, ident), key)

    def _own(self, connection: sqlite3.Connection, ident: str, by: Caller | None) -> Record:
        record = self._fixed.get(ident)
        if record is None:
            rows = connection.execute(f"SELECT {_ALL} FROM keys WHERE id = ?", (ident,)).fetchall()
            record = _record(rows[0]) if rows else None
        if record is None or (by is not None and record.account != by.account):
            raise UnknownKeyError(f"unknown key {quoted(ident.partition('.')[0])}")  # it may be a complete key
        return record

    def _asking(self, connection: sqlite3.Connection, by: Caller) -> Record:
        record = self._own(connection, by.key, by)
        if not record.active:
            raise UnknownKeyError("the API key of this request was revoked")
        return record

    def _changeable(self, writer: sqlite3.Connection, ident: str, by: Caller | None) -> Record:
        record = self._own(writer, ident, by)
        if record.id in self._fixed:
            raise UnfitError(f"demo key {record.id} cannot be changed")
        return record

    @contextmanager
    def _read_or_wait(self) -> Iterator[sqlite3.Connection]:
        """Read; after a failure, reading is suspended for a while, since waiting for a lock blocks callers."""
        try:
            with self._reader.reading() as reader:
                yield reader
        except StoreError as error:
            self._failure, self._due = str(error), time.monotonic() + RETRY_S
            raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, durable at its end; the next `find` rereads."""
        with self._writer.lock:
            with self._writer.transaction() as writer:
                yield writer
            with self._reader.lock:  # a refresh that began before the change sets the time of the next one first
                self._due = 0.0


def open_store(settings: Settings, *, demo: bool = False, replication: Replication = ALONE) -> KeyStore:
    folder = Path(settings.data.folder)
    return KeyStore(folder / settings.keys.file, folder / settings.keys.pepper, demo=demo, replication=replication)


def _new_key(ident: str) -> str:
    return f"{ident}.{secrets.token_urlsafe(32)}"


def _named(name: str) -> str:
    name = name.strip()
    if len(name) > MOST_NAME or not re.search(NAME_PATTERN, name):
        raise UnfitError(f"name must be at most {MOST_NAME} printable characters, got {quoted(name)}")
    return name


def _within(one: Caller, other: Caller) -> bool:
    """Whether one tier has no more rights than another."""
    return (
        one.tier.rank <= other.tier.rank
        and one.rate <= other.rate
        and one.streams <= other.streams
        and one.features <= other.features
    )


def _fixed(now: datetime) -> dict[str, Record]:
    """The demo's keys by their secret, which is also their id."""
    out = {}
    for tier in TIERS.values():
        terms = KeyTerms(tier.id, streaming=tier.rank >= TIERS["pro"].rank)
        name = DEMO + tier.id
        out[name] = Record(
            name, name, f"demo of the {tier.id} tier", terms, active=True, created_at=now, updated_at=now, used=None
        )
    return out


def _read_pepper(writer: sqlite3.Connection, file: Path, pepper: Path) -> tuple[bytes, str]:
    """The pepper, which is created with the file, and a warning if it is of keys that may have been lost."""
    rows = writer.execute("SELECT value FROM facts WHERE name = 'pepper'").fetchall()
    new = not rows and not pepper.exists()
    if new:
        _make_pepper(pepper)
    try:
        value = pepper.read_bytes()
    except FileNotFoundError:
        raise KeysError(f"{pepper} is missing; restore it, keys cannot be verified without it") from None
    if len(value) != _PEPPER:
        raise KeysError(f"{pepper} must have {_PEPPER} bytes, got {len(value):,}")
    if not rows:
        writer.execute("INSERT INTO facts VALUES ('pepper', ?)", (_check(value),))
    elif not hmac.compare_digest(_check(value), rows[0][0]):
        raise KeysError(f"{pepper} is not the pepper that these keys were created with; restore that file")
    if new or writer.execute("SELECT 1 FROM keys LIMIT 1").fetchone():
        return value, ""
    return value, f"{file} has no keys, but {pepper} exists: if keys were lost, restore {file} from a backup"


def _make_pepper(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)  # left by a crashed process
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(secrets.token_bytes(_PEPPER))
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def _check(pepper: bytes) -> bytes:
    return hashlib.blake2b(b"pepper", key=pepper, digest_size=16).digest()
