"""Novig's markets and books: a bid on one outcome is an offer of the other."""

from datetime import timedelta
from typing import Any

import pytest
from feeds.test_samples import encoded
from hypothesis import given
from support.contract_payloads import lost_rows, payloads
from support.novig import START, book, event, market, page, spread, total, winner

import oddsengine as oe
from oddsengine.feeds import FeedError, Payload
from oddsengine.feeds.novig import NovigPrices, next_place, read_events, read_markets
from oddsengine.feeds.turns import ListedGames, Received
from oddsengine.feeds.venue_contracts import load

NOW = START - timedelta(hours=2)
SEEN = NOW - timedelta(seconds=1)
CONTRACT = load("novig")
BIDS = ([("0.48", 25_000), ("0.475", 4_000)], [("0.5", 10_000)])


def games(*events: Any, **more: Any) -> ListedGames:
    return read_events([encoded(page(*(events or [event()])))], NOW, **more)


def read(
    *markets: Any, events: Any = (), reader: NovigPrices | None = None, books: Any = None, lines: int = 9
) -> Payload:
    listed = games(*events)
    wanted = read_markets([encoded(page(*markets))], listed, lines)
    bodies = {one.id: book(one.id, *BIDS) for one in wanted} if books is None else books
    received = {ident: Received(encoded(one), SEEN) for ident, one in bodies.items()}
    reader = reader or NovigPrices()
    payload = reader.read("nfl", listed.games, wanted, received)
    return payload._replace(refused=payload.refused + reader.end("nfl", listed).refused)


def meant(payload: Payload) -> list[tuple[Any, ...]]:
    names = ("market_type", "selection", "selection_type", "line")
    return [tuple(row[name] for name in names) for row in payload.quotes]


def test_a_bid_on_one_outcome_is_an_offer_of_the_other() -> None:
    """The documented book: DAL -3.5 costs 1 - 0.5 for 100 USD of payout, NYG +3.5 1 - 0.48 for 250."""
    dallas, giants = read(spread()).quotes
    assert (dallas["odds_decimal"], dallas["max_bet"]) == (2.0, pytest.approx(50.0))
    assert (giants["odds_decimal"], giants["max_bet"]) == (pytest.approx(1 / 0.52), pytest.approx(130.0))
    assert [(round(level["odds_decimal"], 4), round(level["stake"], 2)) for level in giants["levels"]] == [
        (1.9231, 130.0), (1.9048, 21.0),
    ]  # fmt: skip
    assert (giants["min_bet"], giants["bet_step"]) == (pytest.approx(0.0052), pytest.approx(0.0052))
    assert dallas["last_seen_at"] == SEEN


def test_sides_and_lines() -> None:
    assert meant(read(winner(), spread(), total())) == [
        ("moneyline", "New York Giants", "home", None), ("moneyline", "Dallas Cowboys", "away", None),
        ("point_spread", "Dallas Cowboys", "away", -3.5), ("point_spread", "New York Giants", "home", 3.5),
        ("total_points", "Over", "over", 45.5), ("total_points", "Under", "under", 45.5),
    ]  # fmt: skip
    (game,) = read(winner()).games
    assert (game.sport, game.league, game.home, game.away, game.start) == (
        "football", "nfl", "New York Giants", "Dallas Cowboys", START,
    )  # fmt: skip
    table = oe.check_odds(read(winner(), spread(), total()).quotes)
    assert (table.height, oe.rejected(table).height) == (6, 0)


def test_a_spread_says_what_teams_are_called() -> None:
    """The catalog does not know these; without a spread, nothing does."""
    played = event(name="Alpha City @ Beta Town")
    odd = market("w", "MONEY", "BTO", "ACI")
    line = market("s", "SPREAD", "ACI -3.5", "BTO +3.5", strike="3.5")
    assert meant(read(odd, line, events=[played]))[:2] == [
        ("moneyline", "Beta Town", "home", None), ("moneyline", "Alpha City", "away", None),
    ]  # fmt: skip
    alone = read(odd, events=[played])
    assert (alone.quotes, alone.refused) == ([], {"a market whose outcomes are not understood": 1})
    other = market(
        "s2", "SPREAD", "BTO -1.5", "ACI +1.5", strike="1.5"
    )  # they are at home in one, and away in the other
    assert read(odd, line, other, events=[played]).quotes == []


@pytest.mark.parametrize(
    "wrong",
    [
        market("w", "MONEY", "NYG", "NYG"), market("w", "MONEY", "DAL"), market("w", "MONEY", "NYG", "DAL", "Draw"),
        market("s", "SPREAD", "DAL -3.5", "NYG +3.5", strike="-3.5"),
        market("s", "SPREAD", "DAL -3.5", "NYG +4.5", strike="4.5"), market("s", "SPREAD", "DAL -3.5", "NYG +3.5"),
        market("t", "TOTAL", "Over 45.5", "Over 45.5", strike="45.5"),
        market("t", "TOTAL", "Over 45.5", "Under 45.5", strike="46.5"),
        market("t", "TOTAL", "Over 45.5", "Under 46.5", strike="45.5"),
        market("w", "MONEY", "NYG", "DAL", fee={"coefficient": "x", "charged": "ALWAYS"}),
    ],
)  # fmt: skip
def test_markets_that_are_not_understood_cost_themselves(wrong: Any) -> None:
    payload = read(total("t0"), wrong)
    assert {row["market_id"] for row in payload.quotes} == {"t0"}
    assert payload.refused == {"a market whose outcomes are not understood": 1}


