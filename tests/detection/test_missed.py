"""Games that a search does not see whole are named: split by a typo or a time zone, or left out as stale."""

import itertools
import time
import warnings
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from support.rows import MOMENT, moneyline, table

import oddsengine as oe
from oddsengine.detection import missed
from oddsengine.detection.missed import split_games
from oddsengine_cli import main

FINDERS = (oe.find_ev, oe.find_arbitrage, oe.find_low_hold, oe.find_middles, oe.find_all)
LAKERS, CELTICS, START = "Los Angeles Lakers", "Boston Celtics", "2026-12-01 19:30"


def games(*lines: tuple[str, str, str, str, float, float]) -> pl.DataFrame:
    """A table without `event_id`: book, start, home, away and their prices."""
    return pl.DataFrame(
        [
            {
                "book": book,
                "home": home,
                "away": away,
                "team": team,
                "odds": odds,
                "start": start,
                "sport": "basketball",
            }
            for book, start, home, away, *prices in lines
            for team, odds in zip((home, away), prices, strict=True)
        ]
    ).with_columns(market=pl.lit("moneyline"))


WHOLE = (("pinnacle", START, LAKERS, CELTICS, 1.9, 2.0), ("draftkings", START, LAKERS, CELTICS, 1.8, 2.1))
TYPO = ("betmgm", START, "Los Angeles Lakres", CELTICS, 1.95, 1.93)
ZONE = ("caesars", "2026-12-02 00:30", LAKERS, CELTICS, 2.02, 1.85)


@pytest.mark.parametrize(
    "other",
    [
        TYPO,
        ZONE,
        ("betmgm", START, "LA Lakers", CELTICS, 1.95, 1.93),
        ("betmgm", START, LAKERS, "Boston Cletics", 1.95, 1.93),
        ("betmgm", START, CELTICS, LAKERS, 1.95, 1.93),
    ],
)
@pytest.mark.parametrize("find", [*FINDERS, oe.rejected, oe.why])
def test_a_split_game_is_named(find: Any, other: Any) -> None:
    odds = oe.check_odds(games(*WHOLE, other))
    whole, part = odds["event_id"].unique(maintain_order=True).to_list()
    with warnings.catch_warnings(record=True, action="always") as said:
        answer = find(odds)
    text = answer if find is oe.why else str(said[0].message)
    assert len(said) == (find is not oe.why)
    assert (
        f"a game is probably split, and prices of the parts are not compared: '{whole}' of draftkings, pinnacle" in text
    )
    assert f" and '{part}' of {other[0]}; one spelling of the teams and one start" in text


@pytest.mark.parametrize(
    "other",
    [
        ("draftkings", *ZONE[1:]),  # a book with both: two games, whatever their names
        ("betmgm", "2026-12-02 19:30", LAKERS, CELTICS, 1.95, 1.93),  # a day later
        ("betmgm", START, "Los Angeles Clippers", CELTICS, 1.95, 1.93),
        ("betmgm", START, LAKERS, "Boston Celtics W", 1.95, 1.93),
    ],
)
def test_other_games_are_not(other: Any) -> None:
    assert "split" not in oe.why(games(*WHOLE, other))


def test_games_that_share_a_common_word_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [f"{first}{second}" * 4 for first in "abcdefghij" for second in "klmnopqrst"]
    spelled = (("pinnacle", "FC {}"), ("draftkings", "{} FC"))
    lines = [
        (book, START, form.format(home), form.format(away), 1.9, 2.0)
        for book, form in spelled
        for home, away in zip(letters[::2], letters[1::2], strict=True)
    ]
    pairs, same = [], missed._same

    def counted(*pair: missed._Game) -> bool:
        pairs.append(pair)
        return same(*pair)

    monkeypatch.setattr(missed, "_same", counted)
    assert split_games(oe.check_odds(games(*lines))).startswith("50 games are probably split")
    assert len(pairs) <= len(lines) * missed._MOST_NEAR


