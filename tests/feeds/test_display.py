"""What a source may have shown: links, and texts without invisible characters."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from oddsengine import catalog
from oddsengine.catalog.links import hosts, leads_to
from oddsengine.feeds import Game, Payload
from oddsengine.feeds.display import DROPPED, displayable, visible

GOOD = "https://sportsbook.draftkings.com/event/1?outcomes=2"
BAD = (
    "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "http://sportsbook.draftkings.com/", "//evil.x/",
    "https://evil.example/", "https://sportsbook.draftkings.com.evil.example/", "https://evilsportsbook.draftkings.com.x/",
    "https://sportsbook.draftkings.com@evil.example/", "https://sportsbook.draftkings.com:99/", " https://kalshi.com/",
    "https://sportsbook.draftkings.com\\@evil.example/", "https://sportsbook.fanduel.com/", "x", "https://{state}/",
    "https://sportsbook.draftkings.com/\u202e", 7, ["https://sportsbook.draftkings.com/"],
)  # fmt: skip


def row(**more: Any) -> dict[str, Any]:
    return {"sportsbook": "draftkings", "event_id": "e", "market_type": "moneyline", "selection": "Home", **more}


@pytest.mark.parametrize("link", BAD)
def test_other_links_are_dropped_and_counted(link: Any) -> None:
    payload = Payload(
        quotes=[row(deep_link=link), row(deep_link=GOOD)], futures=[row(deep_link=link)], refused=Counter(a=1)
    )
    made = displayable(payload)
    assert [quote["deep_link"] for quote in made.quotes] == [None, GOOD]
    assert made.futures[0]["deep_link"] is None
    assert made.refused == {"a": 1, DROPPED: 2}
    assert payload.quotes[0]["deep_link"] == link  # shared with the parser


def test_links_to_a_books_own_site_are_published() -> None:
    for book in catalog.books():
        for host in hosts(book):
            assert leads_to(book, f"https://{host}/x?y=1#z")
            assert not leads_to(book, f"https://{host}.example/")
    for link in (
        GOOD,
        "https://www.sportsbook.draftkings.com/",
        "https://nj.sportsbook.draftkings.com/x",
        GOOD.upper(),
    ):
        assert leads_to("draftkings", link) is leads_to("DraftKings", link) is True
    assert leads_to("betmgm", "https://sports.{state}.betmgm.com/en/sports?options=1")
    assert not leads_to("nobody_knows", GOOD)


def test_texts_lose_invisible_characters() -> None:
    hidden = "\u202eArs\u200ben\u00adal\u2066\ufeff\U000e0041"
    start = datetime(2026, 2, 8, tzinfo=UTC)
    names = dict.fromkeys(("home_team", "away_team", "selection", "player_name", "sportsbook_name", "league"), hidden)
    game = Game("e\u200b", "soccer", hidden, hidden, "Málaga", start)
    made = displayable(Payload([game], [row(**names, id="i\u200b"), row()]))
    assert {made.quotes[0][name] for name in names} == {"Arsenal"}
    assert made.quotes[0]["id"] == "i\u200b"  # ids are as the source has them
    assert made.games[0] == Game("e\u200b", "soccer", "Arsenal", "Arsenal", "Málaga", start)
    assert made.quotes[1] == row()
    assert visible("Atlético 北京 Спартак الأهلي 1") == "Atlético 北京 Спартак الأهلي 1"
