"""Boards for the tests: lists of rows, mostly fair prices, with the hazards that the guards exist for.

`random_board` makes one from a seed; `boards` lets hypothesis choose seed, size and hazards; `frame` turns
rows into a polars frame. Times are integer microseconds in the rows.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import strategies as st
from support.hazards import HAZARDS, NOW, SECOND, Row

from oddsengine import catalog

COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "sportsbook": pl.String,
    "event_id": pl.String,
    "sport": pl.String,
    "league": pl.String,
    "home_team": pl.String,
    "away_team": pl.String,
    "market_type": pl.String,
    "market_segment": pl.String,
    "selection": pl.String,
    "selection_type": pl.String,
    "odds_american": pl.Float64,
    "odds_decimal": pl.Float64,
    "line": pl.Float64,
    "event_start_time": pl.Datetime("us", "UTC"),
    "is_live": pl.Boolean,
    "last_seen_at": pl.Datetime("us", "UTC"),
    "odds_changed_at": pl.Datetime("us", "UTC"),
    "is_active": pl.Boolean,
    "player_name": pl.String,
    "team_side": pl.String,
    "flap": pl.Boolean,
    "confirmed": pl.Boolean,
}

BOOKS = (
    "pinnacle", "circa", "betonline", "betfair_exchange", "novig", "kalshi", "polymarket_mid", "matchbook",
    "betrivers", "unibet", "leovegas", "betsson", "nordicbet", "draftkings", "fanduel", "betmgm", "caesars",
    "bet365", "prizepicks", "corner_shop", "zebra_bets",
)  # fmt: skip


@dataclass(frozen=True)
class Sport:
    """How a sport's games come out, and what its markets are called."""

    sport: str
    league: str
    teams: tuple[str, ...]
    spread: tuple[str, ...]
    total: tuple[str, ...]
    total_mean: float
    spread_sd: float
    total_sd: float
    step: float
    draws: bool = False
    props: tuple[tuple[str, float], ...] = ()


SPORTS = (
    Sport(
        "basketball", "nba",
        ("Los Angeles Lakers", "Boston Celtics", "New York Knicks", "Iowa Hawkeyes", "Ohio State Buckeyes"),
        ("point_spread",), ("total_points",), 221.0, 12.0, 17.0, 1.0,
        props=(("player_points", 22.5), ("player_rebounds", 7.5)),
    ),
    Sport(
        "soccer", "serie_a",
        ("Torino", "Atlético Madrid", "Paris Saint-Germain", "Beşiktaş", "1. FC Köln"),
        ("asian_handicap", "point_spread"), ("total_goals", "asian_total_goals"), 2.6, 1.6, 1.6, 0.25,
        draws=True, props=(("anytime_goal_scorer", 0.5),),
    ),
    Sport(
        "baseball", "mlb", ("St. Louis Cardinals", "Chicago Cubs", "Boston Red Sox", "Seattle Mariners"),
        ("run_line",), ("total_runs",), 8.6, 4.2, 4.4, 0.5,
    ),
    Sport(
        "hockey", "nhl", ("Montréal Canadiens", "St. Louis Blues", "Toronto Maple Leafs", "Utah Mammoth"),
        ("puck_line",), ("total_goals",), 6.1, 2.4, 2.4, 0.5,
    ),
)  # fmt: skip

PLAYERS = (
    "Nikola Jokić", "LeBron James", "Jayson Tatum", "Luka Dončić", "Stephen Curry", "Dennis Schröder",
    "Bam Adebayo",
)  # fmt: skip


