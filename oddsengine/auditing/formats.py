"""Histories of prices as looks: at each moment, what was on the screens then.

Three tables are read, told apart by their columns:

- *spells*: one row per outcome and unchanged spell of a price, with `seen_from` and `seen_to`; the board at a moment is
  what was seen then. `update_from` and `update_to` are the source's own times at both ends.
- *openings*: football results with opening and closing odds, one row a game and book (`open_home`, `close_home`, ...).
- *quotes*: odds tables (`ODDS_SCHEMA`), a row each time a price was seen; `last_seen_at` orders them.

Times come in the forms that `check_odds` reads; a row without the time that orders it is refused.

A tape is played by the engine itself; see `scanning`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import numpy as np
import polars as pl

from oddsengine.casts import CASTS, TIME
from oddsengine.columns import Longs

SPELLS = ("event", "book", "market", "selection", "odds", "seen_from", "seen_to", "start")
OPENINGS = ("division", "date", "home", "away", "book", "open_home", "open_draw", "open_away")
_MARKETS = {"spread": "point_spread", "total": "total_points"}
_NO_BOOKS = ("market_average", "market_best")
_SIDES = {"home": "Home", "draw": "Draw", "away": "Away"}


class Look(NamedTuple):
    """What was seen at one moment: prices as quotes, and those that are gone as suspended quotes."""

    now: datetime
    quotes: pl.DataFrame


class History(NamedTuple):
    """A history in order of time, and what became of its games."""

    looks: Iterator[Look]
    moments: int  # how many looks
    events: pl.DataFrame  # event_id, league, start
    results: pl.DataFrame | None  # event_id, home_goals, away_goals


def read_history(table: pl.DataFrame) -> History:
    """Tell what a table is by its columns.

    Raises
    ------
    ValueError
        If it is none of the tables that are known.
    """
    if "timestamp" in table.columns and "last_seen_at" not in table.columns:
        table = table.rename({"timestamp": "last_seen_at"})
    columns = set(table.columns)
    if columns >= set(SPELLS):
        return spells(table)
    if columns >= set(OPENINGS):
        return openings(table)
    if columns >= {"sportsbook", "event_id", "market_type", "selection", "last_seen_at"}:
        return quotes(table)
    raise ValueError(
        f"a history has the columns of spells ({', '.join(SPELLS)}), of openings ({', '.join(OPENINGS)}) or of an odds "
        f"table with last_seen_at, got {', '.join(table.columns)}"
    )


def _micros(column: pl.Series) -> Longs:
    return column.cast(TIME).to_physical().to_numpy().astype(np.int64)


def _timed(table: pl.DataFrame, needed: tuple[str, ...], others: tuple[str, ...]) -> pl.DataFrame:
    """A table with its times read; every row must have the needed ones."""
    cast, _ = CASTS[pl.Datetime]
    made = []
    for name in (name for name in (*needed, *others) if name in table.columns):
        given = table[name]
        if given.dtype in (pl.Categorical, pl.Enum, pl.Null):
            given = given.cast(pl.String)
        read = given if given.dtype == TIME else cast(given).alias(name)
        if name in needed and read.null_count():
            row = int(read.is_null().arg_max() or 0)
            raise ValueError(
                f"{name} must be a time in every row, got {given[row]!r} in row {row + 1} ({read.null_count()} in all)"
            )
        made.append(read)
    return table.with_columns(made)


def spells(table: pl.DataFrame) -> History:
    """Looks of a table of spells: the moments at which any price of an event was first or last seen."""
    table = _timed(table, ("seen_from", "seen_to"), ("update_from", "update_to", "start"))
    d = table.with_columns(
        pl.col("line").cast(pl.Float64) if "line" in table.columns else pl.lit(None, pl.Float64).alias("line"),
        *(
            pl.col(name) if name in table.columns else pl.col(name.replace("update", "seen")).alias(name)
            for name in ("update_from", "update_to")
        ),
        *(pl.lit(None, pl.String).alias(n) for n in ("sport", "league", "home", "away") if n not in table.columns),
    )
    begin, end, up, last, start = (
        _micros(d[name]) for name in ("seen_from", "seen_to", "update_from", "update_to", "start")
    )
    code = d["event"].rank("dense").to_numpy().astype(np.int64) - 1
    key = d.select(pl.struct("event", "book", "market", "selection", "line").hash()).to_series().to_numpy()
    spell, moment = _seen(code, begin, end)
    gone, left = _gone(code, key, begin, end)
    width = np.maximum(end - begin, 1)
    # In between, the source's own time moves evenly; never beyond the moment it was seen.
    seen = np.minimum(moment, up[spell] + (moment - begin[spell]) * ((last - up)[spell] / width[spell])).astype(
        np.int64
    )
    row = np.concatenate((spell, gone))
    when = np.concatenate((moment, left))
    seen = np.concatenate((seen, left))
    active = np.concatenate((np.ones(spell.size, bool), np.zeros(gone.size, bool)))
    order = np.argsort(when, kind="stable")
    row, when, seen, active = row[order], when[order], seen[order], active[order]
    side = pl.col("selection")
    home, away = (pl.col(name).fill_null(_SIDES[name]) for name in ("home", "away"))
    facts = d.select(
        sportsbook="book",
        event_id="event",
        sport="sport",
        league="league",
        home_team=home,
        away_team=away,
        market_type=pl.col("market").replace(_MARKETS),
        selection=pl.when(side == "home").then(home).when(side == "away").then(away).otherwise(side.str.to_titlecase()),
        selection_type=side,
        line="line",
        odds_decimal="odds",
        event_start_time=pl.col("start").cast(TIME),
    )
    changed = begin[row]
    moments, first = np.unique(when, return_index=True)
    bounds = [*first.tolist(), when.size]

    def looks() -> Iterator[Look]:
        for at, now in enumerate(moments.tolist()):
            cut = slice(bounds[at], bounds[at + 1])
            yield Look(
                _moment(now),
                facts[row[cut]].with_columns(
                    pl.Series("last_seen_at", seen[cut]).cast(TIME),
                    pl.Series("odds_changed_at", changed[cut]).cast(TIME),
                    pl.Series("is_active", active[cut]),
                    pl.Series("is_live", start[row[cut]] <= now),
                ),
            )

    events = d.group_by("event").agg(pl.col("league").first(), pl.col("start").last()).rename({"event": "event_id"})
    return History(looks(), moments.size, events, None)


def _moment(micros: int) -> datetime:
    return pl.Series([micros]).cast(TIME).to_list()[0]  # type: ignore[no-any-return]


def _seen(event: Longs, begin: Longs, end: Longs) -> tuple[Longs, Longs]:
    """Each spell at each moment at which its event was looked at: spell, moment."""
    order = np.argsort(event, kind="stable")
    bounds = np.searchsorted(event[order], np.arange(int(event.max(initial=-1)) + 2))
    spells_, moments = [], []
    for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        of = order[a:b]
        looks = np.unique(np.concatenate((begin[of], end[of])))
        first, last = np.searchsorted(looks, begin[of]), np.searchsorted(looks, end[of], side="right")
        size = last - first
        spells_.append(np.repeat(of, size))
        moments.append(
            looks[np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size) + np.repeat(first, size)]
        )
    return np.concatenate(spells_), np.concatenate(moments)


def _gone(event: Longs, key: Longs, begin: Longs, end: Longs) -> tuple[Longs, Longs]:
    """Spells that no other one of the same price follows, and the event's next look."""
    order = np.argsort(event, kind="stable")
    bounds = np.searchsorted(event[order], np.arange(int(event.max(initial=-1)) + 2))
    spells_, moments = [], []
    for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        of = order[a:b]
        looks = np.unique(np.concatenate((begin[of], end[of])))
        after = np.searchsorted(looks, end[of], side="right")
        there = after < looks.size
        of, then = of[there], looks[after[there]]
        follows = set(zip(key[order[a:b]].tolist(), begin[order[a:b]].tolist(), strict=True))
        ends = np.array([pair not in follows for pair in zip(key[of].tolist(), then.tolist(), strict=True)], bool)
        spells_.append(of[ends])
        moments.append(then[ends])
    return np.concatenate(spells_), np.concatenate(moments)


