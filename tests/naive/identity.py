"""What a row is: its market and outcome, or the reason why it has none.

The slow twin of the engine's identity, one row at a time. It imports nothing of the package; the market types
and sports it knows are the small tables below, enough for the boards of the tests.
"""

import csv
import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from naive.quotes import Book, Family, Quote

Row = Mapping[str, Any]

MISMATCH = 0.01
DRAW_SPORTS = {"soccer", "handball", "rugby_union"}
DRAW_WORDS = {"draw", "tie", "x", "the draw"}
LEAGUES = {"serie_a": "italy_serie_a"}  # other names of the leagues on the boards
PERIODS = ("1st_half_", "2nd_half_", "1st_quarter_", "1st_5_innings_", "1st_period_")

TWO_WAY = Family("moneyline", ("home", "away"))
THREE_WAY = Family("moneyline_3way", ("home", "draw", "away"))
SPREAD = Family("spread", ("home", "away"), has_line=True, is_spread=True)
TOTAL = Family("total", ("over", "under"), has_line=True)
TEAM_TOTAL = Family("team_total", ("over", "under"), has_line=True, is_team_total=True)
CORNERS = Family("corners", ("over", "under"), has_line=True)
DRAW = Family("draw", ("yes", "no"))
HOME_CLEAN_SHEET = Family("clean_sheet", ("yes", "no"))
BOTH_SCORE = Family("both_teams_to_score", ("yes", "no"))
ODD_EVEN = Family("odd_even", ("odd", "even"))
FIRST_SCORE = Family("first_team_to_score", ("home", "none", "away"))

TYPES: dict[str, Family] = {
    "moneyline": TWO_WAY,
    "moneyline_3way": THREE_WAY,
    "point_spread": SPREAD,
    "asian_handicap": SPREAD,
    "run_line": SPREAD,
    "puck_line": SPREAD,
    "draw_no_bet": SPREAD,
    "total_points": TOTAL,
    "total_goals": TOTAL,
    "total_runs": TOTAL,
    "asian_total_goals": TOTAL,
    "team_total": TEAM_TOTAL,
    "total_corners": CORNERS,
    "both_teams_to_score": BOTH_SCORE,
    "draw": DRAW,
    "home_clean_sheet": HOME_CLEAN_SHEET,
    "total_goals_odd_even": ODD_EVEN,
    "first_team_to_score": FIRST_SCORE,
    "player_points": Family("player_points", ("over", "under"), has_line=True, is_prop=True),
    "player_rebounds": Family("player_rebounds", ("over", "under"), has_line=True, is_prop=True),
    "anytime_goal_scorer": Family("player_goals", ("over", "under"), has_line=True, is_prop=True),
}
FIXED_LINES = {"draw_no_bet": 0, "anytime_goal_scorer": 50}


@dataclass(frozen=True)
class Terms:
    """What the raw label of one row says. `why` is empty, or the reason why the row has no outcome."""

    family: Family | None
    period: str = "full_game"
    subject: str = ""
    side: str = ""
    flip: bool = False
    why: str = ""


def load_books() -> dict[str, Book]:
    """The books of the package's catalog, read as plain data."""
    path = Path(__file__).parents[2] / "oddsengine" / "catalog" / "books.toml"
    known = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Book(
            name,
            provider=entry.get("feed", ""),
            sharp=entry.get("sharp", False),
            exchange=entry.get("exchange", False),
            mid_price=entry.get("mid_price", False),
            parlay_only=entry.get("parlay_only", False),
            commission=entry.get("commission", 0.0),
            fee=entry.get("fee", 0.0),
            live_fee=entry.get("live_fee"),
        )
        for name, entry in known.items()
    }


