"""Tapes: recordings of every batch applied to an engine. Replaying one gives the same updates, ids and state.

A tape is a folder of append-only *segments* (`00000001.tape` and so on). A segment is a sequence of *blocks* of whole
steps. A block is a header (`blocks.HEADER`, little-endian) and four tables, each an Arrow IPC stream:

- `quotes`: one row per quote, with its step number, the codes of its term and book, and the other columns
  of `board.rows.CodedQuotes`. A missing time is the smallest int64. `link` has the texts of the single price, see
  `board.row_links.LINKS`.
- `terms` and `books`: raw labels and books that are new in these steps, with their codes, which count from 0 over the
  whole tape. An engine occasionally drops unused terms and renumbers the rest; these are then listed again with `new`
  false. A code has the meaning of the last row that lists it before the step.
- `steps`: one row per step: number, time, count of quotes; removed ids, complete (book, event) pairs, event notices and
  counts of rejected rows as JSON, or null. `notes` has what happened before the step: views that were resumed (`wake`)
  or suspended (`sleep`), and disabled guards or changed thresholds (`without`). The first notes also have the
  fair-price constants (`fair`, in the form of fair.toml). A final row without a number has the notes after the last
  step.

All blocks of a segment have the same version. The checksum covers the rest of the block. An incomplete or invalid block
with no valid block after it is a *torn end*, as a crash leaves it: readers stop before it and set `Tape.torn`, writers
truncate it, and keep a copy (`00000001.damaged1`) if the catalogue lists steps in it. Any other inconsistency is damage
and raises `TapeError`. `catalogue.json` lists the segments as of the last time one was closed, and is checked against
the files.

>>> import tempfile
>>> from datetime import UTC, datetime
>>> path = tempfile.mkdtemp() + "/tape"
>>> engine, writer = resume(path)
>>> with writer:
...     _ = engine.step([{"sportsbook": "a", "event_id": "e", "market_type": "moneyline", "selection": "x",
...                       "odds_decimal": 1.9}], now=datetime(2026, 2, 8, tzinfo=UTC))
>>> tape = Tape(path)
>>> tape.steps, tape.quotes, replay(tape).state_hash() == engine.state_hash()
(1, 1, True)
"""

from oddsengine.tape.blocks import TapeError, TapeStep
from oddsengine.tape.reading import Tape, engine_for
from oddsengine.tape.replaying import play, replay, resume
from oddsengine.tape.writing import SYNC, TapeWriter

__all__ = ["SYNC", "Tape", "TapeError", "TapeStep", "TapeWriter", "engine_for", "play", "replay", "resume"]
