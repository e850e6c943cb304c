"""Generate the packaged sample board: `python scripts/make_sample_board.py` writes the same bytes again.

Every event has a true distribution of its score. A book's price is the true probability, tilted by the book's own
noise, stretched until the market sums to the book's margin, and rounded as that book rounds. Then three things are put
in by hand, each labelled in the column `planted`:

- opportunities: `ev`, `arb`, `middle`, `low_hold`. The price is set so that it is worth what the plan says against
  the *true* probability, so each of them is honest;
- hazards: `hazard:<name>`, what real boards do to those who only group and compare;
- neighbours: `neighbour:<name>`, rows that look as odd as a hazard and are fine: accents left out, the teams named the
  other way round, a yes typed as home.

`true_probability` is the chance of winning, given that the stake is not returned; it is empty where a row means
nothing. The engine reads neither column.
"""

import csv
import io
import math
import random
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SEED = 20261024
NOW = datetime(2026, 10, 24, 15, 0, 0, tzinfo=UTC)
OUT = Path(__file__).parent.parent / "oddsengine" / "tables" / "sample_board.csv"
COLUMNS = (
    "sportsbook", "event_id", "sport", "league", "home_team", "away_team", "event_start_time", "is_live", "market_type",
    "selection", "selection_type", "line", "odds_american", "odds_decimal", "last_seen_at", "odds_changed_at",
    "is_active", "flap", "player_name", "team_side", "external_event_id", "selection_id", "deep_link", "planted",
    "true_probability",
)  # fmt: skip
Row = dict[str, Any]
Pmf = dict[int, float]


# ---- books ----


@dataclass(frozen=True)
class Book:
    """How a book prices and formats."""

    id: str
    margin: float  # of a two-way main line
    noise: float  # standard deviation of its opinion, in logits
    american: bool  # which of the two notations it gives
    digits: int = 2
    types: bool = True  # whether it gives selection types
    lines: bool = False  # whether its selections repeat the line
    link: str = ""


BOOKS = {
    book.id: book
    for book in (
        Book("pinnacle", 0.028, 0.004, american=False, digits=3),
        Book("circa", 0.036, 0.005, american=True),
        Book("betfair_exchange", 0.008, 0.004, american=False, types=False),
        Book("draftkings", 0.047, 0.008, american=True, link="https://sportsbook.draftkings.com/event/{}"),
        Book("fanduel", 0.049, 0.008, american=True, link="https://sportsbook.fanduel.com/navigation/{}"),
        Book("betmgm", 0.055, 0.008, american=True, lines=True),
        Book("caesars", 0.056, 0.008, american=True),
        Book("bet365", 0.052, 0.008, american=False, types=False, lines=True),
        Book("betrivers", 0.064, 0.007, american=False),
        Book("unibet", 0.064, 0.007, american=False),
        Book("bovada", 0.051, 0.008, american=True, lines=True),
        Book("polymarket_mid", 0.0, 0.006, american=False, digits=4),
    )
}
SISTERS = {"unibet": "betrivers"}
PLAIN = ("draftkings", "fanduel", "betmgm", "bovada")  # they write no accents
SHARP = ("pinnacle", "circa", "betfair_exchange")
SOFT = ("draftkings", "fanduel", "betmgm", "caesars", "bet365", "betrivers", "unibet", "bovada")


# ---- true distributions ----


def normal(mean: float, sd: float, weights: dict[int, float] | None = None) -> Pmf:
    """Integers around a mean; weights change how often a margin of each size occurs."""
    reach = math.ceil(5 * sd)
    low, high = round(mean) - reach, round(mean) + reach
    mass = {k: math.exp(-(((k - mean) / sd) ** 2) / 2) * (weights or {}).get(abs(k), 1.0) for k in range(low, high + 1)}
    return scaled(mass)


def scaled(mass: Pmf) -> Pmf:
    """Make a distribution sum to 1."""
    whole = sum(mass.values())
    return {k: m / whole for k, m in mass.items()}


def counts(mean: float, ratio: float = 1.0) -> Pmf:
    """Poisson, or with a variance of `ratio` means the negative binomial."""
    if ratio <= 1.0:
        return scaled({k: math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(60)})
    size = mean / (ratio - 1.0)
    log_p, log_q = math.log(1.0 / ratio), math.log(1.0 - 1.0 / ratio)
    start = math.lgamma(size)
    most = round(mean + 10 * math.sqrt(ratio * mean))
    return scaled(
        {
            k: math.exp(math.lgamma(k + size) - start - math.lgamma(k + 1) + size * log_p + k * log_q)
            for k in range(most)
        }
    )


