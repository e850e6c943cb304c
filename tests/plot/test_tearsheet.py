"""Tear sheets: what they draw, and the file."""

import base64
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import oddsengine as oe
from oddsengine import catalog
from oddsengine.plot.audit_plots import bet_points
from oddsengine.plot.tearsheet import tear_sheet, write_tear_sheet


@pytest.fixture(scope="module")
def result(past: pl.DataFrame) -> oe.Backtest:
    return oe.backtest(past, oe.Strategy(min_ev=1.0))


def test_it_draws_the_plots_of_the_backtest(result: oe.Backtest) -> None:
    axes = tear_sheet(result).axes
    assert [each.get_title(loc="left").partition(":")[0] for each in axes] == [
        "Expected at the close", "Drawdown of the expected bankroll", "EV at the close by EV shown",
        "EV at the close by book", "EV at the close by market",
        "EV at the close by hours to the start",
    ]  # fmt: skip
    (single,) = oe.plot.bankroll(result).axes[:1]
    for one, other in zip(axes[0].get_lines(), single.get_lines(), strict=True):
        np.testing.assert_array_equal(np.asarray(one.get_ydata()), np.asarray(other.get_ydata()))
    (points,) = axes[2].containers
    found = points.lines[0].get_ydata()  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, [point.worth for point in bet_points(result, 6)])
    books = result.by("sportsbook").filter(pl.col("graded") > 0)
    (shown,) = (line for line in axes[3].get_lines() if line.get_label() == "EV shown")
    np.testing.assert_allclose(np.asarray(shown.get_xdata(), float), books["ev"].to_numpy() * 100.0)
    names = [label.get_text().rpartition(" (")[0] for label in axes[3].get_yticklabels()]
    assert names == [catalog.book(book).name for book in books["sportsbook"]]
    assert not [label for label in axes[4].get_yticklabels() if "_" in label.get_text()]


def test_with_scores_it_draws_the_share_that_won(past: pl.DataFrame) -> None:
    events = past["event_id"].unique().sort()
    scores = pl.DataFrame({"event_id": events, "home_score": range(3, 3 + events.len()), "away_score": 4})
    axes = tear_sheet(oe.backtest(past, oe.Strategy(min_ev=0.5), results=scores)).axes
    assert (axes[2].get_title(loc="left"), axes[2].get_xlabel()) == ("Calibration", "fair probability")


def test_a_file_has_figures_plots_and_trades(result: oe.Backtest, past: pl.DataFrame, tmp_path: Path) -> None:
    write_tear_sheet(result, tmp_path / "sheet.html")
    text = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    picture = re.search(r"data:image/png;base64,([^']+)'", text)
    assert picture
    assert base64.b64decode(picture[1]).startswith(b"\x89PNG")
    assert "http" not in re.sub(r"data:image[^']+", "", text)
    assert text.count("<tr>") >= result.trades.height
    empty = oe.backtest(past, oe.Strategy(min_ev=500.0))
    write_tear_sheet(empty, tmp_path / "empty.html")
    assert "<img" in (tmp_path / "empty.html").read_text(encoding="utf-8")
