"""The prices of a history by event, market, outcome and book, as a user names them (`price_history`).

Books word a market and its outcomes differently; `described` says what each raw label means (`oddsengine.identity`). An
event or outcome is named by its id, or by words of its name in any order: "lakers", "celtics at lakers", "over 220.5".
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.backtesting.formats import Piece, Stored
from oddsengine.backtesting.replay import source
from oddsengine.board.quotes import checked
from oddsengine.board.rows import NO_PRICE
from oddsengine.columns import Ints
from oddsengine.detection import question as board
from oddsengine.detection.kinds import thresholds
from oddsengine.detection.question import ask, prepare
from oddsengine.detection.result_columns import number
from oddsengine.history.movements import changed_prices
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.tables.casts import TIME
from oddsengine.tape import Tape, engine_for
from oddsengine.tape.quote_rows import FRAME_SCHEMA, price_rows

PRICE_HISTORY_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "recorded_at": TIME,
    "event_id": pl.String,
    "event_name": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "event_start_time": TIME,
    "market_type": pl.String,  # as published: the same for all books
    "market_segment": pl.String,
    "player_name": pl.String,
    "team_side": pl.String,
    "selection": pl.String,  # as the book names it
    "selection_type": pl.String,  # the outcome: home, away, over and so on
    "line": pl.Float64,
    "sportsbook": pl.String,
    "odds_decimal": pl.Float64,
    "odds_american": pl.Float64,
    "is_live": pl.Boolean,
    "is_active": pl.Boolean,
}
"""Columns of `price_history`."""

_WORDED = (*RAW_LABEL, "line", "sportsbook", "is_live")
_MOST_LISTED = 20
_JOINING = {"at", "v", "vs"}


def price_history(
    history: Any,
    *,
    event: str | None = None,
    market: str | None = None,
    selection: str | None = None,
    line: float | None = None,
    sportsbook: str | Iterable[str] | None = None,
) -> pl.DataFrame:
    """Return the price changes of a history, one row per change, in order of time.

    A change is the first price of a row, other odds, a suspension or its end, or the start of live betting. The prices
    of the named event and books are held in memory.

    Parameters
    ----------
    history
        A tape or its folder, a frame, a lazy query, or the path of a table or archive, as for `backtest`.
    event
        Its id, or words of its name: "celtics at lakers". It has to be one event; None is all events.
    market
        A market type by any of its names ("moneyline", "totals", "1st half spread"); None is all.
    selection
        An outcome: "home", "over", a team, or words of both ("over 220.5"); None is all.
    line
        The line from the outcome's own side; None is all.
    sportsbook
        A book or several, by id, name or alias; None is all.

    Returns
    -------
    polars.DataFrame
        `PRICE_HISTORY_SCHEMA`: `recorded_at`, the time of the change, and the price after it. Market types, outcomes
        and teams are named alike for all books. It is a history itself.

    Raises
    ------
    ValueError
        If the history has nothing of that name, or several events; the message lists what it has.

    Examples
    --------
    >>> import oddsengine as oe
    >>> rows = [
    ...     {"event_id": "e1", "home_team": "Lakers", "away_team": "Celtics", "market_type": "moneyline",
    ...      "sportsbook": "fanduel", "selection": "Lakers", "odds_decimal": odds, "last_seen_at": f"2026-02-08 {at}"}
    ...     for at, odds in (("18:00", 1.9), ("18:05", 1.9), ("18:10", 1.95))
    ... ]
    >>> moves = oe.price_history(pl.DataFrame(rows), event="lakers", market="moneyline", selection="home")
    >>> moves.select(pl.col("recorded_at").dt.strftime("%H:%M"), "odds_decimal").rows()
    [('18:00', 1.9), ('18:10', 1.95)]
    """  # fmt: skip
    rows = with_market(described(rows_of(history, event, sportsbook)), market)
    return changes(with_line(with_selection(rows, selection), line)).drop("row")


def changes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the price changes among described rows, in `PRICE_HISTORY_SCHEMA` and with `row`."""
    return changed_prices(rows).select(*PRICE_HISTORY_SCHEMA, "row")


# ---- rows ----