def scores(home: Pmf, away: Pmf, *, level: bool) -> tuple[Pmf, Pmf]:
    """Margin and total of two independent scores; if a game cannot end level, the next score decides it."""
    margin: Pmf = {}
    total: Pmf = {}
    for h, p in home.items():
        for a, q in away.items():
            mass = p * q
            ends = [(h - a, h + a, mass)] if level or h != a else [(1, 2 * h + 1, mass / 2), (-1, 2 * h + 1, mass / 2)]
            for m, t, part in ends:
                margin[m] = margin.get(m, 0.0) + part
                total[t] = total.get(t, 0.0) + part
    return margin, total


def over(pmf: Pmf, line: float) -> float:
    """Probability of over a line given no push; a quarter line is half a stake on each neighbour."""
    halves = [line - 0.25, line + 0.25] if (line * 4) % 2 else [line, line]
    won = sum(p for x in halves for k, p in pmf.items() if k > x) / 2
    pushed = sum(pmf.get(int(x), 0.0) for x in halves if x == int(x)) / 2
    return won / (1.0 - pushed)


# ---- prices ----


def stretched(probs: Sequence[float], total: float) -> list[float]:
    """Raise probabilities to the power that makes them sum to `total`."""
    low, high = 0.2, 3.0
    for _ in range(80):
        k = (low + high) / 2
        low, high = (k, high) if sum(p**k for p in probs) > total else (low, k)
    return [p**low for p in probs]


def tilted(probs: Sequence[float], logits: Sequence[float]) -> list[float]:
    """Shift probabilities by logits and normalise them."""
    odds = [p / (1 - p) * math.exp(x) for p, x in zip(probs, logits, strict=True)]
    raw = [o / (1 + o) for o in odds]
    return [p / sum(raw) for p in raw]


def folded(text: str) -> str:
    """Remove accents from a text."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def price(book: Book, odds: float) -> tuple[float | None, float | None]:
    """Return American and decimal odds as the book publishes them: one of the two."""
    odds = max(1.01, odds)
    if not book.american:
        return None, round(odds, book.digits)
    exact = (odds - 1) * 100 if odds >= 2 else -100 / (odds - 1)
    step = 1 if abs(exact) < 200 else 5 if abs(exact) < 500 else 25
    return float(round(exact / step) * step), None


def reprice(row: Row, odds: float) -> None:
    """Change the price of a row, in its book's format."""
    row["odds_american"], row["odds_decimal"] = price(BOOKS[row["sportsbook"]], odds)


# ---- events ----


@dataclass
class Event:
    """One game: teams, start, and true probabilities."""

    id: str
    sport: str
    league: str
    home: str
    away: str
    start: datetime
    margin: Pmf
    total: Pmf
    home_score: Pmf = field(default_factory=dict)
    away_score: Pmf = field(default_factory=dict)
    live: bool = False
    draws: bool = False
    spread: str = "point_spread"
    totals: str = "total_points"
    spread_lines: Sequence[float] = ()  # of the home side
    total_lines: Sequence[float] = ()
    team_lines: tuple[Sequence[float], Sequence[float]] = ((), ())
    props: Sequence[tuple[str, str, float, float, float]] = ()  # player, market, line, mean, ratio
    parts: Sequence[tuple[str, float, float, Sequence[float]]] = ()  # market of a part of the game, mean, sd, lines
    written: dict[str, tuple[str, str]] = field(default_factory=dict)  # book -> its own spelling of the teams


Side = tuple[str, str, float | None, float]  # selection, selection type, line, true probability


@dataclass(frozen=True)
class Market:
    """One market of an event as offered by books."""

    type: str
    key: str  # by which plans name it
    sides: Sequence[Side]
    extra: float = 0.0  # margin on top of the book's
    player: str = ""
    team: str = ""


def moneyline(event: Event) -> Market:
    """The moneyline; three-way if a draw is possible."""
    home = sum(p for k, p in event.margin.items() if k > 0)
    draw = event.margin.get(0, 0.0)
    if event.draws:
        sides = [
            (event.home, "home", None, home),
            ("Draw", "draw", None, draw),
            (event.away, "away", None, 1 - home - draw),
        ]
        return Market("moneyline", "ml", sides, extra=0.01)
    home /= 1 - draw
    return Market("moneyline", "ml", [(event.home, "home", None, home), (event.away, "away", None, 1 - home)])


