"""Fields: the contestants of each market. A market without a known field is never complete.

| market | field | source |
| --- | --- | --- |
| over/under, yes/no | the two sides | `kind` |
| the title of a league whose teams are all known | its teams | `catalog` |
| any other, or to override these | the contestants of a `FuturesField` | `operator` |

Fields are never inferred from prices: a book that omits a contestant says nothing about the contestant. "Any other" may
be a contestant of a configured field, and then means everybody that field does not name.
"""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oddsengine import catalog
from oddsengine.catalog import futures_catalog as kinds
from oddsengine.futures.identity import (
    ANY_OTHER,
    FuturesLabel,
    FuturesMarket,
    UnreadableError,
    contestant,
    identify_price,
)


class FuturesField(NamedTuple):
    """The contestants of a market, as configured."""

    league: str  # as in a price
    market: str  # as in a price
    contestants: tuple[str, ...]  # by any of their names
    season: str = ""  # as in a price, if the field is that of one season
    places: int = 1  # how many of them win
    sport: str = ""  # if the league does not imply it
    type: str = ""  # TEAM or PLAYER, if neither market nor sport implies it


class Field(NamedTuple):
    """The field of one market, with the names used by its prices."""

    contestants: tuple[str, ...]
    places: int
    source: str  # operator, catalog or kind


class FieldsError(ValueError):
    """An invalid field; the message is for the user."""


def fields_by_market(fields: Sequence[FuturesField]) -> Mapping[str, Field]:
    """Map market ids to their fields; later fields replace earlier ones.

    Raises `FieldsError` if a field has no market, too few contestants, or duplicates.
    """
    by_market: dict[str, Field] = {}
    for field in fields:
        where = f"the field of {field.league} {field.market}".strip()
        if field.places < 1 or len(field.contestants) <= field.places:
            raise FieldsError(
                f"{where} has {len(field.contestants)} contestants, which is too few for {field.places} places"
            )
        words = FuturesLabel(
            field.sport, field.league, field.market, field.season, field.type, "", field.contestants[0], None,
            field.places,
        )  # fmt: skip
        try:
            market, _ = identify_price(words)
            without_places, _ = identify_price(words._replace(places=None))
        except UnreadableError as error:
            raise FieldsError(f"{where} cannot be used: {error}") from None
        if market.type not in ("TEAM", "PLAYER"):
            raise FieldsError(f"{where} is {market.type}; its field is always its two sides")
        team = market.type == "TEAM"
        names = tuple(
            contestant(market.sport, market.league, text) if team else _person(text) for text in field.contestants
        )
        plain = [catalog.normalise(name) for name in names]
        twice = next((name for name, key in zip(names, plain, strict=True) if plain.count(key) > 1 or not key), None)
        if twice is not None:
            raise FieldsError(f"{where} names {twice!r} twice, or it is not a valid name")
        by_market[market.id] = Field(names, field.places, "operator")
        if without_places.places == 0:
            by_market[without_places.id] = by_market[market.id]
    return by_market


def _person(text: str) -> str:
    return ANY_OTHER if contestant("", "", text) == ANY_OTHER else " ".join(text.split())


def field_of(market: FuturesMarket, configured: Mapping[str, Field]) -> Field | None:
    """Return the field of a market, or None if the contestants or the number of winners are unknown."""
    if market.id in configured:
        return configured[market.id]
    if market.type == "OVER_UNDER":
        return Field((f"Over {market.line:g}", f"Under {market.line:g}"), 1, "kind")
    if market.type == "YES_NO":
        return Field(("Yes", "No"), 1, "kind")
    if market.places and market.type == "TEAM" and kinds.kind(market.kind).whole_league:
        teams = kinds.contestants(market.league)
        if len(teams) > market.places:
            return Field(teams, market.places, "catalog")
    return None


def parse_fields(text: str) -> tuple[FuturesField, ...]:
    """Parse a TOML file of fields.

    Raises `FieldsError` if the file is not valid.

    Examples
    --------
    >>> found = parse_fields('''
    ... [[field]]
    ... league = "nba"
    ... market = "MVP"
    ... season = "2026-27"
    ... contestants = ["Nikola Jokic", "Luka Doncic", "Any other"]
    ... ''')
    >>> found[0].contestants, found[0].places
    (('Nikola Jokic', 'Luka Doncic', 'Any other'), 1)
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FieldsError(f"not valid TOML: {error}") from None
    rows = table.get("field", [])
    if set(table) - {"field"} or not isinstance(rows, list):
        raise FieldsError("a file of fields must contain only [[field]] tables")
    made = tuple(_field(at, row) for at, row in enumerate(rows, 1))
    fields_by_market(made)
    return made


_KINDS: Mapping[str, type] = {
    "league": str, "market": str, "season": str, "sport": str, "type": str, "places": int, "contestants": list,
}  # fmt: skip


def _field(at: int, row: Any) -> FuturesField:
    if not isinstance(row, dict) or {"market", "contestants"} - set(row) or set(row) - set(_KINDS):
        raise FieldsError(f"field {at} needs market and contestants, and may have {', '.join(sorted(_KINDS))}")
    for name, value in row.items():
        fine = isinstance(value, _KINDS[name]) and not isinstance(value, bool)
        if not fine or (name == "contestants" and not all(isinstance(one, str) for one in value)):
            raise FieldsError(f"field {at}: {name} is {value!r}, which is not valid")
    return FuturesField(**{"league": "", **row, "contestants": tuple(row["contestants"])})
