"""The short view says what `oddsengine scan` says, of any result, and only of results."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD
from oddsengine_cli import main

ODDS = oe.read_odds(SAMPLE_BOARD)
FOUND = oe.find_all(ODDS, min_ev=1.0)  # as the command does


def test_it_is_the_table_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "--sample", "--limit", "0"]) == 0
    assert str(oe.show(FOUND, rows=0)) == capsys.readouterr().out.rpartition("\n\n")[0]


@pytest.mark.parametrize(("name", "at"), [("ev", 0), ("arbitrage", 1), ("low_hold", 2), ("middles", 3)])
def test_each_kind_is_recognised(name: str, at: int) -> None:
    frame = getattr(FOUND, name)
    whole = str(oe.show(FOUND, rows=3)).split("\n\n")
    for given in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        assert str(oe.show(given, rows=3)) == whole[at]
    empty = str(oe.show(frame.clear()))
    assert empty.endswith(" (0)\nnone")
    assert f"... and {frame.height - 2:,} more; rows=0 shows all" in str(oe.show(frame, rows=2))


def test_markets_and_rejected_rows() -> None:
    assert str(oe.show(oe.markets(ODDS))).startswith("Markets (")
    assert str(oe.show(oe.rejected(ODDS))).startswith("Rejected rows (")


def test_rejected_rows_of_a_table_with_a_column_row() -> None:
    plain = oe.rejected(ODDS)
    assert str(oe.show(plain.rename({"row": "odds_row"}))) == str(oe.show(plain))


def test_a_portfolio_has_its_stakes() -> None:
    portfolio = oe.kelly_portfolio(FOUND.ev.head(3), bankroll=1000)
    title, head, *lines = str(oe.show(portfolio)).splitlines()
    assert title == "Stakes (3)"
    assert head.startswith("Stake  EV %")
    assert [line.split()[0] for line in lines] == [f"{stake:.2f}" for stake in portfolio.bets["stake"]]


def test_a_notebook_shows_the_same_cells_escaped() -> None:
    first = FOUND.ev.head(1).with_columns(sportsbook=pl.lit("<b>&"))
    html = oe.show(first)._repr_html_()
    assert '<td style="text-align: left">&lt;b&gt;&amp;</td>' in html
    assert "<b>&" not in html
    assert f"{first['ev_percentage'].item():.2f}</td>" in html
    assert first["id"].item() not in html  # ids are in the frame
    assert oe.show(FOUND, rows=1)._repr_html_().count("<table>") == 4
    assert "<p>none</p>" in oe.show(first.clear())._repr_html_()


def test_what_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs a result of find_ev, .* got the columns id, sportsbook, "):
        oe.show(ODDS)
    with pytest.raises(ValueError, match=r"lacks 'line'"):
        oe.show(FOUND.ev.drop("line"))
    with pytest.raises(ValueError, match=r"lacks 'event_id'"):  # by which rows that are one bet are grouped
        oe.show(FOUND.ev.drop("event_id"))
    with pytest.raises(ValueError, match=r"got the columns game$"):
        oe.show(FOUND.ev.select(game="event_name"))
    with pytest.raises(TypeError, match=r"result: .* got pathlib.PosixPath"):
        oe.show(tmp_path)  # type: ignore[arg-type]
    for rows in (-1, 1.5, None):
        with pytest.raises(ValueError, match="rows must be a whole number"):
            oe.show(FOUND.ev, rows=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(("home", "away"), [("home", "Away"), ("1", "2")])
def test_a_side_is_shown_as_its_team(home: str, away: str) -> None:
    prices = {"pinnacle": (1.9, 1.95), "fanduel": (2.15, 1.75), "betmgm": (1.85, 2.05), "caesars": (1.88, 1.98)}
    odds = pl.DataFrame(
        [
            {"book": book, "home": "Lakers", "away": "Celtics", "event_id": "e", "market": "moneyline",
             "selection": side, "odds": price}
            for book, pair in prices.items()
            for side, price in zip((home, away), pair, strict=True)
        ]
    )  # fmt: skip
    assert oe.rejected(odds).height == 0
    for shown in (str(oe.show(oe.find_ev(odds))), str(oe.show(oe.find_arbitrage(odds)))):
        assert "Lakers" in shown.replace("Celtics @ Lakers", "")
        assert f" {home} " not in shown


@pytest.mark.parametrize("sides", [("1", "X", "2"), ("Home", "Draw", "away"), ("home", "x", "Away")])
def test_sides_of_a_1x2_are_teams_and_the_draw_wherever_they_come_from(sides: tuple[str, ...]) -> None:
    """A live board, and a table: shown and explained."""
    now = datetime(2026, 2, 8, 12, tzinfo=UTC)
    rows = [
        {"sportsbook": book, "event_id": "e", "sport": "soccer", "home_team": "Arsenal", "away_team": "Chelsea",
         "market_type": "1x2", "selection": side, "odds_decimal": price, "last_seen_at": now}
        for book, prices in {"fanduel": (2.1, 3.4, 3.6), "draftkings": (2.5, 3.2, 3.0)}.items()
        for side, price in zip(sides, prices, strict=True)
    ]  # fmt: skip
    engine = oe.Engine()
    engine.step(rows, now=now)
    assert len(engine.view().opportunities().arbitrage) == 1
    found = oe.find_arbitrage(pl.DataFrame(rows))
    for text in (str(oe.show(found)), "\n".join(str(oe.explain(pl.DataFrame(rows), found["id"][0])).splitlines()[2:5])):
        words = text.replace("Chelsea @ Arsenal", "").split()
        assert {"Arsenal", "Draw", "Chelsea"} <= {*words}
        assert not {"1", "X", "2", "home", "x", "away"} & {*words}