def test_ids_of_the_table_itself_are_believed() -> None:
    odds = games(*WHOLE, TYPO).with_columns(event_id=pl.col("book"))
    assert "split" not in oe.why(odds)


def test_a_word_that_most_teams_have_is_no_reason_to_compare_them() -> None:
    """A thousand games of other books, of teams that are all an FC: it took seven seconds of the processor, now 0.1."""
    names = ["".join(letters) for letters in itertools.product("bdgklmn", "aeiou", "rstvwz", "aeiou")]
    lines = [
        (f"book{at % 2}", START, f"{home} FC", f"{away} FC", 1.9, 2.0)
        for at, (home, away) in enumerate(zip(names[:1000], names[-1000:], strict=True))
    ]
    odds = oe.check_odds(games(*lines, *WHOLE, TYPO))
    begin = time.process_time()
    text = split_games(odds)
    assert time.process_time() - begin < 2.0
    assert "Lakres" in text


def test_the_command_line_names_split_games(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    games(*WHOLE, TYPO, ZONE).write_csv(tmp_path / "odds.csv")
    main(["scan", str(tmp_path / "odds.csv")])
    text = " ".join(capsys.readouterr().out.split())
    assert "a game is probably split" in text
    assert "of betmgm and" in text


def apart() -> pl.DataFrame:
    old = [moneyline(book, 2.0, 1.95, age=1800, event_id="old") for book in "abc"]
    return table(*old, *(moneyline(book, 2.1, 1.9) for book in ("pinnacle", "b", "c")))


@pytest.mark.parametrize("find", [*FINDERS, oe.fair])
def test_a_game_with_stale_prices_only_is_named(find: Any) -> None:
    with pytest.warns(
        oe.OddsWarning, match=r"^1 of 2 games is not used: 'old' \(stale: the newest is 30 minutes old\); guards="
    ):
        find(apart())
    with warnings.catch_warnings(action="error"):
        find(apart(), guards={"stale": 3600})
        find(apart(), guards={"stale": False})


def test_why_names_games_with_stale_prices_only() -> None:
    said = oe.why(apart())
    assert said.startswith("6 of 12 rows are usable")
    assert "1 of 2 games is not used: 'old' (stale: the newest is 30 minutes old); guards=" in said
    later = oe.why(apart(), now=MOMENT + timedelta(hours=100))  # nothing is left, as it says already
    assert "12 of 12 rows are rejected: stale 12" in later
    assert "not used" not in later


@pytest.mark.parametrize("find", [*FINDERS, oe.fair, oe.why])
def test_games_without_a_usable_price_are_named_once_with_their_reasons(find: Any) -> None:
    typo = games(("betmgm", START, "Miami Heat", "Utah Jazz", 1.9, 1.9)).with_columns(team=pl.lit("Nobody"))
    words = games(("betmgm", START, "Chicago Bulls", "Detroit Pistons", 1.9, 1.9)).with_columns(market=pl.lit("who"))
    texts = games(("betmgm", START, "Phoenix Suns", "Dallas Mavericks", 1.9, 1.9)).with_columns(odds=pl.lit(0.5))
    odds = pl.concat([games(*WHOLE), typo, words, texts])
    with warnings.catch_warnings(record=True, action="always") as said:
        answer = find(oe.check_odds(odds, columns={"odds": "odds_decimal"}))
    text = answer if find is oe.why else str(said[0].message)
    assert len(said) == (find is not oe.why)
    assert text.count("not used") == 1
    assert "3 of 4 games are not used: '2026-12-01/Miami Heat/Utah Jazz' (unknown_outcome), " in text
    assert "'2026-12-01/Chicago Bulls/Detroit Pistons' (unmapped) and 1 more" in text


def test_nothing_is_said_of_games_that_are_used_in_part() -> None:
    odds = pl.concat([games(*WHOLE), games(WHOLE[0]).with_columns(team=pl.lit("Nobody"))])
    assert "not used" not in oe.why(odds)
