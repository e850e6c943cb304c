"""Shared by the four finders over a table: the prepared board, the user's question, ages, and frames.

`prepare` computes what depends only on prices (identity, guards); `ask` resolves one user's parameters. Percentages
and American odds appear only from here on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.catalog.reasons import CODES, GUARDS, NAMES, SENTENCES, Guards, enabled, listed, thresholds_of
from oddsengine.columns import NO_TIME, NONE, Bools, Floats, Ints, Longs, Words
from oddsengine.detection import book_names as naming
from oddsengine.detection import opportunity_ids
from oddsengine.detection.leg_times import ages
from oddsengine.detection.result_columns import RESULT_NAMES, TEXTS
from oddsengine.detection.search import Search, own_legs
from oddsengine.detection.sweep import Scope, Thresholds, prices_of
from oddsengine.detection.tails import forms
from oddsengine.guards import plugin_guards
from oddsengine.guards.verdicts import Verdicts, guard
from oddsengine.identity.groups import distinct
from oddsengine.identity.table_identity import Identity, identify, times
from oddsengine.maths.devig import Method, method_name
from oddsengine.pricing import close as fair_close
from oddsengine.pricing import close_table, votes
from oddsengine.pricing.close import Fair
from oddsengine.pricing.commission import PriceDepth
from oddsengine.pricing.model import MODEL, ModelPrices
from oddsengine.pricing.one_sided import ONE_SIDED
from oddsengine.pricing.references import CLOSE, FairPrices, book_list, close_input, stake_of
from oddsengine.tables.casts import TIME
from oddsengine.tables.frames import IntoFrame
from oddsengine.tables.levels import LEVELS, most_of_levels
from oddsengine.tables.schema import ODDS_SCHEMA, OTHER_ROW, ROW, OddsTable, check_odds, row_column, warn
from oddsengine.tables.timestamps import micros

_SHOWN = {
    "sportsbook", "event_id", "sport", "league", "home_team", "away_team", "market_type", "selection", "odds_american",
    "odds_decimal", "event_start_time", "last_seen_at", "deep_link", "player_name", "external_event_id",
    "market_id", "selection_id", "id", "max_bet", ROW, OTHER_ROW,
}  # fmt: skip
_LAST = 4  # columns of a frame before which those of the input stand
_OURS = {*ODDS_SCHEMA, *RESULT_NAMES, ROW, OTHER_ROW, "price_mismatch", "row_id", "momentum"}
"""Columns of the input that are not kept as they came."""
Sharp = str | Sequence[str] | Mapping[str, float] | None
Schema = Mapping[str, Any]
OWN_MODEL, CONSENSUS, NOBODY = -3, -2, -1
"""Places in `Labels.books`."""
_TEAM_SIDES = pl.Series([None, "home", "away"])


class RowColumns(Protocol):
    """Columns of some rows, by name; `extra` are those that the schema of odds tables does not have."""

    @property
    def extra(self) -> Schema:
        """Dtypes by name."""

    def __getitem__(self, name: str, /) -> pl.Series:
        """One column."""


class TableRows:
    """Columns of some rows of a table."""

    def __init__(self, table: pl.DataFrame, rows: Ints | Longs, extra: Schema) -> None:
        self._table, self._rows, self.extra = table, pl.Series(rows.astype(np.uint32)), extra

    def __getitem__(self, name: str) -> pl.Series:
        return self._table.get_column(name)[self._rows]


class BoardColumns(Protocol):
    """What rows of results say of a board beside numbers: a table, or a part of the live board."""

    @property
    def identity(self) -> Identity:
        """Its markets."""

    @property
    def extra(self) -> Schema:
        """Columns that the schema of odds tables does not have, which results keep."""

    def facts(self, rows: Ints | Longs) -> RowColumns:
        """Columns of some rows, by `row` of the groups."""


class PreparedTable(NamedTuple):
    """A table with its identity and verdicts, independent of users."""

    table: OddsTable
    identity: Identity
    guarded: Verdicts
    off: frozenset[int]
    shown: pl.DataFrame  # the table with the ids that results show
    extra: Schema

    def facts(self, rows: Ints | Longs) -> RowColumns:
        """What the table says about some of its rows, in the columns that results show."""
        return TableRows(self.shown, rows, self.extra)


@dataclass(frozen=True, eq=False)
class Question(Search):
    """One user's search, whose results are shown as rows."""

    board: BoardColumns

    @property
    def prepared(self) -> PreparedTable:
        """The table that is searched."""
        assert isinstance(self.board, PreparedTable)
        return self.board

    @property
    def table(self) -> OddsTable:
        """The validated prices."""
        return self.prepared.table

    def facts(self, rows: Ints | Longs) -> RowColumns:
        """What the board says about rows of the groups, in the columns that results show."""
        return self.board.facts(self.prices.groups.row[rows])

    @cached_property
    def labels(self) -> "Labels":
        """Texts and signs of lines that results show."""
        return Labels.collect(self)

    @cached_property
    def _moments(self) -> pl.Series:
        return pl.Series([self.prices.now]).cast(TIME) if self.prices.now != NO_TIME else repeated(None, 1, TIME)

    def moments(self, n: int) -> pl.Series:
        """The time at which ages are judged, n times."""
        return self._moments.new_from_index(0, n)

    def moment(self) -> datetime | None:
        """The time at which ages are judged."""
        return cast(datetime | None, self._moments.item())


