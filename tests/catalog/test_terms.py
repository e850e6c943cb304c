"""What bets settle on: the shipped rules, what is unknown, and rules of an own file."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from oddsengine import catalog
from oddsengine.catalog import own_fields
from oddsengine.catalog.settlement_rules import shipped_terms


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    catalog.forget()
    yield
    catalog.forget()


def say(book: str, sport: str, family: str, league: str = "", period: str = "full_game") -> dict[str, str]:
    terms = catalog.terms(book, sport, family, league, period)
    return {case: str(rule) for case, rule in terms._asdict().items() if rule is not None}


def test_a_contract_and_a_sportsbook_on_the_same_game() -> None:
    assert say("kalshi", "football", "moneyline", "nfl") == {
        "tie": "pays 0.50",
        "cancelled": "pays a fair price",
        "postponed": "pays a fair price unless it starts within 48 hours",
        "overtime": "counts overtime",
    }
    assert say("draftkings", "football", "moneyline", "nfl") == {
        "tie": "returns the stake",
        "cancelled": "returns the stake",
        "postponed": "returns the stake unless it is played in the same league week",
        "overtime": "counts overtime",
    }
    assert say("polymarket", "football", "moneyline", "nfl")["postponed"] == "stands whenever it is played"


def test_only_moneylines_of_the_whole_game_can_tie() -> None:
    for family, league, period in (
        ("spread", "nfl", "full_game"), ("total", "nfl", "full_game"), ("moneyline", "ncaaf", "full_game"),
        ("moneyline", "nfl", "1st_half"),
    ):  # fmt: skip
        for book in ("kalshi", "draftkings", "polymarket"):
            assert catalog.terms(book, "football", family, league, period).tie is None


@pytest.mark.parametrize(
    ("book", "league", "rule"),
    [
        ("kalshi", "atp", "pays a fair price unless a ball has been played"),
        ("pinnacle", "wta", "returns the stake unless 1 set has been played"),
        ("bodog", "atp", "returns the stake unless the match is completed"),
        ("draftkings", "atp", "returns the stake unless 1 set has been played"),
        ("draftkings", "wta", None),
        ("caesars", "atp", None),
    ],
)
def test_retirements(book: str, league: str, rule: str | None) -> None:
    assert say(book, "tennis", "moneyline", league).get("retirement") == rule


def test_names_are_those_of_the_catalog() -> None:
    assert catalog.terms("Kalshi", "NFL", "moneyline", "National Football League").tie is not None
    assert catalog.terms("DK", "mixed_martial_arts", "moneyline", "UFC") == catalog.terms(
        "draftkings", "mma", "moneyline", "ufc"
    )


def test_the_class_of_sportsbooks() -> None:
    assert say("betrivers", "baseball", "total", "mlb")["postponed"].endswith("unless it is played on the same day")
    for book in ("novig", "polymarket_mid", "prizepicks", "corner_shop"):
        assert say(book, "baseball", "total", "mlb") == {}, book
    assert say("betrivers", "basketball", "player_points", "nba") == {"did_not_play": "returns the stake"}
    assert say("betrivers", "basketball", "total", "nba") == {}


def test_a_later_entry_decides() -> None:
    assert say("bodog", "tennis", "moneyline", "atp")["postponed"] == "stands whenever it is played"
    assert say("bodog", "hockey", "moneyline", "nhl")["postponed"].endswith("unless it is played on the same day")


def test_every_rule_has_a_source_and_a_date() -> None:
    for id_, entry in shipped_terms().items():
        assert entry["source"], id_
        assert date(2020, 1, 1) < entry["date"] <= date(2026, 11, 28), id_
        assert set(entry) & set(catalog.CASES), id_


def test_the_shipped_rules_pass_the_checks_of_an_own_file() -> None:
    own_fields.checked({"terms": shipped_terms()})
    for id_, entry in shipped_terms().items():
        for name in entry["books"]:
            assert name in ("sportsbooks", "polymarket_us") or name in catalog.books(), (id_, name)


def load(folder: Path, text: str) -> None:
    path = folder / "catalog.toml"
    path.write_text(text, encoding="utf-8")
    catalog.load(path)


def test_an_own_file_adds_and_decides(tmp_path: Path) -> None:
    load(
        tmp_path,
        """
        [terms.a_shop]
        books = ["corner_shop", "kalshi"]
        leagues = ["nfl"]
        tie = "void"
        postponed = { within = 24 }
        [terms.kalshi_nfl]
        cancelled = "half"
        """,
    )
    shop = catalog.terms("corner_shop", "football", "moneyline", "nfl")
    assert (shop.tie, shop.postponed) == (
        ("tie", "void", None, "your own catalog file", None),
        ("postponed", "void", 24, "your own catalog file", None),
    )
    assert say("kalshi", "football", "moneyline", "nfl") == {
        "tie": "returns the stake",
        "cancelled": "pays 0.50",
        "postponed": "returns the stake unless it starts within 24 hours",
        "overtime": "counts overtime",
    }  # new entries come last


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tie = 'void'", "terms.a.books must be a list of ids of books, got nothing"),
        ("books = []", "terms.a.books must be a list of ids of books, got []"),
        (
            "books = ['a']\nsports = ['zork']",
            "terms.a.sports must be a list of ids of sports.toml, which has no zork, got",
        ),
        (
            "books = ['a']\nfamilies = ['zork']",
            "families must be a list of ids of markets.toml or player_stats.csv, which",
        ),
        ("books = ['a']\nperiods = ['zork']", "periods must be a list of ids of markets.toml, which has no zork"),
        ("books = ['a']\nleagues = ['zork']", "terms.zork must be an id of leagues, got 'zork'"),
        ("books = ['a']\ntie = 'lose'", "terms.a.tie must be one of void, half, fair, got 'lose'"),
        ("books = ['a']\novertime = true", "terms.a.overtime must be one of counts, excluded, got True"),
        (
            "books = ['a']\npostponed = 48",
            "terms.a.postponed must be { within = a number of hours or one of day, week, ever",
        ),
        ("books = ['a']\npostponed = { within = 0 }", "terms.a.postponed must be { within"),
        ("books = ['a']\npostponed = { within = 9, pays = 'no' }", "terms.a.postponed must be { within"),
        (
            "books = ['a']\nretirement = { after = 'set' }",
            "terms.a.retirement must be { after = a number of sets or one of",
        ),
        ("books = ['a']\nretirement = { within = 1 }", "terms.a.retirement must be { after"),
        ("books = ['a']\ndate = '2026'", "terms.a.date must be a date, such as 2026-11-28, got '2026'"),
        ("books = ['a']\nzork = 1", "terms.a.zork is not a key; allowed: books, sports, leagues"),
    ],
)
def test_an_own_file_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(catalog.CatalogError) as caught:
        load(tmp_path, f"[terms.a]\n{text}")
    assert said in str(caught.value)


def test_it_comes_before_the_first_look(tmp_path: Path) -> None:
    catalog.terms("kalshi", "football", "moneyline", "nfl")
    with pytest.raises(catalog.CatalogError, match="cannot be loaded any more: terms"):
        load(tmp_path, "[terms.a]\nbooks = ['a']\ntie = 'void'")
