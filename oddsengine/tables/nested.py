"""Tables with a row per game, and a list of books and their prices per market, as OddsHarvester writes them.

A column `1x2_market` has in each cell a list of dicts, in CSV as text of Python: `bookmaker_name`, `period`, and a
price per outcome. The name of the column has the line: `over_under_2_5_market`, or `asian_handicap_-1_5_market`, where
it is the home team's. Outcomes in `blocked_outcomes` are suspended: their book does not take bets any more.
`odds_history_data`, earlier prices in the order of the outcomes, become the column `odds_history`.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from oddsengine.bounds import excerpt
from oddsengine.tables.column_names import ANY_FORMAT
from oddsengine.tables.shapes import SELECTIONS, SOURCE_COLUMN, SOURCE_ROW, Long, Words

_NESTED = re.compile(r"^(.+)_market$")
_LINED = re.compile(
    r"^(over_under|asian_handicap|handicap)_((?:games|sets|points)_)?(-?\+?\d+(?:_\d+)?)(?:_(games|sets|points))?$"
)
HISTORY = "odds_history"
"""Column of the earlier prices of a row, as the file has them: lists of `timestamp` and `odds`."""
_OF_LABEL = {
    "1": "home", "x": "draw", "2": "away", "odds_over": "over", "odds_under": "under", "btts_yes": "yes",
    "btts_no": "no", "dnb_team1": "home", "dnb_team2": "away", "team1_handicap": "home", "team2_handicap": "away",
    "handicap_team_1": "home", "handicap_team_2": "away", "player_1": "home", "player_2": "away",
    "games_handicap_player_1": "home", "games_handicap_player_2": "away", "sets_handicap_player_1": "home",
    "sets_handicap_player_2": "away",
}  # fmt: skip
_OTHER = re.compile(r"1X|12|X2|draw_handicap")
_OF_MARKET = {
    "1x2": "1x2", "home_away": "moneyline", "match_winner": "moneyline", "btts": "both_teams_to_score",
    "dnb": "draw_no_bet",
}  # fmt: skip


def nested(frame: pl.DataFrame, words: Words) -> Long | None:
    """Turn a table with lists of prices; None if it is none. Raises `ValueError` if a cell has something else."""
    if "bookmakers" in frame.columns and {"sport_key", "home_team"} & set(frame.columns):
        raise ValueError(
            "rows of The Odds API have books in lists: read_odds reads its responses from a file, so write them with "
            "Path('odds.json').write_text(json.dumps(rows)) and read them with oe.read_odds('odds.json')"
        )
    markets = {name: match[1] for name in frame.columns if (match := _NESTED.match(words(name)))}
    if not markets or "home_team" not in frame.columns:
        return None
    renames = {"match_date": "event_start_time", "scraped_date": "last_seen_at", "league_name": "league"}
    base = frame.rename({name: renames[words(name)] for name in frame.columns if words(name) in renames})
    kept = [name for name in base.columns if name not in markets and not name.endswith(("_score", "partial_results"))]
    out: list[dict[str, Any]] = []
    for at, row in enumerate(base.select(*kept, *markets).iter_rows(named=True)):
        fixed = {name: row[name] for name in kept}
        for name, market in markets.items():
            for entry in _entries(row[name], words(name), words.place(at)):
                out += [
                    {SOURCE_ROW: at, SOURCE_COLUMN: words(name), **fixed, **price} for price in _quoted(market, entry)
                ]
    if not out:
        return None
    taken = {words(name): f"odds of {market}" for name, market in markets.items()}
    theirs = {words(name) for name in frame.columns}
    taken |= {name: target for name, target in renames.items() if name in theirs}
    return Long(pl.DataFrame(out, infer_schema_length=None).filter(pl.col(ANY_FORMAT) != ""), taken, rows=False)


def _entries(value: Any, name: str, where: str) -> list[Mapping[str, Any]]:
    """The entries of a cell: a list of dicts, or its text in Python or JSON."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            try:
                value = ast.literal_eval(value)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                raise ValueError(
                    f"column {name!r} must have lists of prices, got {excerpt(value[:40])} in {where}"
                ) from None
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise ValueError(f"column {name!r} must have lists of prices, got {excerpt(str(value)[:40])} in {where}")
    return value


def _quoted(market: str, entry: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The prices of one book in one market."""
    named, line = _OF_MARKET.get(market, market), None
    if match := _LINED.match(market):
        family, before, number, after = match.groups()
        unit = (after or before or "").strip("_")
        named = {"over_under": "total"}.get(family, "spread") + (f"_{unit}" if unit == "sets" else "")
        line = float(number.replace("_", "."))
    period = str(entry.get("period") or "FullTime")
    labels = [label for label in entry if str(label).casefold() in _OF_LABEL or _OTHER.fullmatch(str(label))]
    blocked, histories = entry.get("blocked_outcomes") or (), entry.get("odds_history_data") or ()
    for at, label in enumerate(labels):
        side, price = _OF_LABEL.get(str(label).casefold()), entry[label]
        row: dict[str, Any] = {"is_active": label not in blocked} if blocked else {}
        if len(histories) == len(labels):  # with fewer it is not known whose they are
            row[HISTORY] = histories[at].get("odds_history") if isinstance(histories[at], Mapping) else None
        yield row | {
            "sportsbook": entry.get("bookmaker_name"),
            "market_type": named,
            "market_segment": None if period == "FullTime" else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", period),
            "selection": SELECTIONS.get(side, side.title()) if side else label,
            "selection_type": side,
            "line": -line if line is not None and named.startswith("spread") and side == "away" else line,
            ANY_FORMAT: "" if price in (None, "-") else str(price),
        }
