"""Keys: who has which, in an embedded database.

    oe_5c0d21be9f47.Jx3o...        id, a dot, and a secret of 256 bits

The file holds no key, but its hash under a pepper that lies in a file of its own; who copies the database alone learns
nothing. A key is looked up by its id and compared in constant time, with a decoy where nobody has that id.

A node asks for the same keys again and again, so callers are remembered by the hash of their key. What makes that
safe is a counter in the database which every change of a key moves: it is looked at four times a second at most, and
when it has moved, nothing is remembered. Whoever changes a key, this process or another one, is so noticed within a
second. A file that is put in the place of an open one is not: stop the node before a backup is restored.

Accounts that begin with `demo_` exist only in a demonstration. Their five fixed keys are in no file.
"""

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from oddsengine_service.problems import Problem, shown
from oddsengine_service.settings import Settings
from oddsengine_service.tiers import ADD_ON_STREAMS, TIERS, Caller

DEMO = "demo_"
MOST_ACTIVE, MOST_REVOKED = 100, 100  # keys of an account: more are refused; older ones are forgotten
MOST_NAME, MOST_RATE, MOST_STREAMS = 100, 1_000_000, 100_000
# No control characters, and none that turn text round or are not seen.
NAME_PATTERN = "^[^\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*$"
FEATURES = frozenset[str]().union(*(tier.features for tier in TIERS.values()))
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")  # no space: `limits` tells accounts from addresses by it
_MOST_KEY = 200  # characters; no key is longer
_LOOK_S = 0.25
_REMEMBERED = 10_000
_WAIT_S, _READ_WAIT_S = 5.0, 0.25  # for somebody else's lock
_RETRY_S = 1.0  # after a read that failed; until then callers are refused without another try
_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL,
    }
)  # fmt: skip
_PEPPER = 32  # bytes
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, account TEXT NOT NULL, name TEXT NOT NULL, tier TEXT NOT NULL,
    features TEXT, streaming INTEGER NOT NULL, rate INTEGER, streams INTEGER, active INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, used TEXT
);
CREATE INDEX IF NOT EXISTS keys_account ON keys (account);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value);
INSERT OR IGNORE INTO facts VALUES ('changes', 0);
CREATE TRIGGER IF NOT EXISTS keys_changed
    AFTER UPDATE OF id, hash, account, tier, features, streaming, rate, streams, active ON keys
    BEGIN UPDATE facts SET value = value + 1 WHERE name = 'changes'; END;
CREATE TRIGGER IF NOT EXISTS keys_deleted
    AFTER DELETE ON keys BEGIN UPDATE facts SET value = value + 1 WHERE name = 'changes'; END;