def _upper(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def over_prob(line: float, mean: float, sd: float) -> float:
    """Two-way chance of over a line, pushes left out; quarter lines are half of each neighbour."""
    if abs(line * 4.0 % 2.0 - 1.0) < 1e-9:
        return 0.5 * (over_prob(line - 0.25, mean, sd) + over_prob(line + 0.25, mean, sd))
    if abs(line % 1.0 - 0.5) < 1e-9:
        return _upper((line - mean) / sd)
    over, under = _upper((line + 0.5 - mean) / sd), 1.0 - _upper((line - 0.5 - mean) / sd)
    return over / (over + under)


@dataclass
class _Event:
    """One game under construction: what is true of it, and its rows so far."""

    rng: random.Random
    sport: Sport
    event_id: str
    home: str
    away: str
    live: bool
    start: int
    mean: float
    total: float
    rows: list[Row]

    def offer(
        self,
        book: str,
        market: str,
        sides: Sequence[tuple[str, str, float | None]],
        probs: Sequence[float],
        **extra: Any,
    ) -> None:
        """One book's prices of one market: fair, plus noise, plus margin, rounded as books round."""
        rng = self.rng
        margin = rng.choice((0.004, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08)) + (0.03 if len(sides) > 2 else 0.0)
        noise = rng.choice((0.0, 0.02, 0.05, 0.08))
        tilt = rng.uniform(-noise, noise)
        seen = NOW - rng.randrange(0, 50) * SECOND
        if self.live:
            seen = NOW - rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 14, 25, 40)) * SECOND
        for (selection, kind, line), prob in zip(sides, probs, strict=True):
            p = min(0.97, max(0.01, prob))
            p = 1.0 / (1.0 + (1.0 - p) / p * math.exp(tilt))
            tilt = -tilt
            odds = max(1.01, 1.0 / min(0.99, p * (1.0 + margin)))
            american: float | None = None
            decimal: float | None = round(odds, rng.choice((2, 2, 3)))
            if rng.random() < 0.2:
                american = float(round((odds - 1.0) * 100) if odds >= 2.0 else round(-100.0 / (odds - 1.0)))
                decimal = None
                if abs(american) < 100.0:
                    american = -100.0
            elif rng.random() < 0.2 and decimal is not None:
                exact = (decimal - 1.0) * 100.0 if decimal >= 2.0 else -100.0 / (decimal - 1.0)
                american = float(round(exact))
            self.rows.append(
                {
                    "sportsbook": book,
                    "event_id": self.event_id,
                    "sport": self.sport.sport,
                    "league": self.sport.league,
                    "home_team": self.home,
                    "away_team": self.away,
                    "market_type": market,
                    "market_segment": None,
                    "selection": selection,
                    "selection_type": kind if rng.random() < 0.9 else None,
                    "odds_american": american,
                    "odds_decimal": decimal,
                    "line": line,
                    "event_start_time": self.start,
                    "is_live": self.live,
                    "last_seen_at": seen if seen is None or rng.random() < 0.8 else seen - rng.randrange(3) * SECOND,
                    "odds_changed_at": None,
                    "is_active": True,
                    "player_name": None,
                    "team_side": None,
                    "flap": False,
                    "confirmed": False,
                    **extra,
                }
            )


def _moneyline(event: _Event, book: str) -> None:
    rng, sport = event.rng, event.sport
    level = 0.26 if sport.draws else 0.0
    home = _upper(-event.mean / sport.spread_sd) * (1.0 - level)
    sides: list[tuple[str, str, float | None]] = [(event.home, "home", None), (event.away, "away", None)]
    probs = [home, 1.0 - level - home]
    quoted = rng.random()
    if (sport.draws and quoted < 0.9) or (not sport.draws and quoted < 0.1):
        sides.insert(1, (rng.choice(("Draw", "Tie", "X", "draw")), "draw", None))
        probs.insert(1, max(level, 0.05))
    period = "1st_half_" if rng.random() < 0.08 else ""
    event.offer(book, f"{period}moneyline", sides, probs)


def _spread(event: _Event, book: str, lines: Iterable[float], market: str) -> None:
    for line in lines:
        home = over_prob(-line, event.mean, event.sport.spread_sd)
        shown = event.rng.random() < 0.3
        sides: list[tuple[str, str, float | None]] = [
            (f"{event.home} {line:+g}" if shown else event.home, "home", line),
            (f"{event.away} {-line:+g}" if shown else event.away, "away", -line),
        ]
        event.offer(book, market, sides, [home, 1.0 - home])


