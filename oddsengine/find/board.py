"""Shared by the four finders over a table: the prepared board, the caller's question, ages, and frames.

`prepare` computes what depends only on prices (identity, guards); `ask` resolves one caller's parameters. Percentages
and American odds appear only from here on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog, fair_close
from oddsengine.detect import Offers, Scope, Wants, view
from oddsengine.find import books as naming
from oddsengine.find import ids
from oddsengine.find.search import Search
from oddsengine.frames import IntoFrame
from oddsengine.groups import NO_TIME, Floats, Ints, Longs, Words, mix
from oddsengine.guards import Guarded, guard
from oddsengine.markets import Identity, identify, times
from oddsengine.reasons import CODES, GUARDS, Guards, enabled, thresholds_of
from oddsengine.references import CLOSE, METHODS, read
from oddsengine.schema import OddsTable, check_odds
from oddsengine.tails import forms

_SHOWN = [
    "sportsbook", "event_id", "sport", "league", "home_team", "away_team", "market_type", "selection", "odds_american",
    "odds_decimal", "event_start_time", "last_seen_at", "deep_link", "player_name", "external_event_id",
    "market_id", "selection_id", "id",
]  # fmt: skip
Sharp = str | Sequence[str] | Mapping[str, float] | None
Bools = npt.NDArray[np.bool_]
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Prepared(NamedTuple):
    """A table with its identity and verdicts, independent of callers."""

    table: OddsTable
    identity: Identity
    guarded: Guarded
    off: frozenset[int]
    shown: pl.DataFrame  # the table's columns that results include


class RowColumns(Protocol):
    """Columns of some rows, by name."""

    def __getitem__(self, name: str, /) -> pl.Series:
        """One column."""


@dataclass(frozen=True, eq=False)
class Question(Search):
    """One caller's search of a table."""

    prepared: Prepared

    @property
    def table(self) -> OddsTable:
        """The validated prices."""
        return self.prepared.table

    def facts(self, rows: Ints | Longs) -> RowColumns:
        """Return what the table says about rows of the groups, in the columns that results show."""
        return self.prepared.shown[self.view.groups.row[rows]]

    def moments(self, n: int) -> pl.Series:
        """The time at which ages are judged, n times."""
        now = self.view.now
        return repeated(None if now == NO_TIME else now, n, pl.Int64).cast(pl.Datetime("us", "UTC"))

    def moment(self) -> datetime | None:
        """The time at which ages are judged."""
        now = self.view.now
        return None if now == NO_TIME else cast(datetime, pl.Series([now]).cast(pl.Datetime("us", "UTC")).item())


def microseconds(now: datetime | None) -> int:
    """A time as integer microseconds UTC; one without a zone is taken as UTC."""
    if now is None:
        return int(NO_TIME)
    return (now.replace(tzinfo=now.tzinfo or UTC) - _EPOCH) // _MICROSECOND


def prepare(odds: IntoFrame, guards: Guards = None, now: datetime | None = None) -> Prepared:
    """Validate a table, identify its markets and run the guards.

    Parameters
    ----------
    odds
        A frame of prices; see `ODDS_SCHEMA`.
    guards
        Names of the guards to run (None: all), or a mapping of changes, such as `{"stale": 300, "flap": False}`.
    now
        The time at which ages are judged; None is the newest `last_seen_at`.
    """
    if now is not None and not isinstance(now, datetime):
        raise TypeError(f"now must be a datetime or None, got {type(now).__name__} {now!r}")
    on, limits = enabled(guards), thresholds_of(guards)
    table = check_odds(odds)
    off = frozenset(CODES[name] for name in GUARDS) - on
    identity = identify(table, off)
    moment = microseconds(now)
    if now is None and table.height:
        seen = times(table, "last_seen_at")
        moment = int(seen.max())
    shown = pl.DataFrame(table)[_SHOWN]
    if "row_id" in table.columns:  # the ids of a live board
        shown = shown.with_columns(id=table["row_id"])
    return Prepared(table, identity, guard(table, identity, off, moment, limits), off, shown)


