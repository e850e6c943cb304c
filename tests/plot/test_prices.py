"""What the plots of prices draw: the data of their lines, their texts, and their errors."""

import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import oddsengine as oe
from oddsengine import catalog
from oddsengine.plot import board, ladder, movement
from oddsengine.tables.sample import SAMPLE_BOARD

_NOON = datetime(2026, 2, 8, 12, tzinfo=UTC)
_START = _NOON + timedelta(hours=1)
_BOOKS = ("pinnacle", "draftkings", "betmgm", "caesars")
_EVENT = {
    "event_id": "e1", "sport": "basketball", "league": "nba", "home_team": "Los Angeles Lakers",
    "away_team": "Boston Celtics", "event_start_time": _START, "is_live": False, "is_active": True,
}  # fmt: skip


def quote(minutes: float, book: str, kind: str, selection: str, odds: float, **more: Any) -> dict[str, Any]:
    return {
        **_EVENT, "sportsbook": book, "market_type": kind, "selection": selection, "line": None, "odds_decimal": odds,
        "player_name": None, "last_seen_at": _NOON + timedelta(minutes=minutes), **more,
    }  # fmt: skip


def moneyline(minutes: float, book: str, home: float, **more: Any) -> list[dict[str, Any]]:
    away = 1.0 / (1.045 - 1.0 / home)
    names = (_EVENT["home_team"], home), (_EVENT["away_team"], away)
    return [quote(minutes, book, "moneyline", str(name), odds, **more) for name, odds in names]


