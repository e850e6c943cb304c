"""Price and time decide who trades; a naive twin says the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from naive import order_books as naive

from oddsengine.simulate.order_books import Action, Intent, MatchingEngine

TICKS = 10
KINDS = {
    naive.LIMIT: Action.LIMIT, naive.TAKE: Action.TAKE, naive.CANCEL: Action.CANCEL, naive.OPEN: Action.OPEN,
    naive.CLOSE: Action.CLOSE,
}  # fmt: skip
SIZES, PRICES = st.integers(1, 4), st.integers(3, 7)  # few prices, so that most orders meet others
NEW = st.tuples(st.sampled_from([naive.LIMIT] * 4 + [naive.TAKE, naive.WHOLE]), st.integers(0, 1), PRICES, SIZES)
OTHER = st.tuples(st.sampled_from([naive.CANCEL] * 6 + [naive.OPEN, naive.CLOSE]), st.integers(1, 40))


def opened() -> MatchingEngine:
    book = MatchingEngine(TICKS)
    book.open()
    return book


def test_the_best_price_comes_first_then_the_first_order() -> None:
    book = opened()
    for number, price in enumerate((4, 5, 5, 3), 1):
        book.bid(number, outcome=1, price=price, size=2)
    assert book.offers(0, 10) == [(5, 4), (6, 2), (7, 2)]
    assert book.offers(0, 2) == [(5, 4), (6, 2)]
    assert book.offers(1, 10) == []
    assert (book.offered(0, 4), book.offered(0, 5), book.offered(0, 6)) == (0, 4, 6)
    book.bid(9, outcome=0, price=6, size=3, rests=False)
    assert [book.traded(number) for number in (1, 2, 3, 9)] == [(0, 0), (2, 10), (1, 5), (3, 15)]
    assert book.offers(0, 10) == [(5, 1), (6, 2), (7, 2)]


def test_what_is_left_rests_or_goes() -> None:
    book = opened()
    book.bid(1, outcome=1, price=4, size=2)
    book.bid(2, outcome=0, price=6, size=5)
    assert (book.offers(0, 10), book.offers(1, 10)) == ([], [(4, 3)])
    book.bid(3, outcome=1, price=4, size=9, rests=False)
    assert (book.offers(0, 10), book.offers(1, 10)) == ([], [])
    assert book.traded(3) == (3, 12)
    assert book.traded(2) == (5, 30)  # two on arrival and three at rest, all at 6


def test_a_whole_order_trades_at_once_or_not_at_all() -> None:
    book = opened()
    book.bid(1, outcome=1, price=4, size=2)
    book.bid(2, outcome=1, price=3, size=2)
    book.bid(3, outcome=0, price=6, size=3, rests=False, whole=True)
    assert (book.traded(3), book.offered(0, 7)) == ((0, 0), 4)
    book.bid(4, outcome=0, price=7, size=3, rests=False, whole=True)
    assert book.traded(4) == (3, 2 * 6 + 7)


def test_a_closed_book_has_no_orders_and_takes_none() -> None:
    book = opened()
    book.bid(1, outcome=1, price=4, size=2)
    book.close()
    book.bid(2, outcome=1, price=4, size=2)
    assert book.offers(0, 10) == []
    book.open()
    book.cancel(1)
    assert book.offers(0, 10) == []
    book.bid(3, outcome=1, price=4, size=1)
    assert book.offers(0, 10) == [(6, 1)]


@given(st.lists(st.one_of(NEW, NEW, OTHER), max_size=40))
def test_matching_is_that_of_a_sorted_list(actions: list[Any]) -> None:
    book, twin = opened(), naive.List(TICKS)
    twin.does(naive.OPEN, 0, 0, 0, 0)
    for number, (kind, *more) in enumerate(actions, 1):
        if kind in {naive.LIMIT, naive.TAKE, naive.WHOLE}:
            twin.does(kind, number, *more)
            if kind == naive.WHOLE:
                book.bid(number, *more, rests=False, whole=True)
            else:
                book.apply(Intent(number, KINDS[kind], number, *more))
        else:
            twin.does(kind, more[0], 0, 0, 0)
            book.apply(Intent(number, KINDS[kind], more[0]))
        for outcome in (0, 1):
            assert book.offers(outcome, TICKS) == twin.offers(outcome)
    done = {number: book.traded(number) for number in range(1, len(actions) + 1)}
    assert {number: traded for number, traded in done.items() if traded.size} == twin.traded
    assert sum(traded.cost for traded in done.values()) * 2 == sum(traded.size for traded in done.values()) * TICKS
