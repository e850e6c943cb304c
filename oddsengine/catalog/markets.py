"""Market types: from a source's name to the period, the family and the outcomes."""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from oddsengine.bounds import excerpt
from oddsengine.catalog import data_files
from oddsengine.catalog.spelling import normalise, plain
from oddsengine.catalog.sports import Shape, sport

FULL_GAME = "full_game"
_REGULATION = "regulation"
# Subjects of prop names; `batter_hits` is `player_hits` unless it has an entry of its own.
_ROLES = ("player_", "batter_", "hitter_", "pitcher_", "goalie_", "goalkeeper_", "kicker_", "quarterback_")


class Family(NamedTuple):
    """Markets that settle alike. `outcomes` are in catalog order: over-like first, under-like last."""

    id: str
    outcome_set: str
    outcomes: tuple[str, ...]
    has_line: bool = False
    subject: str = "none"
    is_prop: bool = False
    cuts: str = ""
    shape: str = ""
    variance_ratio: float | None = None
    with_draw: str = ""


NOT_IN_CATALOG = "the market type is not in the catalog"  # the reason of such a type


class MarketType(NamedTuple):
    """The meaning of a market name.

    `base` is the type without its period. `fraction` is the period's share of the game, nan if scores do not scale.
    `fixed_line` is the line of a type without one (draw no bet: 0). `renames` maps words of the source to outcomes of
    the family (an anytime scorer's yes: over); `default_outcome` is the outcome of a selection that names only the
    subject. `reason` says why a type is not usable.
    """

    name: str
    base: str
    period: str = FULL_GAME
    fraction: float = 1.0
    family: str = ""
    outcome_set: str = ""
    outcomes: tuple[str, ...] = ()
    has_line: bool = False
    fixed_line: float | None = None
    subject: str = "none"
    is_prop: bool = False
    stat_category: str = ""
    team_side: str = ""
    renames: tuple[tuple[str, str], ...] = ()
    default_outcome: str = ""
    usable: bool = True
    reason: str = ""


@cache
def _source() -> dict[str, Any]:
    return data_files.toml("markets.toml")


@cache
def _stats() -> Mapping[str, str]:
    """Map stats and aliases to stats."""
    table: dict[str, str] = {}
    for row in data_files.read_csv("player_stats.csv"):
        table |= dict.fromkeys((row["stat"], *data_files.split_list(row["aliases"])), row["stat"])
    return table


@cache
def families() -> Mapping[str, Family]:
    """Return families by id, including player props (`player_points` ...)."""
    sets = _source()["outcomes"]
    table = {}
    for id_, entry in _source()["families"].items():
        others = {name: value for name, value in entry.items() if name not in ("outcomes", "line")}
        set_id = entry["outcomes"]
        table[id_] = Family(id_, set_id, tuple(sets[set_id]), entry.get("line", False), **others)
    for row in data_files.read_csv("player_stats.csv"):
        line = row["outcomes"] == "over_under"
        table[f"player_{row['stat']}"] = Family(
            f"player_{row['stat']}",
            row["outcomes"],
            tuple(sets[row["outcomes"]]),
            has_line=line,
            subject="player",
            is_prop=True,
            cuts="total" if line else "",
            variance_ratio=float(row["variance_ratio"]) if row["variance_ratio"] else None,
        )
    return MappingProxyType(table)


def _of_family(family: Family, base: str) -> MarketType:
    same = {name: getattr(family, name) for name in ("outcome_set", "outcomes", "has_line", "subject", "is_prop")}
    stat = family.id.removeprefix("player_") if family.is_prop else ""
    return MarketType(base, base, family=family.id, stat_category=stat, **same)


def _unusable(base: str, reason: str) -> MarketType:
    return MarketType(name=base, base=base, usable=False, reason=reason)


