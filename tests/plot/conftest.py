"""Prices that several tests of plots draw."""

import polars as pl
import pytest
from support.effort import less

import oddsengine as oe


@pytest.fixture(scope="session")
def past() -> pl.DataFrame:
    """An afternoon of simulated prices."""
    books = ["pinnacle", "draftkings", "fanduel", "betmgm", "caesars"]
    world = oe.World(7, events=8, live=0.0, tick=less(300, 600), books=books)
    quotes = [{**quote, "last_seen_at": batch.now} for batch in world.run(7 * 3600) for quote in batch.quotes]
    return pl.DataFrame(quotes, infer_schema_length=None)