def references(question: Question, market: Longs, row: Ints | Longs) -> pl.Series:
    """The sharp book behind the fair probability of each row; the one with the most influence on that at the close."""
    v = question.view
    if v.close is None or v.board is None:
        code = v.reference[market]
    else:
        code = fair_close.sharpest(v.board.of, v.board.ballot, v.traits, market, v.groups.book[row])
    names = np.array([*question.prepared.identity.books, "", "consensus"], dtype=object)
    return pl.Series(names[np.where(code == -2, len(names) - 1, code)], dtype=pl.String)


def ask(
    prepared: Prepared, books: Iterable[str] | None, sharp: Sharp, method: str | None,
    commission: Mapping[str, float] | None, wants: Wants, *, include: Iterable[str] = (),
    fair: catalog.FairTable | None = None,
) -> Question:  # fmt: skip
    """Resolve one caller's parameters against a prepared board; `fair` as in `Engine`."""
    method, more = chosen_method(method, sharp), included(include)
    if isinstance(books, str) or not isinstance(books, Iterable | None):
        raise ValueError(f"books must be a list of book ids, got {books!r}")
    wanted = None if books is None else list(books)
    identity = prepared.identity
    naming.check(identity.books, wanted, sharp, commission)
    read_ = estimated(prepared, fair) if method == CLOSE else None
    looked = view(
        identity, prepared.guarded, prepared.off, wanted, sharp, method, commission, suspects="suspect" in more,
        board=read_,
    )  # fmt: skip
    return Question(
        view=looked,
        wants=wants,
        scope=Scope.everything(identity.groups),
        hashes=hashes(prepared),
        forms=forms(identity.kinds, identity.sports),
        cap=CODES["ev_cap"] not in prepared.off,
        prepared=prepared,
    )


INCLUDED = ("suspect",)


def chosen_method(method: str | None, sharp: Sharp) -> str:
    """Validate a method; None is `close`, or `power` if a reference is given."""
    if method is None:
        return CLOSE if sharp is None else "power"
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == CLOSE and sharp is not None:
        raise ValueError(
            f"sharp cannot be combined with the method {CLOSE!r}, which uses all other books, got {sharp!r}"
        )
    return method


def included(include: Iterable[str]) -> tuple[str, ...]:
    """Validate `include`."""
    some = (include,) if isinstance(include, str) else tuple(include)
    if not set(some) <= set(INCLUDED):
        raise ValueError(f"include must be a list of {', '.join(INCLUDED)}, got {include!r}")
    return tuple(sorted(set(some)))


def estimated(prepared: Prepared, table: catalog.FairTable | None = None) -> fair_close.Board:
    """What a table says to the estimator; its momentum is the column `momentum`, else 0."""
    identity, g = prepared.identity, prepared.identity.groups
    table = table or catalog.fair_table()
    changed, start = (times(prepared.table, name)[g.row] for name in ("odds_changed_at", "event_start_time"))
    _, at, event_of = np.unique(g.event, return_index=True, return_inverse=True)
    first = g.row[g.rows[g.segments[g.markets[at]]]]
    event = ids.words(prepared.table["event_id"][first].to_list())
    minute = fair_close.minutes(event[event_of], prepared.guarded.now, table)
    of = fair_close.estimator(identity.kinds, identity.sports, identity.books, table)
    moved = _momentum(prepared)
    reason = prepared.guarded.reason
    known = fair_close.Times(changed, fair_close.starts(g, start, reason), minute)
    return read(of, g, identity.traits, reason, known, lambda _: moved)


def _momentum(prepared: Prepared) -> Floats | None:
    """Momentum of ladders from the table of a live board, where each row has that of its outcome."""
    if "momentum" not in prepared.table.columns:
        return None
    identity, g = prepared.identity, prepared.identity.groups
    column = prepared.table["momentum"].cast(pl.Float64).fill_null(0.0).to_numpy()[g.row]
    out = np.zeros((g.event.size, int(identity.traits.outcomes.max(initial=2))))
    ladder = g.ladder[g.market]
    two = g.outcomes[g.market] == 2
    out[ladder[two], 0] = np.where(g.side[two] == 0, column[two], -column[two])
    out[ladder[~two], g.side[~two]] = column[~two]
    return out