@pytest.mark.parametrize(
    ("status", "charged", "fee"),
    [("OPEN_PREGAME", "WHEN_LIVE", 0.0), ("OPEN_INGAME", "WHEN_LIVE", 0.03), ("OPEN_PREGAME", "ALWAYS", 0.03)],
)
def test_the_fee_is_that_of_the_market(status: str, charged: str, fee: float) -> None:
    given_ = winner(fee={"coefficient": "0.03", "makerCredit": "0.5", "charged": charged})
    rows = read(given_, events=[event(status=status)]).quotes
    assert {row["contract_fee"] for row in rows} == {fee}
    assert {row["is_live"] for row in rows} == {status == "OPEN_INGAME"}


def test_a_game_that_has_begun_since_it_was_listed_has_the_fee_of_bets_in_play() -> None:
    for seconds, live in ((1, False), (-1, True)):
        rows = read(winner(), events=[event(start=SEEN + timedelta(seconds=seconds))]).quotes
        assert {(row["is_live"], row["contract_fee"]) for row in rows} == {(live, 0.03 if live else 0.0)}


def test_only_open_games_and_markets_count() -> None:
    for status in ("CLOSED_PREGAME", "DELAYED", "SETTLED", "CANCELED"):
        assert read(winner(), events=[event(status=status)]).quotes == []
    assert read(winner(status="CLOSED")).quotes == []
    assert games(event(start=NOW + timedelta(days=3)), within=86_400.0).games == {}
    assert games(event(name="Super Bowl")).refused == {"an event that is not a game of two": 1}


def test_lines_in_the_middle_are_read_first() -> None:
    listed = games()
    lines = [spread(f"s{at}", at + 0.5) for at in range(7)]
    found = read_markets([encoded(page(*lines, winner()))], listed, 3)
    assert [one.id for one in found] == ["w", "s3", "s2", "s4"]


def test_a_crossed_book_has_no_prices() -> None:
    payload = read(winner(), books={"w": book("w", [("0.6", 100)], [("0.5", 100)])})
    assert (payload.quotes, payload.refused) == ([], {"a book whose bids are above its offers": 1})
    strange = read(winner(), books={"w": book("w", [("1.2", 100), ("0.4", 5)], [("x", 1)])})
    assert [row["selection_type"] for row in strange.quotes] == ["away"]
    assert strange.refused["an order that is not valid"] == 2


def test_what_is_no_longer_there_is_removed() -> None:
    reader = NovigPrices()
    read(winner(), total(), reader=reader)
    assert read(winner(), reader=reader).removed == ["t/0", "t/1"]
    assert sorted(reader.end("nfl", ListedGames({}, games().refused)).removed) == ["w/0", "w/1"]


def test_pages() -> None:
    assert (next_place(encoded(page(after=7))), next_place(encoded(page()))) == ("7", "")
    with pytest.raises(FeedError, match="it has no list of events"):
        read_events([b"{}"], NOW)


# ---- payloads made from the contract ----


def test_our_exchange_answers_as_the_contract_says() -> None:
    documents = {
        "events": page(event(), after=1),
        "markets": page(winner(), spread(), total()),
        "book": book("w", *BIDS),
    }
    for name, document in documents.items():
        assert CONTRACT.unknown(name, document) == []


def test_a_value_that_is_unheard_of_costs_its_rows_and_is_counted() -> None:
    places = lost_rows(CONTRACT, "markets", page(winner(), total()), lambda changed: read(*changed["items"]))
    assert [(place, {row["market_id"] for row in lost}) for place, lost, _ in places] == [
        ("items[0].status", {"w"}), ("items[0].fee.charged", {"w"}), ("items[1].status", {"t"}),
        ("items[1].fee.charged", {"t"}),
    ]  # fmt: skip
    events = [event(), event("e2", "Denver Broncos @ Kansas City Chiefs")]
    both = (winner(), market("w2", "MONEY", "KC", "DEN", of="e2"))
    places = lost_rows(CONTRACT, "events", page(*events), lambda changed: read(*both, events=changed["items"]))
    assert [(place, {row["market_id"] for row in lost}) for place, lost, _ in places] == [
        ("items[0].status", {"w"}), ("items[1].status", {"w2"}),
    ]  # fmt: skip


@given(payloads(CONTRACT, "events"), payloads(CONTRACT, "markets"), payloads(CONTRACT, "book"))
def test_whatever_comes_is_read_or_refused(events: Any, markets: Any, orders: Any) -> None:
    try:
        listed = read_events([encoded(events)], NOW)
        wanted = read_markets([encoded(markets)], listed)
        bodies = {one.id: Received(encoded(orders), SEEN) for one in wanted}
        rows = NovigPrices().read("nfl", listed.games, wanted, bodies).quotes
    except FeedError:
        return
    assert all(row["odds_decimal"] > 1.0 for row in rows)
