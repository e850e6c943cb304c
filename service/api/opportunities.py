"""Opportunities: +EV, arbitrages, middles and low holds over exactly the books that the caller may and wants to use.

A request's books and thresholds make a view of the engine (`views`); the other filters, the order and the page are
taken from the view's columns (`sifting`). Thresholds below those of the usual view make another view with lower ones,
of a few steps, so that there are never many.

**CSV of arbitrages.** The header has two legs, an arbitrage may have more. Each row has two: an arbitrage of three
takes two rows that agree in everything but the legs, the third standing where the first was, a fourth's columns empty.
So every row has exactly the header's columns, no leg is lost, and the stakes of one arbitrage, whose rows follow each
other, sum to 100. A text that a spreadsheet would take for a formula has a ' before it.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from oddsengine import catalog
from oddsengine.devig import DEVIG_METHODS
from oddsengine.engine import Engine
from oddsengine.groups import Floats, Longs
from service import filters
from service.api.odds import (
    ADD_SPORTSBOOK,
    EVENT,
    LEAGUE,
    LIMIT,
    LIVE,
    MARKET,
    MAX_ODDS,
    MIN_ODDS,
    OFFSET,
    SPORT,
    SPORTSBOOK,
    TEAM,
    Q,
    books_for,
)
from service.api.reference import censuses
from service.endpoints import Answer, Ask, Endpoint, data, page, told
from service.params import Param, choice, flag, number, text, words
from service.problems import Problem, invalid, shown, unknown
from service.sifting import EPSILON, Shape, Sort, arranged, every, keep, within
from service.tiers import books_of
from service.views import Bools, Opened, Table, Views
from service.wire import Data
from service.wire_more import (
    Arbitrage,
    ArbitragePage,
    BestEv,
    EvPage,
    HoldSide,
    LowHoldPage,
    Middle,
    MiddlePage,
    MiddlesSummary,
    arbitrage,
    ev,
    exact,
    low_hold,
    middle,
    moment,
)

_TAG = "Opportunities"
_DELIMITED = ("event", "sport", "market", "line", "profit%", "implied_total", "book1", "selection1", "odds1", "stake1%",
              "book2", "selection2", "odds2", "stake2%", "is_live", "is_alternate_line", "possibly_stale", "warnings",
              "detected_at")  # fmt: skip
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])")
_ID = re.compile("[0-9a-f]{16}")

_AGE = number("max_odds_age", "Most seconds since the oldest price was seen.", 0.0)
_RANGE = choice("date_range", "When it begins, in US Eastern time.", filters.DAYS)
_PROP = flag("is_player_prop", "true: player props only; false: none.")
_MAIN = flag("is_main_line", "true: main lines only; false: other lines only.")
_PLAYER = text("player_name", "Part of a player's name.")
_STAT = words("stat_category", "Statistics of player props, such as points.")
_STATE = text("state", "US state for the links to books, two small letters.")
_COMMON = (
    SPORT, LEAGUE, SPORTSBOOK, ADD_SPORTSBOOK, MARKET, EVENT, LIVE, TEAM, filters.DATE, _RANGE, Q, _PROP,
    _MAIN, _PLAYER, _STAT, _AGE, MIN_ODDS, MAX_ODDS,
)  # fmt: skip


# ---- who asks for what ----


class Asked(NamedTuple):
    """A request's books, and the ids in it that nobody knows."""

    books: frozenset[str] | None
    unknown: dict[str, list[str]]


def asked(ask: Ask) -> Asked:
    """Books of an answer: the tier's or those asked for, as far as they exist.

    Raises
    ------
    Problem
        403 if a book is above the tier.
    """
    query = ask.query
    strange = filters.strangers(query, lambda: censuses(ask).at(ask.board, None).known)
    if query.get("event") is not None:
        with ask.board.still() as board:
            missing = [event for event in query["event"] if event not in board.names.event_codes]
        if missing:
            strange["event"] = missing
    books = books_for(ask, query["sportsbook"], query.get("add_sportsbook"))
    if books is not None:
        words = [word for name in ("sportsbook", "add_sportsbook") for word in strange.get(name, ())]
        books -= {catalog.book(word).id for word in words}
    return Asked(books, strange)


