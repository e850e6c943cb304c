"""What a catalog file of your own may say: its sections, their keys, and what each may be.

`checked` looks at one file; `check_together` at what only all files together can break: an entry that is new needs
some keys, and what it belongs to must exist.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.catalog.books import CURRENCIES, REGIONS, TIERS
from oddsengine.catalog.data_files import CatalogError
from oddsengine.catalog.links import TEMPLATES, fault, host_fault
from oddsengine.catalog.markets import families
from oddsengine.catalog.places import fault as place_fault
from oddsengine.catalog.settlement_rules import AFTER, ALLOWED, PAYS, PROPS, WITHIN, shipped_terms
from oddsengine.catalog.spelling import normalise, plain
from oddsengine.catalog.sports import sports
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


def _meaning(value: Any) -> str:
    """A market type; empty as long as it is not decided."""
    return "" if value == "" else _name(value)


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


# Keys by section.
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
    "markets": {"means": _meaning},
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
_REQUIRED: Mapping[str, tuple[str, ...]] = {  # keys of new entries
    "books": ("name",),
    "leagues": ("name", "sport"),
    "teams": ("name",),
    "markets": ("means",),
    "links": ("home",),
    "places": (),
    "terms": ("books",),
}
SECTIONS = (*_FIELDS, "thresholds")


def shipped_entries(section: str) -> Mapping[str, Any]:
    """The entries of the package in a section; names of markets are resolved, not listed."""
    if section in ("leagues", "teams"):
        return data_files.entries(f"{section}.csv")
    if section in ("books", "places"):
        return data_files.toml(f"{section}.toml")
    if section == "terms":
        return shipped_terms()
    if section == "thresholds":
        tables = data_files.toml("guards.toml")
        return {name: table for name, table in tables.items() if isinstance(table, dict)}
    table: dict[str, Any] = data_files.toml("links.toml")["books"] if section == "links" else {}
    return table


def path_of(section: str, id_: str, entry: Mapping[str, Any]) -> str:
    """Where an entry is in a file: `books.corner_shop`, `teams.nba.chicago_bulls`."""
    return f"{section}.{entry['league']}.{id_}" if section == "teams" else f"{section}.{id_}"


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CatalogError(f"{where} must be a table, got {excerpt(value)}")
    return value


def _entries(section: str, tables: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each entry of a section: id, values, and values implied by its position."""
    if section != "teams":
        for id_, entry in tables.items():
            yield id_, _table(entry, f"{section}.{id_}"), {}
        return
    for league_id, names in tables.items():
        for id_, entry in _table(names, f"teams.{league_id}").items():
            yield id_, _table(entry, f"teams.{league_id}.{id_}"), {"league": league_id}


def _section(section: str, tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check the entries of a section."""
    fields, entries_ = _FIELDS[section], dict[str, dict[str, Any]]()
    for id_, entry, place in _entries(section, tables):
        where = path_of(section, id_, place)
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
        entries_[id_] = {**place, **entry}
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


def checked(tables: Mapping[str, Any]) -> data_files.Changes:
    """Check the sections, ids, keys and values of one file.

    Raises
    ------
    CatalogError
        If one is not allowed.
    """
    for section, content in tables.items():
        if section not in SECTIONS:
            raise CatalogError(f"{section} is not a section; allowed: {', '.join(SECTIONS)}")
        _table(content, section)
    return {
        section: _thresholds(content) if section == "thresholds" else _section(section, content)
        for section, content in tables.items()
    }


def check_together(changes: data_files.Changes) -> None:
    """Check that new entries have the keys that they need, and that what entries belong to exists.

    Raises
    ------
    CatalogError
        If not; it names the entry.
    """
    for section, keys in _REQUIRED.items():
        shipped = shipped_entries(section) if changes.get(section) else {}
        for id_, entry in changes.get(section, {}).items():
            for key in keys:
                if id_ not in shipped and key not in entry:
                    where = f"{path_of(section, id_, entry)}.{key}"
                    raise CatalogError(f"{where} must be {_FIELDS[section][key](None)}, got nothing", [(section, id_)])
    for section, id_, owner, name in _owners(changes):
        if name not in changes.get(owner, {}) and name not in shipped_entries(owner):
            raise CatalogError(f"{section}.{name} must be an id of {owner}, got {excerpt(name)}", [(section, id_)])


def _owners(changes: data_files.Changes) -> Iterator[tuple[str, str, str, str]]:
    """Yield what entries belong to: section and id of the entry, and section and id of its owner."""
    for id_, entry in changes.get("teams", {}).items():
        yield "teams", id_, "leagues", entry["league"]
    for section in ("links", "places"):
        yield from ((section, id_, "books", id_) for id_ in changes.get(section, {}))
    for id_, entry in changes.get("terms", {}).items():
        yield from (("terms", id_, "leagues", name) for name in entry.get("leagues", ()))