def frame(*quotes: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([row for part in quotes for row in part], infer_schema_length=None)


@pytest.fixture(scope="module")
def past() -> pl.DataFrame:
    """Four books; DraftKings moves twice and is suspended in between, and all are live after the start."""
    return frame(
        *(moneyline(0, book, 1.90 + 0.01 * at) for at, book in enumerate(_BOOKS)),
        moneyline(20, "draftkings", 2.00),
        moneyline(30, "draftkings", 2.00, is_active=False),
        moneyline(40, "draftkings", 1.95),
        *(moneyline(70, book, 1.50, is_live=True) for book in _BOOKS),
    )


def only(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def minutes(times: Any) -> list[float]:
    """Minutes from noon of the times of a line."""
    since = np.asarray(times, "M8[us]") - np.datetime64(_NOON.replace(tzinfo=None))
    return (since / np.timedelta64(1, "m")).tolist()  # type: ignore[no-any-return]


def drawn(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    (line,) = (each for each in axes.get_lines() if each.get_label() == label)
    return minutes(line.get_xdata()), np.asarray(line.get_ydata(), float).tolist()


# ---- movement ----


def test_a_movement_has_a_step_for_every_change_up_to_the_close(past: pl.DataFrame) -> None:
    figure = movement(past, "lakers", "moneyline")
    axes = only(figure)
    at, odds = drawn(axes, "DraftKings")
    assert at == [0, 20, 30, 40, 60]
    np.testing.assert_array_equal(odds, [1.91, 2.00, np.nan, 1.95, 1.95])
    assert drawn(axes, "Pinnacle") == ([0, 60], [1.90, 1.90])
    closes = [line for line in axes.get_lines() if line.get_label() == "_close"]
    assert sorted(float(np.asarray(line.get_ydata())[0]) for line in closes) == [1.90, 1.92, 1.93, 1.95]
    (start,) = (line for line in axes.get_lines() if line.get_label() == "_start")
    assert minutes(start.get_xdata()) == [60, 60]
    assert axes.get_title(loc="left") == "Boston Celtics @ Los Angeles Lakers\nmoneyline: Los Angeles Lakers"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (UTC)", "decimal odds")
    legend = axes.get_legend()
    assert legend is not None
    # By the last price.
    assert [text.get_text() for text in legend.get_texts()] == ["fair", "DraftKings", "Caesars", "BetMGM", "Pinnacle"]


def test_the_fair_line_is_the_median_of_what_the_other_books_say(past: pl.DataFrame) -> None:
    at, odds = drawn(only(movement(past, "lakers", "moneyline")), "fair")
    assert at == [0, 20, 30, 40, 60]
    for minute, found in list(zip(at, odds, strict=True))[:-1]:
        upto = past.filter(pl.col("last_seen_at") <= _NOON + timedelta(minutes=minute))
        last = upto.group_by("sportsbook", "selection", maintain_order=True).last().filter("is_active")
        fair = oe.fair(last.drop("last_seen_at", "event_start_time"))
        wanted = 1.0 / statistics.median(fair.filter(selection="Los Angeles Lakers")["fair_probability"].to_list())
        assert found == pytest.approx(wanted, abs=1e-9)
    assert odds[-1] == odds[-2]
    assert len({round(price, 6) for price in odds[:4]}) > 1


def test_a_history_that_ends_before_the_start_has_no_close(past: pl.DataFrame) -> None:
    axes = only(movement(past.filter(pl.col("last_seen_at") < _START), "e1", "h2h", selection="celtics"))
    assert not [line for line in axes.get_lines() if line.get_label() in ("_close", "_start")]
    assert drawn(axes, "BetMGM")[0] == [0, 40]  # to the last time of the history
    assert axes.get_title(loc="left").endswith("moneyline: Boston Celtics")


def test_prices_after_the_start_are_live_or_not_drawn(past: pl.DataFrame) -> None:
    late = pl.concat([past, frame(moneyline(65, "betmgm", 1.2))], how="diagonal_relaxed")
    assert drawn(only(movement(late, "e1", "moneyline")), "BetMGM") == ([0, 60], [1.92, 1.92])


@pytest.mark.parametrize("start", [50, 65])
def test_the_start_is_the_one_last_seen(past: pl.DataFrame, start: int) -> None:
    moved = {"event_start_time": _NOON + timedelta(minutes=start)}
    quotes = [moneyline(45, "betmgm", 1.92, **moved), moneyline(62, "betmgm", 1.8, **moved)]
    axes = only(movement(pl.concat([past.head(-8), frame(*quotes)], how="diagonal_relaxed"), "e1", "moneyline"))
    if start == 50:
        assert drawn(axes, "BetMGM") == ([0, 50], [1.92, 1.92])
    else:
        assert drawn(axes, "BetMGM") == ([0, 62, 62], [1.92, 1.8, 1.8])  # to the end of the history, without a close


def test_live_prices_and_some_books(past: pl.DataFrame) -> None:
    axes = only(movement(past, "e1", "moneyline", live=True, sportsbook="BetMGM"))
    assert drawn(axes, "BetMGM") == ([70, 70], [1.50, 1.50])
    assert {line.get_label() for line in axes.get_lines()} == {"BetMGM", "fair"}
    assert ", live:" in axes.get_title(loc="left")


def test_the_line_is_the_one_that_most_books_quote_at_the_end() -> None:
    def spread(at: float, book: str, line: float, odds: float = 1.9) -> list[dict[str, Any]]:
        sides = (_EVENT["home_team"], line), (_EVENT["away_team"], -line)
        return [quote(at, book, "point_spread", str(name), odds, line=points) for name, points in sides]

    quotes = [
        *(spread(0, book, -3.5) for book in _BOOKS),
        *(spread(at, book, -4.5) for at in (20, 40) for book in _BOOKS[:3]),
        *(spread(at, book, -5.5, 2.3) for at in (20, 40) for book in _BOOKS[:3]),
    ]
    axes = only(movement(frame(*quotes), "e1", "spread"))
    assert axes.get_title(loc="left").endswith("point spread: Los Angeles Lakers -4.5")
    axes = only(movement(frame(*quotes), "e1", "spread", selection="away", line=3.5))
    assert axes.get_title(loc="left").endswith("point spread: Boston Celtics +3.5")
    # BetMGM quotes other lines from 20 on; Caesars is not seen again.
    at, odds = drawn(axes, "BetMGM")
    assert at == [0, 20, 40]
    np.testing.assert_array_equal(odds, [1.9, np.nan, np.nan])
    assert drawn(axes, "Caesars") == ([0, 40], [1.9, 1.9])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"event": "heat"}, r"no event 'heat'; they have Boston Celtics @ Los Angeles Lakers \(e1\)"),
        ({"market": "totals"}, "no market 'totals'; they have moneyline"),
        ({"selection": "heat"}, "no selection 'heat'; they have Los Angeles Lakers, Boston Celtics"),
        ({"selection": "os"}, "no selection 'os'"),
        ({"line": 3.5}, "no line '3.5'; they have none"),
        ({"sportsbook": "betus"}, "none of betus quotes this; betmgm, caesars, draftkings, pinnacle do"),
    ],
)  # fmt: skip
def test_a_movement_of_what_is_not_there_says_what_is(past: pl.DataFrame, words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        movement(past, **{"event": "e1", "market": "moneyline", **words})


def test_a_movement_of_several_players_lists_them() -> None:
    quotes = [
        quote(0, book, "player_points", side, 1.9, line=20.5, player_name=player)
        for book in _BOOKS
        for player in ("LeBron James", "Jayson Tatum")
        for side in ("Over", "Under")
    ]
    with pytest.raises(
        ValueError, match=r"'player_points' can be several: player points of L.+ J.+, player points of J"
    ):
        movement(frame(quotes), "e1", "player_points")
    axes = only(movement(frame(quotes), "e1", "player_points", selection="tatum under"))
    assert axes.get_title(loc="left").endswith("Jayson Tatum Under 20.5")
    with pytest.raises(ValueError, match=r"selection 'tatum' can be several: .*over.*, .*under"):
        movement(frame(quotes), "e1", "player_points", selection="tatum")


def test_prices_before_the_start_only(past: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="no 'moneyline' prices during the event; live=False draws those before it"):
        movement(past.filter(~pl.col("is_live")), "e1", "moneyline", live=True)
    with pytest.raises(ValueError, match="no 'moneyline' prices before the event; live=True draws those during it"):
        movement(past.filter("is_live"), "e1", "moneyline")


# ---- ladder ----


def test_a_ladder_has_the_best_offers_and_the_fair_probability() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    axes = only(ladder(odds, "bills chiefs", "spread"))
    rows = oe.fair(odds.filter(pl.col("event_id").str.contains("bills_chiefs")))
    rows = rows.filter(pl.col("market_type").is_in(["point_spread", "spreads", "handicap"]))
    home = rows["home_team"][0]
    lines: dict[float, tuple[list[float], list[float], list[float]]] = {}
    for row in rows.iter_rows(named=True):
        is_home = row["selection"].startswith(home)
        fair, over, under = lines.setdefault(row["line"] if is_home else -row["line"], ([], [], []))
        if row["fair_probability"] is not None:
            fair.append(row["fair_probability"] if is_home else 1.0 - row["fair_probability"])
        if row["guard"] is None:
            (over if is_home else under).append(1.0 / row["net_odds"])
    wanted = [
        (line, 100 * statistics.median(fair), 100 * min(over, default=np.nan), 100 * (1 - min(under, default=np.nan)))
        for line, (fair, over, under) in sorted(lines.items())
    ]
    (errors,) = axes.containers
    assert errors.get_label() == "fair, one standard error"
    by_label = {line.get_label(): line for line in axes.get_lines()}
    fair_line = errors.lines[0]  # type: ignore[attr-defined]
    found = list(
        zip(
            fair_line.get_xdata(), fair_line.get_ydata(),
            *(np.asarray(by_label[f"best offer on {team}"].get_ydata()) for team in (home, "Buffalo Bills")),
            strict=True,
        )
    )  # fmt: skip
    assert len(wanted) > 4
    np.testing.assert_allclose(np.array(found, float), np.array(wanted))
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "line of Kansas City Chiefs",
        "probability of Kansas City Chiefs, %",
    )
    assert axes.get_title(loc="left") == "Buffalo Bills @ Kansas City Chiefs\npoint spread"