def _views(ask: Ask) -> Views:
    found: Views | None = ask.node.parts.get("views")
    return ask.node.parts.setdefault("views", Views()) if found is None else found


def opened(ask: Ask, books: frozenset[str] | None, **wanted: Any) -> Opened:
    """What is open in the view of a request."""
    return _views(ask).at(ask.board, books, **wanted)


def _at_most(value: float, steps: Sequence[float]) -> float:
    """The first step that is not above a value; steps fall."""
    return next((step for step in steps if step <= value + EPSILON), steps[-1])


# ---- parts of answers ----


def _paged(ask: Ask, places: Longs) -> list[int]:
    offset = ask.query["offset"]
    rows: list[int] = places[offset : offset + ask.query["limit"]].tolist()
    return rows


def _echo(query: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: query.get(name) for name in names}


def _source(ask: Ask) -> str:
    return "simulator" if ask.node.demo else "live"


def _mean(values: Floats) -> float:
    return exact(float(values.mean())) if values.size else 0.0


def _most(values: Floats) -> float:
    return exact(float(values.max())) if values.size else 0.0


# ---- +EV ----

_EV_SORTS = {
    "ev": Sort("ev_percentage"),
    "odds": Sort("odds_decimal"),
    "confidence": Sort("confidence_score"),
    "confidence_score": Sort("confidence_score"),
    "kelly": Sort("kelly_percent"),
    "kelly_percent": Sort("kelly_percent"),
    "start_time": Sort("start_time"),
    "time": Sort("start_time"),
    "book_count": Sort("book_count"),
    "books": Sort("book_count"),
}
_EV_STEPS = (0.0, -2.0, -5.0, -10.0, -100.0)


def _single_prices(table: Table) -> tuple[Floats, Floats]:
    value = table.numbers("odds_american")
    return value, value


_EV = Shape("game_id", "market", ("game", "selection"), "oldest_odds_age_seconds", _single_prices)


def _reference(ask: Ask, strange: dict[str, list[str]]) -> tuple[bool, str | None]:
    """The reference that is asked for: whether there is any such, and its id.

    A sharp book may be the reference of everybody's answers; another one only of those who may see it.
    """
    word = ask.query["devig_book"]
    if word is None:
        return True, None
    book = catalog.book(word)
    if not filters.known_book(word) and book.id not in censuses(ask).at(ask.board, None).known.books:
        strange["devig_book"] = [word]
        return False, None
    own = books_of(ask.caller.tier.id)
    if own is not None and not book.sharp and book.id not in own:
        raise Problem(
            403,
            "tier_restricted",
            f"devig_book {book.id} needs the tier {book.requires_tier}; this key's is {ask.caller.tier.id}",
        )
    return True, book.id


def positive(ask: Ask) -> Any:
    """The +EV list."""
    query = ask.query
    books, strange = asked(ask)
    there, sharp = _reference(ask, strange)
    meta = {
        "source": _source(ask),
        "last_update": moment(ask.board.now),
        "summary": {"count": 0, "avg_ev": 0.0, "max_ev": 0.0, "by_sportsbook": {}, "by_sport": {}, "by_market": {}},
        "filters": _echo(
            query, "sport", "league", "sportsbook", "market", "min_ev", "max_ev", "live", "sort", "include"
        ),
    }  # fmt: skip
    if not there or (books is not None and not books):
        return page(ask, [], 0, 0, told(ask, strange, **meta))
    found = opened(
        ask, books, sharp=sharp, method=query["devig_method"], min_ev=_at_most(query["min_ev"], _EV_STEPS)
    )  # fmt: skip
    table = found.table("ev", ev)
    kept = every(
        [
            keep(table, query, _EV, found.now),
            within(table, "ev_percentage", query["min_ev"] if table.size else None, query["max_ev"]),
            within(table, "market_width", query["min_market_width"], query["max_market_width"]),
            within(table, "market_width", None, query["max_hold"]),
            within(table, "kelly_percent", query["min_kelly"], query["max_kelly"]),
            within(table, "confidence_score", query["min_confidence"], query["max_confidence"]),
        ]
    )
    places = arranged(table, kept, query["sort"], _EV_SORTS)
    edges = table.numbers("ev_percentage")[places]
    meta["last_update"] = moment(found.now)
    meta["summary"] = {
        "count": int(places.size),
        "avg_ev": _mean(edges),
        "max_ev": _most(edges),
        "by_sportsbook": table.coded("sportsbook").counts(places),
        "by_sport": table.coded("sport").counts(places),
        "by_market": table.coded("market").counts(places),
    }
    rows = _paged(ask, places)
    return page(ask, table.shown(rows), len(rows), int(places.size), told(ask, strange, **meta))


