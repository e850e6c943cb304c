"""Snapshots of an engine: its board and open views as plain data, from which another engine can continue.

Given the same batches, a restored engine produces the same updates, ids and detection times. Derived state (tables,
partitions, verdicts) is recomputed, so a snapshot only has prices, names and history. Its checksum and structure are
checked before anything of it is used.

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

from oddsengine.board.event_status import EventNotice
from oddsengine.board.flap import Levels
from oddsengine.board.serialisation import array_content, array_of_content
from oddsengine.board.state import BoardContent
from oddsengine.detection.kinds import KINDS
from oddsengine.live.engine import Engine
from oddsengine.live.key import ViewKey
from oddsengine.live.snapshot_checks import (
    SnapshotError,
    check_board,
    check_checksum,
    check_memory,
    check_view,
    checksum,
)
from oddsengine.live.view import View
from oddsengine.pricing.momentum import Memory

FORM = 4


def dump(engine: Engine) -> dict[str, Any]:
    """Serialise an engine for msgpack and JSON; arrays become dtype, shape and bytes."""
    with engine.still(judged=True) as board:
        content = board.content()
        snapshot: dict[str, Any] = {
            "form": FORM, "number": board.number, "now": content.now, "moment": content.moment,
            "watched": content.checked, "said": {id_: list(notice) for id_, notice in content.notices.items()},
            "rejected": content.rejected, "tidy_at": content.tidy_at, "top": content.top,
            "rows": {name: array_content(column) for name, column in content.columns.items()},
            "spare": array_content(content.spare), "levels": [array_content(column) for column in content.levels],
            "links": {str(slot): link for slot, link in content.links.items()},
            "wordings": content.raw_labels, "books": content.books,
            "momentum": _memory(board.momentum) if engine.state.samples else None,
            "kinds": list(KINDS),  # by code
            "stopped": list(engine.stopped_guards),
            "views": [
                [
                    view.wanted.content, view.kept > 0,
                    *(
                        array_content(getattr(view.open.table, name)[view.open.places()])
                        for name in ("id", "kind", "detected_at")
                    ),
                ]
                for view in engine.active_views() if view.wanted.model is None
            ],
        }  # fmt: skip
        snapshot["checksum"] = checksum(snapshot)
    return snapshot


def restore(engine: Engine, held: dict[str, Any]) -> None:
    """Restore a snapshot into a new engine; completely or, if anything fails, not at all.

    Raises `ValueError` if the engine has made a step, or the snapshot's format is not supported; `SnapshotError` if the
    snapshot is damaged.
    """
    if held.get("form") != FORM:
        raise ValueError(f"snapshot has format {held.get('form')}; this version reads format {FORM}")
    if engine.number:
        raise ValueError(f"restore needs a new engine, got one at step {engine.number}")
    check_checksum(held)
    try:
        number, content, momentum, views = held["number"], _content(held), _remembered(held["momentum"]), _views(held)
    except SnapshotError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise SnapshotError(f"the snapshot cannot be used: {type(error).__name__}: {error}") from error
    samples, made = engine.state.samples, list[tuple[View, bool]]()
    with engine.still() as board:
        new = board.content()
        try:
            board.restore(content)
            engine.restored(number, momentum, held.get("stopped", ()))
            for key, keep, since in views:
                view = engine.view_of(key, keep=keep, restored=True)
                made.append((view, keep))
                engine.redate(view, lambda ident, kind, since=since: since.get((ident, kind)))  # type: ignore[misc]
        except BaseException as error:
            for view, keep in made:
                if keep:
                    engine.release(view)
            board.restore(new)
            engine.state.samples = samples
            engine.restored(0, None)
            if isinstance(error, Exception):
                raise SnapshotError(f"the snapshot cannot be used: {type(error).__name__}: {error}") from error
            raise


def _content(held: dict[str, Any]) -> BoardContent:
    """The content of the board, once it is checked."""
    if type(held["number"]) is not int or held["number"] < 0:
        raise SnapshotError(f"the snapshot cannot be used: its step is {held['number']!r}")
    content = BoardContent(
        now=held["now"], moment=held["moment"], checked=held["watched"],
        notices={id_: EventNotice(*one) for id_, one in held["said"].items()}, rejected=dict(held["rejected"]),
        tidy_at=held["tidy_at"], raw_labels=[(*texts, line) for *texts, line in held["wordings"]],
        books=held["books"], top=held["top"],
        columns={name: array_of_content(column) for name, column in held["rows"].items()},
        spare=array_of_content(held["spare"]), levels=Levels._make(map(array_of_content, held["levels"])),
        links={int(slot): link for slot, link in held["links"].items()},
    )  # fmt: skip
    check_board(content)
    return content


def _views(held: dict[str, Any]) -> list[tuple[ViewKey, bool, dict[tuple[int, int | None], int]]]:
    """Parameters of each view, whether it is kept, and when what it has open was detected, by id and kind."""
    named, views = [KINDS.code(name) if name in KINDS else None for name in held["kinds"]], []
    for spec, keep, *columns in held["views"]:
        ids, kinds, detected_at = map(array_of_content, columns)
        key = ViewKey.of_content(spec)
        check_view(key, len(named), ids, kinds, detected_at)
        codes = [named[code] for code in kinds.tolist()]
        views.append((key, keep, dict(zip(zip(ids.tolist(), codes, strict=True), detected_at.tolist(), strict=True))))
    return views


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        name: array_content(value) if isinstance(value, np.ndarray) else value
        for name, value in vars(memory).items()
        if name not in ("_index", "_seen", "_begun", "_grown")  # derived from the books; only of the last search
    }


def _remembered(held: dict[str, Any] | None) -> Memory | None:
    if held is None:
        return None
    memory = Memory()
    for name, value in held.items():
        setattr(memory, name, array_of_content(value) if isinstance(value, list) and len(value) == 3 else value)
    check_memory(memory)
    memory.forget_search()
    return memory


__all__ = ["FORM", "SnapshotError", "dump", "restore"]
