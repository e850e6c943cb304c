"""football-data.co.uk: seasons of results with opening and closing odds of many books.

Columns are recognised by pattern, since books change between seasons. `Max`, `Avg` and the old `Bb` columns are not
books; the average is read on request, as `market_average`. The files have no times of prices. Columns without a `C`
were collected on Friday afternoons for weekend games and on Tuesday afternoons for others: they count as seen at 15:00
UTC of that day, or three hours before the start if that is earlier. Closing prices count as seen a minute before the
start, as prices at or after it are not of the close. Kick-offs are in London time. Files before 2019/20 have none:
`Game.start` is None, and prices assume 15:00 UTC.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import isfinite
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from oddsengine.feeds.feed_names import league
from oddsengine.feeds.payload import FeedError, Game, Payload
from oddsengine.tables.casts import TIME

_SOURCE = "football-data.co.uk"
_BOOKS = {
    "1XB": "onexbet", "B365": "bet365", "BF": "betfair_sportsbook", "BFD": "betfred", "BFE": "betfair_exchange",
    "BMGM": "betmgm", "BS": "blue_square", "BV": "betvictor", "BW": "bwin", "CL": "coral", "GB": "gamebookers",
    "IW": "interwetten", "LB": "ladbrokes", "P": "pinnacle", "PS": "pinnacle", "SB": "sportingbet",
    "SJ": "stan_james", "SO": "sporting_odds", "SY": "stanleybet", "VC": "betvictor", "WH": "williamhill",
}  # fmt: skip
_RESULT = re.compile(r"(?P<book>[A-Za-z0-9]+?)(?P<side>[HDA])")
_TOTAL = re.compile(r"(?P<book>[A-Za-z0-9]+?)(?P<side>[<>])(?P<line>\d+\.\d+)")
_HANDICAP = re.compile(r"(?P<book>[A-Za-z0-9]+?)AH(?P<side>[HA])")
MARKET_AVERAGE = "market_average"
_AVERAGES = frozenset({"Avg", "BbAv"})
_NO_BOOKS = frozenset({"Max", "BbMx", *_AVERAGES})
_NAMES = {
    "league": ("Div", "League"), "country": ("Country",), "season": ("Season",), "date": ("Date",), "time": ("Time",),
    "home": ("HomeTeam", "Home", "HT"), "away": ("AwayTeam", "Away", "AT"), "home_goals": ("FTHG", "HG"),
    "away_goals": ("FTAG", "AG"), "result": ("FTR", "Res"), "half_home_goals": ("HTHG",), "half_away_goals": ("HTAG",),
}  # fmt: skip
CLOSE_M = 1  # minutes before the start at which closing prices count as seen
START_H = 15  # UTC, of a game without a kick-off
_SCORES = ("home_goals", "away_goals", "half_home_goals", "half_away_goals")
_MOST = 8 << 20
_LONGEST_HEADER = 16_384  # bytes
_RESULTS: dict[str, Any] = {
    "event_id": pl.String, "league": pl.String, "season": pl.String, "home_team": pl.String, "away_team": pl.String,
    "event_start_time": TIME, "date": pl.Date, **dict.fromkeys(_SCORES, pl.Int64),
}  # fmt: skip


class PriceColumn(NamedTuple):
    name: str
    book: str  # catalog id, or the file's code
    closing: bool
    market_type: str
    side: str  # home, draw, away, over, under
    line: float | None = None  # of a total
    lines: tuple[str, ...] = ()  # columns that may have the home handicap, best first


class SeasonFile(NamedTuple):
    """A parsed file. `quotes` are ordered by time."""

    games: tuple[Game, ...]
    quotes: pl.DataFrame  # fields of `ODDS_SCHEMA`, and `closing`
    results: pl.DataFrame  # one row per played game: goals, also at half time if the file has them
    refused: Counter[str]

    def moments(self) -> Iterator[tuple[datetime, pl.DataFrame]]:
        """Quotes grouped by time, in order; pass each group to `Engine.step`."""
        for (seen,), frame in self.quotes.group_by(["last_seen_at"], maintain_order=True):
            assert isinstance(seen, datetime)
            yield seen, frame

    def payloads(self) -> Iterator[Payload]:
        """The same as payloads, each with its games."""
        games = {game.id: game for game in self.games}
        for seen, frame in self.moments():
            about = [games[event] for event in frame["event_id"].unique(maintain_order=True)]
            yield Payload(about, frame.drop("closing").to_dicts(), moment=seen)


def read(data: bytes, *, average: bool = False) -> SeasonFile:
    """Parse a file of the main or the extra leagues, with `average` also the average of its books, which is no book.

    Raises `FeedError` if the data is not such a file.
    """
    header, lines = _lines(data)
    places = {name: at for at, name in reversed(list(enumerate(header)))}
    where = {field: next((places[name] for name in names if name in places), -1) for field, names in _NAMES.items()}
    if min(where["date"], where["home"], where["away"]) < 0:
        raise FeedError(f"not a file of {_SOURCE}: it has no columns for date, home and away")
    columns = [(places[column.name], column) for column in price_columns(header, average=average)]
    refused: Counter[str] = Counter()
    games: dict[str, Game] = {}
    quotes: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for cells in lines:
        fields = {field: cells[at].strip() if 0 <= at < len(cells) else "" for field, at in where.items()}
        day = _day(fields["date"])
        if day is None or not fields["home"] or not fields["away"]:
            refused["a line without date and teams"] += 1
            continue
        game = _game(fields, day)
        if game.id in games:
            refused["a game given twice"] += 1
            continue
        games[game.id] = game
        scores = {name: _whole(fields[name]) for name in _SCORES}
        if scores["home_goals"] is not None and scores["away_goals"] is not None:
            results.append(
                {
                    "event_id": game.id, "league": game.league, "season": fields["season"] or None,
                    "home_team": game.home, "away_team": game.away, "event_start_time": game.start, "date": day,
                    **scores,
                }
            )  # fmt: skip
        quotes += _quotes(game, day, columns, cells, places, refused)
    if not games:
        raise FeedError(f"not a file of {_SOURCE}: it has no valid line")
    prices = pl.DataFrame(quotes, schema=_FRAME).sort("last_seen_at", maintain_order=True)
    return SeasonFile(tuple(games.values()), prices, pl.DataFrame(results, schema=_RESULTS), refused)


def is_season(data: bytes) -> bool:
    """Whether the header of a CSV file is one of football-data.co.uk: a league, a date, both teams, and prices.

    Examples
    --------
    >>> is_season(b"Div,Date,HomeTeam,AwayTeam,FTHG,FTAG,B365H,B365D,B365A"), is_season(b"Date,Home,Away,Book,Odds")
    (True, False)
    """
    header = data[:_LONGEST_HEADER].splitlines()[:1]
    names = [name.strip() for name in b"".join(header).decode("utf-8-sig", "replace").split(",")]
    required = ("league", "date", "home", "away")
    return all(set(names) & set(_NAMES[field]) for field in required) and bool(price_columns(names))


def price_columns(header: list[str], *, average: bool = False) -> list[PriceColumn]:
    """Return the columns of a header that have prices of books, with `average` also those of the books' average.

    Examples
    --------
    >>> [(c.book, c.closing, c.side) for c in price_columns(["VCH", "VCD", "VCA", "FTHG", "PCAHH", "AHCh"])][2:]
    [('betvictor', False, 'away'), ('pinnacle', True, 'home')]
    """
    names = set(header)
    stems: dict[str, set[str]] = {}
    for name in header:
        if (match := _RESULT.fullmatch(name)) is not None:
            stems.setdefault(match["book"], set()).add(match["side"])
    whole = {stem for stem, sides in stems.items() if sides == {"H", "D", "A"}}
    out: list[PriceColumn] = []
    for name in dict.fromkeys(header):
        if (match := _RESULT.fullmatch(name)) is not None and match["book"] in whole:
            book, closing = _whose(match["book"], whole)
            side = {"H": "home", "D": "draw", "A": "away"}[match["side"]]
            column = PriceColumn(name, book, closing, "moneyline_3way", side)
        elif (match := _TOTAL.fullmatch(name)) is not None:
            book, closing = _whose(match["book"], _pairs(names, match["line"]))
            side = "over" if match["side"] == ">" else "under"
            column = PriceColumn(name, book, closing, "total_goals", side, float(match["line"]))
        elif (match := _HANDICAP.fullmatch(name)) is not None:
            code = match["book"]
            book, closing = _whose(code, {c.removesuffix("AHH") for c in names if c.endswith("AHH")})
            lines = (f"{code}AH", "AHCh") if closing else (f"{code}AH", "AHh", "BbAHh")
            side = "home" if match["side"] == "H" else "away"
            present = tuple(x for x in lines if x in names)
            column = PriceColumn(name, book, closing, "asian_handicap", side, None, present)
        else:
            continue
        if column.book not in _NO_BOOKS:
            out.append(column)
        elif average and column.book in _AVERAGES:
            out.append(column._replace(book=MARKET_AVERAGE))
    return out


def _pairs(names: set[str], line: str) -> set[str]:
    """Return the codes that have an over and an under of a line."""
    return {name.removesuffix(f">{line}") for name in names if name.endswith(f">{line}")}


def _whose(code: str, codes: set[str]) -> tuple[str, bool]:
    """Return the book, and whether the price is a closing one: ends in a `C` that is not part of the book's code."""
    stem = code[:-1]
    closing = (
        code.endswith("C")
        and bool(stem)
        and code not in _BOOKS
        and (stem in codes or stem in _BOOKS or stem in _NO_BOOKS)
    )
    code = stem if closing else code
    return _BOOKS.get(code, code), closing


