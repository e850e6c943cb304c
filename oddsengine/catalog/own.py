"""Your own catalog file: additional books, leagues, teams, market names, places and terms, or changes to existing ones.

    [books.corner_shop]
    name = "Corner Shop"
    regions = ["UK"]
    requires_tier = "pro"
    [links.corner_shop]
    home = "https://www.corner-shop.example/"
    hosts = ["go.corner-shop.example"]  # more hosts that links of its prices may lead to
    [places.corner_shop]
    open = ["GB"]
    [leagues.sunday_league]
    name = "Sunday League"
    sport = "soccer"
    [teams.sunday_league.dog_and_duck]
    name = "Dog & Duck"
    aliases = ["The Ducks"]
    [markets."Winner (90 min)"]
    means = "moneyline_3way"
    [terms.corner_shop_nfl]
    books = ["corner_shop"]
    leagues = ["nfl"]
    tie = "void"
    postponed = { within = 24, pays = "void" }
    [thresholds.stale]
    prematch_s = 300

Thresholds have the tables and keys of guards.toml, terms those of terms.toml. A key replaces the catalog's value under
that id; `aliases` and `in_league` extend it. New entries of terms come last. The file is validated and applied as a
whole, or not at all. It must be loaded before the first lookup.
"""

import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.catalog.books import CURRENCIES, REGIONS, TIERS, book
from oddsengine.catalog.data_files import CatalogError
from oddsengine.catalog.leagues import league
from oddsengine.catalog.links import TEMPLATES, allowed, fault, host_fault
from oddsengine.catalog.markets import families, market_type
from oddsengine.catalog.places import fault as place_fault
from oddsengine.catalog.places import places
from oddsengine.catalog.settlement_rules import AFTER, ALLOWED, PAYS, PROPS, WITHIN, shipped_terms, terms
from oddsengine.catalog.spelling import normalise, plain
from oddsengine.catalog.sports import sports
from oddsengine.catalog.teams import team
from oddsengine.catalog.thresholds import Thresholds
from oddsengine.catalog.thresholds import fault as threshold_fault

# Returns what a field may be; empty if the value is valid.
Check = Callable[[Any], str]


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value.strip() else "a non-empty string"


def _name(value: Any) -> str:
    return "" if isinstance(value, str) and normalise(value) else "a string with letters or digits"


def _names(value: Any) -> str:
    fine = isinstance(value, list) and not any(map(_name, value))
    return "" if fine else "a list of strings with letters or digits"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _below(limit: float) -> Check:
    def check(value: Any) -> str:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return "" if number and 0.0 <= value < limit else f"a fraction from 0 to less than {limit}"

    return check


def _step(value: Any) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if number and 0.0 < value <= 1.0 else "an amount above 0 of at most 1"


def _one_of(*words: str) -> Check:
    return lambda value: "" if value in words else f"one of {', '.join(words)}"


def _some_of(*words: str) -> Check:
    def check(value: Any) -> str:
        fine = isinstance(value, list) and value and all(word in words for word in value)
        return "" if fine else f"a list of some of {', '.join(words)}"

    return check


def _sport(value: Any) -> str:
    return "" if isinstance(value, str) and value in sports() else f"one of {', '.join(sports())}"


def _template(key: str) -> Check:
    def check(value: Any) -> str:
        problem = fault(key, value) if isinstance(value, str) else "is not a string"
        return f"a link, and this {problem}" if problem else ""

    return check


def _hosts(value: Any) -> str:
    fine = isinstance(value, list) and value and all(isinstance(name, str) and not host_fault(name) for name in value)
    return "" if fine else 'a list of hosts in lower case, such as ["go.example.com"]'


def _places(value: Any) -> str:
    fine = isinstance(value, list) and not any(not isinstance(name, str) or place_fault(name) for name in value)
    return "" if fine else 'a list of countries such as "GB", or parts of them such as "US-NJ"'


def _ids(of: str, known: Callable[[], Iterable[str]] | None = None) -> Check:
    """Check a list of ids; `known` are all there are."""

    def check(value: Any) -> str:
        fine = isinstance(value, list) and value and not any(map(_name, value))
        strange = sorted({*value} - {*known()}) if fine and known else []
        return (
            "" if fine and not strange else f"a list of ids of {of}{f', which has no {strange[0]}' if strange else ''}"
        )

    return check