def openings(table: pl.DataFrame) -> History:
    """Two looks a game: the openings a day before, the closing prices a minute before the start at three o'clock."""
    d = table.filter(~pl.col("book").is_in(_NO_BOOKS))
    keyed = d.with_columns(
        event_id=pl.format("{} {} {} {}", "division", "date", "home", "away"),
        start=pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC") + pl.duration(hours=15),
    )
    parts = []
    for name, minutes in (("open", 24 * 60), ("close", 1)):
        columns = [f"{name}_{side}" for side in _SIDES if f"{name}_{side}" in d.columns]
        if len(columns) != len(_SIDES):
            continue
        parts.append(
            keyed.select("event_id", "division", "home", "away", "book", "start", *columns)
            .rename({f"{name}_{side}": side for side in _SIDES if side == "draw"})
            .rename({f"{name}_home": "odds_home", f"{name}_away": "odds_away"})
            .drop_nulls(["odds_home", "draw", "odds_away"])
            .with_columns(now=pl.col("start") - pl.duration(minutes=minutes))
        )
    long = pl.concat(parts).unpivot(
        ["odds_home", "draw", "odds_away"],
        index=["event_id", "division", "home", "away", "book", "start", "now"],
        variable_name="side",
        value_name="odds_decimal",
    )
    side = pl.col("side")
    quoted = long.filter(pl.col("odds_decimal") > 1.0).select(
        sportsbook="book",
        event_id="event_id",
        sport=pl.lit("soccer"),
        league="division",
        home_team="home",
        away_team="away",
        market_type=pl.lit("moneyline"),
        selection=pl.when(side == "draw").then(pl.lit("Draw")).when(side == "odds_home").then("home").otherwise("away"),
        selection_type=side.str.strip_prefix("odds_"),
        line=pl.lit(None, pl.Float64),
        odds_decimal="odds_decimal",
        event_start_time="start",
        last_seen_at="now",
        is_active=pl.lit(value=True),
        is_live=pl.lit(value=False),
    )
    events = keyed.group_by("event_id").agg(league=pl.col("division").first(), start=pl.col("start").first())
    results = None
    if {"home_goals", "away_goals"} <= set(d.columns):
        results = keyed.group_by("event_id").agg(pl.col("home_goals").first(), pl.col("away_goals").first())
    return quotes(quoted)._replace(events=events, results=results)


def quotes(table: pl.DataFrame) -> History:
    """Looks of an odds table: prices of one moment are one look."""
    d = _timed(table, ("last_seen_at",), ("event_start_time",)).sort("last_seen_at", maintain_order=True)
    when = _micros(d["last_seen_at"])
    moments, first = np.unique(when, return_index=True)
    bounds = [*first.tolist(), when.size]

    def looks() -> Iterator[Look]:
        for at, now in enumerate(moments.tolist()):
            yield Look(_moment(now), d[bounds[at] : bounds[at + 1]])

    start = pl.col("event_start_time").last() if "event_start_time" in d.columns else pl.lit(None, TIME)
    league = pl.col("league").last() if "league" in d.columns else pl.lit(None, pl.String)
    events = d.group_by("event_id").agg(league.alias("league"), start.cast(TIME).alias("start"))
    return History(looks(), moments.size, events, None)
