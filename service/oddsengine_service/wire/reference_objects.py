"""References on odds rows and legs of opportunities (`include=refs`): objects behind ids, with their numerical ids."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from oddsengine import catalog
from oddsengine.detection.kinds import bets_of
from oddsengine.query import values

NAMES = ("home", "away", "sport_ref", "league_ref", "market_ref", "sportsbook_ref")
_UNKNOWN = ("abbreviation", "logo", "city", "mascot", "conference", "division")  # not in the catalog of teams

Reference = Mapping[str, Any]


def with_references(rows: Sequence[dict[str, Any]], fields: Sequence[str] | None) -> list[dict[str, Any]]:
    """Rows with their references; with `fields`, only some other fields."""
    return [
        {**(row if fields is None else {name: row[name] for name in fields}), **references(row)} for row in rows
    ]  # fmt: skip


def references(row: Mapping[str, Any]) -> dict[str, Any]:
    return _of_event(row, row["market_type"]) | _of_book(row["sportsbook"])


def books_of_leg(leg: Mapping[str, Any]) -> list[str]:
    """The books at which a bet is offered; only a side of a low hold may have several."""
    return leg.get("books") or [leg["sportsbook"] if "sportsbook" in leg else leg["book"]]


def with_leg_references(out: dict[str, Any]) -> dict[str, Any]:
    """An opportunity with references on its legs, or on itself if it is a single price.

    The references of a side offered by several books are those of the first.
    """
    shared = _of_event(out, out["market"] if "market" in out else out["market_type"])
    for leg in bets_of(out):
        leg.update(shared | _of_book(books_of_leg(leg)[0]))
    return out


def _of_event(row: Mapping[str, Any], market: str) -> dict[str, Any]:
    sport, league = row["sport"], row["league"]
    return {
        "home": _team(row["home_team"], sport, league), "away": _team(row["away_team"], sport, league),
        "sport_ref": _named("sport", sport, catalog.sport(sport).name), "league_ref": _league(league, sport),
        "market_ref": _market(market, sport),
    }  # fmt: skip


def _of_book(book: str) -> dict[str, Any]:
    return {"sportsbook_ref": _named("sportsbook", book, catalog.book(book).display_name)}


@lru_cache(maxsize=4096)
def _named(domain: str, id_: str, name: str) -> Reference:
    return {"id": id_, "numerical_id": catalog.numerical_id(domain, id_), "name": name}


@lru_cache(maxsize=4096)
def _league(id_: str, sport: str) -> Reference | None:
    return _named("league", id_, catalog.league(id_, sport).name) if id_ else None


@lru_cache(maxsize=4096)
def _market(id_: str, sport: str) -> Reference:
    label = catalog.listing(id_, sport).name
    return {"id": id_, "numerical_id": catalog.numerical_id("market", id_), "label": label}


@lru_cache(maxsize=16384)
def _team(name: str, sport: str, league: str) -> Reference | None:
    if not name:
        return None
    id_ = values.team_id(name, sport, league)
    return {
        **_named("team", id_, name),
        "numerical_id": catalog.numerical_id("team", f"{sport}/{id_}"),
    } | dict.fromkeys(_UNKNOWN)
