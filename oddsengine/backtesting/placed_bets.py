"""Read bets that were placed elsewhere, and find their events in a history.

**Columns.** Those of an odds table, by their names or common ones (`oddsengine.tables.column_names`), and those of
`BET_COLUMNS`. A line at the end of a selection ("Over 2.5", "Lakers -3.5") is read if the bet has no other. Days are
ISO (2026-02-08), or with slashes if one of the column shows whether the day or the month is first.

**Events.** A bet is on the event with its id. Otherwise it is on the game of its teams, in either order, named by
`home_team` and `away_team`, or in the text of the event ("Celtics @ Lakers", "Arsenal v Chelsea"). Names are compared
as those of feeds are (`oddsengine.matching`). The game has to start within 12 hours of the bet's `event_start_time`, on
its `event_date` (the local day of the league, or the UTC one), or is the next one after the bet was placed. Starts
without a time of day are days.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from oddsengine import catalog
from oddsengine.board.facts import moments_of
from oddsengine.board.names import Names
from oddsengine.bounds import excerpt
from oddsengine.columns import NO_TIME, Bools, Floats
from oddsengine.identity.layout import BOOK_BITS, ON
from oddsengine.identity.raw_labels import RAW_LABEL
from oddsengine.identity.traits import book_fees
from oddsengine.live.engine import Engine
from oddsengine.matching import event_ids, name_likeness
from oddsengine.matching.known_games import Spelling, fit
from oddsengine.matching.matcher import THRESHOLD
from oddsengine.maths.odds import charged
from oddsengine.staking.stakes import bet_table
from oddsengine.tables.casts import CASTS, TIME, ordered_days, to_number
from oddsengine.tables.column_names import AMERICAN, ANY_FORMAT, DECIMAL, Columns, price_format, teams_of
from oddsengine.tables.files import read_rows, reason_of
from oddsengine.tables.frames import IntoFrame, to_polars
from oddsengine.tables.reshape import ENDS_IN_LINE
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, named

BET_COLUMNS: dict[str, str] = {
    "placed_at": "when the bet was placed; before the start if unknown",
    "event_date": "the day of the game",
    "event_name": "the game in words",
    "stake": "in money; 1 if there is no such column",
    "net_odds": "decimal odds after commission; by the catalog's commission if there is no such column",
    "closing_odds": "closing odds that somebody else recorded, in any format",
    "result": "how the book settled the bet",
}
"""Columns of bets beside those of an odds table."""

RESULTS: dict[str, tuple[float, tuple[str, ...]]] = {
    "won": (1.0, ("win", "w", "settled win", "winner")),
    "half won": (0.5, ("half win", "won half", "win half")),
    "push": (0.0, ("void", "pushed", "voided", "refund", "refunded", "cancelled", "canceled", "settled push", "p")),
    "half lost": (-0.5, ("half loss", "lost half", "loss half")),
    "lost": (-1.0, ("loss", "lose", "l", "settled loss", "loser")),
}
"""Results by name: the share of the stake that is won or lost, and other words for it."""

_OPEN = ("pending", "open", "unsettled")  # then the score counts
_CASHED_OUT = ("cashed out", "cash out", "cashout")
_WORDS = {word: name for name, (_, words) in RESULTS.items() for word in (name, *words)}
UNKNOWN = "unknown"
"""In place of a text that a bet does not have."""

_NEAR = timedelta(hours=12)
_TIE = 0.05  # of scores of two games that may both be meant
_OTHER = {"home": "away", "away": "home"}
_SIDES = {"home": "home", "1": "home", "draw": "draw", "x": "draw", "tie": "draw", "away": "away", "2": "away"}


class Bets(NamedTuple):
    """Bets in order."""

    given: pl.DataFrame  # as given
    table: pl.DataFrame  # an odds table with `placed_at`, `event_date`, `event_name`, `stake` and `net_odds`
    closing_odds: Floats  # decimal, as given; nan if not
    share: Floats  # of the stake that was won or lost, as given; nan if not
    cashed_out: Bools  # before the result, which therefore has no share


class Event(NamedTuple):
    """An event of a history."""

    id: str
    sport: str
    league: str
    home: str
    away: str
    start: datetime | None


# ---- reading ----


def read_bets(bets: IntoFrame | str | os.PathLike[str], columns: Columns | None) -> Bets:
    """Read and validate bets. Raises `OddsError` that names the bet, what came and what is allowed."""
    given = _given(bets)
    frame = named(given, columns, (*ODDS_SCHEMA, *BET_COLUMNS), "a table of bets")
    _require(frame, given.columns)
    number = pl.int_range(1, pl.len() + 1).cast(pl.String)
    texts = {name: frame[name].cast(pl.String).str.strip_chars() for name in frame.columns if name in _TEXTS}
    frame = frame.with_columns(pl.when(column != "").then(column).alias(name) for name, column in texts.items())
    blank = [pl.lit(None, pl.String).alias(name) for name in _TEXTS if name not in frame.columns]
    frame = _with_lines(frame.with_columns(blank)).with_columns(
        pl.col("sportsbook", "market_type", "selection").fill_null(UNKNOWN),
        event_id=pl.coalesce(
            "event_id", "event_name", pl.format("{} v {}", "home_team", "away_team"), pl.format("bet {}", number)
        ),
    )
    for name in ("event_start_time", "placed_at", "event_date"):
        column = frame[name] if name in frame.columns else pl.repeat(None, frame.height, dtype=TIME, eager=True)
        frame = frame.with_columns(_times(column.alias(name)))
    if frame["event_start_time"].drop_nulls().dt.time().eq(time()).all():  # days, not times
        frame = frame.with_columns(
            event_date=pl.coalesce("event_date", "event_start_time"), event_start_time=pl.lit(None, TIME)
        )
    table = pl.DataFrame(bet_table(frame)) if frame.height else pl.DataFrame(schema=ODDS_SCHEMA)
    stake = _numbers(frame, "stake", 0.0) if "stake" in frame.columns else np.ones(frame.height)
    share, cashed = _settled(frame)
    extra = {name: frame[name] for name in ("placed_at", "event_date", "event_name")}
    net = _net(table) if "net_odds" not in frame.columns else _numbers(frame, "net_odds", 1.0)
    return Bets(
        given,
        table.with_columns(**extra, stake=pl.Series(stake), net_odds=pl.Series(net)),
        _closing(frame),
        share,
        cashed,
    )


_TEXTS = (
    "sportsbook", "event_id", "event_name", "sport", "league", "home_team", "away_team", "market_type", "selection",
    "selection_type", "player_name", "team_side",
)  # fmt: skip


def _given(bets: IntoFrame | str | os.PathLike[str]) -> pl.DataFrame:
    if not isinstance(bets, str | os.PathLike):
        try:
            return to_polars(bets)
        except (TypeError, ValueError) as error:
            raise OddsError(f"not a table of bets: {error}") from None
    path = Path(bets)
    try:
        rows = read_rows(path.read_bytes(), path.suffix)
    except OSError as error:
        raise OddsError(f"cannot read {path}: {reason_of(error)}") from error
    except OddsError as error:
        raise OddsError(f"{path.name}: {error}") from None
    if rows.bad.height:
        row, reason = rows.bad.select("row", "reason").row(0)
        raise OddsError(f"{path.name}: {rows.place(row)} cannot be read: {reason}")
    return rows.frame


def _require(frame: pl.DataFrame, given: list[str]) -> None:
    has = set(frame.columns)
    missing = [name for name in ("market_type", "selection") if name not in has]
    if not has & {DECIMAL, AMERICAN}:
        missing.append(ANY_FORMAT)
    if not (has & {"event_id", "event_name"} or {"home_team", "away_team"} <= has):
        missing.append("event_id (nor home_team and away_team)")
    if missing:
        raise OddsError(
            f"not a table of bets: it has no {', no '.join(missing)} (its columns: {', '.join(given[:40]) or 'none'}); "
            f"a column of another name is given as columns={{its name: {missing[0].partition(' ')[0]!r}}}"
        )


def _with_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """Take lines from the ends of selections of bets without a line."""
    if "line" not in frame.columns:
        frame = frame.with_columns(line=pl.lit(None, pl.String))
    selection, line = pl.col("selection"), pl.col("line").cast(pl.String).str.strip_chars()
    side, total, name, spread = (selection.str.extract(ENDS_IN_LINE, group) for group in (1, 2, 3, 4))
    without = line.is_null() | (line == "")
    long = side.str.to_lowercase().replace({"o": "over", "u": "under"})
    return frame.with_columns(
        line=pl.when(without).then(pl.coalesce(total, spread)).otherwise(line),
        selection=pl.when(without).then(pl.coalesce(long, name, selection)).otherwise(selection),
    )


def _times(column: pl.Series) -> pl.Series:
    """Read times or days."""
    name = column.name
    if column.dtype in (pl.Categorical, pl.Enum, pl.Null):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
        try:
            column = ordered_days(column)
        except ValueError as error:
            row = next(at for at, text in enumerate(column) if text and str(error).startswith(repr(text)))
            raise OddsError(f"bet {row + 1}: {name} {error}; write days as 2026-02-08") from None
    cast, reason = CASTS[pl.Datetime]
    read = column if column.dtype == TIME else cast(column)
    lost = read.is_null() & column.is_not_null()
    if lost.any():
        row = int(lost.arg_max() or 0)
        raise OddsError(f"bet {row + 1}: {name} {excerpt(column[row])} is {reason}")
    return read.alias(name)


def _numbers(frame: pl.DataFrame, name: str, least: float) -> Floats:
    """Read a column of numbers, which may have the sign of a currency; there is one in every row."""
    text = pl.col(name).cast(pl.String).str.replace_all(r"[$€£\s]", "")
    text = text.str.replace_all(r"(\d),(\d{3})\b", "${1}${2}")
    read = frame.select(to_number(text)).to_series().fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero(~(np.isfinite(read) & (read >= least)))
    if wrong.size:
        raise OddsError(
            f"bet {wrong[0] + 1}: {name} must be a number of at least {least:g}, "
            f"got {excerpt(frame[name][int(wrong[0])])}"
        )
    return np.asarray(read, dtype=np.float64)


def _net(table: pl.DataFrame) -> Floats:
    """Return prices after the commission of their books in the catalog."""
    fees, live = book_fees(table["sportsbook"].to_list()), table["is_live"].to_numpy()
    return charged(table["odds_decimal"].to_numpy(), fees.commission, np.where(live, fees.live_fee, fees.fee))


def _closing(frame: pl.DataFrame) -> Floats:
    """Return the closing odds that bets have, as decimal ones; nan without."""
    if "closing_odds" not in frame.columns or not frame.height:
        return np.full(frame.height, np.nan)
    column = frame["closing_odds"]
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
    if column.null_count() == column.len():
        return np.full(frame.height, np.nan)
    at = column.is_not_null().arg_true().to_numpy()
    out = np.full(frame.height, np.nan)
    try:
        kind = price_format(column.to_frame().lazy(), "closing_odds")
        required = dict.fromkeys(("sportsbook", "event_id", "market_type", "selection"), "x")
        out[at] = bet_table(pl.DataFrame({kind: column[at], **required}), at)["odds_decimal"].to_numpy()
    except ValueError as error:
        raise OddsError(f"closing_odds: {error}") from None
    return out


def _settled(frame: pl.DataFrame) -> tuple[Floats, Bools]:
    """Return the shares of given results, nan without, and whether bets were cashed out."""
    share = np.full(frame.height, np.nan)
    cashed = np.zeros(frame.height, bool)
    texts = frame["result"].cast(pl.String).to_list() if "result" in frame.columns else []
    for at, text in enumerate(texts):
        word = " ".join(re.split(r"[\s_\-]+", (text or "").strip().lower()))
        if word in _WORDS:
            share[at] = RESULTS[_WORDS[word]][0]
        elif word in _CASHED_OUT:
            cashed[at] = True
        elif word and word not in _OPEN:
            allowed = ", ".join((*RESULTS, _CASHED_OUT[0], *_OPEN))
            raise OddsError(f"bet {at + 1}: result must be one of {allowed}, or empty, got {excerpt(text)}")
    return share, cashed


# ---- events ----


class HistoryEvents:
    """Collects the events of a history during a replay."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: Names | None = None
        self._start = np.empty(0, np.int64)  # by code
        self._events: dict[str, Event] = {}

    def follow(self) -> None:
        """Process a step."""
        with self._engine.still() as board:
            rows, known = board.rows, board.names
            if known is not self._names:
                self._collect()
                self._names = known
            more = len(known.events.values) - self._start.size
            if more > 0:
                self._start = np.concatenate((self._start, np.full(more, NO_TIME)))
            on = np.flatnonzero(rows.state[: rows.top] == ON)
            self._start[known.terms.event.values[rows.key[on] >> BOOK_BITS]] = rows.start[on]

    def take(self) -> list[Event]:
        """Return all events."""
        self._collect()
        return list(self._events.values())

    def _collect(self) -> None:
        """Keep the events of codes that are about to change."""
        if self._names is None:
            return
        at = [RAW_LABEL.index(name) for name in ("event_id", "sport", "league", "home_team", "away_team")]
        reported: dict[str, Counter[tuple[str, ...]]] = {}
        for raw_label in self._names.terms.raw_labels:
            ident, *about = (raw_label[place] or "" for place in at)
            reported.setdefault(ident, Counter())[tuple(about)] += 1
        texts = {ident: _usual(each) for ident, each in reported.items()}
        starts = moments_of(self._start).to_list()
        for code, ident in enumerate(self._names.events.values[: len(starts)]):
            sport, league, home, away = texts.get(ident, ("",) * 4)
            name = catalog.sport(sport).id if sport else ""
            before_start = self._events[ident].start if ident in self._events else None
            self._events[ident] = Event(ident, name, league, home, away, starts[code] or before_start)
        self._start = np.empty(0, np.int64)


