"""Records of API keys (bets, marks, saved filters and alerts) in one SQLite table.

A record is JSON under its owner, kind and name. The owner is the id of a key, which does not change when the key is
rotated. Every read and write includes the owner, so no key can see another's records. Only the user who runs the node
can read the file, because addresses of alerts may contain secrets.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from oddsengine_service.accounts.database import Database
from oddsengine_service.errors import Problem, invalid, quoted, unknown
from oddsengine_service.replication import ALONE, RecordChange, Replication

FILE = "records.sqlite"
MOST = {"bet": 20_000, "mark": 5_000, "filter": 100, "alert": 50, "sent": 50}  # per key
MOST_BYTES = 24 << 20  # per key, without `sent`, which the node writes itself
_VERSION = 2
_WAIT_S = 1.0  # for another program's lock; it blocks an answer thread
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS records (
    owner TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, event TEXT, at REAL NOT NULL,
    PRIMARY KEY (owner, kind, name)
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS records_open ON records (kind, event) WHERE event IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS records_size ON records (owner, kind, length(body))",
    "CREATE TABLE IF NOT EXISTS followed (one INTEGER PRIMARY KEY, born INTEGER NOT NULL, sequence INTEGER NOT NULL)",
)
Body = TypeVar("Body", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode
_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError)  # errors of decoding a body


class NamedRecord(NamedTuple):
    """A record to store; `event` marks one that waits for a result."""

    kind: str
    name: str
    body: msgspec.Struct
    event: str | None = None


class Records:
    """The table of records; thread-safe. With None for `file` it is in memory.

    A record that cannot be decoded is left out of lists, and reported to `on_damage`, until it is replaced or deleted.
    `is_new` says that the file was missing or empty.
    """

    def __init__(
        self, file: Path | None = None, replication: Replication = ALONE,
        on_damage: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._replication, self._on_damage = replication, on_damage
        self._damaged: dict[tuple[str, str, str], None] = {}  # owner, kind and name
        self.is_new = file is None or not any(
            part.exists() and part.stat().st_size for part in (file, file.with_name(f"{file.name}-wal"))
        )
        self.database = Database(file, _SCHEMA, _VERSION, wait=_WAIT_S, place="followed")
        self.alone = self.database.lock  # held from reading a record until writing it

    def close(self) -> None:
        self.database.close()

    def put(self, owner: str, kind: str, name: str, body: msgspec.Struct, event: str | None = None) -> None:
        """Store a record, replacing one of the same name; `event` marks one that waits for a result.

        Raises `Problem` 400 if a limit of the key is reached.
        """
        self.put_all(owner, [NamedRecord(kind, name, body, event)])

    def put_all(self, owner: str, records: Sequence[NamedRecord]) -> int:
        """Store records, replacing those of the same kinds and names, and return how many changed.

        Limits are checked for all of them before any is stored. Raises `Problem` 400 if one would be exceeded. A node
        alone stores all or none; in a cluster, where each is a message, an error of the log may leave some, and
        repeating stores the rest.
        """
        changes = {
            (one.kind, one.name): RecordChange(owner, one.kind, one.name, _encode(one.body), one.event)
            for one in records
        }  # fmt: skip
        with self.alone:
            with self.database.reading() as base:
                found = {
                    key: base.execute(
                        "SELECT body, event FROM records WHERE owner = ? AND kind = ? AND name = ?", (owner, *key)
                    ).fetchone()
                    for key in changes
                }
                self._check_limits(base, owner, changes, {key: held[0] for key, held in found.items() if held})
            new = [change for key, change in changes.items() if found[key] != (change.body, change.event)]
            with nullcontext() if self._replication.one_by_one else self.database.transaction():
                for change in new:
                    with self.database.transaction() as base:
                        self._store(base, change)
        return len(new)

    def _check_limits(
        self, base: sqlite3.Connection, owner: str, changes: Mapping[tuple[str, str], RecordChange],
        held: Mapping[tuple[str, str], bytes],
    ) -> None:  # fmt: skip
        """Raise `Problem` 400 if changes would exceed a limit of their key; `held` are bodies that they replace."""
        stored = base.execute(
            "SELECT kind, count(*), sum(length(body)) FROM records WHERE owner = ? GROUP BY kind", (owner,)
        ).fetchall()
        counts, new = {kind: n for kind, n, _ in stored}, Counter(kind for kind, name in changes.keys() - held.keys())
        for kind, n in new.items():
            if counts.get(kind, 0) + n > MOST[kind]:
                raise invalid(f"a key stores at most {MOST[kind]:,} {kind}s; delete some first")
        size = sum(length for kind, _, length in stored if kind != "sent")
        more = sum(len(change.body or b"") for (kind, _), change in changes.items() if kind != "sent")
        more -= sum(len(body) for (kind, _), body in held.items() if kind != "sent")
        if more > 0 and size + more > MOST_BYTES:
            raise invalid(
                f"a key stores at most {MOST_BYTES:,} bytes, has {size:,}, and this takes {more:,} more; "
                "delete some records first"
            )

    def _store(self, base: sqlite3.Connection, change: RecordChange) -> None:
        self._replication.record_changed(change)
        self.apply(base, change)

    def apply(self, base: sqlite3.Connection, change: RecordChange) -> None:
        """Make a change without reporting it, within a transaction."""
        key = change.owner, change.kind, change.name
        self._set_damaged(key, damaged=False)
        if change.body is None:
            base.execute("DELETE FROM records WHERE owner = ? AND kind = ? AND name = ?", key)
        else:
            base.execute(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)",
                (*key, change.body, change.event, time.time()),
            )

    def get(self, owner: str, kind: str, name: str, as_: type[Body]) -> Body:
        """One record. Raises `Problem` 404 if the key has no record of that name."""
        record = self.find(owner, kind, name, as_)
        if record is None:
            raise unknown(kind, name)
        return record

    def find(self, owner: str, kind: str, name: str, as_: type[Body]) -> Body | None:
        """One record; None if the key has no record of that name. Raises `Problem` 500 if it is damaged."""
        with self.database.reading() as base:
            row = base.execute(
                "SELECT body FROM records WHERE owner = ? AND kind = ? AND name = ?", (owner, kind, name)
            ).fetchone()
        if row is None:
            return None
        body = self._decoded((owner, kind, name), row[0], as_)
        if body is None:
            raise Problem(
                500, "internal_error", f"{kind} {quoted(name)} is damaged; restore it from a backup, or delete it"
            )
        return body

    def all(self, owner: str, kind: str, as_: type[Body]) -> list[Body]:
        """All records of one kind and key, sorted by name, without the `damaged` ones."""
        with self.database.reading() as base:
            rows = base.execute(
                "SELECT name, body FROM records WHERE owner = ? AND kind = ? ORDER BY name", (owner, kind)
            ).fetchall()
        bodies = (self._decoded((owner, kind, name), body, as_) for name, body in rows)
        return [body for body in bodies if body is not None]

    def damaged(self, owner: str, kinds: Sequence[str]) -> list[str]:
        """The names of records of a key that could not be decoded when they were last read."""
        with self.alone:
            return sorted(name for who, kind, name in self._damaged if who == owner and kind in kinds)

    def _decoded(self, key: tuple[str, str, str], body: Any, as_: type[Body]) -> Body | None:
        """Decode a body; None if it is damaged."""
        try:
            return msgspec.json.decode(body, type=as_)
        except _DAMAGED:
            self._set_damaged(key, damaged=True)
            return None

    def _set_damaged(self, key: tuple[str, str, str], *, damaged: bool) -> None:
        with self.alone:
            if damaged == (key in self._damaged):
                return
            if damaged:
                self._damaged[key] = None
            else:
                del self._damaged[key]
            first = next(iter(self._damaged), None)
            self._on_damage(
                ""
                if first is None
                else f"{len(self._damaged):,} of {self.database.file} cannot be decoded, the first "
                f"is {first[1]} {quoted(first[2])} of key {first[0]}"
            )

    def delete(self, owner: str, kind: str, name: str) -> None:
        """Delete one record. Raises `Problem` 404 if the key has no record of that name."""
        if not self.forget(owner, kind, name):
            raise unknown(kind, name)

    def forget(self, owner: str, kind: str, name: str) -> bool:
        """Delete a record if it exists. Returns whether it did."""
        with self.database.transaction() as base:
            there = base.execute(
                "SELECT 1 FROM records WHERE owner = ? AND kind = ? AND name = ?", (owner, kind, name)
            ).fetchone()
            if there:
                self._store(base, RecordChange(owner, kind, name))
        return there is not None

    def drop(self, owners: Set[str]) -> None:
        for owner in owners:
            with self.database.reading() as base:
                rows = base.execute("SELECT kind, name FROM records WHERE owner = ?", (owner,)).fetchall()
            for row in rows:
                self.forget(owner, *row)

    def waiting(self, kind: str, as_: type[Body]) -> "list[tuple[str, Body]]":
        """Records of all keys that wait for a result, with their owners."""
        with self.database.reading() as base:
            rows = base.execute(
                "SELECT owner, name, body FROM records WHERE kind = ? AND event IS NOT NULL", (kind,)
            ).fetchall()
        bodies = ((owner, self._decoded((owner, kind, name), body, as_)) for owner, name, body in rows)
        return [(owner, body) for owner, body in bodies if body is not None]


def changed(body: Body, changes: msgspec.Struct) -> Body:
    """The record with the given fields of `changes` replaced."""
    new: dict[str, Any] = {
        name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not msgspec.UNSET
    }
    return msgspec.structs.replace(body, **new)