def _lines(data: bytes) -> tuple[list[str], list[list[str]]]:
    """Return the header and the non-empty lines."""
    if len(data) > _MOST:
        raise FeedError(f"a file of {_SOURCE} has at most {_MOST:,} bytes, got {len(data):,}")
    if b"\0" in data:
        raise FeedError(f"not a file of {_SOURCE}: it contains NUL bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise FeedError(f"not a file of {_SOURCE}: {error}") from None
    if not rows:
        raise FeedError(f"not a file of {_SOURCE}: it is empty")
    return [name.strip() for name in rows[0]], rows[1:]


def _day(text: str) -> date | None:
    """Parse a date, dd/mm/yy or dd/mm/yyyy."""
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= 4 for part in parts):
        return None
    day, month, year = (int(part) for part in parts)
    if len(parts[2]) == 2:
        year += 2000 if year < 70 else 1900
    try:
        return date(year, month, day) if year >= 1900 else None
    except ValueError:
        return None


def _game(fields: Mapping[str, str], day: date) -> Game:
    """Return the game of a line; its id consists of league, date and teams."""
    code = fields["league"]
    where = league(" ".join(x for x in (fields["country"], code) if x), "soccer")
    game_id = f"{fields['country']}{code}/{day.isoformat()}/{fields['home']}/{fields['away']}"
    status = "ended" if fields["home_goals"] and fields["away_goals"] else ""
    return Game(game_id, "soccer", where, fields["home"], fields["away"], _start(fields["time"], day), status)


