"""Large generated boards for the benchmarks: realistic names, books and prices, no hazards but plain noise.

200 prices an event, 15 markets of two sides (a moneyline, five spreads, five totals, two lines of each of two props),
on average 7 of 20 books each; four sports; book after book, as feeds deliver.
"""

import datetime as dt

import numpy as np
import polars as pl

NOW = dt.datetime(2026, 2, 8, 18, tzinfo=dt.UTC)
BOOKS = (
    "pinnacle", "circa", "draftkings", "fanduel", "betmgm", "caesars", "bet365", "betrivers", "bovada", "hardrock",
    "espnbet", "fanatics", "unibet", "betway", "williamhill", "ladbrokes", "bwin", "betfair_exchange",
    "matchbook", "888sport",
)  # fmt: skip
_SPORTS = (
    ("basketball", "nba", 220.5, 12.3, 18.3),
    ("football", "nfl", 45.5, 13.0, 13.4),
    ("hockey", "nhl", 6.5, 2.4, 2.4),
    ("soccer", "epl", 2.5, 1.6, 1.6),
)


def board(rows: int, seed: int = 1) -> pl.DataFrame:
    """Make a pre-match board of about `rows` prices."""
    rng = np.random.default_rng(seed)
    events = max(1, rows // 200)
    market = np.tile(np.arange(15), events)
    event = np.repeat(np.arange(events), 15)
    quotes = rng.random((market.size, len(BOOKS))) < 0.34
    quotes[:, 0] |= rng.random(market.size) < 0.75
    at, book = np.nonzero(quotes)
    m, e = market[at], event[at]
    sport = e % len(_SPORTS)
    total = np.array([s[2] for s in _SPORTS])[sport]
    kind = np.select([m == 0, m <= 5, m <= 10], [0, 1, 2], 3)
    step = np.select([m <= 5, m <= 10], [m - 3, m - 8], (m - 11) % 2)
    spread = -2.5 + step
    line = np.select([kind == 1, kind == 2, kind == 3], [spread, total + step, 20.5 + step], np.nan)
    centre = rng.normal(0, 0.25, events)[e]
    slope = np.select([kind == 1, kind == 2, kind == 3], [0.12, -0.11, -0.16], 0.0)
    soft = rng.normal(0, 0.035, at.size)
    logit = centre * (kind <= 1) + slope * step + np.where(book == 0, 0.0, soft)
    p = 1.0 / (1.0 + np.exp(-logit))
    margin = np.where(book < 2, 0.025, 0.05)[:, None]
    q = np.stack([p, 1.0 - p], axis=1) * (1.0 + margin)
    odds = np.round(1.0 / np.clip(q, 0.02, 0.985), 3).ravel()
    side = np.tile([0, 1], at.size)
    pick = np.repeat(np.arange(at.size), 2)
    e, m, kind, line, book, sport = e[pick], m[pick], kind[pick], line[pick], book[pick], sport[pick]
    line = np.where((kind == 1) & (side == 1), -line, line)
    leagues = np.array([s[1] for s in _SPORTS])
    home = pl.Series([f"{leagues[i % 4].title()} Home {i % 600}" for i in range(events)])
    away = pl.Series([f"{leagues[i % 4].title()} Away {i % 587}" for i in range(events)])
    ids = pl.Series(
        [f"{leagues[i % 4]}_home_{i % 600}_away_{i % 587}_2026-02-{9 + i // 2000:02d}_{i}" for i in range(events)]
    )
    types = pl.Series(["moneyline", "point_spread", "total_points", "player_points", "moneyline_2way"])
    teams = pl.select(pl.when(pl.Series(side) == 0).then(home.gather(e)).otherwise(away.gather(e))).to_series()
    over = pl.Series(["Over", "Under"]).gather(side)
    player = pl.Series([f"Player Number {i}" for i in range(4000)]).gather((e * 2 + (m - 11) // 2) % 4000)
    # Soccer's moneyline would want its draw: there the market is draw no bet.
    type_code = np.where((kind == 0) & (sport == 3), 1, kind)
    line = np.where((kind == 0) & (sport == 3), 0.0, line)
    frame = pl.DataFrame(
        {
            "sportsbook": pl.Series(BOOKS).gather(book),
            "event_id": ids.gather(e),
            "sport": pl.Series([s[0] for s in _SPORTS]).gather(sport),
            "league": pl.Series(leagues).gather(sport),
            "home_team": home.gather(e),
            "away_team": away.gather(e),
            "market_type": types.gather(type_code),
            "selection": pl.select(pl.when(pl.Series(kind) <= 1).then(teams).otherwise(over)).to_series(),
            "selection_type": pl.select(
                pl.when(pl.Series(kind) <= 1)
                .then(pl.Series(["home", "away"]).gather(side))
                .otherwise(over.str.to_lowercase())
            ).to_series(),
            "player_name": pl.select(pl.when(pl.Series(kind) == 3).then(player)).to_series(),
            "odds_decimal": odds,
            "line": pl.Series(line).fill_nan(None),
            "event_start_time": pl.Series([NOW + dt.timedelta(hours=5)])
            .cast(pl.Datetime("us", "UTC"))
            .gather(np.zeros(odds.size, np.int64)),
            "is_live": np.zeros(odds.size, bool),
            "last_seen_at": pl.Series(
                np.datetime64(NOW.replace(tzinfo=None), "us") - rng.integers(0, 50_000_000, odds.size)
            ).dt.replace_time_zone("UTC"),
        }
    )
    return frame.sort("sportsbook", maintain_order=True)