def hashes(prepared: Prepared) -> ids.Hashes:
    """Hashes from which the ids of a table's opportunities are computed."""
    identity = prepared.identity
    g = identity.groups
    _, at, event_of = np.unique(g.event, return_index=True, return_inverse=True)
    first = g.row[g.rows[g.segments[g.markets[at]]]]  # a price of each event
    event = ids.words(prepared.table["event_id"][first].to_list())
    kind = ids.words(f"{k.period}/{k.family}" for k in identity.kinds)
    subjects, subject_of = np.unique(g.subject, return_inverse=True)
    texts = ids.words(subject(identity, int(s)) for s in subjects)
    return ids.Hashes(ids.ladders(event[event_of], g.live, kind[g.kind], texts[subject_of]), ids.words(identity.books))


def market_hash(question: Question, markets: Longs) -> Words:
    """Hash the keys of some markets, the same on every machine."""
    g = question.view.groups
    ladder = g.ladder[markets]
    return mix(question.hashes.ladder[ladder], g.threshold[markets].astype(np.int64))


def subject(identity: Identity, subject: int) -> str:
    """Name of a market's subject; empty without one."""
    if subject < 3:
        return ("", "home", "away")[subject]
    return str(identity.names[subject - 3])


def _game_names(event: pl.Series, home: pl.Series, away: pl.Series) -> pl.Series:
    """Human-readable names of games."""
    known: dict[tuple[str, str | None, str | None], str] = {}
    names = []
    for key in zip(event.to_list(), home.to_list(), away.to_list(), strict=True):
        name = known.get(key)
        if name is None:
            name = known[key] = key[0] if key[1] is None or key[2] is None else f"{key[2]} @ {key[1]}"
        names.append(name)
    return pl.Series(names, dtype=pl.String)


def warned(flags: dict[str, Bools]) -> pl.Series:
    """Names of the warnings whose flag is set."""
    codes = sum(flag.astype(np.int64) << at for at, flag in enumerate(flags.values()))
    known, of = np.unique(codes, return_inverse=True)
    names = [[name for at, name in enumerate(flags) if code >> at & 1] for code in known.tolist()]
    return pl.Series(names, dtype=pl.List(pl.String))[of]


def oldest(seen: Longs) -> Longs:
    """Oldest time of each row of legs; NO_TIME if any leg has none."""
    return cast(Longs, seen.min(axis=1))


def stale_flags(view: Offers, age: Floats, live: Bools) -> tuple[Bools, Bools]:
    """Possibly stale, and very stale, by the age of the oldest leg."""
    limits = view.limits
    old = age >= np.where(live, limits.stale_flag_live_s, limits.stale_flag_prematch_s)
    very = age >= np.where(live, limits.stale_very_live_s, limits.stale_very_prematch_s)
    return old, very


def nullable(values: Floats) -> pl.Series:
    """A column with null for nan."""
    return pl.Series(values, nan_to_null=True)


def repeated(value: Any, n: int, dtype: Any = None) -> pl.Series:
    """A column of one repeated value."""
    return pl.Series([value], dtype=dtype).new_from_index(0, n)


def market_types(question: Question, markets: Longs) -> pl.Series:
    """Market types under which markets are published."""
    identity = question.prepared.identity
    g = question.view.groups
    ladder = g.ladder[markets]
    known: dict[tuple[int, str], str] = {}
    names = []
    for kind, event in zip(g.kind[ladder].tolist(), g.event[ladder].tolist(), strict=True):
        key = kind, identity.sports[event][0].id
        name = known.get(key)
        if name is None:
            of = identity.kinds[kind]
            name = known[key] = catalog.family_name(of.family, of.period, key[1])
        names.append(name)
    return pl.Series(names, dtype=pl.String)


def market_facts(question: Question, rows: Ints, facts: RowColumns) -> dict[str, Any]:
    """Columns of the market and event of some rows of the groups, of which the table says `facts`."""
    identity = question.prepared.identity
    g, kinds = question.view.groups, identity.kinds
    markets = g.market[rows]
    ladder = g.ladder[markets]
    kind = g.kind[ladder]
    prop = np.array([k.prop for k in kinds], bool)
    stats = pl.Series([k.stat if k.prop else None for k in kinds], dtype=pl.String)
    periods = pl.Series([k.period for k in kinds], dtype=pl.String)
    home, away = facts["home_team"], facts["away_team"]
    turned = identity.turned[g.row[rows]]
    if turned.any():
        # This book names the teams the other way round; the line and the sides are the event's.
        swap = pl.Series(turned)
        home, away = away.zip_with(swap, home), home.zip_with(swap, away)
    team_total = np.array([k.subject == "team" for k in kinds], bool)[kind]
    side = np.where(team_total, g.subject[ladder], 0)
    return {
        "is_live": question.view.live[markets] != 0,
        "is_player_prop": prop[kind],
        "stat_category": stats[kind],
        "market_segment": periods[kind],
        "home_team": home,
        "away_team": away,
        "event_name": _game_names(facts["event_id"], home, away),
        "team_side": pl.Series([None, "home", "away"])[side],
    }