def _start(text: str, day: date) -> datetime | None:
    """Convert a London time of day to UTC."""
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?", text, re.ASCII)
    if match is None:
        return None
    return datetime.combine(day, time(int(match[1]), int(match[2])), ZoneInfo("Europe/London")).astimezone(UTC)


def _seen(start: datetime, day: date) -> tuple[datetime, datetime]:
    """Return the times at which a game's early and closing prices count as seen."""
    back = {0: 3, 1: 0, 2: 1, 3: 2, 4: 0, 5: 1, 6: 2}[day.weekday()]
    early = datetime.combine(day - timedelta(days=back), time(15), UTC)
    return min(early, start - timedelta(hours=3)), start - timedelta(minutes=CLOSE_M)


def _quotes(
    game: Game, day: date, columns: list[tuple[int, PriceColumn]], cells: list[str], places: Mapping[str, int],
    refused: Counter[str],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    start = game.start or datetime.combine(day, time(START_H), UTC)
    moments = _seen(start, day)
    chosen = {"home": game.home, "away": game.away, "draw": "Draw", "over": "Over", "under": "Under"}
    taken: set[tuple[Any, ...]] = set()
    for at, column in columns:
        text = cells[at].strip() if at < len(cells) else ""
        if not text:
            continue
        price = _number(text)
        if price is None or price <= 1.0:
            refused["an invalid price"] += 1
            continue
        line = column.line
        if column.market_type == "asian_handicap":
            lines = [_number(cells[places[name]]) for name in column.lines if places[name] < len(cells)]
            home = next((x for x in lines if x is not None), None)
            if home is None:
                refused["a handicap without its line"] += 1
                continue
            line = home if column.side == "home" else 0.0 - home
        key = (column.book, column.closing, column.market_type, column.side)
        if key in taken:  # Pinnacle has two codes
            continue
        taken.add(key)
        yield {
            "id": f"{game.id}/{column.name}", "sportsbook": column.book, "event_id": game.id, "sport": game.sport,
            "league": game.league, "home_team": game.home, "away_team": game.away, "market_type": column.market_type,
            "selection": chosen[column.side], "selection_type": column.side, "odds_decimal": price, "line": line,
            "event_start_time": start, "last_seen_at": moments[column.closing], "closing": column.closing,
        }  # fmt: skip


_FRAME: dict[str, Any] = {
    **dict.fromkeys(("id", "sportsbook", "event_id", "sport", "league", "home_team", "away_team"), pl.String),
    **dict.fromkeys(("market_type", "selection", "selection_type"), pl.String),
    **dict.fromkeys(("odds_decimal", "line"), pl.Float64),
    **dict.fromkeys(("event_start_time", "last_seen_at"), TIME),
    "closing": pl.Boolean,
}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _whole(text: str) -> int | None:
    value = _number(text)
    return int(value) if value is not None and value == int(value) and 0 <= value < 1000 else None