def rows_of(history: Any, event: str | None = None, sportsbook: str | Iterable[str] | None = None) -> pl.DataFrame:
    """Return the quotes of a history, of one event or some books, in `FRAME_SCHEMA` and in order of time."""
    wanted = None if sportsbook is None else [sportsbook] if isinstance(sportsbook, str) else list(sportsbook)
    ids = None if wanted is None else {catalog.book(name).id for name in wanted}
    events = _Events(event)
    books: dict[str, bool] = {}
    held = [pl.DataFrame(schema=FRAME_SCHEMA)]
    for rows in _pieces(history, events):
        for name in rows["sportsbook"].unique().to_list():
            books.setdefault(name, ids is None or catalog.book(name).id in ids)
        held.append(rows.filter(pl.col("sportsbook").is_in([name for name, holds in books.items() if holds])))
    events.check()
    if wanted is not None and not any(books.values()):
        raise _absent("sportsbook", ", ".join(wanted), books)
    return events.one(pl.concat(held))


def _pieces(history: Any, events: "_Events") -> Iterator[pl.DataFrame]:
    """Yield the quotes of a history that are of events that may be meant."""
    past = source(history, 1e-6)
    if isinstance(past, Tape):
        for rows in price_rows(past, engine_for(past)):
            yield rows.filter(events.may_mean(rows))
        return
    pieces = past.pieces
    if isinstance(past.games, Stored) and not past.games.width:  # whose pieces would read all of it
        about = past.games.about()
        named = about.filter(events.may_mean(about))["event_id"].unique().to_list()
        pieces = past.games.only(named).pieces()
    for piece in pieces:
        quotes = piece.quotes
        may = events.may_mean(quotes)
        yield _checked(Piece(quotes.filter(may), piece.now[may.to_numpy()]))


def _checked(piece: Piece) -> pl.DataFrame:
    """Validate the quotes of a piece."""
    quotes = checked(piece.quotes)
    recorded = pl.Series(piece.now[quotes.number]).cast(TIME).alias("recorded_at")
    priced = pl.Series((quotes.flags & NO_PRICE) == 0)
    prices = [pl.when(priced).then(pl.col(name)).alias(name) for name in ("odds_decimal", "odds_american")]
    table = pl.DataFrame(quotes.table).with_columns(recorded, *prices)
    seen = pl.min_horizontal("last_seen_at", "recorded_at")  # the time of recording if it is unknown
    return table.with_columns(last_seen_at=seen).select(*FRAME_SCHEMA)


def with_ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Add suspended quotes where prices were no longer seen for longer than the guard `stale` allows.

    That is while their books were seen with other prices of the market, as in snapshots that do not list what is gone.
    """
    limit = pl.duration(seconds=catalog.thresholds().stale_prematch_s)
    at = pl.col("recorded_at")
    market = pl.struct("event_id", "market_type", "player_name", "team_side", "sportsbook").rank("dense")
    coded = rows.with_columns(market=market, following=at.shift(-1).over("row"))
    seen = coded.select("market", seen=at).unique().sort("seen")
    ends = coded.filter("is_active")
    for name, since in (("first", at + pl.duration(microseconds=1)), ("late", at + limit)):
        ends = (
            ends.with_columns(since=since)
            .sort("since")
            .join_asof(seen, left_on="since", right_on="seen", by="market", strategy="forward", check_sortedness=False)
            .rename({"seen": name})
            .drop("since")
        )
    removed = ends.filter(pl.col("following").is_null() | (pl.col("late") < pl.col("following"))).drop_nulls("late")
    suspended = removed.with_columns(pl.col("first").alias("recorded_at"), pl.lit(value=False).alias("is_active"))
    suspended = suspended.with_columns(last_seen_at=pl.max_horizontal("last_seen_at", "recorded_at"))
    return pl.concat([rows, suspended.select(rows.columns)]).sort("recorded_at", maintain_order=True)


def rows_of_event(table: pl.DataFrame, event: str | None) -> pl.DataFrame:
    """Return the rows of an odds table that are of an event, by its id or words of its name."""
    events = _Events(event)
    rows = table.filter(events.may_mean(table))
    events.check()
    return events.one(rows)


def newest(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of an odds table without those that the same book has repeated since."""
    seen = pl.col("last_seen_at")
    return rows.filter(seen.is_null() | (seen == seen.max().over(_WORDED)))