def _date(value: Any) -> str:
    return "" if isinstance(value, date) and not isinstance(value, datetime) else "a date, such as 2026-11-28"


def _limited(key: str, words: tuple[str, ...], unit: str) -> Check:
    """Check a case that depends on a limit, which is a word or a number."""
    allowed = f"{{ {key} = a number of {unit} or one of {', '.join(words)}, pays = one of {', '.join(PAYS)} }}"

    def check(value: Any) -> str:
        if not isinstance(value, dict) or not {key} <= set(value) <= {key, "pays"}:
            return allowed
        limit = value[key]
        number = isinstance(limit, (int, float)) and not isinstance(limit, bool) and 0.0 < limit < 10_000.0
        return "" if (number or limit in words) and value.get("pays", "void") in PAYS else allowed

    return check


# Keys by section; the first ones are required in new entries.
_FIELDS: Mapping[str, Mapping[str, Check]] = {
    "books": {
        "name": _name,
        "display": _text,
        "regions": _some_of(*REGIONS),
        "requires_tier": _one_of(*TIERS),
        "sharp": _flag,
        "exchange": _flag,
        "mid_price": _flag,
        "last_traded": _flag,
        "parlay_only": _flag,
        "live": _flag,
        "props": _flag,
        "commission": _below(0.2),
        "fee": _below(0.5),
        "live_fee": _below(0.5),
        "fee_step": _step,
        "feed": _text,
        "currency": _one_of(*CURRENCIES),
        "aliases": _names,
    },
    "links": {**{key: _template(key) for key in TEMPLATES}, "hosts": _hosts},
    "leagues": {"name": _name, "sport": _sport, "country": _text, "aliases": _names},
    "teams": {"name": _name, "aliases": _names, "in_league": _names},
    "markets": {"means": _name},
    "places": {"open": _places, "closed": _places, "unknown": _places, "source": _text, "date": _date},
    "terms": {
        "books": _ids("books"),
        "sports": _ids("sports.toml", sports),
        "leagues": _ids("leagues"),
        "families": _ids("markets.toml or player_stats.csv", lambda: (*families(), PROPS)),
        "periods": _ids("markets.toml", lambda: data_files.toml("markets.toml")["periods"]),
        **{case: _one_of(*words) for case, words in ALLOWED.items()},
        "postponed": _limited("within", WITHIN, "hours"),
        "retirement": _limited("after", AFTER, "sets"),
        "source": _text,
        "date": _date,
    },
}
_REQUIRED = {
    "books": ("name",),
    "leagues": ("name", "sport"),
    "teams": ("name",),
    "markets": ("means",),
    "links": ("home",),
    "places": (),
    "terms": ("books",),
}


def _shipped(section: str) -> Mapping[str, Any]:
    if section in ("leagues", "teams"):
        return data_files.entries(f"{section}.csv")
    if section in ("books", "places"):
        return data_files.toml(f"{section}.toml")
    if section == "terms":
        return shipped_terms()
    table: dict[str, Any] = data_files.toml("links.toml")["books"] if section == "links" else {}
    return table


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CatalogError(f"{where} must be a table, got {excerpt(value)}")
    return value


