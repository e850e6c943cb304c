"""Snapshots of an engine: its board and open views as plain data, from which another engine can continue.

Given the same batches, a restored engine produces the same updates, ids and detection times. Derived state (tables,
units, verdicts) is recomputed, so a snapshot only has prices, names and history.

>>> from datetime import UTC, datetime
>>> engine, copy = Engine(), Engine()
>>> _ = engine.step([{"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "x",
...                   "odds_decimal": 1.9}], now=datetime(2026, 2, 8, tzinfo=UTC))
>>> restore(copy, dump(engine))
>>> copy.number, copy.state_hash() == engine.state_hash()
(1, True)
"""

from typing import Any

import numpy as np

from oddsengine.board.flap import Levels
from oddsengine.board.rows import COLUMNS
from oddsengine.board.serialisation import array_content, array_of_content
from oddsengine.board.state import EventNotice
from oddsengine.detection.kinds import KINDS
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.pricing.momentum import Memory

FORM = 2
_DERIVED = {"unit", "member", "pending", "close", "own"}


def dump(engine: Engine) -> dict[str, Any]:
    """Serialise an engine for msgpack and JSON; arrays become dtype, shape and bytes."""
    with engine.still(judged=True) as board:
        rows, names = board.rows, board.names
        return {
            "form": FORM, "number": board.number, "now": board.now, "moment": board.moment,
            "watched": board._watched, "said": {id_: list(texts) for id_, texts in board._notices.items()},
            "rejected": board.rejected, "tidy_at": board._tidy_at, "top": rows.top,
            "rows": {
                name: array_content(getattr(rows, name)[: rows.top]) for name in COLUMNS if name not in _DERIVED
            },
            "spare": array_content(rows.spare[: rows.spares]),
            "levels": [array_content(column) for column in rows.levels],
            "links": {str(slot): link for slot, link in enumerate(rows.links) if link is not None},
            "wordings": names.wordings, "books": names.books,
            "momentum": _memory(board.momentum) if engine._samples else None,
            "kinds": list(KINDS),  # by code
            "views": [
                [
                    view.wanted.content, view.kept > 0,
                    *(
                        array_content(getattr(view.open.table, name)[view.open.places()])
                        for name in ("id", "kind", "born")
                    ),
                ]
                for view in engine._awake.values() if view.wanted.model is None
            ],
        }  # fmt: skip


def restore(engine: Engine, held: dict[str, Any]) -> None:
    """Restore a snapshot into a new engine.

    Raises `ValueError` if the engine has made a step, or the snapshot's format is not supported.
    """
    if held.get("form") != FORM:
        raise ValueError(f"snapshot has format {held.get('form')}; this version reads format {FORM}")
    if engine.number:
        raise ValueError(f"restore needs a new engine, got one at step {engine.number}")
    with engine._lock:
        board = engine._board
        names, rows = board.names, board.rows
        for book in held["books"]:
            names.book(book)
        names._add([(*texts, line) for *texts, line in held["wordings"]])
        top = held["top"]
        rows.room_for(top)
        for name, column in held["rows"].items():
            getattr(rows, name)[:top] = array_of_content(column)
        rows.top = top
        rows.spare = array_of_content(held["spare"])
        rows.spares = rows.spare.size
        rows.levels = Levels._make(map(array_of_content, held["levels"]))
        for slot, link in held["links"].items():
            board._link(int(slot), link)
        board.now, board.moment, board._watched = held["now"], held["moment"], held["watched"]
        board._notices = {id_: EventNotice(*one) for id_, one in held["said"].items()}
        board.rejected, board._tidy_at = dict(held["rejected"]), held["tidy_at"]
        board.rebuild()
        if held["momentum"] is not None:
            engine._samples, board.momentum = True, _remembered(held["momentum"])
        engine.restored(held["number"])
        for spec, keep, *columns in held["views"]:
            view = engine.awake(ViewKey.of_content(spec), keep=keep, restored=True)
            ids, kinds, born = map(array_of_content, columns)
            named = [KINDS.code(name) if name in KINDS else None for name in held["kinds"]]
            codes = [named[code] for code in kinds.tolist()]
            since = dict(zip(zip(ids.tolist(), codes, strict=True), born.tolist(), strict=True))
            engine.redate(view, lambda ident, kind, since=since: since.get((ident, kind)))  # type: ignore[misc]


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        name: array_content(value) if isinstance(value, np.ndarray) else value
        for name, value in vars(memory).items()
        if name not in ("_index", "_seen", "_begun", "_grown")  # derived from the books; only of the last search
    }


def _remembered(held: dict[str, Any]) -> Memory:
    memory = Memory()
    for name, value in held.items():
        setattr(memory, name, array_of_content(value) if isinstance(value, list) and len(value) == 3 else value)
    memory.forget_search()
    return memory
