"""Files of football-data.co.uk, one for each division and season, kept in a folder with the checksum of each.

The folder has ``1213/E0.csv`` and so on, and `SHA256SUMS`, which ``sha256sum --check`` reads. A file that is there is
not fetched again unless that is wanted, nor is one asked for again that the site did not have when its season was over:
`ABSENT` lists these. One that differs from its checksum is said.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from oddsengine.feeds.football_data import is_season
from oddsengine.feeds.payload import Payload
from oddsengine.sources.failure import FAILED, REFUSED, UNREACHABLE, Failure, FetchError
from oddsengine.sources.fetching import Reports, run_to_end
from oddsengine.sources.retry import Backoff
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import FootballDataSettings
from oddsengine.sources.web import Web
from oddsengine.tables.files import write_whole

SITE = "football-data.co.uk"
URL = "https://www.football-data.co.uk/mmz4281"
DIVISIONS = (
    "B1", "D1", "D2", "E0", "E1", "E2", "E3", "EC", "F1", "F2", "G1", "I1", "I2", "N1", "P1", "SC0", "SC1", "SC2",
    "SC3", "SP1", "SP2", "T1",
)  # fmt: skip
SUMS, ABSENT = "SHA256SUMS", "ABSENT"
_ATTEMPTS = 3
_NOT_FOUND = 404
_BODY = 8 << 20  # bytes
_INSTEAD = "; with files of your own, name their folder (--data FOLDER, or data)"


class SeasonFiles(NamedTuple):
    """The files of some seasons."""

    paths: tuple[Path, ...]
    fetched: int  # those that were not there before
    remarks: tuple[str, ...]  # what has changed, and what the site does not have


def fetch_seasons(
    seasons: Iterable[int], folder: Path, *, url: str = URL, refresh: bool = False,
    divisions: Iterable[str] = DIVISIONS, progress: Callable[[float, int, str], None] | None = None,
) -> SeasonFiles:  # fmt: skip
    """Fetch the files of seasons that a folder does not have; `seasons` are the years in which they begin.

    With `refresh`, all are fetched again. Raises `FetchError` if the site cannot be reached or refuses, or has none of
    the files.
    """
    names = [f"{season % 100:02}{(season + 1) % 100:02}/{division}.csv" for season in seasons for division in divisions]
    kept = _Kept(folder)
    wanted = [name for name in names if refresh or not (kept.has(name) or name in kept.absent)]
    if wanted:
        run_to_end(lambda: _fetch(wanted, kept, url.rstrip("/"), progress))
    paths = [kept.path(name) for name in names if kept.has(name)]
    if not paths:
        raise FetchError(SITE, FAILED, f"none of {', '.join(names[:3])} ... is at {url}{_INSTEAD}")
    fresh = {*wanted}
    differ = [f"{name} is not the file that was fetched: its checksum is not that of {folder / SUMS}"
              for name in names if name not in fresh and kept.has(name) and not kept.is_whole(name)]  # fmt: skip
    absent = sorted(name for name in names if not kept.has(name))
    none = [f"{SITE} does not have {', '.join(absent)}"] if absent else []
    return SeasonFiles(tuple(paths), kept.fetched, (*kept.changed, *differ, *none))


class _Kept:
    """A folder of files and their checksums."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fetched, self.changed = 0, list[str]()
        self.absent = set((folder / ABSENT).read_text("utf-8").split()) if (folder / ABSENT).is_file() else set[str]()
        self._sums: dict[str, str] = {}
        if (file := folder / SUMS).is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                digest, _, name = line.partition("  ")
                self._sums[name] = digest

    def path(self, name: str) -> Path:
        return self._folder / name

    def has(self, name: str) -> bool:
        return self.path(name).is_file()

    def is_whole(self, name: str) -> bool:
        """Whether a file is the one whose checksum is known."""
        return self._sums.get(name) in (None, _digest(self.path(name).read_bytes()))

    def keep(self, name: str, content: bytes) -> None:
        """Write a file and its checksum."""
        path, digest = self.path(name), _digest(content)
        if self._sums.get(name, digest) != digest:
            self.changed.append(f"{name} has changed at {SITE} since it was last fetched")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        self._sums[name] = digest
        self.fetched += 1
        lines = "".join(f"{self._sums[each]}  {each}\n" for each in sorted(self._sums))
        write_whole(self._folder / SUMS, lines.encode())

    def remember_absent(self, name: str) -> None:
        """Remember that the site does not have a file, if its season is over."""
        year = 2000 + int(name[2:4])  # in which it ends
        if datetime.now(UTC) >= datetime(year, 7, 1, tzinfo=UTC):
            self.absent.add(name)
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / ABSENT, "".join(f"{each}\n" for each in sorted(self.absent)).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def _fetch(
    names: list[str], kept: _Kept, url: str, progress: Callable[[float, int, str], None] | None
) -> None:  # fmt: skip
    async def nothing(_: Payload) -> None:
        """Files are kept as they are."""

    feed = FootballDataSettings(name=SITE, kind="football_data", url=url, body_bytes=_BODY)
    async with Web(feed, Secrets(), Reports(nothing)) as web:
        for count, name in enumerate(names):
            if progress is not None:
                progress(count / len(names), count, name)
            try:
                content = await _one(web, f"{url}/{name}", Backoff(feed.backoff, feed.backoff_cap))
            except Failure as failure:
                raise FetchError(SITE, failure.kind, f"{failure} ({url}/{name}){_INSTEAD}") from None
            if content is None:
                kept.remember_absent(name)
            else:
                kept.keep(name, content)


async def _one(web: Web, url: str, backoff: Backoff) -> bytes | None:
    """Fetch one file, again after a failure that may pass; None if there is no such file."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            content = (await web.get(url)).body
        except Failure as failure:
            if failure.status == _NOT_FOUND:
                return None
            if failure.kind in (UNREACHABLE, REFUSED) or attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(backoff.wait(failure))
        else:
            if not is_season(content):
                raise Failure(f"what came is not a file of {SITE}")
            return content
    raise AssertionError
