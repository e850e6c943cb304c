"""SQLite databases: files that only their owner can read, in WAL mode, changed in transactions."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S = 5.0  # for another process's lock
_making = threading.Lock()


def connect(file: Path | None, wait: float = WAIT_S) -> sqlite3.Connection:
    """Open a database, and create it if it does not exist; None is in memory."""
    if file is not None:
        _create(file)
    connection = sqlite3.connect(
        ":memory:" if file is None else file, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
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


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run a transaction, which is rolled back if the body of the with statement fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
