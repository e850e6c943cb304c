"""Fills of a tape that was recorded from the servers of two venues: Seattle at Kalshi, Dallas at Polymarket."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.exchanges_running import Exchanges, exchanges

import oddsengine as oe


def fetched(both: Exchanges) -> pl.DataFrame:
    """All prices of both, as their feeds read them now."""
    settings: dict[str, dict[str, Any]] = {"kalshi": {}, "polymarket": {}}
    for name, value in both.environ.items():
        kind, _, setting = name.removeprefix("ODDSENGINE_FEEDS_").lower().partition("_")
        settings[kind][setting] = value
    settings["polymarket"]["stream"] = False
    for own in settings.values():
        own.pop("kind")
        own["sports"] = ["nfl"]
    return pl.DataFrame(oe.fetch(settings))


def test_a_tape_of_two_venues_has_fills_with_their_fees_and_levels(tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    engine, writer = oe.resume(tmp_path / "tape")
    with exchanges() as both, writer:
        for second, asks in ((0, [(0.36, 500), (0.37, 300)]), (5, [(0.36, 20), (0.37, 300)]), (40, [(0.44, 100)])):
            both.polymarket.books["t1"] = dict(bids=[(0.30, 400)], asks=asks)
            both.polymarket.books["t2"] = dict(bids=[(1.0 - asks[0][0], asks[0][1])], asks=[(0.70, 400)])
            at = now + timedelta(seconds=second)
            table = fetched(both).with_columns(
                last_seen_at=pl.lit(at), odds_changed_at=pl.lit(None, pl.Datetime("us", "UTC"))
            )
            engine.step(table, at)
    found = oe.fills(tmp_path / "tape", kinds=["arbitrage"], stakes=[50.0, 400.0], orders=True)
    rows = found.attempts.sort("stake", "bound")
    assert rows["sportsbooks"].list.sort().to_list() == [["kalshi", "polymarket"]] * 4
    assert rows["known_size"].all()
    whole = rows.filter(stake=50.0, bound="most").row(0, named=True)
    assert whole["outcome"] == "whole"
    # 0.60 and 0.36, with fees of 0.07 and 0.03 p (1 - p): whole contracts, and what Polymarket charges rounded up.
    units = whole["units"][0]
    assert units == pytest.approx(int(units))
    cost = units * (0.60 + 0.36 + 0.07 * 0.6 * 0.4 + 0.03 * 0.36 * 0.64)
    assert cost <= whole["staked"] < cost + 0.03
    least = rows.filter(stake=400.0, bound="least").row(0, named=True)
    assert least["reason"] == "not enough"  # of the 500 at 0.36, 20 are left
    assert min(least["units"]) <= 320.0
    assert found.orders is not None
    assert found.orders["reason"].is_null().any()