def _usual(reported: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Return the most frequent of the texts that say most."""
    return max(reported, key=lambda texts: (sum(map(bool, texts)), reported[texts]))


_Scored = tuple[float, bool, Event]  # likeness of the teams, whether swapped, and the game


class FoundEvent(NamedTuple):
    """The event of a bet."""

    event: Event | None
    swapped: bool = False  # the bet names home and away the other way round
    missing: str | None = None  # why there is none


def find_events(bets: pl.DataFrame, events: Iterable[Event]) -> list[FoundEvent]:
    """Find the event of each bet."""
    index = _EventIndex(events)
    columns = ("event_id", "event_name", "home_team", "away_team", "event_start_time", "event_date", "placed_at")
    reported = bets.select(columns).rows()
    found = {key: index.find(*key) for key in dict.fromkeys(reported)}
    return [found[key] for key in reported]


class _EventIndex:
    """Events by id, by teams and by day."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_id = {event.id: event for event in events}
        self._by_pair: dict[Spelling, list[Event]] = {}
        self._by_day: dict[date | None, list[Event]] = {}
        for event in self._by_id.values():
            if event.home and event.away:
                self._by_pair.setdefault((event.home, event.away), []).append(event)
                self._by_day.setdefault(event.start and event.start.date(), []).append(event)

    def find(
        self, ident: str, name: str | None, home: str | None, away: str | None, start: datetime | None,
        day: datetime | None, placed: datetime | None,
    ) -> FoundEvent:  # fmt: skip
        """Find the event that a bet means by what it says."""
        pair = (home, away) if home and away else teams_of(name or "") or teams_of(ident)
        if ident in self._by_id:
            event = self._by_id[ident]
            teams = event.home and event.away
            return FoundEvent(event, swapped=pair is not None and bool(teams) and _likeness(event, pair)[1])
        if pair is None:
            return FoundEvent(None, missing="event not in the history")
        right = [each for each in self._alike(pair, start or day) if _is_then(each[2], start, day, placed)]
        if not right:
            other = any(_likeness(games[0], pair)[0] >= THRESHOLD for games in self._by_pair.values())
            why = "no game of these teams at that time in the history" if other else "teams not in the history"
            return FoundEvent(None, missing=why)
        best = max(score for score, _, _ in right)
        right = [each for each in right if each[0] >= best - _TIE]
        if len(right) > 1 and (one := _nearest(right, start, day, placed)) is not None:
            right = [one]
        if len(right) > 1:
            return FoundEvent(None, missing="several games of these teams: a time would tell which")
        return FoundEvent(right[0][2], right[0][1])

    def _alike(self, pair: Spelling, near: datetime | None) -> list[_Scored]:
        """Return the games of two teams, of all days or those around a time, with scores."""
        events: Iterable[Event] = self._by_id.values()
        if near is not None:
            days = [near.date() + timedelta(days=away) for away in (-1, 0, 1)]
            events = [event for day in (*days, None) for event in self._by_day.get(day, [])]
        scored = [(*_likeness(event, pair), event) for event in events if event.home and event.away]
        return [each for each in scored if each[0] >= THRESHOLD]


def _likeness(game: Event, pair: Spelling) -> tuple[float, bool]:
    """Score whether a game is of two teams, and whether home and away are swapped."""
    teams = game.home, game.away
    return (1.0, False) if teams == pair else fit((game.sport, game.league), teams, pair)


def _is_then(game: Event, start: datetime | None, day: datetime | None, placed: datetime | None) -> bool:
    """Whether a game is at the time that a bet names."""
    if game.start is None:
        return start is None and day is None
    if start is not None:
        return abs(game.start - start) <= _NEAR
    if day is not None:
        return day.date() in _days(game)
    return placed is None or game.start > placed


def _days(game: Event) -> tuple[date, ...]:
    """Return the days of a game: local and UTC."""
    assert game.start is not None
    return event_ids.day_of(game.league, game.start), game.start.date()


def _nearest(
    games: list[_Scored], start: datetime | None, day: datetime | None, placed: datetime | None
) -> _Scored | None:
    """Return the one of several games that a bet most likely means; None if there are several."""
    timed = [each for each in games if each[2].start is not None]
    if start is not None:
        return _least(timed, [abs(game.start - start) for _, _, game in timed if game.start is not None])
    if day is not None:
        local = [each for each in timed if _days(each[2])[0] == day.date()]
        return local[0] if len(local) == 1 else None
    if placed is not None:
        return _least(timed, [game.start - placed for _, _, game in timed if game.start is not None])
    return None


def _least(games: list[_Scored], gaps: list[timedelta]) -> _Scored | None:
    least = min(gaps)
    return games[gaps.index(least)] if gaps.count(least) == 1 else None


def on_events(bets: pl.DataFrame, found: Iterable[FoundEvent]) -> pl.DataFrame:
    """Return bets with the id, teams and start of their events, and their outcomes named by these teams."""
    rows = [
        row if of.event is None else {**row, **_moved(row, of.event, swap=of.swapped)}
        for row, of in zip(bets.iter_rows(named=True), found, strict=True)
    ]
    return pl.DataFrame(rows, schema=bets.schema) if rows else bets


def _moved(row: Mapping[str, Any], event: Event, *, swap: bool) -> dict[str, Any]:
    moved: dict[str, Any] = {
        "event_id": event.id,
        "sport": event.sport or row["sport"],
        "league": event.league or row["league"],
        "home_team": event.home or row["home_team"],
        "away_team": event.away or row["away_team"],
        "event_start_time": event.start or row["event_start_time"],
    }
    teams = {"home": event.home, "away": event.away}
    for name in ("selection_type", "team_side"):
        if swap and row[name] in _OTHER:
            moved[name] = _OTHER[row[name]]
    if row["player_name"]:
        return moved
    text = row["selection"]
    side = _SIDES.get(text.lower())
    if side is not None:
        side = _OTHER.get(side, side) if swap else side
        moved["selection"] = teams.get(side) or side.capitalize()
        moved.setdefault("selection_type", row["selection_type"] or side)
    elif event.home and event.away:
        home, away = (name_likeness.likeness(event.sport, event.league, text, team) for team in teams.values())
        if max(home, away) >= THRESHOLD > min(home, away):
            moved["selection"] = event.home if home > away else event.away
    return moved