"""
_COLUMNS = "hash, id, account, name, tier, features, streaming, rate, streams, active, created_at, updated_at, used"


class KeysError(ValueError):
    """The keys cannot be read or changed; the message is one sentence without any secret."""


class UnfitError(KeysError):
    """What was asked for is not possible."""


class UnknownKeyError(KeysError):
    """No such key, or none of the account."""


class BeyondError(KeysError):
    """More rights than whoever asks has."""


class StoreError(KeysError):
    """The database cannot be used now: it is locked, read-only or on a full or broken disk. Nothing was changed."""

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(message)
        self.full = full

    def problem(self) -> Problem:
        """What a caller is told; which file it is does not concern them."""
        if self.full:
            return Problem(507, "insufficient_storage", "no space left to store keys; nothing was changed")
        message = f"the key database is unavailable and nothing was changed; try again in {_RETRY_S:g} s"
        return Problem(503, "unavailable", message, retry_after=int(_RETRY_S))


# ---- what a key may do ----


@dataclass(frozen=True)
class Terms:
    """What a key may do: its tier, and where it differs from the tier. None is what the tier has."""

    tier: str
    features: frozenset[str] | None = None
    streaming: bool = False  # the add-on
    rate: int | None = None  # requests a minute
    streams: int | None = None  # at once

    def checked(self) -> "Terms":
        """Refuse terms that no key can have."""
        if self.tier not in TIERS:
            raise UnfitError(f"tier must be one of {', '.join(TIERS)}, got {shown(self.tier)}")
        if self.features is not None and (strange := sorted(self.features - FEATURES)):
            raise UnfitError(f"features must be a list of {', '.join(sorted(FEATURES))}, got {shown(strange[0])}")
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
        """Who asks with a key on these terms."""
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

    def lowered(self, tier: str) -> "Terms":
        """Terms in a lower tier or the same one, with no right more than here."""
        if tier == self.tier:
            return self
        low = TIERS[tier]
        streaming = self.streaming and low.rank > 0
        return Terms(
            tier,
            None if self.features is None else self.features & low.features,
            streaming,
            None if self.rate is None else min(self.rate, low.rate),
            self.streams if streaming else None,
        )


@dataclass(frozen=True)
class Record:
    """A key as everybody may see it who manages it."""

    id: str
    account: str
    name: str
    terms: Terms
    active: bool
    created_at: datetime
    updated_at: datetime
    used: date | None  # the last day, UTC

    @property
    def caller(self) -> Caller:
        """Who asks with it."""
        return self.terms.caller(self.account, self.id)

    @property
    def mask(self) -> str:
        """The key without its secret."""
        return f"{self.id}.****"


@dataclass(frozen=True)
class Made:
    """A key that was just made, the only time that it can be read."""

    record: Record
    key: str = field(repr=False)


# ---- the file ----

_making = threading.Lock()


def connect(file: Path, wait: float = _WAIT_S) -> sqlite3.Connection:
    """Open the database, which is made if there is none, for its owner's eyes only."""
    # A process that closes a file loses all its locks on it, SQLite's too: so the file is made before anybody in this
    # process has it open, and never opened by us again.
    with _making:
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was faster
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        # The timeout does not cover this change, and two processes may open a new file at once.
        until = time.monotonic() + _WAIT_S
        while connection.execute("PRAGMA journal_mode").fetchall()[0][0] != "wal":
            try:
                if connection.execute("PRAGMA journal_mode = WAL").fetchall()[0][0] != "wal":
                    break  # a file system without shared memory: slower, and as right
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        connection.execute(f"PRAGMA busy_timeout = {wait * 1000:.0f}")
    except BaseException:
        connection.close()
        raise
    return connection


def _record(row: Any) -> Record:
    _, ident, account, name, tier, features, streaming, rate, streams, active, created, updated, used = row
    own = None if features is None else frozenset(features.split())
    return Record(
        ident,
        account,
        name,
        Terms(tier, own, bool(streaming), rate, streams),
        bool(active),
        datetime.fromtimestamp(created, UTC),
        datetime.fromtimestamp(updated, UTC),
        None if used is None else date.fromisoformat(used),
    )


def _row(row: Any) -> dict[str, Any]:
    """A row as plain data."""
    names = _COLUMNS.split(", ")
    return {**dict(zip(names, row, strict=True)), "hash": row[0].hex(), "used": None}


def _columns(terms: Terms) -> tuple[Any, ...]:
    features = None if terms.features is None else " ".join(sorted(terms.features))
    return terms.tier, features, terms.streaming, terms.rate, terms.streams