def markets(event: Event) -> list[Market]:
    """Return all markets of an event."""
    found = [moneyline(event)]
    for at, line in enumerate(event.spread_lines):
        p = over(event.margin, -line)
        sides = [(event.home, "home", line, p), (event.away, "away", -line, 1 - p)]
        found.append(Market(event.spread, f"spread {line:g}", sides, extra=0.006 * (at > 0)))
    for at, line in enumerate(event.total_lines):
        p = over(event.total, line)
        sides = [("Over", "over", line, p), ("Under", "under", line, 1 - p)]
        found.append(Market(event.totals, f"total {line:g}", sides, extra=0.006 * (at > 0)))
    for team, lines, pmf in zip(("home", "away"), event.team_lines, (event.home_score, event.away_score), strict=True):
        name = event.home if team == "home" else event.away
        for line in lines:
            p = over(pmf, line)
            sides = [(f"{name} Over", f"{team}_over", line, p), (f"{name} Under", f"{team}_under", line, 1 - p)]
            found.append(Market("team_total", f"{team} total {line:g}", sides, extra=0.012, team=team))
    for type_, mean, sd, lines in event.parts:
        for line in lines:
            p = over(normal(mean, sd), line)
            sides = [("Over", "over", line, p), ("Under", "under", line, 1 - p)]
            found.append(Market(type_, f"{type_} {line:g}", sides, extra=0.006))
    for player, type_, line, mean, ratio in event.props:
        p = over(counts(mean, ratio), line)
        sides = [(f"{player} Over", "over", line, p), (f"{player} Under", "under", line, 1 - p)]
        found.append(Market(type_, f"{player} {line:g}", sides, extra=0.014, player=player))
    return found


KEYS = {
    0: 0.06,
    1: 0.80,
    2: 0.76,
    3: 2.65,
    4: 0.97,
    5: 0.73,
    6: 1.23,
    7: 1.80,
    8: 0.80,
    9: 0.40,
    10: 1.26,
    14: 1.38,
    17: 1.45,
}
NO_LEVEL = {0: 0.0}


def half_goals(home: float, away: float, *, level: bool, ratio: float = 1.0) -> dict[str, Any]:
    """Distributions of a game of goals or runs."""
    h, a = counts(home, ratio), counts(away, ratio)
    margin, total = scores(h, a, level=level)
    return {"margin": margin, "total": total, "home_score": h, "away_score": a}


