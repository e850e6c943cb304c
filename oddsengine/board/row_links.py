"""The own texts of a row: what a source gives for a single price, joined to one text.

No calculation uses most of them. The last ones are the columns `DEPTH_SCHEMA`, if the price has its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import polars as pl

from oddsengine.tables.levels import BET_RULES, COMMISSION, DEPTH_SCHEMA, FEE, LEVELS, read_levels
from oddsengine.tables.schema import ODDS_SCHEMA

LINKS = (
    "id", "deep_link", "sportsbook_name", "external_event_id", "market_id", "selection_id", "max_bet",
    "is_main_line", "is_alternate_line", "volume", "volume_24h", "open_interest", "exchange_token_id",
    LEVELS, COMMISSION, FEE, *BET_RULES,
)  # fmt: skip
"""Columns of a single price that are kept as one text: of them only levels and fees are calculated with."""
LINK_SCHEMA = {name: ODDS_SCHEMA.get(name) or DEPTH_SCHEMA[name] for name in LINKS}
_FLAGS = {"True": True, "False": False}
FEES, LADDER, RULES = 1, 2, 4  # parts that only prices of exchanges have
LEVELS_AT = LINKS.index(LEVELS)
SEPARATOR = "\x1f"
_EXCHANGES = (3, 3, 4)  # numbers of trailing `LINKS` that are omitted if all are empty: only exchanges have them

_NOTHING = SEPARATOR * (len(LINKS) - sum(_EXCHANGES) - 1)


def joined(columns: Mapping[str, Sequence[Any]], n: int) -> list[str | None]:
    """The columns `LINKS` of each row joined to one text; None if all are empty."""
    given = {name: column for name, column in columns.items() if column.count(None) < n}
    if not given:
        return [None] * n
    kept = len(LINKS)
    ends: list[str] = []  # what to cut from the end of a text, in order
    for count in _EXCHANGES:
        if not ends and not any(name in given for name in LINKS[kept - count : kept]):
            kept -= count
        else:
            ends.append(SEPARATOR * count)
    parts: list[Iterable[str]] = []
    between = ""  # separators, of the columns that no row has too
    for name in LINKS[:kept]:
        if name in given:
            parts += [repeat(between)] if between else []
            parts.append(["" if value is None else str(value) for value in given[name]])
            between = ""
        between += SEPARATOR
    parts.append(repeat(between[1:]))
    texts = list(map("".join, zip(*parts)))  # noqa: B905  repeated without an end
    if "".join(texts).count(SEPARATOR) != n * (kept - 1):  # a text has the separator in it
        cleared = {
            name: [value.replace(SEPARATOR, " ") if isinstance(value, str) else value for value in column]
            for name, column in given.items()
        }
        return joined(cleared, n)
    for end in ends:
        texts = [text.removesuffix(end) for text in texts]
    return [None if text == _NOTHING else text for text in texts]


def without_depth(link: str | None) -> str | None:
    """The texts of a row without its levels, fees and rules of stakes."""
    if link is None or link.count(SEPARATOR) < LEVELS_AT:
        return link
    own, exchange = link.split(SEPARATOR)[:LEVELS_AT], SEPARATOR * _EXCHANGES[-1]
    text = SEPARATOR.join(own).removesuffix(exchange)
    return None if text == _NOTHING else text


def depth_parts(link: str | None) -> tuple[str, tuple[str, str], int]:
    """The levels of a row, and its commission and fee, as texts; empty if it has none of its own; and `own_parts`."""
    if link is None or link.count(SEPARATOR) < LEVELS_AT:
        return "", ("", ""), 0
    levels, commission, fee, *rules = link.split(SEPARATOR)[LEVELS_AT:]
    parts = (LADDER if levels else 0) | (FEES if commission or fee else 0) | (RULES if any(rules) else 0)
    return levels, (commission, fee), parts


def own_parts(link: str | None) -> int:
    """Which of `LADDER`, `FEES` and `RULES` a row has, together."""
    return depth_parts(link)[2]


def depth_columns(parts: int) -> tuple[str, ...]:
    """The columns `DEPTH_SCHEMA` of rows that have these parts together."""
    fees, rules = (COMMISSION, FEE) if parts & FEES else (), BET_RULES if parts & RULES else ()
    return ((LEVELS,) if parts & LADDER else ()) + fees + rules


def link_columns(links: list[str | None], names: Sequence[str]) -> list[pl.Series]:
    """Some of the columns `LINKS` of rows."""
    parts = pl.DataFrame({"parts": pl.Series(links, dtype=pl.String).str.split(SEPARATOR)})
    texts = parts.select(
        pl.col("parts").list.get(LINKS.index(name), null_on_oob=True).replace("", None).alias(name) for name in names
    )
    return [typed(name, texts[name]) for name in names]


def typed(name: str, texts: pl.Series) -> pl.Series:
    """A column of the rows' own texts in its type."""
    if name == LEVELS:
        return read_levels(texts)[0]
    if LINK_SCHEMA[name] == pl.Boolean:
        return texts.replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
    return texts.cast(LINK_SCHEMA[name])
