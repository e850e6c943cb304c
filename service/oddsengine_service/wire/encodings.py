"""How the rows of each kind of opportunity are encoded, and the prices by which lists filter them.

The kinds of the published contract have a struct of their own; that of a registered kind follows from its columns, in
the formats of the contract's fields of their names.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec
import polars as pl
from msgspec import Meta

from oddsengine.detection.kinds import KINDS, Kind
from oddsengine_service.wire.contract import (
    ARBITRAGE,
    EV,
    LOW_HOLD,
    MIDDLE,
    Arbitrage,
    Ev,
    HoldOdds,
    HoldSide,
    Leg,
    LowHold,
    Middle,
    MiddleSide,
    arbitrage_rows,
    renamed,
)
from oddsengine_service.wire.encoded_columns import RowEncoding, american_of, fields
from oddsengine_service.wire.numbers import Number

_PUBLISHED = {"ev": EV, "arbitrage": ARBITRAGE, "low_hold": LOW_HOLD, "middles": MIDDLE}
_FORMATS = {
    field.name: field.form for struct in (Ev, Arbitrage, Leg, LowHold, HoldSide, HoldOdds, Middle, MiddleSide)
    for field in fields(struct) if field.form
}  # fmt: skip
_LEFT_OUT = ("row", "rows")  # positions in a table
_TYPES: dict[type[pl.DataType], Any] = {
    pl.String: str | None, pl.Boolean: bool | None, pl.Int64: int | None, pl.UInt32: int | None, pl.Float64: Number,
    pl.Datetime: str | None,
}  # fmt: skip


def _struct(name: str, schema: Mapping[str, Any], names: Mapping[str, str], path: str = "") -> type[msgspec.Struct]:
    """A struct with the columns of a schema, some by other names; `player_id` follows the player's name."""
    columns: list[tuple[str, Any]] = []
    for column, dtype in schema.items():
        if column not in _LEFT_OUT:
            published = names.get(path + column, column).rpartition(".")[2]
            kind = _type(f"{name}{column.title()}", dtype, names, f"{path}{column}.")
            form = _FORMATS.get(published)
            columns.append((published, Annotated[kind, Meta(extra={"format": form})] if form else kind))
        if column == "player_name":
            columns.append(("player_id", str | None))
    return msgspec.defstruct(name, columns, frozen=True)


def _type(name: str, dtype: Any, names: Mapping[str, str], path: str) -> Any:
    if isinstance(dtype, pl.List):
        inner = _type(name, dtype.inner, names, path)
        return list[str] if inner == str | None else list.__class_getitem__(inner)
    if isinstance(dtype, pl.Struct):
        return _struct(name, dict(dtype), names, path)
    return _TYPES[dtype if isinstance(dtype, type) else type(dtype)]


def _encoding(kind: Kind) -> RowEncoding:
    if kind.name in _PUBLISHED:
        return _PUBLISHED[kind.name]
    title = "".join(word.title() for word in kind.name.split("_"))
    struct, names = _struct(title, kind.schema, kind.published), renamed(kind)
    struct.__doc__ = kind.about
    return RowEncoding(struct, lambda *_: names)


KINDS.use("the service was imported")
ENCODINGS: Mapping[str, RowEncoding] = {name: _encoding(kind) for name, kind in KINDS.items()}
WITH_GAME_STATE = frozenset(name for name, each in ENCODINGS.items() if "game_state" in each.struct.__struct_fields__)
"""Kinds whose rows have the state of their game, for tiers with game states."""


def encodings(rates: Mapping[str, float]) -> dict[str, RowEncoding]:
    """The encoding of each kind; `rates` are the operator's, for the largest sizes of arbitrages."""
    return dict(ENCODINGS) | ({"arbitrage": arbitrage_rows(rates)} if rates else {})


class AmericanPrices(NamedTuple):
    """The lowest and the highest American price of each row."""

    lowest: pl.Expr
    highest: pl.Expr


@cache
def prices(kind: Kind) -> AmericanPrices:
    """The American prices of a kind."""
    columns = []
    for path in kind.american:
        outer, _, inner = path.partition(".")
        if isinstance(kind.schema[outer], pl.List):
            legs = pl.col(outer).list.eval(american_of(pl.element().struct.field(inner))).list
            return AmericanPrices(legs.min(), legs.max())
        columns.append(american_of(pl.col(outer).struct.field(inner) if inner else pl.col(outer)))
    return AmericanPrices(pl.min_horizontal(columns), pl.max_horizontal(columns))