def normal(text: str | None) -> str:
    """A name without accents, case and punctuation."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text or "") if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", re.sub("['.]", "", plain.casefold())))


def american_to_decimal(american: float) -> float:
    """One division, so that +164 is the float 2.64 and ties with it."""
    return (100.0 + american) / 100.0 if american > 0 else (100.0 - american) / -american


def price(row: Row) -> tuple[float, str]:
    """The decimal price of a row, and why it is none."""
    american, decimal = row.get("odds_american"), row.get("odds_decimal")
    if decimal is not None and math.isnan(decimal):
        decimal = None
    if decimal is None and american is not None and math.isfinite(american) and abs(american) >= 100:
        decimal = american_to_decimal(american)
        american = None
    if decimal is None or not math.isfinite(decimal) or decimal <= 1.0:
        return math.nan, "bad_price"
    if american is not None and abs(american_to_decimal(american) / decimal - 1.0) > MISMATCH:
        return decimal, "price_mismatch"
    return decimal, ""


@cache
def load_teams() -> dict[tuple[str, str], tuple[str, str]]:
    """The catalog's teams, read as plain data: ids and leagues by sport and name."""
    path = Path(__file__).parents[2] / "oddsengine" / "catalog" / "teams.csv"
    known: dict[tuple[str, str], tuple[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for team in csv.DictReader(file):
            names = [team["name"], team["id"], *(team["aliases"] or "").split(";")]
            known |= {(team["sport"], normal(name)): (team["id"], team["league"]) for name in names if name}
    return known


def game(row: Row) -> frozenset[str]:
    """The teams that a row names, as far as the catalog is certain of them."""
    known, found = load_teams(), set()
    for name in (normal(row["home_team"]), normal(row["away_team"])):
        team, league = known.get((row["sport"], name), ("", ""))
        if team and LEAGUES.get(row["league"], row["league"]) in (None, "", league):
            found.add(team)
    return frozenset(found)


def other_games(votes: Iterable[Mapping[frozenset[str], int]]) -> set[frozenset[str]]:
    """The games for which no majority of the providers is, where two have three teams or more between them."""
    votes = list(votes)
    games = {each for rows in votes for each in rows}

    def rivals(one: frozenset[str]) -> set[frozenset[str]]:
        return {other for other in games if len(one | other) > 2}

    out = set()
    for one in games:
        against = rivals(one)
        friends = {other for other in games if against <= rivals(other)}
        ahead, behind = 0, 0
        for rows in votes:
            mine = sum(count for each, count in rows.items() if each in friends)
            theirs = sum(count for each, count in rows.items() if each in against)
            ahead += mine > theirs
            behind += mine < theirs
        if against and not ahead > behind:
            out.add(one)
    return out


def of_other_games(rows: Mapping[int, Row]) -> set[int]:
    """Rows of another game than most books name for their event; books of one odds provider are one."""
    books = load_books()
    votes: dict[str, dict[str, Counter[frozenset[str]]]] = {}
    for row in rows.values():
        book = books.get(row["sportsbook"])
        provider = (book.provider if book else "") or f"={row['sportsbook']}"
        votes.setdefault(row["event_id"], {}).setdefault(provider, Counter())[game(row)] += 1
    rejected = {event: other_games(of.values()) for event, of in votes.items()}
    return {at for at, row in rows.items() if game(row) in rejected[row["event_id"]]}


def event_teams(rows: Iterable[Row]) -> dict[str, tuple[str, str]]:
    """Home and away of every event: the pair that most of its rows name, of equals the smaller."""
    votes: dict[str, Counter[tuple[str, str]]] = {}
    for row in rows:
        pair = (normal(row["home_team"]), normal(row["away_team"]))
        if all(pair):
            votes.setdefault(row["event_id"], Counter())[pair] += 1
    return {event: min(count, key=lambda pair: (-count[pair], pair)) for event, count in votes.items()}


def read_selection(text: str, home: str, away: str) -> tuple[str, str, str]:
    """Team, side word and remaining name of a selection text, each possibly empty."""
    teams = {home: "home", away: "away"} if home != away else {}

    def whose(name: str) -> str:
        """The team of a name, or of the first words of a name if no other team's begins with them."""
        fits = [side for full, side in teams.items() if name and full.startswith(f"{name} ")]
        return teams.get(name, "") or (fits[0] if len(fits) == 1 else "")

    whole = normal(text)
    if whole in teams:
        return teams[whole], "", ""
    short = normal(re.sub(r"[\s(\[]*[+-]?\d+([.,]\d+)?[)\]]?\s*$", "", text))
    if short in teams:
        return teams[short], "", ""
    if short in DRAW_WORDS:
        return "", "draw", ""
    if short in ("none", "no goal"):
        return "", "none", ""
    words = short.split()
    for at in (0, -1):
        if words and words[at] in ("over", "under"):
            rest = " ".join(words[1:] if at == 0 else words[:-1])
            return whose(rest), words[at], rest
    if words and words[-1] in ("yes", "no", "odd", "even"):
        rest = " ".join(words[:-1])
        return whose(rest), words[-1], rest
    return whose(short) or (short if short in ("home", "away") else ""), "", short


def read_terms(row: Row, teams: Mapping[str, tuple[str, str]]) -> Terms:
    """The market and outcome that the raw label of a row names."""
    market, period = row["market_type"], "full_game"
    for prefix in PERIODS:
        if market.startswith(prefix):
            market, period = market.removeprefix(prefix), prefix.removesuffix("_")
    segment = row.get("market_segment")
    if period == "full_game" and segment:
        period = segment
    family = TYPES.get(market)
    if family is None:
        return Terms(None, why="unmapped")

    home, away = normal(row["home_team"]), normal(row["away_team"])
    first, last = teams.get(row["event_id"], (home, away))
    flip = (home == last or away == first) and not (home == first or away == last)
    team, word, rest = read_selection(row["selection"], home, away)
    typed = (row.get("selection_type") or "").lower().split("_")
    type_team = next((part for part in typed if part in ("home", "away", "draw")), "")
    type_word = next((part for part in typed if part in ("over", "under", "yes", "no", "odd", "even")), "")

    outcomes = THREE_WAY.outcomes if family is TWO_WAY else family.outcomes
    positional = "home" in outcomes
    if positional and not team:
        team = {"1": "home", "2": "away"}.get(normal(row["selection"]), "")
    said = word or (team if positional else "")
    type_said = (type_word or type_team) if positional else type_word
    if "none" in typed and positional:
        type_said = "none"
    if market in FIXED_LINES and family.is_prop:
        as_over = {"yes": "over", "no": "under"}
        said, type_said = as_over.get(said, said), as_over.get(type_said, type_said)
        if not said and not type_said:
            said = "over"
    conflict = said != type_said and said in outcomes and type_said in outcomes
    side = said or type_said
    other = {"home": "away", "away": "home"}
    if flip:
        side = other.get(side, side)

    subject = ""
    why = "" if side in outcomes else "unknown_outcome"
    if family.is_team_total:
        named = {team, type_team if type_team != "draw" else "", row.get("team_side") or ""} - {""}
        if not named:
            why = "unknown_outcome"
        conflict = conflict or len(named) > 1
        subject = max(named, default="", key=lambda name: name == "away")
        subject = other.get(subject, subject) if flip else subject
    if market == "home_clean_sheet":
        subject = "away" if flip else "home"
    if family.is_prop:
        subject = normal(row.get("player_name")) or rest
        if not subject:
            why = "unknown_outcome"
    return Terms(family, period, subject, side, flip, "side_conflict" if conflict else why)


def read_line(row: Row, terms: Terms) -> int | None:
    """The line in hundredths, a spread's from the home team's view; None where there is none to use."""
    assert terms.family is not None
    market: str = row["market_type"]
    for prefix in PERIODS:
        market = market.removeprefix(prefix)
    if market in FIXED_LINES:
        return FIXED_LINES[market]
    line: float | None = row.get("line")
    if not terms.family.has_line:
        return 0 if line is None or line == 0.0 else None
    if line is None or not math.isfinite(line) or abs(line * 100.0 - round(line * 100.0)) > 1e-6:
        return None
    hundredths = round(line * 100.0)
    return -hundredths if terms.family.is_spread and terms.side == "away" else hundredths


def identify(rows: Sequence[Row], guards: Iterable[str]) -> tuple[list[Quote], dict[int, str]]:
    """The quotes of a table, and of every other row the reason why it is none."""
    on = set(guards)
    reasons: dict[int, str] = {}
    prices: dict[int, float] = {}
    for at, row in enumerate(rows):
        decimal, why = price(row)
        if any(row.get(name) in (None, "") for name in ("sportsbook", "event_id", "market_type", "selection")):
            reasons[at] = "missing_value"
        elif why == "bad_price":
            reasons[at] = why
        else:
            prices[at] = decimal
            if row.get("is_active") is False:
                reasons[at] = "suspended"
            elif why and why in on:
                reasons[at] = why

    worded = [at for at in range(len(rows)) if reasons.get(at) != "missing_value"]
    other = of_other_games({at: rows[at] for at in worded}) if "other_game" in on else set()
    teams = event_teams(rows[at] for at in prices if at not in other)
    terms = {at: read_terms(rows[at], teams) for at in worded}
    with_draw = {
        _moneyline(rows[at], said)
        for at, said in terms.items()
        if said.family is TWO_WAY and said.side == "draw" and at not in other
    }
    unread = {
        _moneyline(rows[at], said)
        for at, said in terms.items()
        if said.family is TWO_WAY and said.side not in THREE_WAY.outcomes and at not in other
    }
    quotes = []
    for at, decimal in prices.items():
        row, said = rows[at], terms[at]
        why = said.why
        if why == "side_conflict" and why not in on:
            why = ""
        family, line = said.family, 0
        if not why and family is TWO_WAY:
            family = THREE_WAY if _moneyline(row, said) in with_draw else TWO_WAY
            if family is TWO_WAY and (row["sport"] in DRAW_SPORTS or _moneyline(row, said) in unread):
                why = "ambiguous_moneyline"
        if not why:
            known = read_line(row, replace(said, family=family))
            line = known or 0
            if known is None and (family is None or family.has_line or "no_line" in on):
                why = "no_line"
        if at in other:
            why = "other_game"
        if at in reasons or why:
            reasons.setdefault(at, why)
            continue
        assert family is not None
        quotes.append(
            Quote(
                row=at,
                book=row["sportsbook"],
                event=row["event_id"],
                live=bool(row["is_live"]),
                period=said.period,
                family=family,
                subject=said.subject,
                line=line,
                side=said.side,
                odds=decimal,
                name=row["market_type"],
                sport=row["sport"],
                seen=row.get("last_seen_at"),
                start=row.get("event_start_time"),
                flap=bool(row.get("flap")),
                rejected=bool(row.get("rejected_upstream")),
                confirmed=bool(row.get("confirmed")),
            )
        )
    return quotes, reasons


def _moneyline(row: Row, said: Terms) -> tuple[str, str, bool, str]:
    return (row["sportsbook"], row["event_id"], bool(row["is_live"]), said.period)
