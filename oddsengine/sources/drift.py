"""What a feed sends that its contract does not know, in a sample: the first answers of each kind, then one a second."""

import asyncio
from collections import Counter
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from oddsengine.feeds.contract_types import NEW_FIELD, Difference, FieldType
from oddsengine.feeds.venue_contracts import Contract
from oddsengine.sources.source_settings import FeedSettings

LARGE = 100_000  # bytes; what takes so long to read is done in a thread
_FIRST = 100  # answers of each kind
_EVERY_S = 1.0
_MOST = 200  # differences that are told apart


class DriftCounts(NamedTuple):
    """How many things a contract does not know: values, and fields, which are not read."""

    values: int
    fields: int


class Drift:
    """The differences between what came and a contract, counted.

    Examples
    --------
    >>> Drift(None).counts
    DriftCounts(values=0, fields=0)
    """

    def __init__(self, contract: Contract | None) -> None:
        self._contract = contract
        self._looked: Counter[str] = Counter()
        self._due: dict[str, float] = {}
        self.seen: Counter[Difference] = Counter()

    async def look(self, place: str, body: bytes) -> list[Difference]:
        """Look at an answer to a request, or a message of a connection; returns what is different for the first time.

        `place` is a method and a path, or the connection's name in the contract.
        """
        if self._contract is None or (kind := self._contract.answer_to(place)) is None or not self._is_due(kind):
            return []
        turn = self._looked[kind.name] - 1
        if len(body) > LARGE:
            found = await asyncio.to_thread(_differences, self._contract, kind, body, turn)
        else:
            found = _differences(self._contract, kind, body, turn)
        new = [one for one in dict.fromkeys(found) if one not in self.seen][: _MOST - len(self.seen)]
        self.seen.update(one for one in found if one in self.seen or one in new)
        return new

    def _is_due(self, kind: FieldType) -> bool:
        now = asyncio.get_running_loop().time()
        if self._looked[kind.name] >= _FIRST and now < self._due.get(kind.name, 0.0):
            return False
        self._looked[kind.name] += 1
        self._due[kind.name] = now + _EVERY_S
        return True

    @property
    def counts(self) -> DriftCounts:
        """How many there are."""
        fields = sum(one.kind == NEW_FIELD for one in self.seen)
        return DriftCounts(len(self.seen) - fields, fields)

    def values(self) -> list[Difference]:
        """Return values that are not known, those that decide what a price is first."""
        found = [one for one in self.seen if one.kind != NEW_FIELD]
        return sorted(found, key=lambda one: (not one.decides, -self.seen[one], one))


def venue_of(feed: FeedSettings) -> str:
    """Return the kind of a feed; nothing if its `url` is that of another service in the same format.

    Examples
    --------
    >>> from oddsengine.sources.source_settings import TheOddsApiSettings
    >>> given = dict(name="a", kind="the_odds_api", key_env="KEY", sports=("nba",))
    >>> venue_of(TheOddsApiSettings(**given)), venue_of(TheOddsApiSettings(**given, url="https://parlay-api.com"))
    ('the_odds_api', '')
    """
    usual = next((field.default for field in msgspec.structs.fields(feed) if field.name == "url"), "")
    hosts = [urlsplit(url).hostname for url in (getattr(feed, "url", ""), usual) if isinstance(url, str)]
    return feed.kind if len(set(hosts) - {"127.0.0.1", "localhost"}) <= 1 else ""


def _differences(table: Contract, kind: FieldType, body: bytes, turn: int) -> list[Difference]:
    try:
        return table.unknown(kind, msgspec.json.decode(body), turn)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []  # its parser says what is wrong