def test_a_ladder_of_a_total_is_of_the_over() -> None:
    quotes = [
        quote(0, book, "totals", side, odds, line=line)
        for book in _BOOKS
        for line, over in ((220.5, 1.8), (221.5, 2.0))
        for side, odds in (("Over", over), ("Under", 1.0 / (1.045 - 1.0 / over)))
    ]
    wrong = [quote(0, "fanduel", "totals", side, odds, line=220.5) for side, odds in (("Over", 6.0), ("Under", 1.12))]
    assert set(oe.rejected(frame(quotes, wrong))["sportsbook"]) == {"fanduel"}
    axes = only(ladder(frame(quotes, wrong)))
    assert axes.get_ylabel() == "probability of Over, %"
    by_label = {line.get_label(): line for line in axes.get_lines()}
    np.testing.assert_allclose(np.asarray(by_label["best offer on Over"].get_ydata(), float), [100 / 1.8, 50.0])
    np.testing.assert_allclose(np.asarray(by_label["best offer on Under"].get_ydata(), float), [100 / 1.8 - 4.5, 45.5])


def test_a_ladder_is_of_one_market(past: pl.DataFrame) -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    with pytest.raises(ValueError, match=r"the prices have several events: .* @ .*, .* @ "):
        ladder(odds)
    with pytest.raises(ValueError, match=r"the prices have several markets: .*total points.*"):
        ladder(odds, "bills chiefs")
    with pytest.raises(ValueError, match=r"a ladder needs a market with lines; there are moneyline$"):
        ladder(past)
    with pytest.raises(ValueError, match="a ladder needs both sides of a market; there is only over"):
        ladder(frame([quote(0, "fanduel", "totals", "Over", 1.9, line=220.5)]))
    with pytest.raises(oe.OddsError, match="not an odds table"):
        ladder([1, 2])  # type: ignore[list-item]


