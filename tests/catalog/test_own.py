"""An operator's own file: added, laid over, checked, and taken whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oddsengine import catalog
from oddsengine.catalog import data_files, own

FULL = """
[books.corner_shop]
name = "Corner Shop"
regions = ["UK"]
requires_tier = "pro"
sharp = true
commission = 0
aliases = ["shop"]
[books.draftkings]
requires_tier = "sharp"
aliases = ["dk_us"]
[links.corner_shop]
home = "https://www.corner-shop.example/"
event = "https://www.corner-shop.example/game/{event}"
[leagues.sunday_league]
name = "Sunday League"
sport = "soccer"
aliases = ["Pub League"]
[teams.sunday_league.dog_and_duck]
name = "Dog & Duck"
aliases = ["The Ducks"]
[teams.england_premier_league.luton_town]
in_league = ["The Hatters"]
[markets."Winner (90 min)"]
means = "moneyline_3way"
[markets.half_goals]
means = "1st_half_total_goals"
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    catalog.forget()
    yield
    catalog.forget()


def load(folder: Path, text: str) -> None:
    path = folder / "catalog.toml"
    path.write_text(text, encoding="utf-8")
    catalog.load(path)


def test_the_form_in_the_docstring_is_taken(tmp_path: Path) -> None:
    assert own.__doc__
    shown = [line.strip() for line in own.__doc__.splitlines() if line.startswith("    ")]
    load(tmp_path, "\n".join(shown))
    assert catalog.team("The Ducks", "soccer", "Sunday League")


def test_an_own_file_adds_and_lays_over(tmp_path: Path) -> None:
    load(tmp_path, FULL)
    shop = catalog.book("Shop")
    assert (shop.id, shop.name, shop.sharp, shop.regions) == ("corner_shop", "Corner Shop", True, ("UK",))
    assert "corner_shop" in catalog.tier_books("pro")
    assert next(book.id for book in catalog.books().values() if book.sharp) == "pinnacle"
    kings = catalog.book("dk_us")
    assert kings is catalog.book("dk")
    assert (kings.name, kings.requires_tier) == ("DraftKings", "sharp")
    assert catalog.link("shop", event="7") == ("https://www.corner-shop.example/game/7", "event")
    assert catalog.allowed("https://corner-shop.example/")
    assert catalog.league("pub league", "soccer").id == "sunday_league"
    assert catalog.team_aliases("soccer")["the ducks"] == "dog and duck"
    hatters = catalog.team("the hatters", "soccer", "epl")
    assert hatters is not None
    assert (hatters.id, hatters.league, hatters.name) == ("luton_town", "england_premier_league", "Luton Town")
    assert catalog.market_type("Winner 90 min", "soccer").family == "moneyline_3way"
    assert catalog.market_type("1st half winner 90 min", "soccer").period == "1st_half"
    assert (catalog.market_type("Half Goals").family, catalog.market_type("Half Goals").period) == ("total", "1st_half")
    assert catalog.listing("half_goals").name == "Total goals, 1st half"


