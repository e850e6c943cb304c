"""An operator's own file: added, laid over, checked, and taken whole or not at all."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oddsengine import catalog
from oddsengine.catalog import CatalogError, data_files, own

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


def files(folder: Path, **texts: str) -> dict[str, Path]:
    """Files, by name; `x__y` is y.toml in the folder x."""
    paths = {name: folder.joinpath(*name.split("__")).with_suffix(".toml") for name in texts}
    for name, text in texts.items():
        paths[name].parent.mkdir(exist_ok=True)
        paths[name].write_text(text, encoding="utf-8")
    return paths


SHOP = "[books.shop]\nname = 'Shop'\ncommission = 0\naliases = ['corner']\n"


def test_a_later_file_wins_key_by_key_and_is_reported(tmp_path: Path) -> None:
    own_ = files(
        tmp_path, a=SHOP + "[markets.zork]\nmeans = 'total'\n[markets.gnip]\nmeans = ''\n",
        b="[books.shop]\ncommission = 0.05\naliases = ['kiosk', 'corner']\n[markets.zork]\nmeans = ''\n"
        "[markets.gnip]\nmeans = 'spread'\n", c="[books.shop]\ncommission = 0.07\n",
    )  # fmt: skip
    steps = [("a", 0, "b", 0.05), ("b", 0.05, "c", 0.07)]
    assert own.read(*own_.values()).replaced == [
        own.Replaced("books.shop.commission", own_[one], before, own_[other], value)
        for one, before, other, value in steps
    ]
    got = catalog.load(own_["a"], own_["b"])
    shop = catalog.book("kiosk")
    assert (shop.id, shop.name, shop.commission, shop.aliases) == ("shop", "Shop", 0.05, ("corner", "kiosk"))
    assert len(got.replaced) == 1
    assert [catalog.market_type(name).family for name in ("zork", "gnip")] == ["total", "spread"]
    catalog.forget()
    catalog.load(own_["b"], own_["a"])
    assert catalog.book("kiosk").commission == 0


def test_a_folder_is_read_by_name_and_files_complete_each_other(tmp_path: Path) -> None:
    files(
        tmp_path, own__10="[books.shop]\nregions = ['UK']\n[links.shop]\nhome = 'https://shop.example/'\n"
        "[teams.pub.ducks]\nname = 'Ducks'\n", own__20=SHOP + "[leagues.pub]\nname = 'Pub'\nsport = 'soccer'\n",
        own__30=SHOP,
    )  # fmt: skip
    (tmp_path / "own" / ".hidden.toml").write_text("[")
    (tmp_path / "own" / "notes.txt").write_text("[")
    got = catalog.load(tmp_path / "own")
    assert [path.name for path in got.paths] == ["10.toml", "20.toml", "30.toml"]
    assert not got.replaced
    assert (catalog.book("corner").regions, catalog.team("ducks", "soccer", "pub") is not None) == (("UK",), True)
    assert catalog.link("shop") == ("https://shop.example/", "home")


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (SHOP, "[books.shop]\ncommission = 0.05", "books.shop.commission must have one value in the files of a folder, "
         "got 0 and 0.05"),
        (SHOP, "[books.kiosk]\nname = 'Kiosk'\naliases = ['corner']", "books: 'corner' means shop already"),
        ("[teams.nba.a]\nname = 'A'", "[teams.nhl.a]\nname = 'A'", "teams.nhl.a must be the only entry with its id, "
         "got teams.nba.a too"),
        ("[teams.nba.a]\nname = 'A'\naliases = ['x']", "[teams.nba.b]\nname = 'B'\naliases = ['x']",
         "teams of nba: 'x' means a already"),
        ("[markets.'Zork (1)']\nmeans = 'total'", "[markets.zork_1]\nmeans = 'spread'",
         "markets.zork_1.means must be that of markets.Zork (1), which is the same name: total, got 'spread'"),
        ("[books.x]\nregions = ['UK']", "[books.x]\nsharp = true", "books.x.name must be a string with letters"),
    ],
)  # fmt: skip
def test_files_that_contradict_each_other_are_both_named(tmp_path: Path, a: str, b: str, said: str) -> None:
    own_ = files(tmp_path, own__a=a, own__b=b, own__other="[books.other]\nname = 'Other'")
    with pytest.raises(catalog.CatalogError) as caught:
        catalog.load(tmp_path / "own")
    assert str(caught.value).startswith(f"{own_['own__a']} and {own_['own__b']}: {said}")
    assert not data_files.own.changes
    assert catalog.book("other") == catalog.Book("other", "other")


def test_a_fault_of_one_file_of_several_names_that_file(tmp_path: Path) -> None:
    own_ = files(tmp_path, a=SHOP, b="[links.zork]\nhome = 'https://a.com/'", c="[books.k]\nname = 'K'\nsharp = 1")
    for other, said in (("b", "links.zork must be an id of books"), ("c", "books.k.sharp must be true or false")):
        with pytest.raises(catalog.CatalogError) as caught:
            catalog.load(own_["a"], own_[other])
        assert str(caught.value).startswith(f"{own_[other]}: {said}")
    with pytest.raises(catalog.CatalogError, match="must be listed once, got it twice"):
        catalog.load(own_["a"], tmp_path / "." / "a.toml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(catalog.CatalogError, match=r"empty: a folder .* must have some \*\.toml, got none"):
        catalog.load(tmp_path / "empty")


def test_differences_from_the_package_and_from_other_files(tmp_path: Path) -> None:
    own_ = files(
        tmp_path, a=FULL + "[thresholds.stale]\nprematch_s = 300\n", b="[books.draftkings]\nrequires_tier = 'pro'\n"
        "aliases = ['dk_uk']\n[markets.moneyline]\nmeans = 'total'\n[markets.open]\nmeans = ''\n",
    )  # fmt: skip
    one, other = own.read(own_["a"]).changes, own.read(own_["b"]).changes
    found = {(each.entry, each.key): (each.before, each.after) for each in catalog.differences({}, one)}
    assert found["books.draftkings", "aliases"] == (None, ["dk_us"])
    assert found["books.draftkings", "requires_tier"] == ("free", "sharp")
    assert found["books.corner_shop", "name"] == (None, "Corner Shop")
    assert found["teams.england_premier_league.luton_town", "in_league"] == (None, ["The Hatters"])
    assert found["thresholds.stale", "prematch_s"] == (600.0, 300)
    moved = found["teams.england_premier_league.luton_town", "league"]
    assert moved == ("england_championship", "england_premier_league")
    assert ("teams.england_premier_league.luton_town", "name") not in found  # as in the package
    assert [each[2:] for each in catalog.differences({}, other)] == [
        ("books.draftkings", "requires_tier", "free", "pro"), ("books.draftkings", "aliases", None, ["dk_uk"]),
        ("markets.moneyline", "means", "moneyline", "total"),
    ]  # fmt: skip
    between = {(each.entry, each.key): (each.before, each.after) for each in catalog.differences(one, other)}
    assert between["books.draftkings", "aliases"] == (["dk_us"], ["dk_uk"])
    assert between["books.corner_shop", "name"] == ("Corner Shop", None)
    assert between["thresholds.stale", "prematch_s"] == (300, 600.0)
    assert not catalog.differences(one, one)


def test_what_is_no_readable_file_is_named_at_once(tmp_path: Path) -> None:
    """A pipe is not waited for, and what TOML's reader cannot hold is its file's fault."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 20_000 + "]" * 20_000)
    (tmp_path / "long.toml").write_text("[books.x]\ncommission = " + "9" * 5_000)
    for name, why in (
        ("pipe", "must be a file, got a device or a pipe"),
        ("loop", "cannot be read: too many levels of symbolic links"),
        ("deep", "not valid TOML: maximum recursion depth"),
        ("long", "not valid TOML: Exceeds the limit"),
    ):
        with pytest.raises(CatalogError, match=re.escape(f"{tmp_path / name}.toml: {why}")):
            own.read(tmp_path / f"{name}.toml")
    with pytest.raises(CatalogError, match="a catalog file must have a name, got an empty text"):
        own.read("")


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
