"""Tiers: what a subscription may do, and which books it may see."""

import re
from functools import cache
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.detection.kinds import KINDS
from oddsengine_service.errors import Problem, quoted

DEMO = "demo_"  # how the accounts of the demo begin
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")  # no space: see `limits.Limits`


def check_account(name: str) -> None:
    """Raise `ValueError` if an account cannot have this name."""
    if not _ACCOUNT.fullmatch(name) or name.startswith(DEMO):
        raise ValueError(
            "account must be 1 to 64 letters, digits and . _ @ + -, not beginning with a sign or with demo_, "
            f"got {quoted(name)}"
        )


class Tier(NamedTuple):
    """One tier. `rate` is requests per minute; `books` the number of books (None: all); `delay` in seconds."""

    id: str
    rank: int
    rate: int
    delay: int
    books: int | None
    batch: int
    features: frozenset[str]
    streams: int = 0  # without the add-on


class Caller(NamedTuple):
    """The caller: an account's key, or an address without one."""

    account: str  # empty without a key
    key: str  # id of the key
    tier: Tier
    rate: int  # requests per minute
    streams: int  # concurrent streams
    features: frozenset[str]
    signed_in: bool = False  # by the application that the node is part of; then there is no key
    reads_only: bool = False  # with a secret that a rotation has replaced

    @property
    def rights(self) -> tuple[str, frozenset[str]]:
        """Everything a response may depend on: callers with equal rights get equal responses."""
        return self.tier.id, self.features


class Account(NamedTuple):
    """An account of an application that has the node in it and signs its users in itself."""

    name: str  # to which limits, saved filters and tracked bets belong; as `check_account` allows
    tier: str = "enterprise"  # what it may read
    rate: int | None = None  # requests per minute; None: the tier's
    streams: int | None = None  # concurrent streams; None: the tier's

    def caller(self) -> Caller:
        """The account as a caller. Raises `ValueError` if it cannot have this name, or there is no such tier."""
        check_account(self.name)
        tier = TIERS.get(self.tier)
        if tier is None:
            raise ValueError(f"tier must be one of {', '.join(TIERS)}, got {quoted(self.tier)}")
        rate = tier.rate if self.rate is None else self.rate
        streams = tier.streams if self.streams is None else self.streams
        return Caller(self.name, self.name, tier, rate, streams, tier.features, signed_in=True)


def _kinds(tier: str) -> frozenset[str]:
    return frozenset(kind.name for kind in KINDS.values() if kind.tier == tier)


_ODDS = frozenset({"odds", "schedule", "splits"}) | _kinds("free")
_HOBBY = _ODDS | _kinds("hobby")
_PRO = _HOBBY | _kinds("pro")
_ALL = _PRO | {"gamestate", "futures"} | _kinds("sharp") | _kinds("enterprise")
TIERS = {
    tier.id: tier
    for tier in (
        Tier("free", 0, 12, 60, 2, 5, _ODDS),
        Tier("hobby", 1, 120, 0, 5, 20, _HOBBY),
        Tier("pro", 2, 300, 0, 15, 50, _PRO),
        Tier("sharp", 3, 1000, 0, None, 100, _PRO | _kinds("sharp")),
        Tier("enterprise", 4, 6000, 0, None, 100, _ALL, streams=100),
    )
}
for _kind in KINDS.values():
    if _kind.tier not in TIERS:
        raise ValueError(f"the kind {_kind.name} needs a tier of {', '.join(TIERS)}, got {_kind.tier!r}")
ADD_ON_STREAMS = 10
ANONYMOUS_RATE = 12  # requests per minute and address
ANONYMOUS = Caller("", "", TIERS["free"], ANONYMOUS_RATE, 0, TIERS["free"].features)


def required(feature: str) -> Tier:
    """The lowest tier that has a feature."""
    return next(tier for tier in TIERS.values() if feature in tier.features)


@cache
def books_of(tier: str) -> frozenset[str] | None:
    """Ids of the books that a tier may see; None for all."""
    if TIERS[tier].books is None:
        return None
    rank = TIERS[tier].rank
    return frozenset(book.id for book in catalog.books().values() if TIERS[book.requires_tier].rank <= rank)


def book_above(book: str, tier: Tier, what: str = "sportsbook") -> Problem:
    """The response to a request for a book that a tier does not include."""
    needed = catalog.book(book).requires_tier
    message = f"{what} {book} requires the {needed} tier; this key has the {tier.id} tier"
    return Problem(403, "tier_restricted", message, required_tier=needed)


def feature_above(feature: str, tier: Tier, code: str = "tier_restricted") -> Problem:
    """The response to a request for a feature that a tier does not include."""
    needed = required(feature).id
    message = f"{feature} requires the {needed} tier or higher; this key has the {tier.id} tier"
    return Problem(403, code, message, required_tier=needed)