def events() -> list[Event]:
    """Return the games of one Saturday in October: live ones, and those until Sunday night."""
    hour = timedelta(hours=1)
    points = "player_points"
    return [
        Event(
            "nba_celtics_lakers_2026-10-24", "basketball", "nba", "Los Angeles Lakers", "Boston Celtics",
            NOW + 11 * hour,
            normal(2.6, 12.3, NO_LEVEL), normal(226.2, 18.3), normal(114.4, 12.0), normal(111.8, 12.0),
            spread_lines=(-2.5, -1.5, -3.5, -4.5, 1.5), total_lines=(226.5, 224.5, 225.5, 227.5, 228.5),
            team_lines=((113.5, 112.5), (112.5, 111.5)),
            props=(
                ("Luka Dončić", points, 29.5, 29.6, 2.6), ("LeBron James", points, 22.5, 22.4, 2.6),
                ("Austin Reaves", points, 18.5, 18.9, 2.6), ("Jaylen Brown", points, 25.5, 25.7, 2.6),
                ("Derrick White", points, 16.5, 16.6, 2.6), ("Payton Pritchard", points, 15.5, 15.4, 2.6),
                ("Luka Dončić", "player_rebounds", 7.5, 7.9, 1.7), ("Jaylen Brown", "player_rebounds", 5.5, 5.9, 1.7),
            ),
            parts=(
                ("1st_half_total_points", 114.6, 12.9, (114.5, 113.5, 115.5)),
                ("1st_quarter_total_points", 57.2, 9.2, (57.5,)),
            ),
            written={"bet365": ("LA Lakers", "Boston Celtics"), "bovada": ("Boston Celtics", "Los Angeles Lakers")},
        ),
        Event(
            "nba_warriors_nuggets_2026-10-24", "basketball", "nba", "Denver Nuggets", "Golden State Warriors",
            NOW - 1.2 * hour, normal(5.1, 8.4, NO_LEVEL), normal(231.4, 11.0), live=True,
            spread_lines=(-4.5, -5.5, -3.5), total_lines=(231.5, 230.5, 232.5),
        ),
        Event(
            "nfl_bills_chiefs_2026-10-25", "football", "nfl", "Kansas City Chiefs", "Buffalo Bills", NOW + 29.4 * hour,
            normal(2.7, 13.0, KEYS), normal(48.1, 13.4), normal(25.4, 9.6), normal(22.7, 9.6),
            spread_lines=(-2.5, -3.0, -3.5, -1.5, -6.5, -7.5), total_lines=(47.5, 48.5, 46.5, 49.5),
            team_lines=((25.5, 24.5), (22.5, 24.5)), parts=(("1st_half_total_points", 23.8, 9.5, (23.5, 24.5)),),
            props=(
                ("Patrick Mahomes", "player_passing_yards", 271.5, 272.6, 18.0),
                ("Josh Allen", "player_passing_yards", 243.5, 242.8, 18.0),
            ),
        ),
        Event(
            "nfl_cowboys_eagles_2026-10-25", "football", "nfl", "Philadelphia Eagles", "Dallas Cowboys",
            NOW + 26 * hour, normal(6.4, 13.0, KEYS), normal(46.2, 13.4),
            spread_lines=(-6.5, -7.0, -7.5), total_lines=(46.5, 45.5, 47.5),
        ),
        Event(
            "nhl_maple_leafs_canadiens_2026-10-24", "hockey", "nhl", "Montréal Canadiens", "Toronto Maple Leafs",
            NOW + 8 * hour, **half_goals(3.15, 3.05, level=False), spread="puck_line", totals="total_goals",
            spread_lines=(1.5, -1.5), total_lines=(6.5, 6.0, 5.5), team_lines=((2.5, 3.5), (2.5, 3.5)),
            props=(
                ("Nick Suzuki", "player_shots_on_goal", 2.5, 2.6, 1.1),
                ("Auston Matthews", "player_shots_on_goal", 3.5, 3.9, 1.1),
            ),
            written=dict.fromkeys((*PLAIN, "circa"), ("Montreal Canadiens", "Toronto Maple Leafs")),
        ),
        Event(
            "nhl_rangers_bruins_2026-10-24", "hockey", "nhl", "Boston Bruins", "New York Rangers", NOW + 8.5 * hour,
            **half_goals(3.2, 2.75, level=False), spread="puck_line", totals="total_goals",
            spread_lines=(-1.5, 1.5), total_lines=(5.5, 6.0, 6.5),
        ),
        Event(
            "mlb_yankees_dodgers_2026-10-24", "baseball", "mlb", "Los Angeles Dodgers", "New York Yankees",
            NOW + 9 * hour,
            **half_goals(4.7, 4.15, level=False, ratio=2.1), spread="run_line", totals="total_runs",
            spread_lines=(-1.5, 1.5), total_lines=(8.5, 8.0, 9.0, 7.5), team_lines=((4.5, 3.5), (3.5, 4.5)),
            props=(("Yoshinobu Yamamoto", "player_strikeouts", 6.5, 6.6, 1.0),),
        ),
        Event(
            "epl_chelsea_arsenal_2026-10-24", "soccer", "epl", "Arsenal", "Chelsea", NOW + 1.5 * hour,
            **half_goals(1.62, 1.08, level=True), draws=True, spread="asian_handicap", totals="total_goals",
            spread_lines=(-0.5, -0.25, -0.75, -1.0, -1.5), total_lines=(2.5, 2.25, 2.75, 3.5),
            team_lines=((1.5,), (0.5, 1.5)),
            written={"circa": ("Chelsea", "Arsenal")},
        ),
        Event(
            "epl_newcastle_liverpool_2026-10-24", "soccer", "epl", "Liverpool", "Newcastle United", NOW - 1 * hour,
            **half_goals(0.95, 0.55, level=True), live=True, draws=True, spread="asian_handicap", totals="total_goals",
            spread_lines=(-0.25, -0.5), total_lines=(1.5, 1.25, 2.5),
        ),
        Event(
            "atp_lehecka_auger-aliassime_2026-10-25", "tennis", "atp", "Félix Auger-Aliassime", "Jiří Lehečka",
            NOW + 22 * hour,
            {1: 0.545, -1: 0.455}, {2: 0.585, 3: 0.415}, totals="total_sets", total_lines=(2.5,),
            written=dict.fromkeys((*PLAIN, "caesars"), ("Felix Auger-Aliassime", "Jiri Lehecka")),
        ),
    ]  # fmt: skip


# ---- what is planted ----