def test_without_it_nothing_of_it_is_known() -> None:
    assert catalog.book("shop").id == "shop"
    assert not catalog.market_type("half goals and zork").usable


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "not valid TOML: "),
        ("[shops.a]\nname = 'A'", "shops is not a section; allowed: books, links, leagues, teams, markets"),
        ("books = 3", "books must be a table, got 3"),
        ("[books]\na = 3", "books.a must be a table"),
        ("[books.a]\nregions = ['UK']", "books.a.name must be a string with letters or digits"),
        ("[books.a]\nname = 3", "books.a.name must be a string with letters or digits"),
        ("[books.a]\nname = '...'", "books.a.name must be a string with letters"),
        ("[books.a]\nname = 'A'\nrequires_tier = 'gold'", "requires_tier must be one of free, hobby, pro, sharp"),
        ("[books.a]\nname = 'A'\nregions = ['MARS']", "regions must be a list of some of US, UK"),
        ("[books.a]\nname = 'A'\nsharp = 1", "books.a.sharp must be true or false, got 1"),
        ("[books.a]\nname = 'A'\ncommission = 5", "commission must be a fraction from 0 to less than 0.2, got 5"),
        ("[books.a]\nname = 'A'\ncommission = nan", "commission must be a fraction"),
        ("[books.a]\nname = 'A'\nlive_fee = 0.5", "live_fee must be a fraction from 0 to less than 0.5, got 0.5"),
        ("[books.a]\nname = 'A'\nfee_step = 0", "fee_step must be an amount above 0 of at most 1, got 0"),
        ("[books.a]\nname = 'A'\naliases = 'b'", "aliases must be a list of strings"),
        ("[books.a]\nname = 'A'\nzork = 1", "books.a.zork is not a key; allowed: name, display, regions"),
        ("[books.'A B']\nname = 'A'", "the id must be lower-case letters"),
        ("[books.a]\nname = 'A'\naliases = ['dk']", "books: 'dk' means draftkings already; it cannot also mean a too"),
        ("[books.a]\nname = 'A'\n[books.b]\nname = 'a'", "'a' means a already; it cannot also mean b too"),
        (
            "[links.fanduel]\nhome = 'http://a.com/'",
            "links.fanduel.home must be a link, and this has",
        ),
        ("[links.fanduel]\nhome = 3", "links.fanduel.home must be "),
        ("[links.zork]\nhome = 'https://a.com/'", "links.zork must be an id of books, got 'zork'"),
        ("[leagues.a]\nname = 'A'", "leagues.a.sport must be one of football"),
        ("[leagues.a]\nname = 'A'\nsport = 'quidditch'", "sport must be one of football"),
        ("[leagues.a]\nname = 'A'\nsport = 'soccer'\naliases = ['epl']", "'epl' means england_premier_league already"),
        ("[teams.zork.a]\nname = 'A'", "teams.zork must be an id of leagues, got 'zork'"),
        ("[teams.nba]\na = 3", "teams.nba.a must be a table"),
        ("[teams.nba.a]\nname = 'Lakers'", "teams of nba: 'lakers' means los_angeles_lakers already"),
        ("[teams.euroleague.a]\nname = 'Lakers'", "teams of basketball: 'lakers' means los_angeles_lakers already"),
        ("[teams.nba.a]\nname = 'A'\nin_league = ['Chicago']", "teams of nba: 'chicago' means chicago_bulls already"),
        (
            "[teams.nba.a]\nname = 'A'\n[teams.nhl.a]\nname = 'B'",
            "teams.nhl.a must be the only entry with its id, got 'a' twice",
        ),
        (
            "[markets.zork]\nmeans = 'zork line'",
            "markets.zork.means must be a market type of the catalog, got 'zork line'",
        ),
        ("[markets.zork]", "markets.zork.means must be a string with letters or digits, got nothing"),
    ],
)
def test_a_file_that_is_wrong_says_where_and_leaves_the_catalog(tmp_path: Path, text: str, said: str) -> None:
    fine = "[books.before]\nname = 'Before'\n"
    with pytest.raises(catalog.CatalogError) as caught:
        load(tmp_path, text if text.startswith(("books", "[books]", "x =")) else fine + text)
    assert str(tmp_path / "catalog.toml") in str(caught.value)
    assert said in str(caught.value)
    assert (" must be " in str(caught.value)) == (", got " in str(caught.value))
    assert not data_files.own.changes
    assert catalog.book("before") == catalog.Book("before", "before")
    assert catalog.league("epl", "soccer").id == "england_premier_league"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(catalog.CatalogError, match=r"none\.toml: cannot be read: no such file or directory$"):
        catalog.load(tmp_path / "none.toml")


def test_it_has_to_come_first(tmp_path: Path) -> None:
    catalog.book("draftkings")
    with pytest.raises(catalog.CatalogError, match="any more: books of the catalog"):
        load(tmp_path, FULL)
    assert catalog.book("shop").id == "shop"
    # What was not looked up may still come.
    load(tmp_path, "[leagues.sunday_league]\nname = 'Sunday League'\nsport = 'soccer'")
    assert catalog.league("Sunday League").sport == "soccer"


def test_the_same_twice_is_once_and_another_is_too_late(tmp_path: Path) -> None:
    load(tmp_path, FULL)
    load(tmp_path, FULL)
    with pytest.raises(catalog.CatalogError, match="cannot be loaded any more"):
        load(tmp_path, "[books.other]\nname = 'Other'")
    assert catalog.book("shop").id == "corner_shop"


def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path) -> None:
    catalog.book("draftkings")
    load(tmp_path, "")
    load(tmp_path, "[books]")
    assert not data_files.own.changes