def _named(row: Mapping[str, str]) -> MarketType:
    """Parse a line of market_types.csv."""
    if row["family"].startswith("!"):
        return _unusable(row["name"], _source()["unusable"][row["family"][1:]])
    kind = _of_family(families()[row["family"]], row["name"])
    return kind._replace(
        period=row["period"] or FULL_GAME,
        team_side=row["team_side"],
        has_line=kind.has_line and not row["line"],
        fixed_line=float(row["line"]) if row["line"] else None,
        renames=tuple((word, row[word]) for word in ("yes", "no") if row[word]),
        default_outcome=row["default"],
    )


@cache
def _types() -> Mapping[str, MarketType]:
    """Return every name that is known without decomposition, including those of an own file."""
    shipped = _shipped()
    table, spelled = dict(shipped), dict[str, str]()
    own = data_files.amended("markets", {})
    for name, entry in own.items():
        if not entry["means"]:  # not decided
            continue
        parts = normalise(name).split()
        kind, period = _resolve(normalise(entry["means"]).split(), shipped)
        if kind is None or not parts:
            raise data_files.CatalogError(
                f"markets.{name}.means must be a market type of the catalog, got {excerpt(entry['means'])}",
                [("markets", name)],
            )
        other = spelled.setdefault("_".join(parts), name)
        if (before := own[other]["means"]) != entry["means"]:
            raise data_files.CatalogError(
                f"markets.{name}.means must be that of markets.{other}, which is the same name: {before}, "
                f"got {excerpt(entry['means'])}",
                [("markets", other), ("markets", name)],
            )
        table["_".join(parts)] = kind._replace(period=period)
    return table


def shipped_meaning(name: str) -> str:
    """The market type that the catalog of the package takes a name for; empty if it has none.

    Examples
    --------
    >>> shipped_meaning("1st Half h2h"), shipped_meaning("Winner (90 min)")
    ('1st_half_moneyline', '')
    """
    parts = normalise(name).split()
    kind, period = _resolve(parts, _shipped()) if parts else (None, "")
    return "" if kind is None else kind.base if period == FULL_GAME else f"{period}_{kind.base}"


def _shipped() -> dict[str, MarketType]:
    table = {}
    for stat, canonical in _stats().items():
        table[f"player_{stat}"] = _of_family(families()[f"player_{canonical}"], f"player_{canonical}")
        if stat.startswith(_ROLES):
            table[stat] = table[f"player_{stat}"]
    for row in data_files.read_csv("market_types.csv"):
        table |= dict.fromkeys((row["name"], *data_files.split_list(row["aliases"])), _named(row))
    return table


def market_type_names() -> tuple[str, ...]:
    """Return every name, including aliases, that `market_type` knows without a period."""
    return tuple(_types())


@cache
def _period_words() -> Mapping[str, str]:
    return {word: id_ for id_, words in _source()["periods"].items() for word in words}


@cache
def _ignored() -> frozenset[str]:
    return frozenset(_source()["modifiers"]["ignored"])


def _ends(parts: list[str], longest: int) -> list[tuple[str, list[str]]]:
    """Yield each leading or trailing run of words with the rest, longest first."""
    runs = []
    for size in range(min(longest, len(parts) - 1), 0, -1):
        runs.append(("_".join(parts[:size]), parts[size:]))
        runs.append(("_".join(parts[-size:]), parts[:-size]))
    return runs


def _lookup(parts: list[str], types: Mapping[str, MarketType]) -> MarketType | None:
    base = "_".join(parts)
    kind = types.get(base)
    if kind is None and base.startswith(_ROLES):
        kind = types.get(f"player_{base.split('_', 1)[1]}")
    return kind


def _resolve(parts: list[str], types: Mapping[str, MarketType]) -> tuple[MarketType | None, str]:
    """Remove periods and insignificant words from a name until the rest is known."""
    kind, period = _lookup(parts, types), FULL_GAME
    while kind is None:
        for run, rest in _ends(parts, longest=3):
            if period == FULL_GAME and run in _period_words():
                period, parts = _period_words()[run], rest
                break
            if run in _ignored():
                parts = rest
                break
        else:
            return None, period
        kind = _lookup(parts, types)
    return kind, period if kind.period == FULL_GAME else kind.period


