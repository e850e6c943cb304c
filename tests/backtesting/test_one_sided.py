"""Audits and scans with bets on one-sided prices, graded at closes that are worked out by the plain twin."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from naive import close as naive_close
from naive import one_sided as naive
from support.one_sided import NOW, market

import oddsengine as oe
import oddsengine_cli as cli
from oddsengine import catalog
from oddsengine.catalog.fair_constants import fair_content

BOOKS = ("fanduel", "draftkings", "betmgm", "caesars", "bovada", "betonline")
BOTH = BOOKS[:2]  # quote both sides of the four other players
START = NOW + timedelta(hours=3)
LAST = START - timedelta(seconds=30)
YES = {NOW: 2.95, LAST: 2.60}  # betmgm's price of the scorer whom nobody offers not to score
CLOSING = {"fanduel": 0.352, "draftkings": 0.360, "caesars": 0.363, "bovada": 0.368, "betonline": 0.379}
SIDES = ("over", "under")
Row = dict[str, Any]


def scorers(actual: float | None = 1.0, games: int = 1) -> pl.DataFrame:
    """Snapshots of anytime scorers: two books quote both sides of four players, and six the yes of a fifth."""

    def look(game: int, at: Any, player: str, book: str, over: float, under: float | None) -> Row:
        return {
            "event": f"e{game}", "sport": "football", "league": "NFL", "home": "Chiefs", "away": "Bills",
            "player": player, "market": "player_touchdowns", "line": 0.5, "book": book, "look": at, "start": START,
            "over": over, "under": under, "actual": actual if player == "Yes Man" else None,
        }  # fmt: skip

    rows = []
    for game in range(games):
        for at in (NOW, LAST):
            for number in range(4):
                for book in BOTH:
                    rows.append(look(game, at, f"Player {number}", book, *market(0.30 + 0.03 * number, 1.06)))
            for book in BOOKS:
                p = CLOSING.get(book, 0.36) if at == LAST else 0.36
                rows.append(look(game, at, "Yes Man", book, YES[at] if book == "betmgm" else market(p, 1.06)[0], None))
    return pl.DataFrame(rows, schema_overrides={"under": pl.Float64, "actual": pl.Float64})


def closing_probability() -> float:
    """The mean of the other books' completed prices at the close, without the highest and the lowest."""
    params, others = fair_content(catalog.fair_table()), [book for book in BOOKS if book != "betmgm"]
    books = naive_close.Books(
        provider={book: catalog.book(book).feed or book for book in BOOKS}, sharp=dict.fromkeys(BOOKS, 0.0),
        own=dict.fromkeys(BOOKS, 1.0), exchange=frozenset(),
    )  # fmt: skip
    last = scorers().filter(look=LAST)
    quotes = [
        naive.Quote(player, book, (over, under))
        for player, book, over, under in last.select("player", "book", "over", "under").iter_rows()
    ]
    known = naive.samples(quotes, books, params)
    made = [naive.completed(q, known, books, params) for q in quotes if q.market == "Yes Man" and q.book in others]
    logits = sorted(naive.logit(each[0]) for each in made if each is not None)
    assert len(logits) == 5
    x = math.fsum(logits[1:-1]) / 3
    return 1.0 / (1.0 + math.exp(-x))


def test_an_audit_judges_one_sided_bets_at_the_close_of_one_sided_prices() -> None:
    past = scorers()
    assert not oe.audit(past).shown.height
    assert oe.audit(past, include=["suspect"]).shown.equals(oe.audit(past).shown)
    found = oe.audit(past, include=["one_sided"])
    live = oe.find_ev(past.filter(look=NOW).pipe(as_odds), include=["one_sided"], now=NOW).row(0, named=True)
    assert found.shown["threshold"].to_list() == [0.0, 1.0, 2.0, 3.0]
    p = closing_probability()
    for row in found.shown.iter_rows(named=True):
        assert (row["book"], row["player"], row["selection"], row["line"]) == ("betmgm", "Yes Man", "over", 0.5)
        assert (row["flags"], row["close"], row["won"]) == (["unmeasured", "one_sided"], "one_sided", 1.0)
        assert row["ev"] == pytest.approx(live["ev_percentage"], rel=1e-9)
        assert row["worth"] == pytest.approx(100.0 * (2.95 * p - 1.0), rel=1e-9)
        fair = live["fair_probability"]
        assert row["se"] == pytest.approx(live["ev_error"] / (295.0 * fair * (1.0 - fair)), rel=1e-9)
        assert row["error"] == pytest.approx(math.log(p / (1.0 - p)) - math.log(fair / (1.0 - fair)), rel=1e-6)


def as_odds(looks: pl.DataFrame) -> pl.DataFrame:
    """Snapshots as an odds table in the words of books: a scorer without an other side is `anytime_touchdown`."""
    return pl.concat(
        looks.drop_nulls(side).select(
            event_id="event", sport="sport", league="league", home_team="home", away_team="away", player_name="player",
            sportsbook="book", event_start_time="start", last_seen_at="look", odds_decimal=side,
            market_type=pl.when(pl.col("player") == "Yes Man").then(pl.lit("anytime_td")).otherwise("market"),
            selection=pl.when(pl.col("player") == "Yes Man").then(pl.lit("Yes")).otherwise(pl.lit(side.title())),
            line=pl.when(pl.col("player") != "Yes Man").then("line"),
        )
        for side in SIDES
    ).sort("last_seen_at")  # fmt: skip