# ---- arbitrage ----

_ARB_SORTS = {
    "profit": Sort("profit_percent", falling=True),
    "start_time": Sort("start_time"),
    "time": Sort("start_time"),
    "sport": Sort("sport"),
    "market": Sort("market_type"),
}
_ARB_STEPS = (0.5, 0.0, -2.0, -10.0, -99.0)


def _leg_prices(table: Table) -> tuple[Floats, Floats]:
    def spans() -> tuple[Floats, Floats]:
        legs = [[leg["odds_american"] for leg in case] for case in table.column("legs").to_list()]
        return np.array([min(case) for case in legs], float), np.array([max(case) for case in legs], float)

    return table.kept("legs", spans)


_ARB = Shape("event_id", "market_type", ("event_name",), "oldest_odds_age_seconds", _leg_prices)


def sure(ask: Ask) -> Any:
    """The arbitrage list, as JSON or CSV."""
    query = ask.query
    books, strange = asked(ask)
    met = [catalog.book(name).id for name in _met(ask.board)]
    meta = {
        "source": _source(ask),
        "summary": {"count": 0, "avg_profit": 0.0, "max_profit": 0.0, "by_market": {}, "by_sport": {}},
        "filters": _echo(query, "sport", "league", "sportsbook", "market", "live", "min_profit"),
        "books_analyzed": len({book for book in met if books is None or book in books}),
    }
    table, places = _sure_places(ask, books)
    if table is not None:
        profits = table.numbers("profit_percent")[places]
        meta["summary"] = {
            "count": int(places.size),
            "avg_profit": _mean(profits),
            "max_profit": _most(profits),
            "by_market": table.coded("market_type").counts(places),
            "by_sport": table.coded("sport").counts(places),
        }
    rows = _paged(ask, places)
    if query["format"] == "csv":
        return _download(ask, table.structs(rows) if table is not None and rows else [])
    shown_rows = table.shown(rows) if table is not None else []
    return page(ask, shown_rows, len(rows), int(places.size), told(ask, strange, **meta))


def _sure_places(ask: Ask, books: frozenset[str] | None) -> tuple[Table | None, Longs]:
    query = ask.query
    if books is not None and not books:
        return None, np.empty(0, np.int64)
    found = opened(ask, books, min_profit=_at_most(query["min_profit"], _ARB_STEPS))
    table = found.table("arbitrage", arbitrage)
    kept = every(
        [keep(table, query, _ARB, found.now), within(table, "profit_percent", query["min_profit"], None)]
    )  # fmt: skip
    if query["group"] == "best":
        kept = _best(table, kept)
    return table, arranged(table, kept, query["sort"], _ARB_SORTS)


def _best(table: Table, kept: Bools | None) -> Bools:
    """The first row of each event among those kept: the frame is in order of profit."""
    at = np.arange(table.size) if kept is None else np.flatnonzero(kept)
    _, first = np.unique(table.coded("event_id").codes[at], return_index=True)
    out = np.zeros(table.size, bool)
    out[at[first]] = True
    return out


def _met(board: Engine) -> list[str]:
    """Books that the board has met."""
    return list(board._board.names.books)


