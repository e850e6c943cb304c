"""Where books take bets: the shipped places, what is unknown, and places of an own file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oddsengine import catalog
from oddsengine.catalog import data_files
from oddsengine.catalog.places import fault


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    catalog.forget()
    yield
    catalog.forget()


SHIPPED = data_files.toml("places.toml")


@pytest.mark.parametrize("name", SHIPPED)
def test_an_entry_is_of_a_book_has_a_source_and_names_each_place_once(name: str) -> None:
    entry = SHIPPED[name]
    assert name in catalog.books()
    assert entry["source"]
    assert entry["date"]
    listed = [place for key in ("open", "closed", "unknown") for place in entry.get(key, ())]
    assert listed
    assert not [place for place in listed if fault(place)]
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(
    ("book", "place", "answer"),
    [
        ("kalshi", "US", True),
        ("kalshi", "US-NY", True),  # as its country
        ("kalshi", "US-NV", False),  # before its country
        ("kalshi", "US-MN", None),
        ("kalshi", "SE", None),
        ("polymarket", "US-NY", False),
        ("polymarket", "CA", None),
        ("polymarket", "CA-ON", False),
        ("draftkings", "US-CA", False),
        ("draftkings", "US", None),  # it depends on the state
        ("draftkings", "US-DC", None),
        ("DraftKings", "US-NJ", True),
        ("betmgm", "US-NJ", None),  # its region is the US, and no entry says where
        ("paddypower", "GB", True),  # by its region
        ("paddypower", "IE", None),
        ("sportsbet", "AU", True),
        ("corner_shop", "GB", None),
    ],
)
def test_whether_a_book_takes_bets_in_a_place(book: str, place: str, answer: bool | None) -> None:
    assert catalog.places(book).takes_bets(place) is answer


def test_books_of_a_place_are_those_that_are_known_to_take_bets_there() -> None:
    known, possible = catalog.books_in("US-NY"), catalog.books_in("US-NY", unknown=True)
    assert set(known) == {"kalshi", "draftkings", "fanduel", "caesars", "ballybet"}
    assert set(known) < set(possible)
    assert "betmgm" in possible
    assert "polymarket" not in possible
    assert list(possible) == [name for name in catalog.books() if name in possible]


@pytest.mark.parametrize("text", ["", "New Jersey", "USA", "US-", "US-XX", "US-NJ-1", "U"])
def test_what_is_not_a_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid place"):
        catalog.books_in(text)


def test_an_own_file_adds_and_replaces_places(tmp_path: Path) -> None:
    own = tmp_path / "catalog.toml"
    own.write_text(
        '[books.corner_shop]\nname = "Corner Shop"\n[places.corner_shop]\nopen = ["GB"]\n'
        '[places.kalshi]\nopen = ["US-NV"]\n'
    )
    catalog.load(own)
    assert catalog.places("Corner Shop").takes_bets("GB") is True
    assert catalog.places("corner_shop").source == "your own catalog file"
    assert catalog.places("kalshi").takes_bets("US-NV") is True  # listed first
    assert catalog.places("kalshi").takes_bets("GB") is False
    assert "corner_shop" in catalog.books_in("GB")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[places.kalshi]\nopen = ["New Jersey"]', 'must be a list of countries such as "GB", or parts of them'),
        ('[places.kalshi]\nopen = ["US-XX"]', 'must be a list of countries such as "GB", or parts of them'),
        ('[places.kalshi]\nwhere = ["US"]', "is not a key; allowed: open, closed, unknown, source, date"),
        ('[places.corner_shop]\nopen = ["GB"]', "places.corner_shop must be an id of books"),
    ],
)
def test_an_own_file_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    own = tmp_path / "catalog.toml"
    own.write_text(text)
    with pytest.raises(catalog.CatalogError) as caught:
        catalog.load(own)
    assert said in str(caught.value)