class KeyStore:
    """Keys in an SQLite file. Every method may be called from any thread; `find` is made for the event loop."""

    def __init__(self, file: Path, pepper: Path, *, demo: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._file, self._demo, self._clock = file, demo, clock
        self._reading, self._writing_lock = threading.Lock(), threading.Lock()
        self._writer, self._reader = self._opened(_WAIT_S), self._opened(_READ_WAIT_S)
        try:
            with self._writing() as writer:
                self._pepper = _prepared(writer, file, pepper)
                self._keyed = hashlib.blake2b(key=self._pepper, digest_size=32)
        except BaseException:
            self._reader.close()
            self._writer.close()
            raise
        self._fixed = _fixed(datetime.fromtimestamp(int(clock()), UTC)) if demo else {}
        self._callers = {self._hash(ident): record.caller for ident, record in self._fixed.items()}
        self._cached = dict(self._callers)
        self._decoy = secrets.token_bytes(32)  # the hash of an id that nobody has
        self.offer: Callable[[dict[str, Any]], None] | None = None  # gets each change before it counts, or refuses it
        self._due = 0.0
        self._failure = ""  # of the last read
        self._seen: Any = None  # the file's version, the counter of changes, the day
        self._stamps = ThreadPoolExecutor(1, thread_name_prefix="keys")

    def close(self) -> None:
        """End what is under way, and close the file."""
        self._stamps.shutdown()
        with self._reading, self._writing_lock:
            self._reader.close()
            self._writer.close()

    # ---- who is it ----

    def find(self, key: str) -> Caller | None:
        """The caller who has this key now."""
        if time.monotonic() >= self._due:
            self._refresh()
        if self._failure:
            raise StoreError(self._failure)
        if len(key) > _MOST_KEY or not key.isascii():
            return None
        digest = self._hash(key)
        found = self._cached.get(digest)
        return self._read(key, digest) if found is None else found

    def _hash(self, key: str) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(key.encode())
        return keyed.digest()

    def _refresh(self) -> None:
        """Forget who is remembered, if a key changed or a day began."""
        with self._reading, self._read_or_wait():
            now = time.monotonic()
            if now < self._due:
                return
            ((version,),) = self._reader.execute("PRAGMA data_version").fetchall()
            day = self._day()
            if self._seen is None or (version, day) != (self._seen[0], self._seen[2]):
                ((changes,),) = self._reader.execute("SELECT value FROM facts WHERE name = 'changes'").fetchall()
                if self._seen is None or (changes, day) != self._seen[1:]:
                    self._cached = dict(self._callers)
                self._seen = version, changes, day
            self._due, self._failure = now + _LOOK_S, ""

    def _read(self, key: str, digest: bytes) -> Caller | None:
        known = self._cached  # taken before the file is read: if a change comes between, this one is thrown away
        ident = key.partition(".")[0]
        with self._reading, self._read_or_wait():
            rows = self._reader.execute("SELECT hash FROM keys WHERE id = ?", (ident,)).fetchall()
            if not hmac.compare_digest(rows[0][0] if rows else self._decoy, digest):
                return None
            rows = self._reader.execute(
                f"SELECT {_COLUMNS} FROM keys WHERE id = ? AND hash = ? AND active", (ident, digest)
            ).fetchall()
        if not rows:
            return None
        record = _record(rows[0])
        if record.account.startswith(DEMO) and not self._demo:
            return None
        if len(known) >= _REMEMBERED:
            known = self._cached = dict(self._callers)
        caller = known[digest] = record.caller
        if str(record.used) != self._day():
            self._stamps.submit(self._stamp, record.id)
        return caller

    def _stamp(self, ident: str) -> None:
        with self._writing() as writer:
            writer.execute("UPDATE keys SET used = ? WHERE id = ?", (self._day(), ident))

    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self._clock()))

    # ---- managing ----

    def list(self, account: str | None = None) -> "list[Record]":
        """All keys of an account, revoked ones too; None is every account's. The oldest is first."""
        where, values = ("", ()) if account is None else ("WHERE account = ?", (account,))
        fixed = [record for record in self._fixed.values() if account in (None, record.account)]
        with self._writing_lock, self._translated():
            rows = self._writer.execute(f"SELECT {_COLUMNS} FROM keys {where} ORDER BY rowid", values).fetchall()
        return fixed + [_record(row) for row in rows]

    def record(self, ident: str, by: Caller | None = None) -> Record:
        """One key."""
        with self._writing_lock, self._translated():
            return self._own(self._writer, ident, by)

    def create(self, account: str, terms: Terms, name: str = "") -> Made:
        """Make a key on any terms; this is the operator's."""
        if not _ACCOUNT.fullmatch(account) or account.startswith(DEMO):
            raise UnfitError(
                "account must be 1 to 64 letters, digits and . _ @ + -, not beginning with a sign or with demo_, "
                f"got {shown(account)}"
            )
        terms, name = terms.checked(), _named(name)
        with self._writing() as writer:
            return self._insert(writer, account, terms, name)

    def create_like(self, by: Caller, tier: str | None, name: str) -> Made:
        """Make a key with the rights of the one that asks, or those of a lower tier."""
        tier = by.tier.id if tier is None else tier
        name = _named(name)
        if tier not in TIERS:
            raise UnfitError(f"tier must be one of {', '.join(TIERS)}, got {shown(tier)}")
        with self._writing() as writer:
            maker = self._asking(writer, by)
            if TIERS[tier].rank > TIERS[maker.terms.tier].rank:
                raise BeyondError(f"this key's tier is {maker.terms.tier}, and it cannot create a key of tier {tier}")
            return self._insert(writer, maker.account, maker.terms.lowered(tier), name)

    def revoke(self, ident: str, by: Caller | None = None) -> Record:
        """Stop a key for good. One that is revoked already stays so."""
        with self._writing() as writer:
            found = self._changeable(writer, ident, by)
            if found.active:
                writer.execute("UPDATE keys SET active = 0, updated_at = ? WHERE id = ?", (self._now(), found.id))
            return self._changed(writer, found.id)

    def rotate(self, ident: str, by: Caller | None = None) -> Made:
        """Rotate a key; the old one stops."""
        with self._writing() as writer:
            found = self._changeable(writer, ident, by)
            if not found.active:
                raise UnfitError(f"key {shown(found.id)} is revoked; create a new one")
            if by is not None and not _within(found.caller, self._asking(writer, by).caller):
                raise BeyondError(f"key {shown(found.id)} has more rights than the API key of this request")
            key = _new_key(found.id)
            writer.execute(
                "UPDATE keys SET hash = ?, updated_at = ? WHERE id = ?", (self._hash(key), self._now(), found.id)
            )
            return Made(self._changed(writer, found.id), key)

    def retier(self, ident: str, **changed: Any) -> Record:
        """Change fields of a key's `Terms`; this is the operator's."""
        with self._writing() as writer:
            found = self._changeable(writer, ident, None)
            terms = replace(found.terms, **changed).checked()
            writer.execute(
                "UPDATE keys SET tier = ?, features = ?, streaming = ?, rate = ?, streams = ?, updated_at = ? "
                "WHERE id = ?",
                (*_columns(terms), self._now(), found.id),
            )
            return self._changed(writer, found.id)

    # ---- other stores ----

    def rows(self) -> "Sequence[dict[str, Any]]":
        """Every key as plain data: its hash under the pepper, never the key."""
        with self._writing_lock, self._translated():
            rows = self._writer.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY rowid").fetchall()
        return [_row(row) for row in rows]

    def take(self, rows: "Iterable[Mapping[str, Any]]", *, offer: bool = False) -> int:
        """Put keys in as another store has them; how many there were. `offer` passes them on.

        Raises
        ------
        UnfitError
            If one of them is no such row.
        """
        names = _COLUMNS.split(", ")
        n = 0
        with self._writing() as writer:
            for row in rows:
                if set(row) != set(names):
                    raise UnfitError(f"a key has the fields {', '.join(names)}, got {', '.join(map(str, row))[:200]}")
                values = [bytes.fromhex(row[name]) if name == "hash" else row[name] for name in names]
                writer.execute(
                    f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT (id) DO UPDATE "
                    "SET " + ", ".join(f"{name} = excluded.{name}" for name in names if name not in ("id", "used")),
                    values,
                )
                n += 1
                if offer:
                    self._changed(writer, row["id"])
        return n

    @property
    def pepper_check(self) -> str:
        """Tells one pepper from another, and nothing about it."""
        return _check(self._pepper).hex()

    def _changed(self, writer: sqlite3.Connection, ident: str) -> Record:
        """A key that was just changed, which is offered to whoever shares the keys."""
        if self.offer is not None:
            self.offer(_row(writer.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (ident,)).fetchone()))
        return self._own(writer, ident, None)

    # ---- parts ----

    def _insert(self, writer: sqlite3.Connection, account: str, terms: Terms, name: str) -> Made:
        (active,) = writer.execute("SELECT count(*) FROM keys WHERE account = ? AND active", (account,)).fetchone()
        if active >= MOST_ACTIVE:
            raise UnfitError(f"limit of {active} keys per account reached; revoke one first")
        writer.execute(
            "DELETE FROM keys WHERE account = ?1 AND NOT active AND id NOT IN (SELECT id FROM keys "
            "WHERE account = ?1 AND NOT active ORDER BY updated_at DESC, rowid DESC LIMIT ?2)",
            (account, MOST_REVOKED),
        )
        key = _new_key("oe_" + secrets.token_hex(6))
        ident, now = key.partition(".")[0], self._now()
        values = (self._hash(key), ident, account, name, *_columns(terms), True, now, now, None)
        writer.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})", values)
        return Made(self._changed(writer, ident), key)

    def _own(self, connection: sqlite3.Connection, ident: str, by: Caller | None) -> Record:
        found = self._fixed.get(ident)
        if found is None:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (ident,)).fetchall()
            found = _record(rows[0]) if rows else None
        if found is None or (by is not None and found.account != by.account):
            raise UnknownKeyError(f"unknown key {shown(ident.partition('.')[0])}")  # a whole key may stand there
        return found

    def _asking(self, connection: sqlite3.Connection, by: Caller) -> Record:
        found = self._own(connection, by.key, by)
        if not found.active:
            raise UnknownKeyError("the API key of this request was revoked")
        return found

    def _changeable(self, writer: sqlite3.Connection, ident: str, by: Caller | None) -> Record:
        found = self._own(writer, ident, by)
        if found.id in self._fixed:
            raise UnfitError(f"demo key {found.id} cannot be changed")
        return found

    def _opened(self, wait: float) -> sqlite3.Connection:
        try:
            with self._translated():
                return connect(self._file, wait)
        except OSError as error:
            raise StoreError(f"{self._file} cannot be created: {(error.strerror or str(error)).lower()}") from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say in one sentence what the database has to complain of."""
        try:
            yield
        except sqlite3.Error as error:
            code, message = getattr(error, "sqlite_errorcode", 0) & 0xFF, f"{self._file}: {error}"
            if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and not os.access(self._file.parent, os.W_OK):
                message += f"; {self._file.parent} must be a folder that can be written"
            if code in _UNUSABLE:
                raise StoreError(message, full=code == sqlite3.SQLITE_FULL) from None
            raise KeysError(message) from None

    @contextmanager
    def _read_or_wait(self) -> Iterator[None]:
        """Read; a database that cannot be read is left alone for a while, for its lock holds everybody up."""
        try:
            with self._translated():
                yield
        except StoreError as error:
            self._failure, self._due = str(error), time.monotonic() + _RETRY_S
            raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """All of it, or nothing; it is on the disk at the end, and the next `find` looks."""
        with self._writing_lock, self._translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            self._due = 0.0

    def _now(self) -> int:
        return int(self._clock())


def of(settings: Settings, *, demo: bool = False) -> KeyStore:
    """Open the keys that the settings name."""
    folder = Path(settings.data.folder)
    return KeyStore(folder / settings.keys.file, folder / settings.keys.pepper, demo=demo)


def _new_key(ident: str) -> str:
    return f"{ident}.{secrets.token_urlsafe(32)}"


def _named(name: str) -> str:
    name = name.strip()
    if len(name) > MOST_NAME or not re.search(NAME_PATTERN, name):
        raise UnfitError(f"name must be at most {MOST_NAME} printable characters, got {shown(name)}")
    return name


def _within(one: Caller, other: Caller) -> bool:
    """Whether the one has no right that the other has not."""
    return (
        one.tier.rank <= other.tier.rank
        and one.rate <= other.rate
        and one.streams <= other.streams
        and one.features <= other.features
    )


def _fixed(now: datetime) -> dict[str, Record]:
    """The keys of a demonstration, by the key, which is their id too."""
    out = {}
    for tier in TIERS.values():
        terms = Terms(tier.id, streaming=tier.rank >= TIERS["pro"].rank)
        name = DEMO + tier.id
        out[name] = Record(
            name, name, f"demonstration of {tier.id}", terms, active=True, created_at=now, updated_at=now, used=None
        )
    return out


def _statements(script: str) -> Iterator[str]:
    """One statement after the other: what runs a whole script would end the transaction."""
    part = ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            yield part
            part = ""


def _prepared(writer: sqlite3.Connection, file: Path, pepper: Path) -> bytes:
    """Make what the database lacks, and read the pepper; the lock of the writer keeps others from doing so too."""
    (version,) = writer.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise KeysError(
            f"{file} was written by a newer version of oddsengine: format {version}, this version reads {_VERSION}"
        )
    if version < _VERSION:
        for statement in _statements(_SCHEMA):
            writer.execute(statement)
        writer.execute(f"PRAGMA user_version = {_VERSION}")
    rows = writer.execute("SELECT value FROM facts WHERE name = 'pepper'").fetchall()
    if not rows and not pepper.exists():
        _make_pepper(pepper)
    try:
        found = pepper.read_bytes()
    except FileNotFoundError:
        raise KeysError(f"{pepper} is missing; restore it, keys cannot be verified without it") from None
    if len(found) != _PEPPER:
        raise KeysError(f"{pepper} must have {_PEPPER} bytes, got {len(found):,}")
    if not rows:
        writer.execute("INSERT INTO facts VALUES ('pepper', ?)", (_check(found),))
    elif not hmac.compare_digest(_check(found), rows[0][0]):
        raise KeysError(f"{pepper} is not the pepper that these keys were created with; restore that file")
    return found


def _make_pepper(file: Path) -> None:
    """Write a pepper, whole or not at all."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)  # of a process that did not end well
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(secrets.token_bytes(_PEPPER))
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def _check(pepper: bytes) -> bytes:
    """What the database knows of its pepper."""
    return hashlib.blake2b(b"pepper", key=pepper, digest_size=16).digest()