def _download(ask: Ask, rows: Sequence[Any]) -> Answer:
    """Arbitrages as a file; see the module."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_DELIMITED)
    for row in rows:
        assert isinstance(row, Arbitrage)
        head = [row.event_name, row.sport, row.market_type, row.line, row.profit_percent, row.implied_total]
        tail = [
            row.is_live, row.is_alternate_line, row.possibly_stale, ";".join(row.warnings), row.detected_at,
        ]  # fmt: skip
        for at in range(0, len(row.legs), 2):
            legs: list[Any] = []
            for leg in row.legs[at : at + 2]:
                legs += [leg.sportsbook, leg.selection, leg.odds_american, leg.stake_percent]
            legs += [None] * (8 - len(legs))
            writer.writerow([_cell(value) for value in (*head, *legs, *tail)])
    now = ask.board.now
    day = "" if now is None else f"{now:%Y-%m-%d}"
    name = f'attachment; filename="arbitrage_{day}.csv"'
    return Answer(out.getvalue().encode(), type="text/csv; charset=utf-8", headers=(("content-disposition", name),))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    name = str(value)
    return f"'{name}" if _FORMULA.match(name) else name


# ---- middles ----

_MIDDLE_SORTS = {
    "quality": Sort("quality_score", falling=True),
    "ev": Sort("expected_value", falling=True),
    "probability": Sort("middle_probability", falling=True),
    "middle_size": Sort("middle_size", falling=True),
}
_MIDDLE_STEPS = (0.0, -2.0, -10.0)  # below them: all


def _side_prices(table: Table, sides: Sequence[str]) -> tuple[Floats, Floats]:
    def spans() -> tuple[Floats, Floats]:
        every = np.stack([table.numbers(f"{side}.odds.american") for side in sides])
        return np.fmin.reduce(every), np.fmax.reduce(every)

    return table.kept("sides", spans)


_MIDDLE = Shape(
    "event_id", "market_type", ("event_name",), "odds_age_seconds",
    lambda table: _side_prices(table, ("side1", "side2")), None,
)  # fmt: skip


def _between(ask: Ask, books: frozenset[str] | None) -> tuple[Table | None, Longs]:
    """Middles that fit a request, in order."""
    query = ask.query
    if books is not None and not books:
        return None, np.empty(0, np.int64)
    least = query["min_ev"]
    step = next((step for step in _MIDDLE_STEPS if step <= least + EPSILON), None)
    found = opened(ask, books, min_middle_ev=step)
    table = found.table("middles", middle)
    kept = every(
        [
            keep(table, query, _MIDDLE, found.now),
            within(table, "expected_value", least, query.get("max_ev")),
            within(table, "middle_size", query["min_size"], None),
        ]
    )
    return table, arranged(table, kept, query["sort"], _MIDDLE_SORTS)


def middles(ask: Ask) -> Any:
    """The list of middles."""
    books, strange = asked(ask)
    table, places = _between(ask, books)
    rows = _paged(ask, places)
    echo = _echo(ask.query, "sport", "league", "sportsbook", "market", "live", "min_ev", "min_size", "sort")
    shown_rows = _localised(ask, table, rows)
    meta = told(ask, strange, source=_source(ask), last_update=moment(ask.board.now), filters=echo)
    return page(ask, shown_rows, len(rows), int(places.size), meta)


def _localised(ask: Ask, table: Table | None, rows: list[int]) -> list[Any]:
    """Rows with their links, for a state where one is asked for."""
    if table is None:
        return []
    state = ask.query["state"]
    if state is None:
        return list(table.shown(rows))
    return [_in_state(struct, state) for struct in table.structs(rows)]


def _in_state(row: Any, state: str) -> Any:
    """A row whose links lead to a state's sites."""
    changed: dict[str, Any] = {}
    for name in ("side1", "side2", "side3"):
        side = getattr(row, name, None)
        if isinstance(side, HoldSide):
            links = {book: catalog.localised(link, state) for book, link in side.deep_links.items()}
            changed[name] = msgspec.structs.replace(side, deep_links={b: link for b, link in links.items() if link})
        elif side is not None and side.deep_link is not None:
            changed[name] = msgspec.structs.replace(side, deep_link=catalog.localised(side.deep_link, state) or None)
    return msgspec.structs.replace(row, **changed)