class _Events:
    """Which events a name means."""

    _FACTS = ("event_id", "sport", "league", "home_team", "away_team")

    def __init__(self, name: str | None) -> None:
        self._name, self._words = name, set() if name is None else _words(name) - _JOINING
        self._is_meant: dict[tuple[Any, ...], bool] = {}
        self._names: dict[str, str] = {}  # by id

    def may_mean(self, rows: pl.DataFrame) -> pl.Series:
        """Return for each row whether its event may be meant."""
        if self._name is None:
            return pl.repeat(value=True, n=rows.height, dtype=pl.Boolean, eager=True)
        columns = [name if name in rows.columns else pl.lit(None).alias(name) for name in self._FACTS]
        facts = rows.select(columns).cast(pl.String)
        distinct = facts.unique(maintain_order=True)
        meant = pl.Series("meant", [self._means(*fact) for fact in distinct.iter_rows()], dtype=pl.Boolean)
        joined = facts.join(
            distinct.with_columns(meant), on=self._FACTS, how="left", nulls_equal=True, maintain_order="left"
        )
        return joined["meant"]

    def _means(self, ident: str | None, sport: str | None, league: str | None, *teams: str | None) -> bool:
        key = (ident, sport, league, *teams)
        if key not in self._is_meant:
            home, away = teams
            full = [name and catalog.team_name(name, sport or "", league or "") for name in (away, home)]
            name = " @ ".join(team or "?" for team in full) if any(full) else ident or ""
            self._names.setdefault(ident or "", name)
            words = _words(" ".join(filter(None, (away, home, *full))))
            named = ident == self._name or bool(self._words and self._words <= words)
            self._is_meant[key] = ident is not None and named
        return self._is_meant[key]

    def check(self) -> None:
        """Raise unless a name means one event."""
        if self._name is None:
            return
        ids = dict.fromkeys(key[0] for key, meant in self._is_meant.items() if meant)
        if not ids:
            raise _absent("event", self._name, (f"{name} ({ident})" for ident, name in self._names.items()))
        if len(ids) > 1 and self._name not in ids:
            raise ambiguous("event", self._name, (f"{self._names[ident]} ({ident})" for ident in ids))

    def one(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the event whose id is the name, if there is one."""
        ids = {key[0] for key in self._is_meant}
        return rows.filter(event_id=self._name) if self._name in ids else rows


# ---- meaning ----

_READ = (
    "home_team", "away_team", "market_type", "market_segment", "team_side", "selection_type", "line", "player_name",
)  # fmt: skip


def described(rows: pl.DataFrame) -> pl.DataFrame:
    """Name events, market types, outcomes, lines and players alike for all books.

    Adds `event_name`, and `row`, which numbers the prices: a book can word one outcome in two ways, with two prices.
    Raw labels that cannot be read stay as they are.
    """
    distinct = rows.select(_WORDED).unique(maintain_order=True).with_row_index("row")
    if not distinct.height:
        return rows.with_columns(event_name=pl.lit(None, pl.String), row=pl.lit(None, pl.UInt32))
    named = distinct.join(_meanings(distinct), on="row", how="left", maintain_order="left", suffix="_read")
    player = pl.col("player_name").drop_nulls().first().over("event_id", "player_name_read")
    named = named.with_columns(
        row=pl.col("row").min().over(_WORDED[:-1]),  # live or not
        player_name_read=pl.when(pl.col("player_name_read").is_not_null()).then(
            pl.coalesce(player, "player_name_read")
        ),
    )
    texts = named.select("market_type", "sport", "stat_category", "market_segment").fill_null("")
    published = [catalog.published_name(*text) for text in texts.iter_rows()]
    named = named.with_columns(market_type=pl.Series(published, dtype=pl.String)).select(
        *(pl.coalesce(f"{name}_read", name).alias(name) for name in _READ),
        event_name=pl.coalesce("event_name", "event_id"),
        row="row",
    )
    code = rows.select(_WORDED).join(distinct, on=_WORDED, how="left", nulls_equal=True, maintain_order="left")["row"]
    return rows.drop("row", strict=False).hstack(named[code].drop(_READ)).with_columns(named[code].select(_READ))


def _meanings(distinct: pl.DataFrame) -> pl.DataFrame:
    """Return what raw labels mean, by `row`; those that cannot be read are left out."""
    prepared = prepare(distinct.drop("row").with_columns(odds_decimal=pl.lit(2.0)), [])
    question = ask(prepared, None, None, "multiplicative", None, thresholds())
    groups = question.prices.groups
    at: Ints = np.arange(groups.row.size, dtype=np.int32)
    facts = board.market_facts(question, at, question.facts(at))
    subjects = [
        board.subject(prepared.identity, code) for code in groups.subject[groups.ladder[groups.market]].tolist()
    ]
    names = ("event_name", "home_team", "away_team", "market_type", "market_segment", "team_side")
    return pl.DataFrame(
        {
            "row": prepared.table["row"].gather(groups.row),
            **{name: facts[name] for name in names},
            "selection_type": board.sides(question, at),
            "line": board.row_lines(question, at),
            "player_name": pl.Series(subjects, dtype=pl.String).replace(["", "home", "away"], None),
        }
    )


# ---- choices ----


def with_market(rows: pl.DataFrame, market: str | None) -> pl.DataFrame:
    """Return the rows of a market type by any of its names."""
    if market is None:
        return rows
    facts = ("market_type", "sport", "line", "team_side")
    distinct = rows.select(facts).unique(maintain_order=True)
    meant = [
        catalog.is_market(market, kind, catalog.sport(sport or "").id if sport else "", "", line, side or "")
        for kind, sport, line, side in distinct.iter_rows()
    ]
    chosen = distinct.filter(pl.Series(meant, dtype=pl.Boolean))
    if not chosen.height:
        raise _absent("market", market, distinct["market_type"].to_list())
    return rows.join(chosen, on=facts, how="semi", nulls_equal=True, maintain_order="left")


def with_selection(rows: pl.DataFrame, selection: str | None) -> pl.DataFrame:
    """Return the rows of outcomes that have all words of a name."""
    if selection is None:
        return rows
    facts = ("home_team", "away_team", "selection", "selection_type", "team_side", "player_name", "line")
    distinct = rows.select(facts).unique(maintain_order=True)
    wanted = _words(selection)
    meant = [bool(wanted) and wanted <= _words(" ".join(_texts(*texts))) for texts in distinct.iter_rows()]
    chosen = distinct.filter(pl.Series(meant, dtype=pl.Boolean))
    if not chosen.height:
        raise _absent("selection", selection, outcomes(rows))
    return rows.join(chosen, on=facts, how="semi", nulls_equal=True, maintain_order="left")


def _texts(
    home: str | None, away: str | None, selection: str, outcome: str | None, side: str | None, player: str | None,
    line: float | None,
) -> Iterator[str]:  # fmt: skip
    """Yield the texts that name an outcome."""
    teams = {"home": home, "away": away}
    words = (selection, outcome, player, side, teams.get(outcome or ""), teams.get(side or ""))
    yield from filter(None, words)
    if line is not None:
        yield number(line)


def with_line(rows: pl.DataFrame, line: float | None) -> pl.DataFrame:
    """Return the rows of a line."""
    if line is None:
        return rows
    chosen = rows.filter((pl.col("line") - line).abs() < 1e-9)
    if not chosen.height:
        raise _absent("line", number(line), map(number, rows["line"].drop_nulls().unique().sort()))
    return chosen


def outcomes(rows: pl.DataFrame) -> list[str]:
    """Names of the outcomes of rows, for errors."""
    who = pl.coalesce("player_name", "team_side")
    team = pl.coalesce(
        pl.when(selection_type="home").then("home_team"), pl.when(selection_type="away").then("away_team"),
        "selection_type", "selection",
    )  # fmt: skip
    return rows.select(pl.concat_str(who, team, separator=" ", ignore_nulls=True)).to_series().to_list()


def _words(text: str) -> set[str]:
    return set(catalog.normalise(text).split())


def _absent(what: str, name: str, there_is: Iterable[str]) -> ValueError:
    return ValueError(f"the prices have no {what} {name!r}; they have {listed(there_is)}")


def ambiguous(what: str, name: str | None, meant: Iterable[str]) -> ValueError:
    """Return the error for a name that can be several, or for several without a name."""
    start = f"the prices have several {what}s" if name is None else f"{what} {name!r} can be several"
    return ValueError(f"{start}: {listed(meant)}")


def listed(names: Iterable[str]) -> str:
    """List distinct names, and the number of those beyond a few."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - _MOST_LISTED} more" if len(every) > _MOST_LISTED else ""
    return (", ".join(every[:_MOST_LISTED]) or "none") + more