def _total(event: _Event, book: str, lines: Iterable[float], market: str) -> None:
    for line in lines:
        over = over_prob(line, event.total, event.sport.total_sd)
        named = event.rng.choice((f" {line:g}", "", ""))
        event.offer(
            book,
            market,
            [(f"Over{named}", "over", line), (f"Under{named}", "under", line)],
            [over, 1.0 - over],
        )


def _team_totals(event: _Event, book: str, lines: Iterable[float]) -> None:
    sport, style = event.sport, event.rng.randrange(3)
    for side, name in (("home", event.home), ("away", event.away)):
        mean = (event.total + (event.mean if side == "home" else -event.mean)) / 2.0
        for line in lines:
            over = over_prob(line, mean, sport.total_sd * 0.7)
            sides: list[tuple[str, str, float | None]] = [
                (f"{name} {word.title()} {line:g}" if style == 0 else word.title(),
                 f"{side}_{word}" if style == 1 else word, line)
                for word in ("over", "under")
            ]  # fmt: skip
            event.offer(book, "team_total", sides, [over, 1.0 - over], team_side=side if style == 2 else None)


def _props(event: _Event, book: str, count: int) -> None:
    for market, mean in event.sport.props:
        for at, player in enumerate(PLAYERS[:count]):
            if market == "anytime_goal_scorer":
                chance = 0.15 + 0.05 * at
                event.offer(book, market, [(player, "yes", None)], [chance], player_name=player)
                continue
            line = mean + at % 3
            over = 0.5 + 0.02 * (at % 3 - 1)
            named = event.rng.random() < 0.5
            sides: list[tuple[str, str, float | None]] = [
                (f"{player} Over {line:g}" if named else "Over", "over", line),
                (f"{player} Under {line:g}" if named else "Under", "under", line),
            ]
            event.offer(book, market, sides, [over, 1.0 - over], player_name=None if named else player)


def _others(event: _Event, book: str) -> None:
    """A market that is only served, a spread under another name, and a contract that says yes or no."""
    texts = ("Home or Draw", "Draw or Away", "Home or Away")
    double = [(text, text.lower().replace(" or ", "_"), None) for text in texts]
    event.offer(book, "double_chance", double, [0.66, 0.66, 0.68])
    if not event.sport.draws:
        return
    home = over_prob(0.0, event.mean, event.sport.spread_sd)
    event.offer(book, "draw_no_bet", [(event.home, "home", None), (event.away, "away", None)], [home, 1.0 - home])
    kinds = event.rng.choice((("yes", "no"), ("home", "away")))
    event.offer(book, "both_teams_to_score", [("Yes", kinds[0], None), ("No", kinds[1], None)], [0.54, 0.46])
    conceded = over_prob(0.5, (event.total - event.mean) / 2.0, event.sport.total_sd * 0.7)
    event.offer(book, "home_clean_sheet", [("Yes", "yes", None), ("No", "no", None)], [1.0 - conceded, conceded])
    # The lay of the draw: an exchange has the other side too, another book has it in the three-way market.
    lay = [("Yes", "yes", None), ("No", "no", None)][event.rng.randrange(2) :]
    event.offer(book, "draw", lay, [0.26, 0.74][-len(lay) :])