def one_middle(ask: Ask) -> Any:
    """One middle by its id."""
    ident = ask.path["id"]
    if not _ID.fullmatch(ident):
        raise invalid(f"id of a middle must be 16 hexadecimal digits, got {shown(ident)}")
    books, strange = asked(ask)
    if books is None or books:
        for step in (_MIDDLE_STEPS[0], None):
            table = opened(ask, books, min_middle_ev=step).table("middles", middle)
            place = table.kept("ids", lambda t=table: {i: at for at, i in enumerate(t.column("id").to_list())})  # type: ignore[misc]
            if ident in place:
                return data(ask, _localised(ask, table, [place[ident]])[0], strange)
    raise unknown("middle", ident)


def summary(ask: Ask) -> Any:
    """Middles in numbers."""
    books, strange = asked(ask)
    table, places = _between(ask, books)
    return data(ask, _summed(table, places), strange)


def _summed(table: Table | None, places: Longs) -> MiddlesSummary:
    if table is None or not places.size:
        return MiddlesSummary(
            total=0, positive_ev_count=0, guaranteed_profit_count=0, player_prop_count=0, by_sport={}, by_market={},
            by_sportsbook={}, avg_middle_size=0.0, avg_probability=0.0, avg_ev=0.0, best_ev=None,
            has_key_numbers_count=0,
        )  # fmt: skip
    value = table.numbers("expected_value")[places]
    best = int(places[int(value.argmax())])
    books: dict[str, int] = {}
    for side in ("side1.book", "side2.book"):
        for book, n in table.coded(side).counts(places).items():
            ident = catalog.book(book).id
            books[ident] = books.get(ident, 0) + n
    keyed = table.kept("keyed", lambda: table.column("key_numbers").list.len().to_numpy() > 0)
    return MiddlesSummary(
        total=int(places.size),
        positive_ev_count=int((value > 0.0).sum()),
        guaranteed_profit_count=int(table.flags("is_guaranteed_profit")[places].sum()),
        player_prop_count=int(table.flags("is_player_prop")[places].sum()),
        by_sport=table.coded("sport").counts(places),
        by_market=table.coded("market_type").counts(places),
        by_sportsbook=dict(sorted(books.items(), key=lambda item: (-item[1], item[0]))),
        avg_middle_size=_mean(table.numbers("middle_size")[places]),
        avg_probability=exact(float(table.numbers("middle_probability")[places].mean()), 6),
        avg_ev=_mean(value),
        best_ev=BestEv(
            _most(value), table.column("sport")[best] or "", table.column("market_type")[best]
        ),
        has_key_numbers_count=int(keyed[places].sum()),
    )  # fmt: skip


# ---- low hold ----

_HOLD_SORTS = {
    "hold": Sort("hold_percentage"),
    "start_time": Sort("start_time"),
    "sport": Sort("sport"),
    "market": Sort("market_type"),
}
_HOLD_STEPS = (2.0, 5.0, 10.0, 25.0, 100.0)
_HOLD = Shape(
    "event_id", "market_type", ("event_name",), "oldest_odds_age_seconds",
    lambda table: _side_prices(table, ("side1", "side2", "side3")),
)  # fmt: skip


def holds(ask: Ask) -> Any:
    """The list of low holds."""
    query = ask.query
    books, strange = asked(ask)
    echo = _echo(query, "sport", "league", "sportsbook", "market", "live", "max_hold", "sort")
    meta = told(ask, strange, source=_source(ask), last_update=moment(ask.board.now), filters=echo)
    if books is not None and not books:
        return page(ask, [], 0, 0, meta)
    step = next(step for step in _HOLD_STEPS if step >= query["max_hold"])
    found = opened(ask, books, max_hold=step)
    table = found.table("low_hold", low_hold)
    kept = every(
        [
            keep(table, query, _HOLD, found.now),
            within(table, "hold_percentage", query["min_hold"], query["max_hold"]),
        ]
    )
    places = arranged(table, kept, query["sort"], _HOLD_SORTS)
    rows = _paged(ask, places)
    return page(ask, _localised(ask, table, rows), len(rows), int(places.size), meta)


