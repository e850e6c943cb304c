"""SQLite databases: files that only their owner can read, in WAL mode, changed in transactions."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from oddsengine_service.errors import Problem

WAIT_S = 5.0  # for another process's lock
RETRY_S = 1.0  # after which a request is worth repeating
_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL,
    }
)  # fmt: skip
_making = threading.Lock()


class DatabaseError(ValueError):
    """The database cannot be used; the message is one sentence for the operator."""


class StoreError(DatabaseError, Problem):
    """The database is not usable now: it is locked, read-only, or on a full or failing disk. Nothing was changed.

    As a problem it does not name the file.
    """

    def __init__(self, reason: str, *, full: bool = False) -> None:
        if full:
            Problem.__init__(self, 507, "insufficient_storage", "no space left; nothing was changed")
        else:
            message = f"the database is unavailable and nothing was changed; retry in {RETRY_S:g} s"
            Problem.__init__(self, 503, "unavailable", message, retry_after=int(RETRY_S))
        self.args = (reason,)


class Database:
    """A connection to a database, which is created if it does not exist; thread-safe.

    Parameters
    ----------
    file
        The file; None is in memory.
    schema
        Statements that create what is missing.
    version
        Of the format; None if the schema is not the file's only one.
    wait
        Seconds to wait for another process's lock.
    durable
        Whether a change survives a crash of the machine; else the last seconds may be lost.
    place
        A table with the place in a log of another process up to which the database has its changes; see `reached`.

    Raises
    ------
    DatabaseError
        If the file is not a database, or of another version.
    StoreError
        If it cannot be used now.
    """

    def __init__(
        self, file: Path | None, schema: Sequence[str] = (), version: int | None = None, *,
        wait: float = WAIT_S, durable: bool = True, place: str = "",
    ) -> None:  # fmt: skip
        self.file = file
        self.lock = threading.RLock()
        self.followed = self._next = 0, 0  # birth of a log, and the last message applied; see `reached`
        self._table = place
        with self._translated():
            self.connection = _connected(file, wait, "FULL" if durable else "NORMAL")
        try:
            if schema:
                with self.transaction() as base:
                    self._prepare(base, schema, version)
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self, base: sqlite3.Connection, schema: Sequence[str], version: int | None) -> None:
        if version is not None:
            (found,) = base.execute("PRAGMA user_version").fetchone()
            if found not in (0, version):
                other = f"was written by another version of oddsengine: format {found}, this version reads {version}"
                raise DatabaseError(f"{self.file} {other}")
            schema = (*schema, f"PRAGMA user_version = {version}")
        for statement in schema:
            base.execute(statement)
        if self._table:
            place = base.execute(f"SELECT born, sequence FROM {self._table}").fetchone()
            self.followed = self._next = place or self.followed

    def close(self) -> None:
        with self.lock:
            self.connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone."""
        with self.lock, self._translated():
            yield self.connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is rolled back if the body of the with statement fails; a part of one that is open."""
        with self.reading() as base:
            if base.in_transaction:
                yield base
                return
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
                base.execute("COMMIT")
                self.followed = self._next
            except BaseException:
                self._next = self.followed
                if base.in_transaction:
                    with suppress(sqlite3.Error):
                        base.execute("ROLLBACK")
                raise

    # ---- a log of another process ----

    def place(self, created_at: int) -> int:
        """How far a log has been applied; 0 for another log. Does not block."""
        log, sequence = self.followed
        return sequence if log == created_at else 0

    def reached(self, created_at: int, sequence: int) -> None:
        """Store a place in a log, together with the changes of the open transaction."""
        self.connection.execute(f"DELETE FROM {self._table}")
        self.connection.execute(f"INSERT INTO {self._table} (born, sequence) VALUES (?, ?)", (created_at, sequence))
        self._next = created_at, sequence

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Convert an error of the database to one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            code, message = getattr(error, "sqlite_errorcode", 0) & 0xFF, f"{self.file or 'database'}: {error}"
            if self.file is not None and code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                if not os.access(self.file.parent, os.W_OK):
                    message += f"; {self.file.parent} must be a folder that can be written"
                elif self.file.exists() and not os.access(self.file, os.R_OK | os.W_OK):
                    message += "; the user of this process must be able to read and write it"
            if code in _UNUSABLE:
                raise StoreError(message, full=code == sqlite3.SQLITE_FULL) from error
            raise DatabaseError(message) from error


def _connected(file: Path | None, wait: float, synchronous: str) -> sqlite3.Connection:
    if file is not None:
        try:
            _create(file)
        except OSError as error:
            raise StoreError(f"{file} cannot be created: {(error.strerror or str(error)).lower()}") from None
    connection = sqlite3.connect(file or ":memory:", timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        # The timeout does not apply to this change, and two processes may open a new file at once.
        until = time.monotonic() + WAIT_S
        while connection.execute("PRAGMA journal_mode").fetchall()[0][0] != "wal":
            try:
                if connection.execute("PRAGMA journal_mode = WAL").fetchall()[0][0] != "wal":
                    break  # in memory, or a file system without shared memory: slower, but correct
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA busy_timeout = {wait * 1000:.0f}")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(file: Path) -> None:
    # Closing a file releases all of a process's locks on it, SQLite's too. So the file is created before anything in
    # this process opens it, and never opened here again.
    with _making:
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was faster
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