class Labels(NamedTuple):
    """Texts that results show, each once, and where they apply.

    `market_type` and those after it are by the distinct kinds of market in a sport, which `of_ladder` numbers.
    """

    of_ladder: npt.NDArray[np.uint32]
    market_type: pl.Series
    period: pl.Series
    stat: pl.Series  # null unless it is a prop
    prop: Bools
    of_team: Bools  # the total of one team
    sign: Floats  # (kinds, outcomes): by which an outcome shows the line, nan without one
    outcome: npt.NDArray[np.uint32]  # (kinds, outcomes): place in `outcomes`
    outcomes: pl.Series
    books: pl.Series  # by code, then "model", "consensus" and null: see `CONSENSUS`

    @classmethod
    def collect(cls, question: Question) -> "Labels":
        """Collect them for the ladders and books of a table."""
        identity, g = question.board.identity, question.prices.groups
        kinds = identity.kinds
        names = sorted({name for kind in kinds for name in kind.outcomes})
        shape = len(kinds), max([1, *(len(kind.outcomes) for kind in kinds)])
        outcome, sign = np.zeros(shape, np.uint32), np.full(shape, np.nan)
        for at, kind in enumerate(kinds):
            outcome[at, : len(kind.outcomes)] = [names.index(name) for name in kind.outcomes]
            if kind.has_line:
                sign[at] = 1.0
                sign[at, 0] = -1.0 if kind.spread else 1.0
        events = distinct(g.event)
        sports: dict[str, int] = {}
        sport = np.zeros(int(g.event.max(initial=0)) + 1, np.int64)
        sport[events] = [sports.setdefault(identity.sports[event][0].id, len(sports)) for event in events.tolist()]
        both, of_ladder = np.unique(sport[g.event] * len(kinds) + g.kind, return_inverse=True)
        ids_ = list(sports)
        cases = [(kinds[code % len(kinds)], ids_[code // len(kinds)]) for code in both.tolist()]
        types = [catalog.family_name(kind.family, kind.period, sport_id) for kind, sport_id in cases]
        return cls(
            of_ladder=of_ladder.astype(np.uint32),
            market_type=pl.Series(types, dtype=pl.String),
            period=pl.Series([kind.period for kind, _ in cases], dtype=pl.String),
            stat=pl.Series([kind.stat if kind.prop else None for kind, _ in cases], dtype=pl.String),
            prop=np.array([kind.prop for kind, _ in cases], bool),
            of_team=np.array([kind.subject == "team" for kind, _ in cases], bool),
            sign=sign,
            outcome=outcome,
            outcomes=pl.Series(names, dtype=pl.String),
            books=pl.Series([*identity.books, MODEL, "consensus", None], dtype=pl.String),
        )


def prepare(odds: IntoFrame, guards: Guards = None, now: datetime | None = None) -> PreparedTable:
    """Validate a table, identify its markets and run the guards.

    Parameters
    ----------
    odds
        A frame of prices; see `ODDS_SCHEMA`.
    guards
        Names of the guards to run (None: all), or a mapping of changes, such as `{"stale": 300, "flap": False}`.
    now
        The time at which ages are judged; None is the newest `last_seen_at`.

    Examples
    --------
    >>> from oddsengine.tables.sample import SAMPLE_BOARD
    >>> import oddsengine as oe
    >>> prepared = prepare(oe.read_odds(SAMPLE_BOARD))
    >>> [oe.find_all(prepared, books=books).ev.height for books in (None, ["fanduel", "betmgm"])]
    [20, 6]
    """
    if now is not None and not isinstance(now, datetime):
        raise TypeError(f"now must be a datetime or None, got {type(now).__name__} {excerpt(now)}")
    guards = listed(guards)
    more = plugin_guards.loaded(guards)
    on, limits = enabled(guards), thresholds_of(guards)
    table = check_odds(odds)
    off = frozenset(CODES[name] for name in GUARDS) - on
    identity = identify(table, off)
    moment = int(NO_TIME) if now is None else micros(now)
    if now is None and table.height:
        seen = times(table, "last_seen_at")
        moment = int(seen.max())
    shown = table.with_columns(id=table["row_id"]) if "row_id" in table.columns else table  # the ids of a live board
    ours = _OURS - {ROW} if row_column(table.columns) == OTHER_ROW else _OURS
    extra = {name: dtype for name, dtype in table.schema.items() if name not in ours and dtype != pl.Object}
    if ROW not in extra and OTHER_ROW in table.columns:  # a column row of objects is not kept
        shown = shown.with_columns(pl.col(OTHER_ROW).alias(ROW))
    guarded, g = guard(table, identity, off, moment, limits), identity.groups
    plugin_guards.judge(more, g, guarded.reason, lambda at, names: table.select(names)[g.row[at]])
    for each in more:
        if each.problem:
            warn(each.problem)
    return PreparedTable(table, identity, guarded, off, shown, extra)


def references(question: Question, market: Longs, row: Ints | Longs) -> Longs:
    """Places in `Labels.books` of the sharp book behind each row's fair probability.

    At the close, it is the one with the most influence.
    """
    v = question.prices
    if v.close is None or v.board is None:
        code = v.columns.reference[market]
    else:
        code = votes.sharpest(v.board.of, v.board.logits, v.traits, market, v.groups.book[row])
        if v.close.votes is not None:
            one = np.flatnonzero(v.close.flags[row] & ONE_SIDED)
            code[one] = votes.sharpest(v.board.of, v.close.votes, v.traits, market[one], v.groups.book[row[one]])
    nobody = NOBODY if v.method == MODEL else CONSENSUS
    return np.where(code == NONE, nobody, np.where(code < 0, CONSENSUS, code))


def ask(
    prepared: PreparedTable, books: Iterable[str] | None, sharp: Sharp, method: Method | None,
    commission: Mapping[str, float] | None, thresholds: Thresholds, *, include: Iterable[str] = (),
    fair: catalog.FairTable | None = None, model: ModelPrices | Fair | None = None, stake: float | None = None,
) -> Question:  # fmt: skip
    """Resolve one user's parameters against a prepared board; `fair` as in `Engine`, `model` by `modelled`."""
    name, more = chosen_method(method, sharp, model), included(include)
    wanted = book_list(books)
    identity = prepared.identity
    naming.check(identity.books, wanted, sharp, commission)
    event, depth = event_hashes(prepared), PriceDepth.of_table(prepared.table, identity.groups.row)
    if stake_of(stake) is not None and LEVELS in prepared.shown.columns:
        prepared = prepared._replace(shown=prepared.shown.with_columns(max_bet=most_of_levels(prepared.shown)))
    read_, named = estimated(prepared, event, fair) if name == CLOSE else None, hashes(prepared, event)
    found = prices_of(
        identity, prepared.guarded, prepared.off, wanted, sharp, name, commission, include=more,
        board=read_, model=model if isinstance(model, ModelPrices) else None, ladder=named.ladder,
        stake=stake, depth=depth,
    )  # fmt: skip
    if isinstance(model, Fair):
        found = replace(found, close=model)
    return Question(
        prices=found,
        thresholds=thresholds,
        scope=Scope.everything(identity.groups),
        hashes=named,
        forms=forms(identity.kinds, identity.sports),
        cap=CODES["ev_cap"] not in prepared.off,
        board=prepared,
    )


INCLUDED = ("suspect", "one_sided")


def chosen_method(method: Method | None, sharp: Sharp, model: object = None) -> str:
    """Resolve a method to its name; None is `close`, or `power` if a reference is given, or `model` if that is."""
    if model is not None:
        if method is not None:
            raise ValueError(f"method cannot be combined with a model, which needs none, got {excerpt(method)}")
        return MODEL
    if method is None:
        return CLOSE if sharp is None else "power"
    name = method_name(method, (CLOSE,))
    if name == CLOSE and sharp is not None:
        raise ValueError(
            f"sharp cannot be combined with the method {CLOSE!r}, which uses all other books, got {excerpt(sharp)}"
        )
    return name


def included(include: Iterable[str]) -> tuple[str, ...]:
    """Validate `include`."""
    return some_of("include", include, INCLUDED)


def some_of(parameter: str, given: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Validate a list of words, and return them in the order of the allowed ones."""
    some = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (None,)
    if any(word not in allowed for word in some):
        raise ValueError(f"{parameter} must be a list of {', '.join(allowed)}, got {excerpt(given)}")
    return tuple(word for word in allowed if word in some)


def estimated(prepared: PreparedTable, event: Words, table: catalog.FairTable | None = None) -> fair_close.CloseInput:
    """What a table says to the estimator; its momentum is the column `momentum`, else 0."""
    identity, g = prepared.identity, prepared.identity.groups
    table = catalog.chosen_fair_table(table)
    changed, start = (times(prepared.table, name)[g.row] for name in ("odds_changed_at", "event_start_time"))
    minute = close_table.minutes(event, prepared.guarded.now, table)
    of = close_table.estimator(identity.kinds, identity.sports, identity.books, table)
    moved = _momentum(prepared)
    reason = prepared.guarded.reason
    known = fair_close.Times(changed, fair_close.starts(g, start, reason), minute)
    return close_input(of, g, identity.traits, reason, known, lambda _: moved)


def _momentum(prepared: PreparedTable) -> Floats | None:
    """Momentum of ladders from the table of a live board, where each row has that of its outcome."""
    if "momentum" not in prepared.table.columns or not prepared.table.schema["momentum"].is_numeric():
        return None
    identity, g = prepared.identity, prepared.identity.groups
    column = prepared.table["momentum"].cast(pl.Float64).fill_null(0.0).to_numpy()[g.row]
    out = np.zeros((g.event.size, int(identity.traits.outcomes.max(initial=2))))
    ladder = g.ladder[g.market]
    two = g.outcomes[g.market] == 2
    out[ladder[two], 0] = np.where(g.side[two] == 0, column[two], -column[two])
    out[ladder[~two], g.side[~two]] = column[~two]
    return out


def rejected_counts(prepared: PreparedTable) -> dict[str, int]:
    """Count the rows of a prepared board rejected by each guard and by identity."""
    codes = np.concatenate((prepared.identity.verdict, prepared.guarded.reason))
    counts = np.bincount(codes, minlength=len(NAMES))
    by_guard = {NAMES[at]: int(counts[at]) for at in range(1, len(NAMES)) if counts[at]}
    for name, n in sorted(Counter(prepared.table.rejected["guard"].to_list()).items()):
        by_guard[name] = by_guard.get(name, 0) + n
    return by_guard


def event_hashes(prepared: PreparedTable) -> Words:
    """Hash of the event of each ladder."""
    g = prepared.identity.groups
    _, at, event_of = np.unique(g.event, return_index=True, return_inverse=True)
    first = g.row[g.rows[g.segments[g.markets[at]]]]  # a price of each event
    return opportunity_ids.hash_texts(prepared.table["event_id"][first].to_list())[event_of]


def hashes(prepared: PreparedTable, event: Words | None = None) -> opportunity_ids.Hashes:
    """Hashes from which the ids of a table's opportunities are computed; `event` from `event_hashes`."""
    identity = prepared.identity
    g = identity.groups
    event = event_hashes(prepared) if event is None else event
    kind = opportunity_ids.hash_texts(f"{k.period}/{k.family}" for k in identity.kinds)
    subjects, subject_of = np.unique(g.subject, return_inverse=True)
    texts = opportunity_ids.hash_texts(subject(identity, int(s)) for s in subjects)
    return opportunity_ids.Hashes(
        opportunity_ids.ladders(event, g.live, kind[g.kind], texts[subject_of]),
        opportunity_ids.hash_books(identity.books),
    )


def subject(identity: Identity, subject: int) -> str:
    """Name of a market's subject; empty without one."""
    if subject < 3:
        return ("", "home", "away")[subject]
    return str(identity.names[subject - 3])


@lru_cache(maxsize=64)
def _combinations(names: tuple[str, ...]) -> pl.Series:
    """Lists of the names whose bit is set, by code."""
    codes = range(1 << len(names))
    return pl.Series([[name for at, name in enumerate(names) if code >> at & 1] for code in codes], dtype=TEXTS)


def flagged(names: Iterable[str], codes: npt.NDArray[Any]) -> pl.Series:
    """Names of the flags that are set in each code; the first is its lowest bit."""
    return _combinations(tuple(names))[codes]


def warned(flags: dict[str, Bools]) -> pl.Series:
    """Names of the warnings whose flag is set."""
    codes = [flag.astype(np.int64) << at for at, flag in enumerate(flags.values())]
    return flagged(flags, np.sum(codes, axis=0))


def oldest(question: Question, rows: Ints) -> Floats:
    """Age of the oldest of each row of legs, padded with -1; nan if that of any is unknown."""
    seen = np.where(rows >= 0, question.prices.groups.seen[np.maximum(rows, 0)], np.iinfo(np.int64).max)
    return ages(question.prices.now, seen.min(axis=1))


def stale_flags(prices: FairPrices, age: Floats, live: Bools) -> tuple[Bools, Bools]:
    """Possibly stale, and very stale, by the age of the oldest leg."""
    limits = prices.limits
    old = age >= np.where(live, limits.stale_flag_live_s, limits.stale_flag_prematch_s)
    very = age >= np.where(live, limits.stale_very_live_s, limits.stale_very_prematch_s)
    return old, very


def reasons_of(prepared: PreparedTable, at: Longs) -> list[str]:
    """Sentences of the verdicts on some rows of the table, before any guard that compares prices.

    A moneyline that may have a draw, because its book has a selection that is not recognised, names the selection; an
    unknown outcome, columns of teams that are missing.
    """
    codes, table = prepared.identity.verdict, prepared.table
    sentences = [SENTENCES[NAMES[code]] for code in codes[at].tolist()]
    unknown = np.flatnonzero(codes[at] == CODES["unknown_outcome"])
    if unknown.size:
        rows = table[at[unknown]].select("market_type", "sport", "stat_category", "home_team", "away_team").rows()
        for place, row in zip(unknown.tolist(), rows, strict=True):
            sentences[place] += _without_teams(*row)
    doubtful = np.flatnonzero(codes[at] == CODES["ambiguous_moneyline"])
    if not doubtful.size:
        return sentences
    market = ("event_id", "sportsbook", "market_type", "is_live")
    unread: dict[tuple[Any, ...], list[str]] = {}
    for *key, text in table[np.flatnonzero(codes == CODES["unknown_outcome"])].select(*market, "selection").rows():
        unread.setdefault(tuple(key), []).append(repr(text))
    for place, of in zip(doubtful.tolist(), table[at[doubtful]].select(market).rows(), strict=True):
        if others := unread.get(of):
            named = ", ".join(dict.fromkeys(others))
            sentences[place] = f"the book's other selection is neither team, and may be the draw: {named}"
    return sentences


@lru_cache(maxsize=256)
def _without_teams(market: str, sport: str | None, stat: str | None, home: str | None, away: str | None) -> str:
    """Say which columns of teams an outcome needs; empty if they are there, or if outcomes are not teams."""
    missing = [name for name, team in (("home_team", home), ("away_team", away)) if not team]
    kind = catalog.market_type(market, catalog.sport(sport).id if sport else "", stat or "")
    if not missing or not (kind.subject == "team" or {"home", "away"} & set(kind.outcomes)):
        return ""
    return f"; there is no {' and no '.join(missing)} to say who plays"


def nullable(values: Floats) -> pl.Series:
    """A column with null for nan."""
    return pl.Series(values, nan_to_null=True)


def repeated(value: Any, n: int, dtype: Any = None) -> pl.Series:
    """A column of one repeated value."""
    return pl.Series([value], dtype=dtype).new_from_index(0, n)


def _sports(texts: pl.Series) -> pl.Series:
    """Ids of sports; few are distinct."""
    given = texts.to_list()
    ids_ = {text: None if text is None else catalog.sport(text).id for text in dict.fromkeys(given)}
    return pl.Series([ids_[text] for text in given], dtype=pl.String)


def _teams(question: Question, event: Ints, home: pl.Series, away: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The teams' full names: books name them differently."""
    sports = question.board.identity.sports
    places = [(sport.id, league) for sport, league in map(sports.__getitem__, event.tolist())]
    home, away = (
        pl.Series(
            [name and catalog.team_name(name, *place) for name, place in zip(side, places, strict=True)],
            dtype=pl.String,
        )
        for side in (home.to_list(), away.to_list())
    )
    return home, away


def market_facts(question: Question, rows: Ints, facts: RowColumns) -> dict[str, Any]:
    """Columns of the market and event of some rows of the groups, of which the table says `facts`."""
    v, g, labels = question.prices, question.prices.groups, question.labels
    market = g.market[rows]
    place = labels.of_ladder[g.ladder[market]]
    at = pl.Series(place)
    event, home, away = facts["event_id"], facts["home_team"], facts["away_team"]
    swapped = question.board.identity.swapped[g.row[rows]]
    if swapped.any():
        # This book names the teams the other way round; the line and the sides are the event's.
        swap = pl.Series(swapped)
        home, away = away.zip_with(swap, home), home.zip_with(swap, away)
    home, away = _teams(question, g.event[g.ladder[market]], home, away)
    name = away + " @ " + home
    if name.null_count():
        name = name.zip_with(name.is_not_null(), event)
    return {
        "event_id": event,
        "event_name": name,
        "home_team": home,
        "away_team": away,
        "sport": _sports(facts["sport"]),
        "event_start_time": facts["event_start_time"],
        "market_type": labels.market_type[at],
        "market_segment": labels.period[at],
        "stat_category": labels.stat[at],
        "team_side": _TEAM_SIDES[np.where(labels.of_team[place], g.subject[g.ladder[market]], 0)],
        "is_player_prop": labels.prop[place],
        "is_live": v.columns.live[market] != 0,
        "is_alternate_line": v.main[market] == 0,
        "book_count": v.books[market],
        "detected_at": question.moments(rows.size),
    }


def own_rows(question: Question, market: Longs, legs: Ints) -> Ints:
    """The first leg of each case, (n, outcomes) padded with -1, that is a price of the market itself."""
    own: Ints = legs[np.arange(market.size), own_legs(question.prices.groups, market, legs)]
    return own


def market_types(question: Question, rows: Ints) -> pl.Series:
    """Market types of some rows of the groups, as published."""
    g, labels = question.prices.groups, question.labels
    return labels.market_type[labels.of_ladder[g.ladder[g.market[rows]]]]


_DTYPES = {"d": pl.Float64, "?": pl.Boolean, "l": pl.Int64}  # of arrays


def extended(schema: Schema, extra: Schema) -> Schema:
    """A schema with columns of the input where it has a row: in the frame itself, or in legs and sides.

    If `row` is a column of the input, the position is `odds_row`.
    """
    if not extra:
        return schema
    own = [(row_name(extra) if name == ROW else name, dtype) for name, dtype in schema.items()]
    if ROW in schema:
        own[-_LAST:-_LAST] = [(name, dtype) for name, dtype in extra.items() if name not in dict(own)]
    return {name: _extended(dtype, extra) for name, dtype in own}


def row_name(extra: Schema) -> str:
    """The column of positions in results, where `extra` are the columns of the input that they keep."""
    return OTHER_ROW if ROW in extra else ROW


def _extended(dtype: Any, extra: Schema) -> Any:
    if isinstance(dtype, pl.List):
        return pl.List(_extended(dtype.inner, extra))
    if isinstance(dtype, pl.Struct) and ROW in (own := dict(dtype)):
        fields = {row_name(extra) if name == ROW else name: of for name, of in own.items()}
        return pl.Struct({**fields, **{name: of for name, of in extra.items() if name not in fields}})
    return dtype


def frame(columns: Mapping[str, Any], schema: Schema, facts: RowColumns | None = None) -> pl.DataFrame:
    """Columns in the order of a schema; missing ones are what the table says (`facts`), else null.

    Columns are Series of the right type, or arrays and lists of values.
    """
    n = len(next(iter(columns.values())))
    made = []
    for name, dtype in schema.items():
        column = columns.get(name)
        if column is None:
            known = facts is not None and (name in _SHOWN or name in facts.extra)
            column = facts[name] if facts is not None and known else _null(dtype).new_from_index(0, n)
        elif isinstance(column, np.ndarray) and _DTYPES.get(column.dtype.char) is dtype:
            column = pl.Series(column)
        elif not isinstance(column, pl.Series):
            column = pl.Series(column, dtype=dtype)
        made.append(column)
    return pl.DataFrame(made, schema=list(schema))


def empty(schema: Schema) -> pl.DataFrame:
    """A frame without rows."""
    return _empty(tuple(schema.items())).clone()


@lru_cache
def _empty(schema: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict(schema))


@lru_cache(maxsize=64)
def _null(dtype: Any) -> pl.Series:
    return pl.Series([None], dtype=dtype)


def structs(columns: Mapping[str, Any], dtype: pl.Struct, facts: RowColumns | None = None) -> pl.Series:
    """A column of structs from columns of their fields, as `frame`."""
    own = dtype if facts is None else _extended(dtype, facts.extra)
    return frame(columns, dict(own), facts).to_struct()


def sides(question: Question, rows: Ints) -> pl.Series:
    """Outcome names of some rows of the groups."""
    g, labels = question.prices.groups, question.labels
    return labels.outcomes[labels.outcome[g.kind[g.ladder[g.market[rows]]], g.side[rows]]]


def market_lines(question: Question, markets: Ints | Longs, side: Any = 0) -> pl.Series:
    """Published lines of markets: the total's, or the handicap of a side, by default the home one; null without one."""
    g = question.prices.groups
    sign = question.labels.sign[g.kind[g.ladder[markets]], side]
    return nullable(g.threshold[markets] / 100.0 * sign + 0.0)


def row_lines(question: Question, rows: Ints) -> pl.Series:
    """Lines of some rows of the groups from their own side; null if the family has none."""
    g = question.prices.groups
    return market_lines(question, g.market[rows], g.side[rows])


def known_age(prices: FairPrices, age: Floats) -> Floats:
    """Ages for a score: an unknown one counts as the maximum allowed, unless all are unknown."""
    unknown = 0.0 if prices.now == NO_TIME else prices.limits.stale_prematch_s
    return np.where(np.isnan(age), unknown, age)


def lists(case: Longs, values: pl.Series, cases: int) -> pl.Series:
    """Group values into one list per case; `case` is ascending and gives the list of each value."""
    return grouped(case, {"value": values}, cases, "value")["value"]


def grouped(case: Longs, values: dict[str, pl.Series], cases: int, *columns: str | pl.Expr) -> pl.DataFrame:
    """Group columns of values into lists, as `lists`."""
    flat = pl.DataFrame([pl.Series(case).set_sorted(), *values.values()], schema=["case", *values])
    made = flat.group_by("case", maintain_order=True).agg(*columns)
    if made.height == cases:
        return made
    at = np.full(cases, made.height)
    at[distinct(case)] = np.arange(made.height)
    none = [pl.Series("case", [cases]), *(pl.Series(name, [[]], made.schema[name]) for name in made.columns[1:])]
    return made.vstack(pl.DataFrame(none))[at]


def books_of(question: Question, case: Longs, rows: Ints | Longs, cases: int) -> pl.Series:
    """List the distinct books of some rows by case, sorted."""
    books = max(len(question.board.identity.books), 1)
    keys = distinct(case * books + question.prices.groups.book[rows])
    return lists(keys // books, question.labels.books[keys % books], cases)
