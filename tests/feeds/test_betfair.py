"""Betfair's messages, made from its contract: what is not known costs its market or runner, and is counted."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from feeds.test_samples import IMAGE, LINES, encoded
from hypothesis import given
from hypothesis import strategies as st
from support.betfair import START, Market, back
from support.contract_payloads import UNHEARD_OF, mutated, payloads, unheard_of

from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.betfair import BetfairMarkets
from oddsengine.feeds.betfair_format import Catalogue, read_catalogue
from oddsengine.feeds.venue_contracts import load

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


@pytest.mark.parametrize("parts", [1, 2])
def test_a_resumed_subscription_sends_what_has_changed(parts: int) -> None:
    """After the clock of an image come only changes, whole or in segments; a new image is all there is."""
    reader, markets = BetfairMarkets(), [Market("1.1"), Market("1.2", odds=1.5)]
    named = msgspec.convert([market.listed() for market in markets], list[Catalogue])

    def told(number: int, kind: str, *changes: Any, **more: Any) -> Payload:
        message = {"op": "mcm", "id": number, "ct": kind, "clk": kind, "pt": IMAGE["pt"], "mc": list(changes)} | more
        assert CONTRACT.unknown("message", message) == []
        return reader.read(encoded(message))

    reader.subscribe(1, ["1.1", "1.2"], anew=True)
    reader.name(named)
    image = told(1, "SUB_IMAGE", *(market.image() for market in markets), initialClk="i")
    assert (len(image.quotes), reader.clk, reader.initial_clk) == (4, "SUB_IMAGE", "i")
    reader.subscribe(2, ["1.1", "1.2"], anew=False)
    delta = {"id": "1.1", "rc": [back(1, 1.9)]}
    gone = {"id": "1.2", "marketDefinition": markets[1].definition | {"status": "CLOSED"}}
    if parts == 1:
        resumed = told(2, "RESUB_DELTA", delta, gone)
    else:
        assert told(2, "RESUB_DELTA", delta, segmentType="SEG_START") == Payload()
        resumed = told(2, "RESUB_DELTA", gone, segmentType="SEG_END")
    assert [(row["id"], row["odds_decimal"]) for row in resumed.quotes] == [("1.1/1/0", 1.9)]
    assert (sorted(resumed.removed), reader.clk) == (["1.2/1/0", "1.2/2/0"], "RESUB_DELTA")
    assert {row["odds_decimal"] for row in reader.alive(START).quotes} == {1.9, 2.2}
    again = told(2, "SUB_IMAGE", Market("1.3").image())
    assert sorted(again.removed) == ["1.1/1/0", "1.1/2/0"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": "1.1", "rc": [back(1, 1.9) | {"id": "1"}]}, "rc[0].id"),
        ({"id": "1.1", "marketDefinition": Market("1.1").definition | {"runners": [{"id": "1"}]}}, "runners[0].id"),
        ({"id": "1.1", "rc": [{"id": 1, "atb": [[0, 1.9, 50.0]]}]}, "rc[0].atb[0]"),
    ],
)
def test_ids_in_text_and_ladders_of_another_form_are_refused(change: Any, place: str) -> None:
    """Runners are matched by number: a text could be another runner, and a level could be a price."""
    reader = BetfairMarkets()
    before = reader.read(encoded(IMAGE)).quotes
    with pytest.raises(FeedError, match=rf"not a payload of the Betfair stream: Expected .*{re.escape(place)}`$"):
        reader.read(encoded({"op": "mcm", "clk": "x", "pt": 1, "ct": "RESUB_DELTA", "mc": [change]}))
    assert (len(reader.alive(START).quotes), reader.clk) == (len(before), IMAGE["clk"])
