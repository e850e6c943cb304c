"""Betfair's messages, made from its contract: what is not known costs its market or runner, and is counted."""

from datetime import timedelta
from typing import Any

import msgspec
from feeds.test_samples import IMAGE, LINES, encoded
from hypothesis import given
from hypothesis import strategies as st
from support.betfair import START, Market
from support.contract_payloads import UNHEARD_OF, mutated, payloads, unheard_of

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.betfair_format import Catalogue, read_catalogue
from oddsengine.feeds.contract import load

CONTRACT = load("betfair")


def test_our_exchange_sends_what_the_contract_says() -> None:
    for line in LINES:
        assert CONTRACT.unknown("message", line) == []
    market = Market("1.1", betDelay=5, inPlay=True)
    assert CONTRACT.unknown("market_change", market.image()) == []
    assert CONTRACT.unknown("catalogue", [market.listed()]) == []


def test_a_value_that_is_unheard_of_costs_its_rows_and_is_counted() -> None:
    """Also if it comes later: what was read before is removed."""
    before = {row["id"] for row in BetfairMarkets().read(encoded(IMAGE)).quotes}
    places = set()
    for place, changed in unheard_of(CONTRACT, "message", IMAGE):
        places.add(place.rpartition(".")[2] if "runners" not in place else "runner")
        payload = BetfairMarkets().read(encoded(changed))
        left = {row["id"] for row in payload.quotes}
        assert len(left) == (1 if "runners" in place else 0), place
        assert sum(payload.refused.values()) == 1, place
        reader = BetfairMarkets()
        reader.read(encoded(IMAGE))
        assert set(reader.read(encoded(changed)).removed) == before - left
    assert places == {"status", "bettingType", "runner"}


def test_an_entry_of_the_catalogue_that_is_not_valid_costs_only_itself() -> None:
    good = Market("1.1").listed()
    odd = good | {"marketId": "1.2", "runners": [{"selectionId": "x", "runnerName": "A"}, good["runners"][0]]}
    entries, refused = read_catalogue(encoded([good, odd, good | {"marketId": 5}]))
    assert [(entry.marketId, len(entry.runners)) for entry in entries] == [("1.1", 2), ("1.2", 1)]
    assert refused == {
        "a runner of the catalogue that is not valid": 1,
        "a market of the catalogue that is not valid": 1,
    }


def whole(messages: list[Any], listed: list[Any]) -> list[Payload]:
    reader, out = BetfairMarkets(), []
    try:
        out.append(reader.name(read_catalogue(encoded(listed))[0]))
    except FeedError:
        assert listed, "an empty list is one"
    for message in messages:
        try:
            out.append(reader.read(encoded(message)))
        except FeedError:
            continue
    return out


@given(
    st.lists(payloads(CONTRACT, "message") | mutated(CONTRACT, "message", IMAGE), max_size=4),
    payloads(CONTRACT, "catalogue") | mutated(CONTRACT, "catalogue", [Market("1.2001").listed()]),
)
def test_whatever_comes_is_read_or_refused(messages: list[Any], listed: list[Any]) -> None:
    for payload in whole(messages, listed):
        assert all(row["odds_decimal"] > 1.0 for row in payload.quotes)
        assert UNHEARD_OF not in {row["market_type"] for row in payload.quotes}


def test_heartbeats_renew_no_prices_while_the_image_of_other_markets_is_to_come() -> None:
    """An exchange may take a subscription and never send its markets; the prices before it then get old."""
    reader, later, number = BetfairMarkets(), START + timedelta(minutes=5), 0

    def told(**message: Any) -> Payload:
        return reader.read(encoded({"op": "mcm", "id": number, "clk": "c", "pt": 1} | message))

    def subscribed(*markets: str) -> None:
        nonlocal number
        number += 1
        reader.subscribe(number, markets, anew=True)
        reader.name(msgspec.convert([Market(one).listed() for one in markets], list[Catalogue]))

    subscribed("1.1")
    told(mc=[Market("1.1").image()], ct="SUB_IMAGE", initialClk="i")
    assert len(reader.alive(START).quotes) == 2
    subscribed("1.2")
    told(ct="HEARTBEAT")
    assert not reader.alive(later).quotes
    told(mc=[Market("1.2").image()], ct="SUB_IMAGE", initialClk="i")
    assert {row["market_id"] for row in reader.alive(later).quotes} == {"1.2"}
