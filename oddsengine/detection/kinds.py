"""The kinds of opportunities, one declaration of each: how it is found, its columns and thresholds, how it is listed.

Everything that handles opportunities iterates `KINDS`: finders, views, tapes, the command line, and the service with
its lists, streams, tools and page. `register` adds a kind of your own (docs/kinds.md) before any of these is used.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.bounds import check_number, excerpt
from oddsengine.columns import Bools, Floats
from oddsengine.detection import arbitrages, ev, low_hold, middles
from oddsengine.detection.question import INCLUDED, Question, some_of
from oddsengine.detection.result_columns import ARBITRAGE_SCHEMA, EV_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA
from oddsengine.detection.search import Located, Opened, Search
from oddsengine.detection.sweep import Thresholds

_ABSENT = object()
MOST = 1e6  # percent, or points: the largest threshold
Schema = Mapping[str, Any]
Row = Mapping[str, Any]


def tolerance() -> float:
    """By how much a percentage may miss a threshold: that of a hold of exactly 2 % in binary numbers."""
    return 100.0 * catalog.thresholds().epsilon


class Threshold(NamedTuple):
    """A threshold that a user sets: a parameter of finders and views."""

    name: str
    usual: float | None
    off: float  # with which its kind is not searched for, or nothing is left out
    least: float = -np.inf
    none: float | None = None  # what no value means in a search, where none is allowed
    scale: float = 100.0  # what the parameter is divided by for searches, which have fractions
    steps: tuple[float | None, ...] = ()  # those of views that lists use: the first that leaves out no more is taken
    fallback: float | None = None  # at which one is looked up that is beyond the usual one
    name_in_lists: str = ""  # the parameter of lists, if it has another name there

    def check(self, value: float | None) -> None:
        """Raise if a value is not allowed."""
        optional = self.none is not None
        check_number(self.name, value, self.least, optional=optional)
        check_number(self.name, value, most=MOST, optional=optional)

    def step(self, value: float) -> float | None:
        """The threshold of a view for a list with this one: the first step that leaves out no more, else the last."""
        if not self.steps:
            return self.usual
        sign = -1.0 if self.is_most else 1.0
        within = (each for each in self.steps if each is None or sign * each <= sign * value + tolerance())
        return next(within, self.steps[-1])

    def lower(self, value: float) -> float | None:
        """The threshold of a view in which one of a value is looked for that is beyond the usual one."""
        if self.fallback is None:
            return self.steps[-1] if self.steps else self.usual
        return self.step(max(value, self.fallback) if self.is_most else min(value, self.fallback))

    @property
    def listed(self) -> str:
        """Its name in lists."""
        return self.name_in_lists or self.name

    @property
    def is_most(self) -> bool:
        """Whether it is a maximum."""
        return self.name.startswith("max_")


class Order(NamedTuple):
    """A column that a list can be sorted by, and whether its name alone means descending."""

    column: str
    descending: bool = False


class Bound(NamedTuple):
    """A column of numbers with the parameters of lists for its limits; empty: none."""

    column: str
    low: str = ""
    high: str = ""


class Figure(NamedTuple):
    """A column of rows that follows from the figures of what is open, (figures, n)."""

    name: str
    of: Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of opportunity.

    Parameters
    ----------
    name
        In frames, views, tapes, requests and features.
    schema
        The columns of its rows: at least those of `COMMON`, and either those of `BET` or `legs`.
    find
        Search for it in the markets of the search's scope, or its ladders: an object with `id`, and `only` for a
        selection, that the next functions are given.
    build
        The rows, best first, of what was found and is within the cap.
    opened
        What of it is open, within the cap; with which rows of the groups have changed since the last search.
    located
        Ids, markets and legs of what was found, for explanations.
    over_cap, cap
        Which of it is too good to be true; and the name under which this is counted.
    thresholds
        Those on which it depends. The first with `steps`, else the first, is that of `value`.
    value, rises
        The main figure, a column in percent; and whether more of it is better.
    figures
        What updates say of what is open; the first is `value`.
    odds
        Which figures are the odds of the legs after commission.
    referred
        Whether it needs a reference; sums of prices do not.
    paired
        Whether it is found in ladders, not in markets.
    hashed
        Whether rows show more than legs, figures and prices beside them, so that `opened` has a hash of what they show.
    include
        Words of `include` that change what is found.
    one, title, about, measure, none, formula
        Words: one of it, its heading, what it is, its main figure, that there is none, and how the figure is computed.
    event, spelled
        Its name in stream events, and `measure` in sentences, if they are others.
    tier
        The lowest tier whose keys may read it.
    orders, bounds
        How lists are sorted and filtered.
    american
        Columns with its American prices, `a.b` inside of `a`.
    searched
        Columns in which lists search for a text, beside the player.
    age, alternate, distinct_by
        Columns: the oldest price's age, whether its line is no main line, and what tells markets of one type apart.
    explained
        Columns that an explanation has, with their names there.
    more
        What an explanation says of a row after its main figure.
    published
        Fields of the service whose names are not those of their columns, by column: `legs.a` is in each leg, `side.a`
        in each of `side1` to `side3`. `row` undoes it.
    """

    name: str
    schema: Schema
    find: Callable[[Search], Any]
    build: Callable[[Question, Any], pl.DataFrame]
    opened: Callable[[Search, Any, Bools], Opened]
    located: Callable[[Question, Any], Located]
    over_cap: Callable[[Search, Any], Bools]
    cap: str
    thresholds: tuple[Threshold, ...]
    value: str
    figures: tuple[Figure, ...]
    odds: tuple[int, ...]
    one: str
    title: str
    about: str
    measure: str
    none: str
    formula: str
    american: tuple[str, ...]
    event: str = ""
    spelled: str = ""
    rises: bool = True
    referred: bool = False
    paired: bool = False
    hashed: bool = False
    include: tuple[str, ...] = ()
    tier: str = "pro"
    orders: Mapping[str, Order] = field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    searched: tuple[str, ...] = ("event_name",)
    age: str = "oldest_odds_age_seconds"
    alternate: str | None = "is_alternate_line"
    distinct_by: tuple[str, ...] = ("line", "team_side")
    explained: Mapping[str, str] = field(default_factory=dict)
    more: Callable[[Row], str] = lambda _: ""
    published: Mapping[str, str] = field(default_factory=lambda: PUBLISHED)

    @property
    def event_name(self) -> str:
        """Its name in stream events."""
        return self.event or self.name

    @property
    def best_first(self) -> str:
        """The order of lists by its main figure, best first."""
        name, order = next((name, order) for name, order in self.orders.items() if order.column == self.value)
        return name if order.descending == self.rises else f"-{name}"

    @property
    def plural(self) -> str:
        """Its heading within a sentence."""
        return self.title[0].lower() + self.title[1:]

    @property
    def single(self) -> bool:
        """Whether it is one bet, without legs or sides."""
        return not {"legs", *SIDES} & set(self.schema)

    @property
    def threshold(self) -> Threshold:
        """That of the main figure."""
        return next((each for each in self.thresholds if each.steps), self.thresholds[0])

    def headline(self, row: Row) -> str:
        """The main figure of a row in words, and more."""
        return f"{self.spelled or self.measure} {row[self.value]:.2f} %{self.more(row)}"

    def row(self, published: Row) -> dict[str, Any]:
        """A row of the service with the names of our columns.

        Examples
        --------
        >>> row = {"id": "1a", "start_time": None, "side1": {"book": "fanduel", "odds": {"decimal": 2.1}}}
        >>> MIDDLES.row(row)
        {'id': '1a', 'side1': {'odds_decimal': 2.1, 'sportsbook': 'fanduel'}, 'event_start_time': None}
        """
        out = _unpublished(published, self._renamed.get("", {}))
        for name, part in out.items():
            own = self._renamed.get("side" if name in SIDES else name)
            if own and isinstance(part, list):
                out[name] = [_unpublished(each, own) for each in part]
            elif own and part:
                out[name] = _unpublished(part, own)
        return out

    @cached_property
    def _renamed(self) -> dict[str, dict[str, str]]:
        """`published` by the field that holds the columns ("" for the row itself), without its name in theirs."""
        found: dict[str, dict[str, str]] = {}
        for column, path in self.published.items():
            outer = column.partition(".")[0] if "." in column else ""
            found.setdefault(outer, {})[column.removeprefix(f"{outer}.")] = path.removeprefix(f"{outer}.")
        return found

    def percent(self, figures: Floats) -> Floats:
        """The main figure of what is open, in percent, from (n, figures)."""
        return self.figures[0].of(figures.T)


