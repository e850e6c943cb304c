"""The other books' close: how many books it needs."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from oddsengine import catalog
from oddsengine.history.closing_consensus import close_logit, votes_at

NOW = datetime(2026, 2, 7, 18, tzinfo=UTC)


def closed(*books: str, market: str = "moneyline", sport: str = "basketball") -> tuple[float, str]:
    """The close of FanDuel's price on the home side by the books that quote the market, all even."""
    player = "Sam Smith" if market.startswith("player") else None
    sides = ("Over", "Under") if player else ("Lakers", "Celtics")
    rows = [
        {
            "sportsbook": book, "event_id": "e", "sport": sport, "home_team": "Lakers", "away_team": "Celtics",
            "market_type": market, "player_name": player, "line": 2.5 if player else None, "selection": side,
            "odds_decimal": 1.95, "event_start_time": NOW + timedelta(minutes=5), "last_seen_at": NOW,
        }
        for book in books
        for side in sides
    ]  # fmt: skip
    closes = pl.DataFrame(rows, schema_overrides={"player_name": pl.String, "line": pl.Float64})
    found = votes_at(closes.with_columns(snapshot_at=pl.col("last_seen_at").to_physical()), catalog.fair_table())
    (votes,) = found.values()
    return close_logit(votes, catalog.book("fanduel").provider, votes[0].threshold, 0, 2, float("nan"), 0)


@pytest.mark.parametrize("exchange", ["novig", "kalshi", "circa"])
def test_an_exchange_alone_is_no_close(exchange: str) -> None:
    assert closed("fanduel", exchange)[1] == ""
    assert closed("fanduel", exchange, "betmgm", "caesars")[1] == ""
    x, who = closed("fanduel", exchange, "betmgm", "caesars", "bovada")
    assert (abs(x) < 0.02, who) == (True, "others")


@pytest.mark.parametrize(
    ("market", "sport", "who"),
    [
        ("moneyline", "basketball", "sharp"), ("player_shots_on_goal", "hockey", "sharp"),
        ("player_points", "basketball", ""),
    ],
)  # fmt: skip
def test_pinnacle_is_a_close_of_its_own_where_it_was_measured_alone(market: str, sport: str, who: str) -> None:
    assert closed("fanduel", "pinnacle", market=market, sport=sport)[1] == who