# event's beginning, market, side's number, book: what a unit staked is worth on average, less 1.
PLANS: dict[tuple[str, str, int, str], tuple[str, float]] = {
    ("nba_celtics", "spread -2.5", 0, "fanduel"): ("ev", 0.026),
    ("nfl_bills", "total 47.5", 0, "draftkings"): ("ev", 0.021),
    ("nhl_maple", "ml", 1, "caesars"): ("ev", 0.034),
    ("epl_chelsea", "ml", 1, "bet365"): ("ev", 0.028),
    ("mlb_yankees", "ml", 0, "betmgm"): ("ev", 0.024),
    ("atp_lehecka", "ml", 1, "betrivers"): ("ev", 0.038),
    ("nba_celtics", "Jaylen Brown 25.5", 1, "draftkings"): ("ev", 0.036),
    ("nfl_bills", "Josh Allen 243.5", 0, "bovada"): ("ev", 0.030),
    ("nhl_maple", "total 6.5", 0, "fanduel"): ("arb", 0.024),
    ("nhl_maple", "total 6.5", 1, "bovada"): ("arb", -0.004),
    ("nfl_cowboys", "spread -7.5", 0, "betmgm"): ("arb", 0.025),
    ("nfl_cowboys", "spread -7.5", 1, "fanduel"): ("arb", -0.005),
    ("nba_warriors", "ml", 1, "draftkings"): ("arb", 0.030),
    ("nba_warriors", "ml", 0, "bet365"): ("arb", 0.002),
    ("epl_chelsea", "total 2.75", 1, "caesars"): ("arb", 0.022),
    ("epl_chelsea", "total 2.75", 0, "bet365"): ("arb", -0.008),
    ("nfl_bills", "spread -2.5", 0, "caesars"): ("middle", 0.016),
    ("nfl_bills", "spread -3.5", 1, "bovada"): ("middle", 0.012),
    ("nba_celtics", "total 224.5", 0, "betmgm"): ("middle", 0.014),
    ("nba_celtics", "total 227.5", 1, "caesars"): ("middle", 0.012),
    ("mlb_yankees", "total 7.5", 0, "fanduel"): ("middle", 0.018),
    ("mlb_yankees", "total 9", 1, "bet365"): ("middle", 0.010),
    ("nhl_rangers", "ml", 0, "draftkings"): ("low_hold", -0.007),
    ("nhl_rangers", "ml", 1, "betmgm"): ("low_hold", -0.002),
    ("nfl_cowboys", "total 46.5", 0, "caesars"): ("low_hold", -0.002),
    ("nfl_cowboys", "total 46.5", 1, "bet365"): ("low_hold", -0.009),
    ("nba_warriors", "total 231.5", 0, "fanduel"): ("low_hold", -0.006),
    ("nba_warriors", "total 231.5", 1, "bet365"): ("low_hold", -0.002),
}


def offers(rng: random.Random, event: Event, market: Market) -> list[str]:
    """Return the books that quote a market: all of them for main markets, fewer for others."""
    main = market.key == "ml" or market.key in {
        *(f"spread {line:g}" for line in event.spread_lines[:1]), *(f"total {line:g}" for line in event.total_lines[:1])
    }  # fmt: skip
    planned = {b for (e, key, _, b) in PLANS if event.id.startswith(e) and key == market.key}
    if market.team:  # a book has all lines of both teams, or none
        soft = [b for b in SOFT if random.Random(f"{event.id} {b}").random() < 0.6]
        return [b for b in BOOKS if b == "pinnacle" or b in soft]
    if market.player:
        sharp, share = ["pinnacle"], 0.85
    elif main:
        sharp, share = [*SHARP, *(["polymarket_mid"] if market.key == "ml" else [])], 1.0
    else:
        sharp, share = ["pinnacle", *(["circa"] if rng.random() < 0.6 else [])], 0.9
    chosen = [b for b in SOFT if b in planned or rng.random() < share]
    if "betrivers" in planned and "unibet" not in chosen:
        chosen.append("unibet")
    return [b for b in BOOKS if b in {*sharp, *chosen, *planned}]