SIDES = ("side1", "side2", "side3")
PUBLISHED: Mapping[str, str] = {"event_start_time": "start_time", "legs.last_seen_at": "legs.timestamp"}
"""The names that all kinds have in the service."""


def _unpublished(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    """A row, or a part of one, without renamed fields but with their columns; `a.b` is inside of `a`."""
    found = {}
    for column, path in names.items():
        part: Any = row
        for step in path.split("."):
            part = part.get(step, _ABSENT) if isinstance(part, Mapping) else _ABSENT
        if part is not _ABSENT:
            found[column] = part
    left_out = {path.partition(".")[0] for path in names.values()}
    return {name: value for name, value in row.items() if name not in left_out} | found


def sides_of(row: Row) -> list[Any]:
    """The sides of a row, if it has any."""
    return [side for name in SIDES if (side := row.get(name))]


def bets_of(row: Row) -> list[Any]:
    """The bets of a row: its legs or sides, or the row itself."""
    return row.get("legs") or sides_of(row) or [row]


MAX_PROFIT = Threshold("max_profit", 10.0, np.inf, none=np.inf)
"""Of arbitrages, also of those that +EV rows mention, and of middles in the worst case: more is an error."""
_PLACE = {"sport": Order("sport"), "market": Order("market_type")}
_START = Order("event_start_time")
_AMERICAN = tuple(f"{side}.odds_american" for side in SIDES)
_OF_SIDES = {"side.odds_american": "side.odds.american", "side.odds_decimal": "side.odds.decimal"}

EV = Kind(
    "ev", EV_SCHEMA, ev.find_hits, ev.build_rows, ev.opened, ev.located, ev.over_cap, "ev_cap",
    thresholds=(Threshold("min_ev", 0.0, np.inf, steps=(0.0, -2.0, -5.0, -10.0, -100.0), fallback=-2.0), MAX_PROFIT),
    value="ev_percentage",
    figures=(
        Figure("ev_percentage", lambda figures: figures[0] * 100.0),
        Figure("fair_probability", lambda figures: figures[1]),
        Figure("market_width", lambda figures: figures[2] * 100.0),
    ),
    odds=(3,), referred=True, include=INCLUDED,
    one="ev", title="+EV", about="Bets whose price is better than the fair price.", measure="EV",
    none="No +EV bets at this minimum at the moment.",
    formula="ev_percent = (fair_probability x odds_decimal - 1) x 100",
    american=("odds_american",),
    orders={
        "ev": Order("ev_percentage"), "odds": Order("odds_decimal"), "confidence": Order("confidence_score"),
        "confidence_score": Order("confidence_score"), "kelly": Order("kelly_percent"),
        "kelly_percent": Order("kelly_percent"), "start_time": _START, "time": _START,
        "book_count": Order("book_count"), "books": Order("book_count"), "still_there": Order("still_there"),
    },
    bounds=(
        Bound("ev_percentage", "min_ev", "max_ev"), Bound("market_width", "min_market_width", "max_market_width"),
        Bound("market_width", "", "max_hold"), Bound("kelly_percent", "min_kelly", "max_kelly"),
        Bound("confidence_score", "min_confidence", "max_confidence"), Bound("still_there", "min_still_there"),
    ),
    searched=("event_name", "selection"),
    published={
        **PUBLISHED, "event_id": "game_id", "event_name": "game", "market_type": "market",
        "net_odds": "odds_decimal_net",
    },
    more=lambda row: f", Kelly stake {row['kelly_percent'] * 100.0:.2f} %",
    explained={
        "ev_percentage": "ev_percent", "fair_probability": "fair_probability", "selection": "selection",
        "sportsbook": "sportsbook", "odds_decimal": "odds_decimal", "ev_low": "ev_low_percent",
        "ev_high": "ev_high_percent", "prob_positive": "positive_probability", "flags": "flags",
    },
)  # fmt: skip
ARBITRAGE = Kind(
    "arbitrage", ARBITRAGE_SCHEMA, arbitrages.find_hits, arbitrages.build_rows, arbitrages.opened, arbitrages.located,
    arbitrages.over_cap, "profit_cap",
    thresholds=(
        Threshold("min_profit", 0.5, np.inf, least=-99.0, steps=(0.5, 0.0, -2.0, -10.0, -99.0), fallback=-2.0),
        MAX_PROFIT,
    ),
    value="profit_percent",
    figures=(
        Figure("profit_percent", lambda figures: 100.0 / figures[0] - 100.0),
        Figure("implied_total", lambda figures: figures[0] * 100.0),
    ),
    odds=(1, 2, 3), event="arb", tier="hobby",
    one="arbitrage", title="Arbitrage", about="Bets on every outcome that lock in a profit.", measure="profit",
    none="No arbitrages at the moment.",
    formula="profit_percent = 10000 / implied_total_percent - 100; each leg gets its implied share of the stake",
    american=("legs.odds_american",),
    orders={"profit": Order("profit_percent", descending=True), "start_time": _START, "time": _START, **_PLACE},
    bounds=(Bound("profit_percent", "min_profit"),),
    published={**PUBLISHED, "sharp_book": "devig_book"},
    explained={"profit_percent": "profit_percent", "implied_total": "implied_total_percent"},
)  # fmt: skip
LOW_HOLD = Kind(
    "low_hold", LOW_HOLD_SCHEMA, low_hold.find_hits, low_hold.build_rows, low_hold.opened, low_hold.located,
    low_hold.over_cap, "",
    thresholds=(
        Threshold("max_hold", 2.0, -np.inf, least=0.0, steps=(2.0, 5.0, 10.0, 25.0, 100.0), fallback=5.0),
    ),
    value="hold_percentage", rises=False,
    figures=(Figure("hold_percentage", lambda figures: np.maximum(figures[0] - 1.0, 0.0) * 100.0),),
    odds=(1, 2, 3), hashed=True, tier="hobby",
    one="low_hold", title="Low hold",
    about="Markets where betting every side costs little, for promos and rollover.", measure="hold",
    none="No low-hold markets at the moment.",
    formula="hold_percent = (sum of 1 / odds_decimal - 1) x 100 of the best prices; below 0 it is an arbitrage",
    american=_AMERICAN,
    orders={"hold": Order("hold_percentage"), "start_time": _START, **_PLACE},
    bounds=(Bound("hold_percentage", "min_hold", "max_hold"),),
    published={
        **PUBLISHED, **_OF_SIDES, "oldest_odds_age_seconds": "odds_age_seconds",
        "side.implied_probability": "side.odds.implied_probability",
        "side.fair_probability": "side.odds.fair_probability",
    },
    explained={"hold_percentage": "hold_percent"},
)  # fmt: skip
MIDDLES = Kind(
    "middles", MIDDLES_SCHEMA, middles.find_hits, middles.build_rows, middles.opened, middles.located,
    middles.over_cap, "ev_cap",
    thresholds=(
        Threshold("min_size", 0.0, 0.0, least=0.0, scale=1.0),
        Threshold(
            "min_middle_ev", 0.0, np.inf, none=-np.inf, steps=(0.0, -2.0, -10.0, None), name_in_lists="min_ev"
        ),
        MAX_PROFIT,
    ),
    value="expected_value",
    figures=(
        Figure("expected_value", lambda figures: figures[0] * 100.0),
        Figure("middle_probability", lambda figures: figures[1]),
    ),
    odds=(2, 3), referred=True, paired=True,
    one="middle", title="Middles", about="Two bets that both win if the result falls between the lines.",
    measure="EV", spelled="expected value",
    none="No middles at the moment.",
    formula="one bet wins on most results, both between the lines; expected value is over the fair probabilities",
    american=_AMERICAN[:2],
    orders={
        "quality": Order("quality_score", descending=True), "ev": Order("expected_value", descending=True),
        "probability": Order("middle_probability", descending=True),
        "middle_size": Order("middle_size", descending=True),
    },
    bounds=(Bound("expected_value", "min_ev", "max_ev"), Bound("middle_size", "min_size")),
    published={
        **PUBLISHED, **_OF_SIDES, "side.sportsbook": "side.book",
        "side.implied_probability": "side.odds.probability", "side.fair_probability": "side.odds.fair_probability",
    },
    more=lambda row: f", worst {row['worst_case_loss']:.2f} %",
    age="odds_age_seconds", alternate=None, distinct_by=("side1.line", "team_side"),
    explained={"expected_value": "expected_value_percent", "worst_case_loss": "worst_case_per_100_staked"},
)  # fmt: skip

COMMON = (
    "id", "event_id", "event_name", "sport", "league", "home_team", "away_team", "market_type", "line", "team_side",
    "player_name", "stat_category", "is_player_prop", "is_live", "event_start_time", "detected_at", "warnings",
)  # fmt: skip
"""Columns that the rows of a registered kind must have."""
BET = ("sportsbook", "selection", "odds_american", "odds_decimal")
"""And these, unless they have `legs`, a list with these in it."""


class Kinds(Mapping[str, Kind]):
    """The kinds by name, in order of registration: the code of a kind in arrays is its place."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[str, Kind] = {}
        self._codes: dict[str, int] = {}
        self._used = ""  # why it is too late for another one
        self.thresholds: dict[str, Threshold] = {}
        """The thresholds of all kinds, by name; those of several kinds are last."""
        for kind in kinds:
            self.add(kind)

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, kind: Kind) -> None:
        """Add a kind; see `register`."""
        if self._used:
            raise RuntimeError(f"{self._used}: it is too late to register the kind {kind.name}")
        self._codes[kind.name] = len(self._kinds)
        self._kinds[kind.name] = kind
        for each in kind.thresholds:
            self.thresholds.pop(each.name, None)
            self.thresholds[each.name] = each

    def use(self, why: str) -> None:
        """Something depends on the list as it is."""
        self._used = self._used or why

    def code(self, name: str) -> int:
        """The code of a kind in arrays."""
        return self._codes[name]

    def some(self, names: Iterable[str]) -> tuple[str, ...]:
        """Validate names of kinds, and return them in order."""
        some = some_of("kinds", names, tuple(self._kinds))
        if not some:
            raise ValueError(f"kinds must be a list of {', '.join(self._kinds)}, got {excerpt(names)}")
        return some

    def of_one(self, one: str) -> Kind:
        """The kind of an explained opportunity."""
        return next(kind for kind in self.values() if kind.one == one)


BUILT_IN = (EV, ARBITRAGE, LOW_HOLD, MIDDLES)
"""Those that share one sweep."""
KINDS = Kinds(BUILT_IN)


_WORD = re.compile("[a-z][a-z0-9_]*")
_TAKEN = {"all", "odds", "gamestate", "games", "explain", "rejected", "other"}
_COLUMN_TYPES = (pl.String, pl.Boolean, pl.Int64, pl.UInt32, pl.Float64, pl.Datetime)
_OF_ROWS = {"id", "kind", "event_id", "market_type", "player_name", "unconfirmed", "legs", "detected_at"}


def register(kind: Kind) -> None:
    """Add a kind of your own, before the first view of an engine is made and the service is imported.

    Raises
    ------
    ValueError
        If a word is taken or not a name, columns are missing that lists need, or something else would fail later.
    RuntimeError
        If it is too late.
    """
    for fault in _faults(kind):
        raise ValueError(f"the kind {kind.name} {fault}")
    KINDS.add(kind)


def _faults(kind: Kind) -> Iterator[str]:
    """What is wrong with a declaration."""
    words = {word for other in KINDS.values() for word in (other.name, other.one, other.event_name)} | _TAKEN
    for what, word in (("a name", kind.name), ("a word for one", kind.one), ("an event", kind.event_name)):
        if not _WORD.fullmatch(word):
            yield f"needs {what} of small letters, digits and _, got {excerpt(word)}"
        if word in words or word.replace("_", "-") in {other.replace("_", "-") for other in words}:
            yield f"has {what} that is taken, {word}"
    if not kind.thresholds or kind.threshold.usual is None:
        yield "needs a threshold of its main figure, with a usual value"
    named = [each.name for each in kind.thresholds] + [name for bound in kind.bounds for name in bound[1:] if name]
    if wrong := [name for name in named if not (_WORD.fullmatch(name) and name.startswith(("min_", "max_")))]:
        yield f"has thresholds and bounds that do not begin with min_ or max_: {', '.join(wrong)}"
    if taken := sorted({each.name for each in kind.thresholds} & set(KINDS.thresholds)):
        yield f"has thresholds whose names are taken: {', '.join(taken)}"
    needed = [*COMMON, *(() if "legs" in kind.schema else BET), kind.value, kind.age, *kind.searched]
    needed += [order.column for order in kind.orders.values()] + [bound.column for bound in kind.bounds]
    needed += [path.partition(".")[0] for path in (*kind.american, *kind.distinct_by)]
    needed += [] if kind.alternate is None else [kind.alternate]
    if missing := dict.fromkeys(name for name in needed if name not in kind.schema):
        yield f"needs the columns {', '.join(missing)}"
    if strange := [name for name, dtype in kind.schema.items() if not _is_column(dtype)]:
        known = ", ".join(dtype.__name__ for dtype in _COLUMN_TYPES)
        yield f"has columns of other types than {known}, lists and structs: {', '.join(strange)}"
    elif wrong := [
        f"{path} is {dtype}, not {' or '.join(map(str, usual))}" for path, published, dtype in _published(kind)
        if (usual := _usual_types().get(published)) and dtype not in usual
    ]:  # fmt: skip
        yield f"has columns of other types than the fields of these names in lists: {'; '.join(wrong)}"
    if kind.value in kind.schema and kind.schema[kind.value] != pl.Float64:
        yield f"needs a main figure of the type Float64, and {kind.value} is {kind.schema[kind.value]}"
    if all(order.column != kind.value for order in kind.orders.values()):
        yield f"needs an order by {kind.value}"
    if kind.single != (len(kind.odds) == 1):
        yield f"has {len(kind.odds)} odds, but {'no legs' if kind.single else 'legs'}"
    if any(figure.name in _OF_ROWS for figure in kind.figures) or not kind.figures:
        yield f"needs figures with names of their own, not {', '.join(sorted(_OF_ROWS))}"


def _is_column(dtype: Any) -> bool:
    if isinstance(dtype, pl.List):
        return _is_column(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return all(_is_column(field.dtype) for field in dtype.fields)
    return (dtype if isinstance(dtype, type) else type(dtype)) in _COLUMN_TYPES


def _published(kind: Kind) -> Iterator[tuple[str, str, Any]]:
    """Each column without parts, also those inside of structs: its path, its name in the service and its type."""

    def within(schema: Schema, path: str) -> Iterator[tuple[str, str, Any]]:
        for column, dtype in schema.items():
            inner = dtype.inner if isinstance(dtype, pl.List) else dtype
            if isinstance(inner, pl.Struct):
                yield from within(dict(inner), f"{path}{column}.")
            else:
                place = re.sub(r"^side\d\.", "side.", path + column)
                yield path + column, kind.published.get(place, column).rpartition(".")[2], dtype

    return within(kind.schema, "")


@cache
def _usual_types() -> dict[str, list[Any]]:
    """The types that a field of a name has in lists of the built-in kinds."""
    types: dict[str, list[Any]] = {}
    for kind in BUILT_IN:
        for _, published, dtype in _published(kind):
            if dtype not in types.setdefault(published, []):
                types[published].append(dtype)
    return types


def thresholds(**given: float | None) -> Thresholds:
    """The thresholds of one user, in the units of their parameters. What is not given is not searched for."""
    return Thresholds(
        (name, np.array([_searched(each, given[name]) if name in given else each.off], np.float64))
        for name, each in KINDS.thresholds.items()
    )


def _searched(threshold: Threshold, value: float | None) -> float:
    if value is None and threshold.none is not None:
        return threshold.none
    if value is None:
        raise ValueError(f"{threshold.name} must be a finite number, got None")
    return float(value) / threshold.scale


def usual(kinds: Iterable[str]) -> dict[str, float | None]:
    """The usual thresholds of some kinds."""
    return {each.name: each.usual for name in kinds for each in KINDS[name].thresholds}


def loosest() -> dict[str, float | None]:
    """The thresholds that leave out least."""
    return {name: each.steps[-1] if each.steps else each.usual for name, each in KINDS.thresholds.items()}


def check_thresholds(given: Mapping[str, float | None]) -> None:
    """Raise if there is no threshold of a name, or its value is not allowed."""
    known = KINDS.thresholds
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"there is no threshold {excerpt(name)}; there are {', '.join(known)}")
        known[name].check(value)
