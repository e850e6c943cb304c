"""Hazards: each takes the rows of a board and changes a few, as real boards do.

They are what the guards exist for: stale and suspended prices, two names for one outcome, ladders that run
the wrong way, labels that are lost, names spelt three ways.
"""

import math
import random
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

SECOND = 1_000_000
NOW = 1_770_000_000 * SECOND


def _decimal(row: Row) -> float | None:
    """The price of a row; None where a hazard has spoilt it."""
    decimal, american = row["odds_decimal"], row["odds_american"]
    if decimal is None and american is not None:
        decimal = 1.0 + american / 100.0 if american > 0 else 1.0 - 100.0 / american
    return decimal if decimal is not None and 1.0 < decimal < math.inf else None


def _reprice(row: Row, logits: float) -> None:
    """Move a price by so much in logits of its implied probability; negative is generous."""
    decimal = _decimal(row)
    if decimal is not None:
        odds = 1.0 + (decimal - 1.0) * math.exp(-logits)
        row["odds_american"], row["odds_decimal"] = None, max(1.01, round(odds, 3))


def _pick(rng: random.Random, rows: list[Row], *markets: str) -> Row | None:
    found = [row for row in rows if not markets or row["market_type"].endswith(markets)]
    return rng.choice(found) if found else None


def _mates(rows: list[Row], row: Row, *fields: str) -> list[Row]:
    return [other for other in rows if all(other[field] == row[field] for field in fields)]


def _stale(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 3)):
        row["last_seen_at"] = rng.choice((None, NOW - 601 * SECOND, NOW - 31 * SECOND, NOW + 5 * SECOND))


def _old(rng: random.Random, rows: list[Row]) -> None:
    """Books that were last seen long ago: too far from others in time, stale but heard, or silent."""
    ages = (61, 121, 290, 345, 400, 590, 610, 1201, 3599, 3700)
    for _ in range(4):
        row, age = rng.choice(rows), rng.choice(ages)
        for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
            mate["last_seen_at"] = NOW - age * SECOND


def _mid_prices(rng: random.Random, rows: list[Row]) -> None:
    """A book whose two sides sum to exactly one, on all its lines or on some."""
    row = _pick(rng, rows, "total_points", "total_goals", "total_runs", "player_points")
    if row is None:
        return
    often = rng.choice((1.0, 0.4))
    mates = _mates(rows, row, "event_id", "sportsbook", "market_type")
    for over in [mate for mate in mates if "Over" in mate["selection"] and rng.random() < often]:
        for under in mates:
            pair = under["player_name"] == over["player_name"] and under["line"] == over["line"]
            if pair and "Under" in under["selection"] and over["odds_decimal"] and over["odds_decimal"] > 1.05:
                _reprice(under, 0.0)
                under["odds_decimal"] = over["odds_decimal"] / (over["odds_decimal"] - 1.0)
                under["odds_american"] = None


def _few_books(rng: random.Random, rows: list[Row]) -> None:
    """Three books are left of an event, and one of them is generous; sometimes it was looked at twice."""
    event = rng.choice(rows)["event_id"]
    books = sorted({row["sportsbook"] for row in rows if row["event_id"] == event})
    keep = rng.sample(books, min(3, len(books)))
    rows[:] = [row for row in rows if row["event_id"] != event or row["sportsbook"] in keep]
    for row in [row for row in rows if row["event_id"] == event and row["sportsbook"] == keep[0]]:
        _reprice(row, -0.5)
        row["confirmed"] = rng.random() < 0.3


def _started(rng: random.Random, rows: list[Row]) -> None:
    row = rng.choice(rows)
    for mate in _mates(rows, row, "event_id", "sportsbook"):
        mate["event_start_time"], mate["is_live"] = NOW - 60 * SECOND, False


def _duplicates(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 3)):
        copy = dict(row)
        rows.append(copy)
        _reprice(copy, rng.choice((0.0, 0.04, -0.06, 0.3)))
        if row["last_seen_at"] is not None and rng.random() < 0.5:
            copy["last_seen_at"] = row["last_seen_at"] - SECOND


def _second_name(rng: random.Random, rows: list[Row]) -> None:
    """Two market names of one book for the same outcomes."""
    for first, second in (("total_points", "total_goals"), ("total_goals", "asian_total_goals"),
                          ("asian_handicap", "point_spread"), ("puck_line", "point_spread")):  # fmt: skip
        row = _pick(rng, rows, first)
        if row is None:
            continue
        far = rng.choice((0.0, 0.1, 0.3, -0.4))
        for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
            copy = {**mate, "market_type": second}
            rows.append(copy)
            _reprice(copy, rng.choice((0.0, far)))


def _wrong_ladder(rng: random.Random, rows: list[Row]) -> None:
    row = _pick(rng, rows, "total_points", "total_goals", "point_spread", "asian_handicap", "run_line", "team_total")
    if row is not None:
        _reprice(row, rng.choice((0.7, -0.7)))


def _wrong_sum(rng: random.Random, rows: list[Row]) -> None:
    row = rng.choice(rows)
    shift = rng.choice((-0.35, -0.2, 0.9))
    for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
        if mate["line"] is None or row["line"] is None or abs(mate["line"]) == abs(row["line"]):
            _reprice(mate, shift)