def _settled(kind: MarketType, period: str, sport_id: str) -> MarketType:
    """Set the period, and merge types that settle alike in this sport."""
    sport_ = sport(sport_id)
    if period == _REGULATION and kind.family in {"moneyline", "moneyline_3way"}:
        kind = _types()["moneyline_regulation"]._replace(base=kind.base)
        period = FULL_GAME
    if kind.family == "moneyline_regulation" and sport_id and not sport_.tie_after_overtime:
        kind = _types()["moneyline_3way"]._replace(base=kind.base)
    if period == _REGULATION and sport_.regulation_only:
        period = FULL_GAME
    return kind._replace(period=period, fraction=_source()["fractions"].get(period, float("nan")))


@lru_cache(maxsize=16384)
def market_type(name: str, sport_id: str = "", stat_category: str = "") -> MarketType:
    """Return the meaning of a market name.

    Parameters
    ----------
    name
        The source's name, in any case and with any separators.
    sport_id
        Sport or an alias. It determines whether regulation time is a separate market.
    stat_category
        The stat of a plain `player_prop`.

    Returns
    -------
    MarketType
        With an empty family, `usable` False and a reason if it is not used.

    Examples
    --------
    >>> kind = market_type("1st Half Point Spread", "basketball")
    >>> kind.period, kind.family, kind.outcomes
    ('1st_half', 'spread', ('home', 'away'))
    >>> market_type("player_prop", "basketball", "pts").family
    'player_points'
    """
    parts = normalise(name).split()
    if not parts:
        return _unusable(name, "the market has no name")
    if any(word in parts for word in _source()["modifiers"]["lay"]):
        return _types()["lay"]._replace(name=name)
    kind, period = _resolve(parts, _types())
    if kind is not None and kind.base == "wager" and stat_category:
        stat = "_".join(normalise(stat_category).split())
        kind = _types().get(stat if stat.startswith(_ROLES) else f"player_{stat}")
        if kind is None:
            return _unusable(name, f"the stat {stat_category} is not in the catalog")
    if kind is None:
        return _unusable(name, NOT_IN_CATALOG)
    if not kind.usable:
        return kind._replace(name=name, period=period)
    return _settled(kind, period, sport_id)._replace(name=name)


@cache
def _published() -> Mapping[str, str]:
    """Map families to the market type they are published under: the first one without a narrower meaning."""
    table = {id_: id_ for id_, family in families().items() if family.is_prop}
    for row in data_files.read_csv("market_types.csv"):
        if not (row["team_side"] or row["line"] or row["period"]):
            table.setdefault(row["family"], row["name"])
    return table


@lru_cache(maxsize=16384)
def family_name(family_id: str, period: str = FULL_GAME, sport_id: str = "") -> str:
    """Return the market type under which a family and period are published in a sport.

    Examples
    --------
    >>> family_name("spread", sport_id="mlb"), family_name("spread"), family_name("total", "1st_half", "soccer")
    ('run_line', 'point_spread', '1st_half_total_goals')
    >>> family_name("moneyline_3way", sport_id="soccer"), family_name("moneyline_3way", sport_id="hockey")
    ('moneyline', 'moneyline_3way')
    """
    sport_ = sport(sport_id)
    if family_id == "moneyline_3way" and sport_.draws:
        family_id = "moneyline"
    name = sport_.names.get(family_id) or _published().get(family_id, family_id)
    return name if period == FULL_GAME else f"{period}_{name}"