def test_the_tables_of_an_audit_name_one_sided_bets() -> None:
    past = pl.concat([scorers(games=3), two_sided(), two_sided("shy", LAST)])
    found, without = oe.audit(past, include=["one_sided"]), oe.audit(past)
    row = found.table.filter(threshold=1.0, by="flag", value="one_sided").row(0, named=True)
    assert (row["n"], row["graded"], row["events"], row["settled"]) == (3, 3, 3, 3)
    assert row["inside_90"] == 100.0
    assert "flag one_sided" in str(found)
    # Others are judged as before, by books that quote both sides only.
    closes = dict(without.shown.select("event", "close").unique().rows())
    assert closes == {"two": "others", "shy": None}
    others = found.shown.filter(~pl.col("flags").list.contains("one_sided"))
    assert others.equals(without.shown)
    assert not without.table.filter(by="flag", value="one_sided").height


def two_sided(event: str = "two", shy: Any = None) -> pl.DataFrame:
    """A game in which six books quote both sides of a player, and another the yes only, far from them.

    At the time `shy`, three of the six quote the yes only.
    """
    rows = []
    for row in scorers().iter_rows(named=True):
        if row["player"] != "Yes Man":
            rows.append(row | {"event": event})
            continue
        generous = row["look"] == NOW and row["book"] == "betmgm"
        over, no = market(0.45, 1.06)
        under = None if row["look"] == shy and row["book"] in BOOKS[3:] else no
        rows.append(row | {"event": event, "player": "Both Ways", "over": 2.35 if generous else over, "under": under})
        if row["book"] == "bovada":
            rows.append(row | {"event": event, "player": "Both Ways", "book": "mybookie", "over": 1.95, "under": None})
    return pl.DataFrame(rows, schema=scorers().schema)


def test_a_one_sided_bet_whose_market_is_whole_at_the_close_is_graded_by_whole_markets() -> None:
    whole = pl.col("look") == LAST
    under = pl.when(whole & (pl.col("player") == "Yes Man")).then(1.62).otherwise("under").alias("under")
    shown = oe.audit(scorers().with_columns(under), include=["one_sided"]).shown.filter(book="betmgm")
    assert shown["flags"].list.contains("one_sided").all()
    assert shown["close"].unique().to_list() == ["others"]


def test_a_scan_lists_one_sided_bets_with_their_flags() -> None:
    past = as_odds(scorers())
    assert not oe.scan_history(past, kinds=["ev"]).height
    scan = oe.scan_history(past, kinds=["ev"], include=["one_sided"])
    row = scan.row(0, named=True)
    assert scan.height == 1
    assert (row["sportsbooks"], row["player_name"], row["flags"]) == (
        ["betmgm"],
        "Yes Man",
        ["unmeasured", "one_sided"],
    )
    p = closing_probability()
    assert (row["closing_odds"], row["closing_probability"]) == ([2.6], pytest.approx([p], rel=1e-9))
    assert row["clv"] == pytest.approx(100.0 * (2.95 * p - 1.0), rel=1e-9)


def test_the_close_of_one_sided_prices_is_not_for_other_opportunities() -> None:
    """Betmgm's yes is a bet, and a leg of an arbitrage with a book's no in the first snapshot."""
    odds = as_odds(scorers())
    no = odds.filter(player_name="Yes Man", sportsbook="caesars", last_seen_at=NOW).with_columns(
        selection=pl.lit("No"), odds_decimal=pl.lit(1.55)
    )
    scan = oe.scan_history(pl.concat([odds, no]).sort("last_seen_at"), kinds=["ev", "arbitrage"], include=["one_sided"])
    by_kind = {row["kind"]: row for row in scan.filter(player_name="Yes Man").iter_rows(named=True)}
    assert by_kind["ev"]["flags"] == ["unmeasured", "one_sided"]
    assert by_kind["ev"]["clv"] is not None
    assert by_kind["arbitrage"]["flags"] == []
    assert by_kind["arbitrage"]["closing_probability"] == [None, None]


@pytest.mark.parametrize("wrong", [["one sided"], "two_sided", 3, [None]])
def test_what_is_not_in_include_is_refused_as_by_the_finders(wrong: Any) -> None:
    texts = set()
    for call in (oe.audit, oe.scan_history, lambda past, include: oe.find_ev(as_odds(past), include=include)):
        with pytest.raises(ValueError, match="include must be a list of suspect, one_sided, got") as raised:
            call(scorers(), include=wrong)
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_the_command_takes_include(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    past = tmp_path / "past.parquet"
    scorers().write_parquet(past)
    assert cli.main(["audit", str(past), "--include", "one_sided", "--shown", str(tmp_path / "shown.parquet")]) == 0
    assert "flag one_sided" in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "shown.parquet")["close"].to_list() == ["one_sided"] * 4
    assert cli.main(["audit", str(past)]) == 0
    assert "one_sided" not in capsys.readouterr().out
    assert cli.main(["audit", str(past), "--include", "two_sided"]) == 2
    assert "include must be a list of suspect, one_sided, got ['two_sided']" in capsys.readouterr().err