def quote(rng: random.Random, event: Event, market: Market, book: Book, opinions: dict[str, list[float]]) -> list[Row]:
    """Return one book's prices of one market."""
    truth = [p for *_, p in market.sides]
    provider = SISTERS.get(book.id, book.id)
    tilt = opinions.setdefault(provider, [rng.gauss(0, book.noise) for _ in truth])
    margin = book.margin + market.extra if book.margin else 0.0
    implied = stretched(tilted(truth, tilt), 1 + margin)
    plans = {
        at: PLANS[key]
        for at in range(len(truth))
        for key in [next((k for k in PLANS if event.id.startswith(k[0]) and k[1:] == (market.key, at, provider)), None)]
        if key
    }
    for at, (_, worth) in plans.items():
        best = truth[at] / (1 + worth)
        rest = (1 + margin - best) / sum(q for k, q in enumerate(implied) if k != at)
        implied = [best if k == at else q * rest for k, q in enumerate(implied)]
    seen = NOW - timedelta(
        seconds=rng.choice((0, 1, 1, 2, 2, 3)) if event.live else rng.choice((2, 5, 9, 14, 22, 31, 40, 52))
    )
    if not event.live and rng.random() < 0.06:
        seen -= timedelta(seconds=rng.choice((45, 90, 150)))
    changed = seen - timedelta(seconds=rng.randrange(5, 40) if event.live else rng.randrange(60, 7200))
    home, away = event.written.get(book.id, (event.home, event.away))
    turned = home == event.away or away == event.home
    player = (folded(market.player) if book.id in PLAIN else market.player) or None
    rows = []
    for at, (selection, kind, line, p) in enumerate(market.sides):
        text, kind_ = selection, kind
        for true, own in ((event.home, away if turned else home), (event.away, home if turned else away)):
            text = text.replace(true, own)
        if turned:
            kind_ = "_".join({"home": "away", "away": "home"}.get(part, part) for part in kind.split("_"))
        if book.lines and line is not None:
            spread = kind in ("home", "away")
            text += f" {line:+g}" if spread else f" {line:g}"
        us, dec = price(book, 1 / implied[at])
        code = f"{len(event.id) * 7919 + sum(map(ord, event.id)) * 31:06d}"
        if book.id in PLAIN:
            text = folded(text)
        spelt = (text.isascii() and not selection.isascii()) or (home, away) != (event.home, event.away)
        odd = "neighbour:turned" if turned else "neighbour:spelling" if spelt else ""
        if book.id == "polymarket_mid":
            odd = "hazard:mid_price_source"
        label = plans[at][0] if at in plans else odd
        rows.append(
            {
                "sportsbook": book.id, "event_id": event.id, "sport": event.sport, "league": event.league,
                "home_team": home, "away_team": away, "event_start_time": event.start, "is_live": event.live,
                "market_type": market.type, "selection": text, "selection_type": kind_ if book.types else None,
                "line": line, "odds_american": us, "odds_decimal": dec, "last_seen_at": seen,
                "odds_changed_at": changed, "is_active": True, "flap": None, "player_name": player, "team_side": None,
                "external_event_id": code if book.link else None,
                "selection_id": f"{code}-{market.key.replace(' ', '_')}-{at}" if book.id == "draftkings" else None,
                "deep_link": book.link.format(code) if book.link else None,
                "planted": label, "true_probability": p,
            }
        )  # fmt: skip
    return rows


# ---- hazards ----


class Board:
    """The rows so far, with methods to find and copy them."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def find(self, event: str, market: str, book: str, line: float | None = None, word: str = "") -> list[Row]:
        """Find rows of one book's market, optionally of one line, whose text or type contains `word`."""
        return [
            row
            for row in self.rows
            if row["event_id"].startswith(event) and row["market_type"] == market and row["sportsbook"] == book
            and (line is None or abs(row["line"] or 0.0) == abs(line))
            and word.casefold() in f"{row['selection']} {row['selection_type']}".casefold()
        ]  # fmt: skip

    def drop(self, rows: Iterable[Row]) -> None:
        """Remove rows."""
        gone = {id(row) for row in rows}
        self.rows = [row for row in self.rows if id(row) not in gone]

    def add(self, like: Row, label: str, **changes: Any) -> Row:
        """Add a modified copy of a row, without true probabilities."""
        row = {**like, "planted": f"hazard:{label}", "true_probability": None, **changes}
        self.rows.append(row)
        return row

    def spoil(self, row: Row, label: str, odds: float | None = None, **changes: Any) -> None:
        """Modify a row, and label it."""
        row.update(planted=f"hazard:{label}", **changes)
        if odds is not None:
            reprice(row, odds)


def _rows_that_are_no_price(board: Board) -> None:
    a, b, c, d = board.find("nfl_cowboys", "total_points", "bovada")[:4]
    board.spoil(a, "bad_price", odds_american=None, odds_decimal=1.0)
    board.spoil(b, "bad_price", odds_american=None, odds_decimal=None)
    board.spoil(c, "bad_value", odds_american="SUSP")
    board.spoil(d, "missing_value", selection=None)


def _one_row(board: Board) -> None:
    """Add rows that contradict themselves, and rows without required values."""
    row = board.find("nfl_cowboys", "moneyline", "bet365", word="Dallas")[0]
    board.spoil(row, "price_mismatch", odds_american=-140.0, odds_decimal=4.1)
    row = board.find("nhl_rangers", "total_goals", "fanduel", 5.5, "under")[0]
    board.spoil(row, "side_conflict", 2.35, selection="Over")
    row = board.find("nfl_cowboys", "point_spread", "draftkings", 6.5, "home")[0]
    board.spoil(row, "no_line", 2.20, line=None)
    for row in board.find("nhl_rangers", "moneyline", "polymarket_mid"):
        name = row["selection"]
        board.spoil(row, "unknown_outcome", selection=f"{name} Yes")
        board.add(row, "unknown_outcome", selection=f"{name} No")
    for row in board.find("mlb_yankees", "moneyline", "caesars", word="Dodgers"):
        board.add(row, "suspended", is_active=False, odds_american=-105.0, market_type="money_line")