@lru_cache(maxsize=65536)
def published_name(name: str, sport_id: str = "", stat_category: str = "", segment: str = "") -> str:
    """Return the market type under which prices of a source's market are published.

    Markets that settle alike have one name in a sport. Names outside the catalog are unchanged.

    Examples
    --------
    >>> [published_name(name, "baseball") for name in ("h2h", "alternate_spreads", "f5_totals")]
    ['moneyline', 'run_line', '1st_5_innings_total_runs']
    >>> published_name("draw_no_bet", "soccer"), published_name("DC", "soccer"), published_name("Coin toss")
    ('point_spread', 'double_chance', 'Coin toss')
    """
    kind = meaning(sport_id, name, stat_category, segment)
    if kind.usable:
        return family_name(kind.family, kind.period, sport_id)
    listed, part = _resolve(normalise(name).split(), _types()) if normalise(name) else (None, "")
    if listed is None:
        return name
    base = next((row for row in _bases() if row == listed.base), "")
    return (base if part == FULL_GAME else f"{part}_{base}") if base else name


@cache
def _bases() -> frozenset[str]:
    return frozenset(row["name"] for row in data_files.read_csv("market_types.csv"))


def meaning(sport_id: str, name: str, stat_category: str, segment: str) -> MarketType:
    """Return the meaning of a market name; without a period in the name, the source's own segment applies."""
    kind = market_type(name, sport_id, stat_category)
    if kind.usable and kind.period == FULL_GAME and segment not in ("", FULL_GAME):
        return market_type(f"{segment} {name}", sport_id, stat_category)
    return kind


@lru_cache(maxsize=65536)
def is_market(
    name: str, published: str, sport_id: str = "", stat_category: str = "", line: float | None = None, side: str = ""
) -> bool:
    """Whether a filter's market name matches prices published under a name.

    A name with a fixed line (draw no bet) matches that line of the family, one with a side (home team total) that side.

    Examples
    --------
    >>> is_market("h2h", "moneyline"), is_market("totals", "total_goals", "soccer"), is_market("run_line", "total_runs")
    (True, True, False)
    >>> is_market("draw_no_bet", "point_spread", "soccer", "", 0.0), is_market("dnb", "point_spread", "soccer", "", 0.5)
    (True, False)
    """
    if plain(name) == plain(published):
        return True
    if published_name(name, sport_id, stat_category) != published:
        return False
    kind = market_type(name, sport_id, stat_category)
    if not kind.usable:
        return True
    return kind.fixed_line in (None, line) and (not kind.team_side or kind.team_side == side)


@lru_cache(maxsize=1024)
def period(text: str) -> str:
    """Parse the name of a period (`1H`, `First Half`); empty if it is not one.

    Examples
    --------
    >>> period("First Half"), period("whenever")
    ('1st_half', '')
    """
    return _period_words().get("_".join(normalise(text).split()), "")


@cache
def outcomes(set_id: str) -> tuple[str, ...]:
    """Return the outcomes of a set such as `home_away`, over-like first."""
    return tuple(_source()["outcomes"][set_id])


@cache
def selection_words() -> Mapping[str, str]:
    """Map normalised words of selections to outcomes."""
    return MappingProxyType({word: outcome for outcome, names in _source()["words"].items() for word in names})


@cache
def categories() -> Mapping[str, tuple[str, ...]]:
    """Map filter categories to market types; `player_*` means every player prop."""
    return MappingProxyType({id_: tuple(types) for id_, types in _source()["categories"].items()})


@cache
def shape(family_id: str, sport_id: str, league: str = "") -> Shape | None:
    """Return the score distribution behind a family's line, for the full game; None if unknown."""
    family = families().get(family_id)
    if family is None or not family.cuts:
        return None
    if family.variance_ratio is None:
        shape_: Shape | None = getattr(sport(sport_id).scores_in(league), family.shape, None)
        return shape_
    if family.cuts == "margin":
        return Shape("skellam", variance_ratio=family.variance_ratio)
    name = "negative_binomial" if family.variance_ratio > 1.0 else "poisson"
    return Shape(name, variance_ratio=family.variance_ratio)
