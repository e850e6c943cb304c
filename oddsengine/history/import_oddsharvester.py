"""Import OddsHarvester's files: JSON or CSV with a row per game, as `oddsengine.tables.nested` reads them.

A row that was collected before its game has prices of that time. One that was collected long after it has the last
prices before the start, which count as the close, and the final score. What was collected in between may be in play,
and is left out, and so is a link under which a file has two games. Odds histories (`--odds-history`) have the time of
each change in the time zone of the browser, and with the year in which it ran: the year is that nearest to the game.
The prices that stood are written every `SAMPLED`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.feeds.feed_names import league
from oddsengine.feeds.football_data import CLOSE_M
from oddsengine.history.import_files import HistoryFileError, RecordedFile
from oddsengine.history.import_step import YEARS, ImportStep
from oddsengine.matching.price_ids import Price, price_of
from oddsengine.tables.files import Rows, odds_table, read_rows
from oddsengine.tables.nested import HISTORY
from oddsengine.tables.schema import OddsError, OddsTable

SAMPLED = timedelta(minutes=30)
_SPORTS = {
    "football": "soccer", "tennis": "tennis", "basketball": "basketball", "rugby-league": "rugby_league",
    "rugby-union": "rugby_union", "hockey": "hockey", "ice-hockey": "hockey", "baseball": "baseball",
    "american-football": "football", "handball": "handball", "volleyball": "volleyball", "cricket": "cricket",
}  # fmt: skip
"""Our sports, by the first part of a link."""
_OVER = timedelta(hours=12)  # after the start, a game is over; and of cricket:
_OVER_CRICKET = timedelta(days=6)
_HALVES = {"soccer": 2, "handball": 2, "rugby_union": 2, "rugby_league": 2, "hockey": 3}
"""Parts of a game after which some markets end, although its final score may have overtime."""
_WITH_OVERTIME = ("basketball", "football", "baseball")  # sports whose final score settles all markets
_PLACES = 2  # parts of a path after the sport: country and league
_MOVED = timedelta(days=1)  # by which the start of a game may differ between rows
_TWICE = "a row of a link that has two games, as pages of two teams can"
_SAME = 0.006  # by which a price of a history, which may be a fraction, differs from the same price in the table
_SCORE = re.compile(r"(\d+):(\d+)")


class _Game(NamedTuple):
    """What a row of a file says of a game beside its prices."""

    start: datetime
    collected: datetime
    event: str
    sport: str
    league: str | None
    result: tuple[int, int] | None
    why: str  # it is left out; empty if it is not


class _Change(NamedTuple):
    """A price from an odds history."""

    at: datetime
    row: dict[str, Any]


def read(files: list[RecordedFile], step: ImportStep, timezone: str | None) -> None:
    """Read all files, one after the other."""
    zone = None if timezone is None else _zone(timezone)
    files = [file for file in files if step.belongs(file, file.head())]
    starts: dict[str, tuple[datetime, datetime]] = {}
    for file in files:
        for game in _parsed(file, step)[1].values():
            if game.why:
                continue
            first, last = starts.get(game.event, (game.start, game.start))
            starts[game.event] = min(first, game.start), max(last, game.start)
    twice = {event for event, (first, last) in starts.items() if last - first > _MOVED}
    for file in files:
        _read(file, step, zone, twice)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise HistoryFileError(f"timezone must be a name such as Europe/Paris or UTC, got {excerpt(name)}") from None


def _parsed(file: RecordedFile, step: ImportStep | None) -> tuple[Rows, dict[int, _Game]]:
    """The rows of a file, and what they say of their games."""
    with file.open() as opened:
        if step is not None:
            step.reading(opened)
        data = opened.read()
    try:
        rows = read_rows(data, file.suffix)
    except OddsError as error:
        raise HistoryFileError(f"{file.name}: {error}") from None
    return rows, {at: _game(row) for at, row in enumerate(rows.frame.iter_rows(named=True))}


def _read(file: RecordedFile, step: ImportStep, zone: ZoneInfo | None, twice: set[str]) -> None:
    name = file.name
    rows, games = _parsed(file, None)
    games |= {at: game._replace(why=_TWICE) for at, game in games.items() if game.event in twice and not game.why}
    try:
        table = odds_table(_named(rows, games), None)
    except (OddsError, pl.exceptions.PolarsError) as error:
        raise HistoryFileError(f"{name}: {error}") from None
    for reason, n in table.rejected.group_by("reason").len().iter_rows():
        step.left_out.add(reason, name, n)
    for at, game in games.items():
        if game.why:
            step.left_out.add(game.why, f"{name}, {rows.place(at)}")
        elif game.result is not None:
            step.result(game.event, *game.result, f"{name}, {rows.place(at)}")
    for number, prices in _by_game(table):
        if not games[number].why:
            _write(games[number], list(prices), step, zone, f"{name}, {rows.place(number)}")


def _named(rows: Rows, games: Mapping[int, _Game]) -> Rows:
    """Name events, sports and leagues by links; the rest is read as any table of this shape."""
    own = {"event_id": pl.String, "sport": pl.String, "league": pl.String}
    values = [(game.event, game.sport, game.league) for game in games.values()]
    columns = pl.DataFrame(values, schema=own, orient="row")
    return rows._replace(frame=rows.frame.drop("league_name", "sport", "league", strict=False).hstack(columns))


def _by_game(table: OddsTable) -> Iterator[tuple[int, Iterable[dict[str, Any]]]]:
    if table.height:
        for (number,), prices in pl.DataFrame(table).group_by("source_row", maintain_order=True):
            yield int(number), prices.iter_rows(named=True)


# ---- games ----


def _game(row: Mapping[str, Any]) -> _Game:
    """Read what is said of a game; the start and the time of collection are checked."""
    start, collected = _time(row.get("match_date")), _time(row.get("scraped_date"))
    event, sport, where = _of_link(str(row.get("match_link") or ""))
    now = datetime.min.replace(tzinfo=UTC)
    if start is None or collected is None:
        return _Game(now, now, event, sport, where, None, "a game without its start, or the time it was collected at")
    over = collected - start >= (_OVER_CRICKET if sport == "cricket" else _OVER)
    why = ""
    if not sport:
        why = "a game whose link has no sport that is known"
    elif row.get("live_period") is not None or (collected >= start and not over):
        why = "a game that was in play, or may have been"
    return _Game(start, collected, event, sport, where, _result(row, sport) if over else None, why)


def _time(value: Any) -> datetime | None:
    """Parse `2026-03-03 19:30:00 UTC`."""
    try:
        text = str(value).removesuffix(" UTC")
        given = value if isinstance(value, datetime) else datetime.strptime(text, "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    time = given if given.tzinfo else given.replace(tzinfo=UTC)
    return time if time.year in YEARS else None


def _of_link(link: str) -> tuple[str, str, str | None]:
    """The event, the sport and the league of a link: `football/england/premier-league/leicester-brentford-xQ77QTN0`."""
    parts = urlsplit(link)
    path = [part for part in parts.path.split("/") if part]
    sport = next((_SPORTS[part] for part in path[:_PLACES] if part in _SPORTS), "")
    event = "/".join(path) + (f"#{parts.fragment.partition(':')[0]}" if parts.fragment else "")
    places = [part.replace("-", " ") for part in path if part not in _SPORTS][:_PLACES]
    if not sport or len(path) <= _PLACES + 1 or "h2h" in path:
        return event, sport, None
    return event, sport, league(" ".join(places[sport == "tennis" :]), sport) or None  # tours are of no country


def _result(row: Mapping[str, Any], sport: str) -> tuple[int, int] | None:
    """The final score, where it settles the markets of the game: not after overtime that they leave out."""
    home, away = str(row.get("home_score") or ""), str(row.get("away_score") or "")
    if not (home.isdecimal() and away.isdecimal()):
        return None
    score = int(home), int(away)
    if sport in _WITH_OVERTIME:
        return score
    parts = [(int(a), int(b)) for a, b in _SCORE.findall(str(row.get("partial_results") or ""))]
    whole = len(parts) == _HALVES.get(sport) and score == tuple(map(sum, zip(*parts, strict=True)))
    return score if whole else None


# ---- prices ----


def _write(game: _Game, prices: list[dict[str, Any]], step: ImportStep, zone: ZoneInfo | None, where: str) -> None:
    """Write the prices of a game, and those of their histories."""
    is_close = game.collected >= game.start
    at = game.start - timedelta(minutes=CLOSE_M) if is_close else game.collected
    rows: list[dict[str, Any]] = []
    changes: list[_Change] = []
    for price in prices:
        if why := _with_period(price, game.sport):
            step.left_out.add(why, f"{where}: {price['market_type']}, {price['market_segment']}")
            continue
        row = price | {"last_seen_at": at, "is_live": False}
        if earlier := price.get(HISTORY):
            found, why = _dated(earlier, row, zone, at)
            changes += [_Change(when, row | {"odds_decimal": odds, "odds_american": None}) for when, odds in found]
            if why:
                step.left_out.add(why, where, len(earlier))
        if is_close and not price["is_active"]:
            step.left_out.add("a closing price that its book had withdrawn", where)
        else:
            rows.append(row)
    for when, standing in _sampled(changes, at):
        step.add(standing, when, where)
    step.add(rows, at, where)


def _with_period(price: dict[str, Any], sport: str) -> str:
    """Say which part of a game a price is of, as the catalog does; returns why it cannot be said."""
    period = price["market_segment"]
    three_way, moneyline = price["market_type"] == "1x2", price["market_type"] == "moneyline"
    if catalog.sport(sport).regulation_only or sport in ("tennis", "volleyball", "cricket"):
        return ""  # full time is the game
    if period == "Full Including OT":
        price["market_segment"] = None
        return "a 1x2 market that counts overtime" if three_way else ""
    if period is None:
        price["market_segment"] = "Regulation"
        return "a moneyline of two sides without overtime" if moneyline else ""
    return ""


def _dated(
    earlier: Iterable[Mapping[str, Any]], row: Mapping[str, Any], zone: ZoneInfo | None, last: datetime
) -> tuple[list[tuple[datetime, float]], str]:  # fmt: skip
    """The changes of a history with their times, oldest first; or why it is left out."""
    if zone is None:
        return [], "a price of an odds history: give the time zone of the browser that collected it"
    found = []
    for change in earlier:
        when, odds = _in_year(str(change.get("timestamp")), zone, last), change.get("odds")
        if when is None or not isinstance(odds, int | float) or not odds > 1.0:
            return [], "an odds history with a time or a price that is not valid"
        found.append((when, float(odds)))
    found.sort(key=lambda one: one[0])
    if found and found[-1][0] > last:
        return [], "an odds history that goes on after its game began: is the time zone right?"
    if not found or abs(found[-1][1] - float(row["odds_decimal"])) > _SAME * found[-1][1]:
        return [], "an odds history that does not end at its price"
    return found, ""


def _in_year(text: str, zone: ZoneInfo, last: datetime) -> datetime | None:
    """A day and hour in the year in which they are nearest to another time."""
    try:
        given = datetime.fromisoformat(text)
        years = [given.replace(year=last.year + more, tzinfo=zone).astimezone(UTC) for more in (-1, 0, 1)]
    except ValueError:  # 29 February, too, which OddsHarvester never writes
        return None
    return min(years, key=lambda when: abs(when - last))


def _sampled(changes: list[_Change], last: datetime) -> Iterator[tuple[datetime, list[dict[str, Any]]]]:
    """The prices that stood every `SAMPLED` before a time."""
    changes = sorted(changes, key=lambda change: change.at)
    standing: dict[Price, dict[str, Any]] = {}
    place = 0
    begin = last - SAMPLED * ((last - changes[0].at) // SAMPLED) if changes else last
    while begin < last:
        while place < len(changes) and changes[place].at <= begin:
            row = changes[place].row
            standing[price_of(row)] = row
            place += 1
        yield begin, [row | {"last_seen_at": begin, "is_active": True} for row in standing.values()]
        begin += SAMPLED
