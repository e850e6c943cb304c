"""No text of a plot is cut at the edge of its figure, and no two names of an axis overlap."""

from collections.abc import Callable
from itertools import pairwise

import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import oddsengine as oe
from oddsengine import plot
from oddsengine.tables.sample import SAMPLE_BOARD

_SLACK = 1.0  # pixels


def seen(figure: Figure) -> list[Text]:
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    texts: list[Text] = figure.findobj(Text)
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def assert_readable(figure: Figure) -> None:
    width, height = figure.get_size_inches() * figure.dpi
    drawn = seen(figure)
    assert drawn
    hidden = {id(tick) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in _outside(axis)}
    for text in drawn:
        if id(text) in hidden:
            continue
        box = text.get_window_extent()
        inside = box.x0 >= -_SLACK and box.y0 >= -_SLACK and box.x1 <= width + _SLACK and box.y1 <= height + _SLACK
        assert inside, f"{text.get_text()!r} is cut: {box} of {width:.0f} by {height:.0f}"
    for axes in figure.axes:
        for axis, upright in ((axes.xaxis, False), (axes.yaxis, True)):
            names = [name for name in axis.get_ticklabels() if name.get_text() and id(name) not in hidden]
            if any(name.get_rotation() for name in names):
                continue  # boxes of slanted names overlap where the names do not
            boxes = sorted((name.get_window_extent() for name in names), key=lambda b: b.y0 if upright else b.x0)
            for one, other in pairwise(boxes):
                apart = other.y0 - one.y1 if upright else other.x0 - one.x1
                assert apart >= -_SLACK, f"names overlap: {[name.get_text() for name in names]}"


def _outside(axis: object) -> list[Text]:
    """The names of ticks beyond the limits of an axis, which are not drawn."""
    low, high = sorted(axis.get_view_interval())  # type: ignore[attr-defined]
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]  # type: ignore[attr-defined]
    return [label for tick in ticks if not low <= tick.get_loc() <= high for label in (tick.label1, tick.label2)]


@pytest.fixture(scope="module")
def odds() -> pl.DataFrame:
    return pl.DataFrame(oe.read_odds(SAMPLE_BOARD))


@pytest.mark.parametrize("books", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("event", ["chelsea arsenal", "lehečka", "bills chiefs"])
def test_boards(odds: pl.DataFrame, event: str, books: int) -> None:
    names = ["pinnacle", *sorted(set(odds["sportsbook"]) - {"pinnacle"})][:books]
    assert_readable(plot.board(odds.filter(pl.col("sportsbook").is_in(names)), event))


@pytest.mark.parametrize(
    "draw",
    [
        plot.edges,
        lambda odds: plot.ladder(odds, "bills chiefs", "spread"),
        lambda odds: plot.stakes(oe.kelly_portfolio(oe.find_ev(odds, min_ev=0.5), fraction=0.25)),
        lambda odds: plot.stakes(oe.kelly_portfolio(oe.find_ev(odds, min_ev=3), fraction=0.25)),
    ],
    ids=["edges", "ladder", "stakes", "two stakes"],
)
def test_plots_of_a_board(odds: pl.DataFrame, draw: Callable[[pl.DataFrame], Figure]) -> None:
    assert_readable(draw(odds))


def test_plots_of_a_history(past: pl.DataFrame) -> None:
    for event in past["event_id"].unique().sort().head(3):
        assert_readable(plot.movement(past, event, "moneyline"))
    assert_readable(plot.lifetimes(oe.scan_history(past, min_ev=1.0)))
    moneyline = past.filter(market_type="moneyline").unique("event_id").select("event_id", "market_type", "home_team")
    even = moneyline.with_columns(selection="home_team", probability=0.5, line=pl.lit(None, pl.Float64))
    audit = oe.audit(past, against={"even": even})
    assert_readable(plot.calibration(audit))
    assert_readable(plot.models(audit))
    result = oe.backtest(past, oe.Strategy(min_ev=1.0))
    assert_readable(plot.bankroll(result, luck=True))
    assert_readable(oe.tear_sheet(result))
