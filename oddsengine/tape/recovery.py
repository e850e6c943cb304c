"""Segment files of a tape: consistency checks and the position of a torn end."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from oddsengine.tape.blocks import MAGIC, Block, TapeError, whole

CATALOGUE = "catalogue.json"
_SEGMENT = re.compile(r"\d{8}\.tape")


class Segment(NamedTuple):
    """A segment in the catalogue."""

    file: str
    first: int
    last: int
    first_now: int | None
    last_now: int | None
    steps: int
    quotes: int
    bytes: int
    terms: int
    books: int

    def with_block(self, block: Block) -> "Segment":
        since, until = (block.since, block.until) if block.steps else (self.first_now, self.last_now)
        return self._replace(
            last=self.last + block.steps, first_now=since if self.first_now is None else self.first_now,
            last_now=until, steps=self.steps + block.steps, quotes=self.quotes + block.quotes, bytes=block.end,
            terms=block.terms, books=block.books,
        )  # fmt: skip


def segment_at(number: int, first: int, terms: int, books: int) -> Segment:
    return Segment(f"{number:08}.tape", first, first - 1, None, None, 0, 0, 0, terms, books)


class Files(NamedTuple):
    """The segments on disk and the position of a torn end."""

    segments: list[Segment]
    last: list[Block]  # blocks of the last segment
    torn: str | None
    lost: int  # steps of the last segment that are in the catalogue, but not readable


def _names(folder: Path) -> list[str]:
    """List the segment files, without gaps."""
    if not folder.is_dir():
        raise TapeError(f"there is no tape at {folder}")
    names = sorted(path.name for path in folder.iterdir() if _SEGMENT.fullmatch(path.name))
    if not names and not (folder / CATALOGUE).is_file():
        raise TapeError(f"{folder} is not a tape: it has no segments and no {CATALOGUE}")
    for at, name in enumerate(names):
        if name != f"{at + 1:08}.tape":
            raise TapeError(f"{folder / f'{at + 1:08}.tape'} is missing, but {name} exists")
    return names


def _catalogued(folder: Path) -> list[Segment]:
    """Read the catalogue; empty if it does not exist."""
    path = folder / CATALOGUE
    if not path.is_file():
        return []
    try:
        listed = json.loads(path.read_bytes())["segments"]
        return msgspec.convert([[entry[name] for name in Segment._fields] for entry in listed], list[Segment])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TapeError(f"{path} cannot be read ({error}); delete it to read the tape from its segments") from None


def survey(folder: Path) -> Files:
    """Check the files: closed segments against the catalogue, the last one byte by byte."""
    names, catalogued = _names(folder), _catalogued(folder)
    if len(catalogued) > len(names):
        raise TapeError(f"{folder / catalogued[len(names)].file} is missing, but listed in {CATALOGUE}")
    segments: list[Segment] = []
    blocks: list[Block] = []
    torn, lost = None, 0
    for at, name in enumerate(names):
        path, listed = folder / name, catalogued[at] if at < len(catalogued) else None
        before = segments[-1] if segments else segment_at(0, 1, 0, 0)
        empty = segment_at(at + 1, before.last + 1, before.terms, before.books)
        if at + 1 < len(names) and listed is not None:
            size = path.stat().st_size
            if listed.file != name or listed.first != empty.first or listed.bytes != size:
                raise TapeError(
                    f"{folder / CATALOGUE} says that {listed.file} has {listed.bytes:,} bytes from step "
                    f"{listed.first}, and {path} has {size:,} from step {empty.first}; one of them is damaged"
                )
            segments.append(listed)
            continue
        data = path.read_bytes()
        blocks = _blocks(data, path, empty)
        segment = empty
        for block in blocks:
            segment = segment.with_block(block)
        segments.append(segment)
        cut = len(data) - segment.bytes
        if cut and at + 1 < len(names):
            raise TapeError(f"{path} is damaged at byte {segment.bytes:,}, but it is not the last segment")
        lost = 0 if listed is None else _lost(path, listed, empty, blocks)
        if lost or cut:
            torn = f"{path} is torn at byte {segment.bytes:,}"
            torn += f": the {cut:,} bytes from there are not a complete block" if cut else ""
            torn += f"{';' if cut else ':'} {CATALOGUE} knows of {lost:,} steps more" if lost else ""
    return Files(segments, blocks, torn, lost)


def _lost(path: Path, listed: Segment, empty: Segment, blocks: Sequence[Block]) -> int:
    """Count the steps missing at the end compared with the catalogue; raise on any other difference."""
    then = empty
    for block in blocks:
        if block.end <= listed.bytes:
            then = then.with_block(block)
    if then == listed:
        return 0
    all_read = not blocks or then.bytes == blocks[-1].end
    if all_read and then.bytes < listed.bytes and then.first == listed.first and then.last <= listed.last:
        return listed.last - then.last
    raise TapeError(
        f"{path.parent / CATALOGUE} says that {listed.file} has steps {listed.first} to {listed.last} in "
        f"{listed.bytes:,} bytes, and {path} has {then.first} to {then.last} in {then.bytes:,}; one of them is damaged"
    )


def _blocks(data: bytes, path: Path, segment: Segment) -> list[Block]:
    """Return the valid blocks at the start of a segment; raise if valid blocks follow anything else."""
    view, blocks = memoryview(data), []
    while segment.bytes < len(data):
        block = whole(view[segment.bytes :], segment.bytes)
        if block is None:
            at = data.find(MAGIC, segment.bytes + 1)
            while at >= 0:
                if whole(view[at:], at) is not None:
                    raise TapeError(f"{path} is damaged at byte {segment.bytes:,}: valid blocks follow at byte {at:,}")
                at = data.find(MAGIC, at + 1)
            break
        follows(block, path, segment)
        segment = segment.with_block(block)
        blocks.append(block)
    return blocks


def follows(block: Block, path: Path, segment: Segment) -> None:
    """Raise if a block does not continue the segment."""
    if block.first != segment.last + 1:
        raise TapeError(f"{path} continues with step {block.first} at byte {block.offset:,}, after step {segment.last}")
