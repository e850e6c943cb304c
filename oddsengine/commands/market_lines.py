"""Market names that the catalog does not have, as lines for a catalog file of your own."""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Protocol

from oddsengine import catalog
from oddsengine.catalog import data_files
from oddsengine.catalog.markets import NOT_IN_CATALOG
from oddsengine.commands.output import counted

_HEAD = (
    "# Lines for a catalog file of your own ([data] catalog): write the market type into means, such as moneyline or",
    '# 1st_half_total_goals; as long as it is "", prices of the market are left out as before.',
)
_MOST_FROM, _MOST_SIMILAR = 5, 3


class UnmappedMarket(Protocol):
    """A market name that a feed has sent."""

    @property
    def source(self) -> str: ...
    @property
    def book(self) -> str: ...
    @property
    def market(self) -> str: ...
    @property
    def times(self) -> int: ...


def market_lines(unmapped: Iterable[UnmappedMarket]) -> str:
    """Return an entry of TOML for each name, once; comments say who sent it, and which names are similar.

    Names that cannot be mapped, or that the catalog in force already has, are comments only.
    """
    names: dict[str, list[UnmappedMarket]] = {}
    for one in unmapped:
        names.setdefault(catalog.normalise(one.market), []).append(one)
    here = {catalog.normalise(name) for name in data_files.own.changes.get("markets", {})}
    blocks = [_block(name, seen, name in here) for name, seen in names.items()]
    return "".join(f"{line}\n" for block in ([*_HEAD], *blocks) for line in block) if blocks else ""


def _block(name: str, seen: list[UnmappedMarket], here: bool) -> list[str]:  # noqa: FBT001  of one call
    """The lines of one name."""
    text, kind = _quoted(seen[0].market), catalog.market_type(name)
    if not name:
        return [f"# {text} has no letters or digits, and cannot be mapped"]
    if kind.usable or here:
        return [f"# {text} is in your catalog already{'' if kind.usable else ', without a meaning'}"]
    if kind.reason != NOT_IN_CATALOG:
        return [f"# {text} is in the catalog, and not used: {kind.reason}"]
    total = sum(one.times for one in seen)
    who = dict.fromkeys(f"{one.book} in feeds.{one.source}" for one in seen)
    told = ", ".join(_plain(each) for each in [*who][:_MOST_FROM]) + (" and others" if len(who) > _MOST_FROM else "")
    near = get_close_matches("_".join(name.split()), catalog.market_type_names(), _MOST_SIMILAR)
    similar = f"; similar: {', '.join(near)}" if near else ""
    return [f"# {counted(total, 'time')} from {told}{similar}", f"[markets.{text}]", 'means = ""']


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(text: str) -> str:
    """A text for a comment, in one line."""
    return _quoted(text)[1:-1]
