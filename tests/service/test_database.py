"""The one way in which files of the data folder are opened, changed and complained about."""

import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from oddsengine_service.accounts.database import Database, DatabaseError, StoreError

NOON = 1_770_552_000.0
KEY = "oe_00355a4c2b40.gWU6JPTKYxstYtT4O2v-QuvSmid-ZSJG6lrbyol54dI"
TABLE = ["CREATE TABLE IF NOT EXISTS t (x)", "CREATE TABLE IF NOT EXISTS log (born INTEGER, sequence INTEGER)"]


def test_a_place_in_a_log_is_stored_with_its_change_or_not_at_all(tmp_path: Path) -> None:
    base = Database(tmp_path / "a.sqlite", TABLE, 1, place="log")
    with base.transaction() as changes:
        changes.execute("INSERT INTO t VALUES (1)")
        base.reached(7, 1)
        assert base.place(7) == 0  # others may not have to wait for it yet
    assert base.place(7) == 1
    with suppress(ZeroDivisionError), base.transaction() as changes:
        changes.execute("INSERT INTO t VALUES (2)")
        base.reached(7, 2)
        with base.transaction() as inner:
            inner.execute("INSERT INTO t VALUES (3)")
        raise ZeroDivisionError
    with base.transaction():  # of something that is not in a log
        pass
    assert base.place(7) == 1
    base.close()
    base = Database(tmp_path / "a.sqlite", TABLE, 1, place="log")
    assert (base.place(7), base.followed[0], base.place(8)) == (1, 7, 0)
    with base.reading() as found:
        assert found.execute("SELECT x FROM t").fetchall() == [(1,)]
    base.close()


def test_a_full_disk_and_a_lock_are_problems_that_name_no_file(tmp_path: Path) -> None:
    base = Database(tmp_path / "a.sqlite", TABLE, 1, wait=0.0)
    base.connection.execute("PRAGMA max_page_count = 3")
    with pytest.raises(StoreError, match=r"a\.sqlite: database or disk is full") as full, base.transaction() as changes:
        changes.execute("INSERT INTO t VALUES (randomblob(100000))")
    assert (full.value.status, full.value.code) == (507, "insufficient_storage")
    with sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"a\.sqlite: database is locked") as locked, base.transaction():
            pass
    other.close()
    assert (locked.value.status, locked.value.extra) == (503, {"retry_after": 1})
    assert "sqlite" not in full.value.message + locked.value.message
    with base.transaction() as changes:
        changes.execute("INSERT INTO t VALUES (1)")
    base.close()


def test_files_that_cannot_be_used_are_closed_again(tmp_path: Path) -> None:
    Database(tmp_path / "a.sqlite", TABLE, 2).close()
    for version in (1, 3):
        reads = f"another version of oddsengine: format 2, this version reads {version}"
        with pytest.raises(DatabaseError, match=reads):
            Database(tmp_path / "a.sqlite", TABLE, version)
    Database(tmp_path / "a.sqlite", TABLE, 2).close()
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(DatabaseError, match=r"a\.sqlite: file is not a database") as refused:
        Database(tmp_path / "a.sqlite")
    assert not isinstance(refused.value, StoreError)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be created: file exists"):
        Database(tmp_path / "file" / "a.sqlite")