def _lost_team_labels(board: Board) -> None:
    """Remove the team from one book's totals; label another's team totals as the home side's."""
    book = next(b for b in SOFT if BOOKS[b].types and board.find("nfl_bills", "team_total", b))
    for row in board.find("nfl_bills", "team_total", book):
        board.spoil(row, "unknown_outcome", selection=row["selection_type"].split("_")[1].title(), selection_type=None)
    board.drop(board.find("nba_celtics", "team_total", "fanduel"))
    like = board.find("nba_celtics", "moneyline", "fanduel")[0]
    for line, odds in ((112.5, (1.80, 1.95)), (110.5, (1.66, 2.18)), (108.5, (1.52, 2.50)), (106.5, (1.42, 2.80))):
        for word, d in zip(("over", "under"), odds, strict=True):
            row = board.add(
                like, "one_team_lines", market_type="team_total", line=line,
                selection=f"Los Angeles Lakers {word.title()}", selection_type=f"home_{word}",
            )  # fmt: skip
            reprice(row, d)


def _times(board: Board) -> None:
    """Add outdated prices: hours old, seconds old in play, or marked pre-match after the start."""
    old = NOW - timedelta(minutes=27)
    for row, odds in zip(board.find("mlb_yankees", "total_runs", "betrivers", 8.5), (2.22, 1.70), strict=True):
        board.spoil(row, "stale", odds, last_seen_at=old)
    for row in board.find("mlb_yankees", "total_runs", "unibet", 8.5):
        row["last_seen_at"] = old
        row["planted"] = "hazard:stale"
    for row, odds in zip(board.find("nba_warriors", "moneyline", "betmgm"), (1.72, 2.45), strict=True):
        board.spoil(row, "stale", odds, last_seen_at=NOW - timedelta(seconds=41))
    for row, odds in zip(board.find("nba_warriors", "point_spread", "caesars", 4.5), (2.10, 1.82), strict=True):
        board.spoil(row, "live_leg", odds, last_seen_at=NOW - timedelta(seconds=14))
    for row, odds in zip(board.find("epl_newcastle", "moneyline", "bovada"), (1.62, 4.4, 6.2), strict=True):
        board.spoil(row, "started_not_live", odds, is_live=False)
    for row, odds in zip(board.find("epl_newcastle", "moneyline", "betmgm"), (1.60, 4.3, 6.0), strict=True):
        board.spoil(row, "started_not_live", odds, is_live=False)


def _one_book(board: Board) -> None:
    """Add contradictions within a book."""
    row = board.find("nfl_bills", "moneyline", "draftkings", word="Buffalo")[0]
    board.spoil(row, "duplicate_outcome", 2.18)
    board.add(row, "duplicate_outcome", odds_american=165.0)
    for line, odds in ((224.5, (1.98, 1.84)), (225.5, (1.88, 1.93)), (228.5, (1.62, 2.30))):
        board.drop(board.find("nba_celtics", "total_points", "bovada", line))
        like = board.find("nba_celtics", "total_points", "bovada", 226.5)
        for row, d in zip(like, odds, strict=True):
            text = f"{row['selection_type'].title()} {line:g}"
            reprice(board.add(row, "ladder", line=line, selection=text), d)
    for row in board.find("nba_celtics", "total_points", "bovada"):
        row["planted"] = "hazard:ladder"
    for row, d in zip(board.find("epl_chelsea", "total_goals", "betmgm", 2.5), (1.62, 2.36), strict=True):
        board.add(row, "internal_conflict", market_type="asian_total_goals")
        reprice(board.rows[-1], d)
        board.rows[-1]["true_probability"] = None
    for row in board.find("mlb_yankees", "run_line", "bovada"):  # one market below 1 takes the ladder with it
        row["planted"] = "hazard:book_sum"
    for row, d in zip(board.find("mlb_yankees", "run_line", "bovada", 1.5)[:2], (2.75, 1.68), strict=True):
        reprice(row, d)
    for row, d in zip(board.find("atp_lehecka", "total_sets", "caesars", 2.5), (1.40, 1.75), strict=True):
        board.spoil(row, "book_sum", d)