def _one_team(rng: random.Random, rows: list[Row]) -> None:
    row = _pick(rng, rows, "team_total")
    if row is None:
        return
    for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
        side = mate["team_side"] or (mate["selection_type"] or "") + mate["selection"]
        if mate["line"] is not None and ("home" in side or mate["home_team"] in side):
            mate["line"] += 7.0
            mate["selection"] = mate["selection"].split(" Over")[0].split(" Under")[0] + (
                f" Over {mate['line']:g}" if "Over" in mate["selection"] else f" Under {mate['line']:g}"
            )


def _shifted_ladder(rng: random.Random, rows: list[Row]) -> None:
    """A book whose lines belong to another number."""
    row = _pick(rng, rows, "total_points", "total_goals", "total_runs")
    if row is not None:
        step = rng.choice((-2.0, 1.0, 2.0)) * (6.0 if row["sport"] == "basketball" else 1.0)
        for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
            mate["line"] = None if mate["line"] is None else max(0.5, mate["line"] + step)
            mate["selection"] = mate["selection"].split()[0]


def _biased(rng: random.Random, rows: list[Row]) -> None:
    row = _pick(rng, rows, "player_points", "player_rebounds")
    if row is not None:
        side = "Over" if "Over" in row["selection"] else "Under"
        for mate in _mates(rows, row, "event_id", "sportsbook", "market_type"):
            if side in mate["selection"]:
                _reprice(mate, -0.3)


def _outliers(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 4)):
        _reprice(row, rng.choice((-0.5, -0.33, 0.5, 0.4)))


def _flaps(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 2)):
        row["flap"] = True


def _suspended(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 4)):
        row["is_active"] = False


def _bad_prices(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 3)):
        row["odds_american"], row["odds_decimal"] = rng.choice(
            ((None, 1.0), (None, math.nan), (None, math.inf), (None, None), (150.0, 1.5), (None, 0.5))
        )


def _wrong_sides(rng: random.Random, rows: list[Row]) -> None:
    turned = {"home": "away", "away": "home", "over": "under", "under": "over"}
    for row in rng.sample(rows, min(len(rows), 2)):
        row["selection_type"] = turned.get(row["selection_type"] or "", row["selection_type"])
    row = _pick(rng, rows, "moneyline") or rows[0]
    row["selection"] = rng.choice(("Nonsense United", row["selection"]))


def _lost_lines(rng: random.Random, rows: list[Row]) -> None:
    for row in rng.sample(rows, min(len(rows), 2)):
        row["line"] = rng.choice((None, 2.3333, 1.5))


def _turned_teams(rng: random.Random, rows: list[Row]) -> None:
    """A book that names the teams the other way round."""
    row = rng.choice(rows)
    turned = {"home": "away", "away": "home"}
    for mate in _mates(rows, row, "event_id", "sportsbook"):
        mate["home_team"], mate["away_team"] = mate["away_team"], mate["home_team"]
        kind = (mate["selection_type"] or "").split("_")
        mate["selection_type"] = "_".join(turned.get(part, part) for part in kind) or None
        mate["team_side"] = turned.get(mate["team_side"] or "")


def _spellings(rng: random.Random, rows: list[Row]) -> None:
    """A book that writes names without accents, in capitals, without points and hyphens."""
    row = rng.choice(rows)
    plain = str.maketrans({"é": "e", "ş": "s", "ö": "o", "ć": "c", "č": "c", "-": " ", ".": " "})
    for mate in _mates(rows, row, "event_id", "sportsbook"):
        if "+" in mate["selection"] or "-" in mate["selection"]:
            continue
        for field in ("home_team", "away_team", "player_name"):
            mate[field] = mate[field] and str(mate[field]).translate(plain).upper()
        if not any(c.isdigit() for c in mate["selection"]):
            mate["selection"] = mate["selection"].translate(plain).lower()


def _other_game(rng: random.Random, rows: list[Row]) -> None:
    """A book, or a few, with rows of another game under the event's id: other teams, or one other team."""
    row = rng.choice(rows)
    teams = (("Chicago Cubs", "Seattle Mariners"), ("Chicago Bulls", "Miami Heat"), ("Utah Mammoth", "Boston Bruins"))
    home, away = rng.choice([*teams, (row["home_team"], "New York Yankees"), ("Zork Giants", "Frobozz Wizards")])
    sport, league = rng.choice(((row["sport"], row["league"]), ("basketball", "nba"), ("hockey", None)))
    for book in rng.sample(sorted({mate["sportsbook"] for mate in rows}), rng.choice((1, 1, 2))):
        for mate in rows:
            if mate["sportsbook"] == book and mate["event_id"] == row["event_id"] and rng.random() < 0.9:
                mate.update(home_team=home, away_team=away)
                if rng.random() < 0.2:
                    mate.update(sport=sport, league=league)


HAZARDS: dict[str, Callable[[random.Random, list[Row]], None]] = {
    "stale": _stale,
    "old": _old,
    "mid_prices": _mid_prices,
    "few_books": _few_books,
    "started": _started,
    "duplicates": _duplicates,
    "second_name": _second_name,
    "wrong_ladder": _wrong_ladder,
    "wrong_sum": _wrong_sum,
    "one_team": _one_team,
    "shifted_ladder": _shifted_ladder,
    "biased": _biased,
    "outliers": _outliers,
    "flaps": _flaps,
    "suspended": _suspended,
    "bad_prices": _bad_prices,
    "wrong_sides": _wrong_sides,
    "lost_lines": _lost_lines,
    "turned_teams": _turned_teams,
    "spellings": _spellings,
    "other_game": _other_game,
}