def _entries(section: str, tables: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Yield each entry of a section: path, id, values, and values implied by its position."""
    if section != "teams":
        for id_, entry in tables.items():
            yield f"{section}.{id_}", id_, _table(entry, f"{section}.{id_}"), {}
        return
    for league_id, names in tables.items():
        for id_, entry in _table(names, f"teams.{league_id}").items():
            where = f"teams.{league_id}.{id_}"
            yield where, id_, _table(entry, where), {"league": league_id}


def _section(section: str, tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check the entries of a section."""
    fields, shipped, entries_ = _FIELDS[section], _shipped(section), dict[str, dict[str, Any]]()
    for where, id_, entry, place in _entries(section, tables):
        if section != "markets" and (id_ != plain(id_) or not id_.isascii()):
            raise CatalogError(
                f"{where}: the id must be lower-case letters and digits, joined by underscores, got {excerpt(id_)}"
            )
        if id_ in entries_:
            raise CatalogError(f"{where} must be the only entry with its id, got {excerpt(id_)} twice")
        for key, value in entry.items():
            if key not in fields:
                raise CatalogError(f"{where}.{key} is not a key; allowed: {', '.join(fields)}")
            if allowed := fields[key](value):
                raise CatalogError(f"{where}.{key} must be {allowed}, got {excerpt(value)}")
        for key in _REQUIRED[section]:
            if id_ not in shipped and key not in entry:
                raise CatalogError(f"{where}.{key} must be {fields[key](None)}, got nothing")
        entries_[id_] = {**entry, **place}
    return entries_


def _thresholds(tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check thresholds, which are in tables as in guards.toml."""
    for table, entries in tables.items():
        for key, value in _table(entries, f"thresholds.{table}").items():
            name = f"{table}_{key}"
            if allowed := threshold_fault(name, value):
                where = f"thresholds.{table}.{key}"
                if name in Thresholds._fields:
                    raise CatalogError(f"{where} must be {allowed}, got {excerpt(value)}")
                near = [
                    field.removeprefix(f"{table}_") for field in Thresholds._fields if field.startswith(f"{table}_")
                ]
                allowed_here = f"{', '.join(near)}" if near else "the tables of guards.toml"
                raise CatalogError(f"{where} is not a threshold; allowed: {allowed_here}")
    return dict(tables)


def _checked(tables: Mapping[str, Any]) -> data_files.Changes:
    """Check a whole file, except for conflicts between entries."""
    for section, content in tables.items():
        if section not in (*_FIELDS, "thresholds"):
            raise CatalogError(f"{section} is not a section; allowed: {', '.join((*_FIELDS, 'thresholds'))}")
        _table(content, section)
    changes = {
        section: _thresholds(content) if section == "thresholds" else _section(section, content)
        for section, content in tables.items()
    }
    for section, owner, names in (
        ("teams", "leagues", [entry["league"] for entry in changes.get("teams", {}).values()]),
        ("links", "books", list(changes.get("links", {}))),
        ("places", "books", list(changes.get("places", {}))),
        (
            "terms",
            "leagues",
            [name for entry in changes.get("terms", {}).values() for name in entry.get("leagues", ())],
        ),
    ):
        for name in names:
            if name not in changes.get(owner, {}) and name not in _shipped(owner):
                raise CatalogError(f"{section}.{name} must be an id of {owner}, got {excerpt(name)}")
    return {section: entries for section, entries in changes.items() if entries}


def _read_all() -> None:
    """Build every table to detect names that are used twice."""
    book(""), league(""), team("", ""), allowed(""), market_type("none"), terms("", "", ""), places("")


def load(path: str | Path) -> None:
    """Load your own catalog file, before the first lookup.

    Parameters
    ----------
    path
        A TOML file in the format shown by this module. Loading the same content again has no effect.

    Raises
    ------
    CatalogError
        If the file cannot be read, is invalid, or changes sections that are already in use. The catalog is unchanged.
    """
    where = Path(path)
    try:
        with where.open("rb") as file:
            changes = _checked(tomllib.load(file))
    except OSError as error:
        raise CatalogError(f"{where}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogError(f"{where}: not valid TOML: {error}") from error
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from None
    before, used = data_files.own.changes, set(data_files.own.used)
    if changes == before:
        return
    if late := sorted(used & {*changes, *before}):
        raise CatalogError(f"{where}: cannot be loaded any more: {', '.join(late)} of the catalog are already in use")
    data_files.own.changes = changes
    try:
        _read_all()
    except CatalogError as error:
        forget()
        data_files.own.changes, data_files.own.used = before, used
        raise CatalogError(f"{where}: {error}") from None


def forget() -> None:
    """Clear all cached data, including the own file. For tests."""
    for name, module in list(sys.modules.items()):
        if name.startswith("oddsengine."):
            for entry in vars(module).values():
                if hasattr(entry, "cache_clear"):
                    entry.cache_clear()
    data_files.own.changes, data_files.own.used = {}, set()
