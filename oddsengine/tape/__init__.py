"""Tapes: recordings of every batch that an engine applied. A replay gives the same updates, ids and state.

A tape is a folder. Its *segments*, `00000001.tape` and so on, only grow at their end. A segment is a row of *blocks*; a
block holds whole steps: a header (`blocks.HEADER`, little-endian) and four tables, each one Arrow IPC stream:

- `quotes`: one row a quote, with the number of its step, the codes of its term and book, and what `Quoted` holds. A
  time that is absent is the smallest int64. `link` is what belongs to one price alone, see `board.quotes.LINKS`.
- `terms` and `books`: the wordings and books that are new in these steps, and their codes, counted from 0 through the
  whole tape. Now and then an engine forgets terms that nobody uses and counts those it keeps anew; they are then listed
  again, with `new` false: a code means what the last row says that has it, up to a step.
- `steps`: one row a step: number, time, how many quotes; ids of removed rows, complete (book, event) pairs, notices of
  events and counts of refused rows as JSON, null where there are none. `notes` are what happened before the step: which
  views woke (`wake`) or fell asleep (`sleep`), and which guards are off or judge by other thresholds (`without`); the
  first have the constants of fair prices too (`fair`, in the form of fair.toml). A last row without a number holds
  what was noted after the last step.

All blocks of a segment have the version of the first. The checksum is over all that follows it in the block. A block
that is cut short or wrong with nothing whole behind it is a *torn end*: what a crash leaves. Reading stops before it
and says so (`Tape.torn`), writing cuts it off. Everything else that does not fit together is damage, and a `TapeError`.
`catalogue.json` lists the segments as of the last time one was closed; the files are what counts, and it is checked
against them.

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
from oddsengine.tape.reading import Tape
from oddsengine.tape.replaying import engine_for, play, replay, resume
from oddsengine.tape.writing import SYNC, TapeWriter

__all__ = ["SYNC", "Tape", "TapeError", "TapeStep", "TapeWriter", "engine_for", "play", "replay", "resume"]
