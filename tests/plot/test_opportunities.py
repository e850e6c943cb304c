"""What the plots of opportunities draw: bars, lines, names, and their errors."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import oddsengine as oe
from oddsengine.plot import edges, lifetimes, stakes
from oddsengine.tables.sample import SAMPLE_BOARD

_NOON = datetime(2026, 2, 8, 12, tzinfo=UTC)


def only(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


@pytest.fixture(scope="module")
def odds() -> oe.OddsTable:
    return oe.read_odds(SAMPLE_BOARD)


# ---- EV of every price ----


def heights(axes: Axes, at: int) -> list[float]:
    """The numbers of prices in the bars of one part."""
    return [bar.get_height() for bar in axes.containers[at]]


def test_edges_count_every_price_that_has_a_fair_price(odds: oe.OddsTable) -> None:
    axes = only(edges(odds))
    fair = oe.fair(odds)
    usable = 100.0 * fair.filter(pl.col("guard").is_null())["ev"].drop_nulls().to_numpy()
    wanted = np.histogram(usable.clip(-20.0, 39.5), np.arange(-20.0, 41.0))[0]
    np.testing.assert_array_equal(heights(axes, 0), wanted)
    rejected = fair.filter(pl.col("guard").is_not_null()).drop_nulls("fair_probability")
    percent = 100.0 * (rejected["fair_probability"] * rejected["net_odds"].fill_null(rejected["odds_decimal"]) - 1.0)
    wanted = np.histogram(percent.to_numpy().clip(-20.0, 39.5), np.arange(-20.0, 41.0))[0]
    np.testing.assert_array_equal(heights(axes, 1), wanted)
    names = f"{usable.size:,} can be bet", f"{percent.len():,} rejected by guards"
    assert tuple(axes.get_legend_handles_labels()[1]) == names
    assert heights(axes, 1)[0] > 0  # beyond the left end
    wrong = pl.col("sportsbook").eq("bovada") & pl.col("selection").eq("Under 228.5")
    odd = odds.with_columns(
        odds_american=pl.when(wrong).then(None).otherwise("odds_american"),
        odds_decimal=pl.when(wrong).then(3.3).otherwise("odds_decimal"),
    )
    assert heights(only(edges(odd)), 1)[-1] > 0  # beyond the right one
    assert axes.get_title(loc="left") == "EV of every price of all books"


def test_edges_of_some_books_have_the_fair_prices_of_all(odds: oe.OddsTable) -> None:
    axes = only(edges(odds, books=["DK", "fanduel"]))
    fair = oe.fair(odds).filter(pl.col("sportsbook").is_in(["draftkings", "fanduel"]))
    assert sum(heights(axes, 0)) == fair["ev"].count()
    assert axes.get_title(loc="left") == "EV of every price of 2 books"


def test_edges_say_what_has_no_fair_price(odds: oe.OddsTable) -> None:
    with pytest.raises(ValueError, match=r"no price of kalshi has a fair price; those of bet365, .* do"):
        edges(odds, books=["kalshi"])
    with pytest.warns(oe.OddsWarning), pytest.raises(ValueError, match="no price has a fair price"):
        edges(pl.DataFrame(odds).filter(sportsbook="fanduel"))


# ---- lifetimes ----


def scanned(*lives: tuple[str, float, float | None]) -> pl.DataFrame:
    """Opportunities by kind, from and to a minute."""
    rows = [
        {"kind": kind, "born_at": _NOON + timedelta(minutes=born), "died_at": died and _NOON + timedelta(minutes=died)}
        for kind, born, died in lives
    ]
    return pl.DataFrame(
        rows, schema={"kind": pl.String, "born_at": pl.Datetime("us", "UTC"), "died_at": pl.Datetime("us", "UTC")}
    )


def test_lifetimes_are_the_share_that_is_left() -> None:
    axes = only(lifetimes(scanned(("ev", 0, 1), ("ev", 5, 7), ("ev", 0, 2), ("ev", 0, 10), ("arbitrage", 3, 4))))
    by_label = {str(line.get_label()): line for line in axes.get_lines()}
    assert list(by_label) == ["+EV, 4", "arbitrage, 1"]
    np.testing.assert_allclose(by_label["+EV, 4"].get_xydata(), [(0, 100), (1, 75), (2, 25), (10, 0)])  # type: ignore[arg-type]
    np.testing.assert_allclose(by_label["arbitrage, 1"].get_xydata(), [(0, 100), (1, 0)])  # type: ignore[arg-type]


def test_what_is_open_at_the_end_counts_until_then() -> None:
    """Of four, one ends after 2, one is last seen open after 4, so one of two that are left ends after 6."""
    (line,) = only(lifetimes(scanned(("ev", 0, 2), ("ev", 6, None), ("ev", 0, 6), ("ev", 0, 10)))).get_lines()
    np.testing.assert_allclose(line.get_xydata(), [(0, 100), (2, 75), (4, 75), (6, 37.5), (10, 0)])  # type: ignore[arg-type]


def test_lifetimes_are_drawn_until_few_are_left() -> None:
    lives = [("ev", 0.0, float(minute)) for minute in range(1, 101)]
    assert only(lifetimes(scanned(*lives))).get_xlim() == pytest.approx((0.0, 98.0), abs=1.0)
    assert only(lifetimes(scanned(*lives), minutes=30)).get_xlim() == (0.0, 30.0)


@pytest.mark.parametrize("minutes", [0, -1.0, float("nan")])
def test_lifetimes_need_a_time(minutes: float) -> None:
    with pytest.raises(ValueError, match=rf"minutes must be above 0, got {minutes}"):
        lifetimes(scanned(("ev", 0, 1)), minutes=minutes)


def test_lifetimes_say_what_they_cannot_draw() -> None:
    with pytest.raises(ValueError, match="there are no opportunities"):
        lifetimes(scanned())
    with pytest.raises(ValueError, match="needs a result of scan_history; the table has no born_at, died_at"):
        lifetimes(pl.DataFrame({"kind": ["ev"]}))


# ---- stakes ----


def bets(number: int, **more: Any) -> pl.DataFrame:
    game = {"sport": "basketball", "home_team": "Los Angeles Lakers", "away_team": "Boston Celtics"}
    rows = [
        {
            **game, "event_id": f"e{at}", "sportsbook": "fanduel", "market_type": "moneyline", "selection": "Lakers",
            "line": None, "odds_decimal": 2.0, "fair_probability": 0.52 + 0.001 * at, **more,
        }
        for at in range(number)
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def test_stakes_are_those_alone_and_together_in_percent() -> None:
    portfolio = oe.kelly_portfolio(bets(3), bankroll=1000, max_book=60)
    axes = only(stakes(portfolio))
    alone, together = ([bar.get_width() for bar in container] for container in axes.containers)
    found = portfolio.bets.sort("kelly_fraction", descending=True)
    np.testing.assert_allclose(alone, 100 * found["kelly_fraction"].to_numpy())
    np.testing.assert_allclose(together, 100 * found["stake_fraction"].to_numpy())
    assert alone == pytest.approx([4.4, 4.2, 4.0])
    assert sum(together) == pytest.approx(6.0)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0] == "Lakers, FanDuel\nBoston Celtics @ Los Angeles Lakers"


def test_a_long_name_leaves_room_for_the_book() -> None:
    portfolio = oe.kelly_portfolio(bets(1, event_name="A" * 60))
    (name,) = (label.get_text() for label in only(stakes(portfolio)).get_yticklabels())
    assert name == f"Lakers, FanDuel\n{'A' * 43}…"


def test_bets_without_a_stake_are_left_out() -> None:
    both = pl.concat([bets(2), bets(1, event_id="x", fair_probability=0.4)])
    assert len(only(stakes(oe.kelly_portfolio(both))).get_yticklabels()) == 2
    with pytest.raises(ValueError, match="the portfolio has no bet with a stake"):
        stakes(oe.kelly_portfolio(bets(1, fair_probability=0.4)))
    with pytest.raises(ValueError, match="the portfolio has 41 bets, at most 40 can be read; filter them first"):
        stakes(oe.kelly_portfolio(bets(41)))
