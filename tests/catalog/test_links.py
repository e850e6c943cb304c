"""Links: every template is sound, and a link never leads anywhere but to a book."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oddsengine import catalog
from oddsengine.catalog import data_files, links

SOURCE = data_files.toml("links.toml")


def test_links_keep_to_the_schema() -> None:
    assert SOURCE.keys() == {"states", "books"}
    assert all(re.fullmatch("[a-z]{2}", state) for state in SOURCE["states"])
    assert len(set(SOURCE["states"])) == len(SOURCE["states"]) == 52
    assert SOURCE["books"].keys() <= catalog.books().keys()
    for book, templates in SOURCE["books"].items():
        assert templates.keys() <= set(links.TEMPLATES), book
        assert "home" in templates, book
        for key, template in templates.items():
            assert template.startswith("https://"), book
            assert not links.fault(key, template), (book, key)


@pytest.mark.parametrize(
    ("key", "template"),
    [
        ("home", "http://a.com/"),
        ("home", "https://a.com"),
        ("home", "https://user@a.com/"),
        ("home", "https://a.com:444/"),
        ("home", "https://{event}.com/"),
        ("home", "https://a.com/{event}"),
        ("home", "https://{state}.a.com/"),
        ("state_home", "https://a.com/"),
        ("event", "https://a.com/{zork}"),
        ("event", "https://a.com/\n{event}"),
        ("event", ""),
    ],
)
def test_unsound_templates(key: str, template: str) -> None:
    assert links.fault(key, template)


def test_the_closest_link_that_the_ids_allow() -> None:
    def url(book: str, **ids: str) -> str:
        found = catalog.link(book, **ids)
        return f"{found.kind} {found.url}" if found else ""

    site = "https://sportsbook.draftkings.com"
    assert url("dk") == f"home {site}/"
    assert url("dk", event="7") == f"event {site}/event/7"
    assert url("dk", event="7", selection="a b", state="nj") == f"outcome {site}/event/7?outcomes=a%20b"
    assert url("dk", selection="3") == f"home {site}/"
    assert url("fanduel", market="1", selection="2", state="nj").startswith(
        "outcome https://nj.sportsbook.fanduel.com/"
    )
    assert url("fanduel", market="1", selection="2").startswith("outcome https://sportsbook.fanduel.com/")
    assert url("betrivers", event="7", state="pa") == "event https://pa.betrivers.com/?page=sportsbook#event/7"
    assert url("betrivers", event="7", state="zz") == url("betrivers", event="7") == "home https://www.betrivers.com/"
    assert url("my_corner_shop") == ""


def test_hosts_follow_from_the_templates() -> None:
    assert catalog.hosts("draftkings") == {"sportsbook.draftkings.com"}
    assert {"sports.betmgm.com", "sports.nj.betmgm.com"} <= catalog.hosts("betmgm")
    assert catalog.hosts("my_corner_shop") == frozenset()


@pytest.mark.parametrize(
    "url",
    [
        "https://sportsbook.draftkings.com/event/7?outcomes=1#x",
        "https://sports.nj.betmgm.com/en/sports",
        "https://pinnacle.com/en/",
        "HTTPS://WWW.Pinnacle.com",
        "https://kalshi.com?x=1",
    ],
)
def test_links_to_books_are_followed(url: str) -> None:
    assert catalog.allowed(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "//kalshi.com/", "http://kalshi.com/", "javascript:alert(1)", "https://", "https:kalshi.com",
        "https://example.org/", "https://kalshi.com.example.org/", "https://example.org/kalshi.com", "https://akalshi.com/",
        "https://kalshi.com@example.org/", "https://kalshi.com:444/", "https://example.org\\@kalshi.com/",
        "https://kalshi.com\\.example.org/", "https://kalshi.com/\r\nSet-Cookie: a=b", "https://kalshi.com\n", " https://kalshi.com/",
        "https://kalshi.com%2eexample.org/", "https://kalshi。com/", "https://sports.zz.betmgm.com/", "https://com/",
        "https://{state}.betrivers.com/", "https://example.org#@kalshi.com/", "https://kalshi.com./",
    ],
)  # fmt: skip
def test_links_to_anywhere_else_are_not(url: str) -> None:
    assert not catalog.allowed(url)


def test_a_link_is_turned_to_a_state() -> None:
    assert catalog.localised("https://sportsbook.fanduel.com/a?b=c", "nj") == "https://nj.sportsbook.fanduel.com/a?b=c"
    assert catalog.localised("https://www.nj.bet365.com/x", "co") == "https://www.co.bet365.com/x"
    assert catalog.localised("https://{state}.betrivers.com/?page=sportsbook", "il").startswith(
        "https://il.betrivers.com/"
    )
    assert catalog.localised("https://{state}.betrivers.com/", "") == ""
    assert catalog.localised("https://{state}.betrivers.com/", "evil.example/") == ""
    assert catalog.localised("https://example.org/", "nj") == "https://example.org/"


BOOKS = st.sampled_from(sorted(catalog.books()))
IDS = st.text(max_size=12)


@given(BOOKS, IDS, IDS, IDS, st.one_of(IDS, st.sampled_from(SOURCE["states"])))
def test_whatever_the_ids_a_link_stays_at_its_book(
    book: str, event: str, market: str, selection: str, state: str
) -> None:
    found = catalog.link(book, event=event, market=market, selection=selection, state=state)
    assert (found is not None) == (book in SOURCE["books"])
    if found is not None:
        assert catalog.allowed(found.url)
        assert found.url.split("/")[2] in catalog.hosts(book)
        assert found.url.isascii()