def _lines(rng: random.Random, centre: float, step: float) -> list[float]:
    """One line or a ladder of them around the centre; some are whole or quarter lines."""
    base = math.floor(centre) + 0.5
    unit = rng.choice((step, step, 1.0)) if step < 1.0 else rng.choice((0.5, 1.0))
    count = rng.choice((1, 1, 2, 3, 5))
    return [base + unit * (at - count // 2) for at in range(count)]


def _event(rng: random.Random, at: int, books: Sequence[str], markets: Sequence[str]) -> _Event:
    sport = rng.choice(SPORTS)
    home, away = rng.sample(sport.teams, 2)
    live = rng.random() < 0.35
    start = NOW + (-3600 if live else rng.choice((600, 7200, 86400))) * SECOND
    mean = rng.choice((-0.4, 0.1, 0.3, 0.6)) * sport.spread_sd
    total = sport.total_mean * rng.choice((0.95, 1.0, 1.04))
    event = _Event(rng, sport, f"{sport.league}_{at}", home, away, live, start, mean, total, [])
    for book in books:
        if "moneyline" in markets:
            _moneyline(event, book)
        if "spread" in markets:
            _spread(event, book, _lines(rng, -mean, sport.step), rng.choice(sport.spread))
        if "total" in markets:
            _total(event, book, _lines(rng, total, sport.step), rng.choice(sport.total))
        if "team_total" in markets and rng.random() < 0.7:
            _team_totals(event, book, _lines(rng, total / 2.0, max(0.5, sport.step)))
        if "props" in markets and rng.random() < 0.8:
            _props(event, book, rng.choice((1, 2, 6, 7)))
        if "others" in markets and rng.random() < 0.5:
            _others(event, book)
    return event


MARKETS = ("moneyline", "spread", "total", "team_total", "props", "others")


def build(
    seed: int,
    n_events: int,
    n_books: int,
    markets: Sequence[str] = MARKETS,
    hazards: Sequence[str] = tuple(HAZARDS),
) -> list[Row]:
    """A board from a seed. The hazards strike one event each, in the order given."""
    rng = random.Random(seed)
    books = ["pinnacle", *rng.sample(BOOKS[1:], n_books - 1)] if rng.random() < 0.8 else rng.sample(BOOKS, n_books)
    events = [_event(rng, at, books, markets) for at in range(n_events)]
    for hazard in hazards:
        rows = rng.choice(events).rows
        if rows:
            HAZARDS[hazard](rng, rows)
    rows = [row for event in events for row in event.rows]
    rng.shuffle(rows)
    return rows


def random_board(seed: int, n_events: int, hazards: int = 4) -> list[Row]:
    """A larger board from a seed: all kinds of markets, up to 12 books, some hazards per event."""
    rng = random.Random(seed)
    chosen = [name for _ in range(n_events) for name in rng.sample(sorted(HAZARDS), hazards)]
    return build(seed, n_events, rng.randint(4, 12), MARKETS, chosen)


@st.composite
def boards(draw: st.DrawFn) -> list[Row]:
    """Small boards: one to three events, two to seven books, a few hazards."""
    return build(
        seed=draw(st.integers(0, 2**32 - 1)),
        n_events=draw(st.integers(1, 3)),
        n_books=draw(st.integers(2, 7)),
        markets=draw(st.lists(st.sampled_from(MARKETS), min_size=1, max_size=4, unique=True)),
        hazards=draw(st.lists(st.sampled_from(sorted(HAZARDS)), max_size=5)),
    )


def meant(given: Any, books: Iterable[str]) -> Any:
    """A caller's word about books without those that neither a board nor the catalog has: they are refused."""
    names = {*books, *catalog.books()}
    if isinstance(given, Mapping):
        return {name: value for name, value in given.items() if name in names}
    return None if given is None else sorted(set(given) & names, key=list(given).index)


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as a polars frame with the columns of an odds table."""
    data = {name: [row.get(name) for row in rows] for name in COLUMNS}
    schema = {name: pl.Int64 if isinstance(kind, pl.Datetime) else kind for name, kind in COLUMNS.items()}
    table = pl.DataFrame(data, schema=schema)
    times = [name for name, kind in COLUMNS.items() if isinstance(kind, pl.Datetime)]
    return table.with_columns(pl.from_epoch(name, time_unit="us").dt.replace_time_zone("UTC") for name in times).select(
        list(COLUMNS)
    )


def unnumbered(found: pl.DataFrame) -> pl.DataFrame:
    """A result without the positions of its prices in the input: a live board has none."""
    return found.select(
        _unnumbered(pl.col(name), dtype).alias(name) for name, dtype in found.schema.items() if name != "row"
    )


def _unnumbered(column: pl.Expr, dtype: Any) -> pl.Expr:
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        return column.list.eval(_unnumbered(pl.element(), dtype.inner))
    if isinstance(dtype, pl.Struct):
        fields = [column.struct.field(field.name) for field in dtype.fields if field.name not in ("row", "rows")]
        return pl.when(column.is_not_null()).then(pl.struct(fields))
    return column