def _against_the_others(board: Board) -> None:
    """Add contradictions with all other books."""
    board.drop(board.find("mlb_yankees", "total_runs", "draftkings"))
    like = board.find("mlb_yankees", "moneyline", "draftkings")[0]
    for line, odds in ((4.5, (1.95, 1.87)), (5.5, (2.65, 1.50))):
        for word, d in zip(("Over", "Under"), odds, strict=True):
            row = board.add(
                like, "ladder_cross", market_type="total_runs", line=line, selection=word, selection_type=word.lower(),
                selection_id=None,
            )  # fmt: skip
            reprice(row, d)
    names = {folded(r["player_name"]) for r in board.rows if r["market_type"] == "player_points"}
    board.drop(board.find("nba_celtics", "player_points", "caesars"))
    for name in sorted(names):
        like = next(
            r for r in board.rows if r["market_type"] == "player_points" and folded(r["selection"]) == f"{name} Over"
        )
        row = board.add(
            like, "bias", sportsbook="caesars", selection_type="over", external_event_id=None, selection_id=None,
            deep_link=None,
        )  # fmt: skip
        reprice(row, 2.24 + 0.01 * (len(name) % 4))
    for row, d in zip(board.find("atp_lehecka", "moneyline", "fanduel"), (2.32, 1.62), strict=True):
        board.spoil(row, "outlier", d)
    for row, d in zip(board.find("nfl_bills", "total_points", "caesars", 47.5), (1.83, 2.08), strict=True):
        board.spoil(row, "flap", d, flap=True)
    row = board.find("mlb_yankees", "player_strikeouts", "pinnacle", word="over")[0]
    board.drop([r for r in board.rows if r["market_type"] == "player_strikeouts" and r["sportsbook"] != "pinnacle"])
    board.add(
        row,
        "ev_cap",
        sportsbook="bovada",
        odds_american=220.0,
        odds_decimal=None,
        selection="Yoshinobu Yamamoto Over 6.5",
    )


def _look_alikes(board: Board) -> None:
    """Add similar markets: double chance, a two-way line in soccer, yes and no typed home and away."""
    like = board.find("epl_chelsea", "moneyline", "bet365")[0]
    none = {"external_event_id": None, "selection_id": None, "deep_link": None, "selection_type": None, "line": None}
    for book, prices in (
        ("bet365", (1.25, 1.62, 1.33)),
        ("betrivers", (1.24, 1.60, 1.34)),
        ("unibet", (1.24, 1.60, 1.34)),
    ):
        for text, d in zip(("Arsenal or Draw", "Chelsea or Draw", "Arsenal or Chelsea"), prices, strict=True):
            row = board.add(like, "double_chance", **none, sportsbook=book, market_type="double_chance", selection=text)
            reprice(row, d)
    board.drop(board.find("epl_chelsea", "moneyline", "caesars"))
    for text, d in (("Arsenal", 1.60), ("Chelsea", 2.62)):
        row = board.add(
            like, "ambiguous_moneyline", **none, sportsbook="caesars", market_type="moneyline", selection=text
        )
        reprice(row, d)
    for book, kinds, pair in (
        ("fanduel", ("home", "away"), (1.80, 1.99)), ("pinnacle", ("yes", "no"), (1.84, 2.02)),
        ("draftkings", ("yes", "no"), (1.79, 2.00)), ("betmgm", ("home", "away"), (1.77, 1.97)),
    ):  # fmt: skip
        for text, kind, d in zip(("Yes", "No"), kinds, pair, strict=True):
            row = board.add(
                like, "yes_no", **{**none, "selection_type": kind}, sportsbook=book, market_type="both_teams_to_score",
                selection=text,
            )  # fmt: skip
            reprice(row, d)
            both = (1 - math.exp(-1.62)) * (1 - math.exp(-1.08))
            row.update(planted="neighbour:yes_no", true_probability=both if text == "Yes" else 1 - both)


HAZARDS: tuple[Callable[[Board], None], ...] = (
    _rows_that_are_no_price, _one_row, _lost_team_labels, _times, _one_book, _against_the_others, _look_alikes,
)  # fmt: skip


# ---- the file ----


def build() -> list[Row]:
    """Build the whole board."""
    rng = random.Random(SEED)
    rows: list[Row] = []
    for event in events():
        for market in markets(event):
            opinions: dict[str, list[float]] = {}
            for book in offers(rng, event, market):
                rows += quote(rng, event, market, BOOKS[book], opinions)
    board = Board(rows)
    for hazard in HAZARDS:
        hazard(board)
    rng.shuffle(board.rows)
    return board.rows


def _text(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return (
            f"{value:.6f}"
            if name == "true_probability"
            else f"{value + 0.0:g}"
            if name != "odds_decimal"
            else repr(value)
        )
    return "" if value is None else value


def text() -> str:
    """Return the contents of the file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_text(name, row[name]) for name in COLUMNS] for row in build())
    return out.getvalue()


def main() -> None:
    """Write the board."""
    content = text()
    OUT.write_text(content, encoding="utf-8")
    lines = content.count("\n") - 1
    print(f"{OUT.name}: {lines} rows, {OUT.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