# ---- board ----


def cells(axes: Axes) -> dict[tuple[str, str], Any]:
    """Texts of a board by outcome and book."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    books = [label.get_text() for label in axes.get_xticklabels()]
    return {(names[round(text.get_position()[1])], books[round(text.get_position()[0])]): text for text in axes.texts}


def test_a_board_has_all_prices_and_marks_the_best() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    axes = only(board(odds, "bills chiefs"))
    found = cells(axes)
    rows = oe.fair(odds.filter(pl.col("event_id").str.contains("bills_chiefs"), market_type="moneyline"))
    assert rows["guard"].null_count() < rows.height  # some are rejected
    for team, part in ((str(team), part) for (team,), part in rows.partition_by("selection", as_dict=True).items()):
        best = part.filter(pl.col("guard").is_null())["net_odds"].max()
        for row in part.iter_rows(named=True):
            text = found[team, catalog.book(row["sportsbook"]).name]
            if row["guard"] != "duplicate_outcome":  # two prices, of which one is shown
                assert text.get_text() == f"{row['odds_decimal']:.2f}"
            is_best = row["guard"] is None and row["net_odds"] == best
            assert text.get_fontweight() == ("bold" if is_best else "normal")
            assert text.get_style() == ("normal" if row["guard"] is None else "italic")
        fair = 1.0 / statistics.median(part["fair_probability"].drop_nulls().to_list())
        assert found[team, "fair"].get_text() == f"{fair:.2f}"
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[:5] == ["moneyline", "Kansas City Chiefs", "Buffalo Bills", "point spread", "Kansas City Chiefs -2.5"]
    assert [label.get_fontweight() for label in axes.get_yticklabels()][:2] == ["bold", "normal"]


def test_a_board_of_one_market_has_all_its_lines() -> None:
    odds = oe.read_odds(SAMPLE_BOARD)
    labels = [label.get_text() for label in only(board(odds, "bills chiefs", market="spread")).get_yticklabels()]
    assert labels[0] == "point spread"
    assert labels[1:5] == [
        "Kansas City Chiefs -7.5", "Buffalo Bills +7.5", "Kansas City Chiefs -6.5", "Buffalo Bills +6.5",
    ]  # fmt: skip


def test_a_board_of_a_history_has_the_last_prices(past: pl.DataFrame) -> None:
    quotes = pl.concat(
        [past.filter(~pl.col("is_live")), frame(moneyline(41, "draftkings", 1.85))], how="diagonal_relaxed"
    )
    text = cells(only(board(quotes, "lakers")))["Los Angeles Lakers", "DraftKings"]
    assert (text.get_text(), text.get_style()) == ("1.85", "normal")


def test_a_board_says_what_it_cannot_draw(past: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="no event 'heat'"):
        board(past, "heat")
    props = frame([quote(0, "fanduel", "player_points", "Over", 1.9, line=20.5, player_name="LeBron James")])
    with pytest.raises(ValueError, match="'e1' has no main market; name one with market"):
        board(props, "e1")
    many = frame(
        [quote(0, "fanduel", "totals", side, 1.9, line=200.5 + at) for at in range(25) for side in ("Over", "Under")]
    )
    with pytest.raises(ValueError, match="the board has 51 rows, at most 40 can be read"):
        board(many, "e1", market="totals")
    with pytest.raises(ValueError, match="there are no valid prices"):
        ladder(past.clear())


# ---- figures ----


def test_figures_are_shown_by_notebooks_and_follow_the_style(past: pl.DataFrame) -> None:
    figure = movement(past, "e1", "moneyline")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    with style.context("dark_background"):
        dark = movement(past, "e1", "moneyline")
        dark._repr_png_()  # type: ignore[attr-defined]
    for made, ground, text in ((figure, (1, 1, 1, 1), "black"), (dark, (0, 0, 0, 1), "white")):
        (fair,) = (line for line in only(made).get_lines() if line.get_label() == "fair")
        assert made.get_facecolor() == ground
        assert fair.get_color() == text