# ---- the endpoints ----

_EV_PARAMS: tuple[Param, ...] = (
    *_COMMON,
    number("min_ev", "Least expected value in percent.", -100.0, 1000.0, default=0.0),
    number("max_ev", "Largest expected value in percent.", -100.0, 1000.0),
    number("min_market_width", "Least margin of the reference's market in percent."),
    number("max_market_width", "Largest margin of the reference's market in percent."),
    number("max_hold", "The same as max_market_width."),
    number("min_kelly", "Least Kelly fraction, 0 to 1."),
    number("max_kelly", "Largest Kelly fraction, 0 to 1."),
    number("min_confidence", "Least confidence score, 0 to 100."),
    number("max_confidence", "Largest confidence score, 0 to 100."),
    words("selection", "Selections, as their rows name them."),
    text("devig_book", "The book whose prices say what is fair."),
    choice("devig_method", "How its margin is removed.", tuple(DEVIG_METHODS), default="power"),
    choice("sort", "Order; - is falling.", tuple(_EV_SORTS), signed=True, default="-ev"),
    LIMIT, OFFSET,
)  # fmt: skip
_ARB_PARAMS: tuple[Param, ...] = (
    *_COMMON,
    number("min_profit", "Least profit in percent.", -99.0, 1000.0, default=0.5),
    choice("format", "JSON, or a file with comma-separated values.", ("json", "csv"), default="json"),
    choice("group", "best: only the most profitable one of each event.", ("best",)),
    choice("sort", "profit falls, the others rise; - turns it.", tuple(_ARB_SORTS), signed=True, default="profit"),
    LIMIT, OFFSET,
)  # fmt: skip
_MIDDLE_PARAMS: tuple[Param, ...] = (
    *(param for param in _COMMON if param is not _MAIN),
    number("min_ev", "Least expected value in percent.", -100.0, 1000.0, default=0.0),
    number("max_ev", "Largest expected value in percent.", -100.0, 1000.0),
    number("min_size", "Least distance of the two lines.", 0.0),
    _STATE,
    choice("sort", "The largest first; - turns the order.", tuple(_MIDDLE_SORTS), signed=True, default="quality"),
    LIMIT, OFFSET,
)  # fmt: skip
_HOLD_PARAMS: tuple[Param, ...] = (
    *_COMMON,
    number("max_hold", "Largest hold in percent.", 0.0, 100.0, default=2.0),
    number("min_hold", "Least hold in percent.", 0.0, 100.0),
    _STATE,
    choice("sort", "The smallest first; - turns the order.", tuple(_HOLD_SORTS), signed=True, default="hold"),
    LIMIT, OFFSET,
)  # fmt: skip

endpoints = (
    Endpoint(
        "/opportunities/ev", positive, "Prices that beat the fair probability", _TAG, EvPage, _EV_PARAMS,
        feature="ev", doc="One row for each book; the best first.",
    ),
    Endpoint(
        "/opportunities/arbitrage", sure, "Bets on every outcome that pay more than they cost", _TAG, ArbitragePage,
        _ARB_PARAMS, feature="arbitrage",
        doc="Above 10 percent nothing is shown. As CSV each row has two legs; an arbitrage of three takes two rows.",
    ),
    Endpoint(
        "/opportunities/middles", middles, "Pairs of lines that can both win", _TAG, MiddlePage, _MIDDLE_PARAMS,
        feature="middles",
    ),
    Endpoint(
        "/opportunities/middles/summary", summary, "Middles in numbers", _TAG, Data[MiddlesSummary], _MIDDLE_PARAMS,
        feature="middles",
    ),
    Endpoint(
        "/opportunities/middles/{id}", one_middle, "One middle", _TAG, Data[Middle],
        (SPORTSBOOK, ADD_SPORTSBOOK, _STATE), feature="middles",
    ),
    *(
        Endpoint(
            path, holds, "Markets whose best prices leave little", _TAG, LowHoldPage, _HOLD_PARAMS,
            feature="low_hold",
        )
        for path in ("/opportunities/low_hold", "/opportunities/low-hold")
    ),
)  # fmt: skip