def frame(columns: dict[str, Any], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Columns in the order and types of a schema; missing ones are null."""
    n = len(next(iter(columns.values())))
    made = []
    for name, dtype in schema.items():
        column = columns.get(name)
        if column is None:
            column = repeated(None, n, dtype).alias(name)
        elif isinstance(column, pl.Series):
            column = column.alias(name)
        else:
            column = pl.Series(name, column)
        made.append(column)
    whole = pl.DataFrame(made)
    others: dict[Any, Any] = {
        name: dtype for (name, dtype), came in zip(schema.items(), whole.dtypes, strict=True) if came != dtype
    }
    return whole.cast(others) if others else whole


def sides(question: Question, rows: Ints) -> pl.Series:
    """Outcome names of some rows of the groups."""
    g, kinds = question.view.groups, question.prepared.identity.kinds
    names = sorted({o for k in kinds for o in k.outcomes})
    most = max((len(k.outcomes) for k in kinds), default=1)
    place = np.zeros((len(kinds), most), np.int64)
    for at, kind in enumerate(kinds):
        place[at, : len(kind.outcomes)] = [names.index(o) for o in kind.outcomes]
    return pl.Series(names, dtype=pl.String)[place[g.kind[g.ladder[g.market[rows]]], g.side[rows]]]


def market_lines(question: Question, markets: Longs) -> pl.Series:
    """Published lines of markets: the total's, or the home handicap; null without one."""
    g, kinds = question.view.groups, question.prepared.identity.kinds
    kind = g.kind[g.ladder[markets]]
    sign = np.array([(-1.0 if k.spread else 1.0) if k.has_line else np.nan for k in kinds])
    return nullable(g.threshold[markets] / 100.0 * sign[kind] + 0.0)


def row_lines(question: Question, rows: Ints) -> pl.Series:
    """Lines of some rows of the groups from their own side; null if the family has none."""
    g, kinds = question.view.groups, question.prepared.identity.kinds
    market = g.market[rows]
    kind = g.kind[g.ladder[market]]
    spread = np.array([k.spread for k in kinds], bool)[kind]
    lined = np.array([k.has_line for k in kinds], bool)[kind]
    line = g.threshold[market] / 100.0 * np.where(spread & (g.side[rows] == 0), -1.0, 1.0) + 0.0
    return nullable(np.where(lined, line, np.nan))


def known_age(view: Offers, age: Floats) -> Floats:
    """Ages for a score: an unknown one counts as the maximum allowed, unless all are unknown."""
    unknown = 0.0 if view.now == NO_TIME else view.limits.stale_prematch_s
    return np.where(np.isnan(age), unknown, age)


def lists(case: Longs, values: pl.Series, cases: int) -> pl.Series:
    """Group values into one list per case; `case` is ascending and gives the list of each value."""
    return tables_of_lists(case, {"value": values}, cases, pl.col("value"))["value"]


def tables_of_lists(case: Longs, values: dict[str, pl.Series], cases: int, *columns: pl.Expr) -> pl.DataFrame:
    """Group columns of values into lists, as `lists`."""
    flat = pl.DataFrame({"case": pl.Series(case).set_sorted(), **values})
    grouped = flat.group_by("case", maintain_order=True).agg(*columns)
    if grouped.height < cases:
        whole = pl.DataFrame({"case": np.arange(cases)})
        grouped = whole.join(grouped, on="case", how="left", maintain_order="left")
        grouped = grouped.with_columns(pl.exclude("case").fill_null([]))
    return grouped


def ranges(first: Longs, last: Longs) -> pl.Series:
    """Lists of the whole numbers from first to last."""
    return pl.int_ranges(pl.Series(first), pl.Series(last + 1), eager=True)
