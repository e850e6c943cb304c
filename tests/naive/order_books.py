"""Matching by sorting a list: the plain twin of `simulate.order_books`, and of playing our orders among others'."""

from typing import Any

LIMIT, TAKE, CANCEL, OPEN, CLOSE, WHOLE = "limit", "take", "cancel", "open", "close", "whole"
Traded = dict[int, tuple[int, int]]  # size and cost, by order


class List:
    """All resting orders in one list, in the order in which they came."""

    def __init__(self, ticks: int) -> None:
        self.ticks, self.is_open = ticks, False
        self.orders: list[dict[str, int]] = []
        self.traded: Traded = {}

    def does(self, kind: str, number: int, outcome: int, price: int, size: int) -> None:
        if kind in (OPEN, CLOSE):
            self.is_open = kind == OPEN
            self.orders = self.orders if self.is_open else []
        elif kind == CANCEL:
            self.orders = [order for order in self.orders if order["number"] != number]
        elif self.is_open:
            self.arrives(kind, number, outcome, price, size)

    def opposite(self, outcome: int, price: int) -> list[dict[str, int]]:
        """Orders with which a bid trades, in their turn; sorting keeps those of one price in the order they came."""
        meet = [each for each in self.orders if each["outcome"] != outcome and each["price"] + price >= self.ticks]
        return sorted(meet, key=lambda order: -order["price"])

    def arrives(self, kind: str, number: int, outcome: int, price: int, size: int) -> None:
        meets = self.opposite(outcome, price)
        if kind == WHOLE and sum(order["size"] for order in meets) < size:
            return
        for order in meets:
            both = min(size, order["size"])
            size -= both
            order["size"] -= both
            self.adds(order["number"], both, order["price"])
            self.adds(number, both, self.ticks - order["price"])
        self.orders = [order for order in self.orders if order["size"]]
        if size and kind == LIMIT:
            self.orders.append({"number": number, "outcome": outcome, "price": price, "size": size})

    def adds(self, number: int, size: int, price: int) -> None:
        if size:
            was = self.traded.get(number, (0, 0))
            self.traded[number] = was[0] + size, was[1] + size * price

    def offers(self, outcome: int) -> list[tuple[int, int]]:
        """Levels at which an outcome can be bought, best first."""
        prices = sorted({order["price"] for order in self.orders if order["outcome"] != outcome}, reverse=True)
        others = [order for order in self.orders if order["outcome"] != outcome]
        return [(self.ticks - at, sum(order["size"] for order in others if order["price"] == at)) for at in prices]


def filled(
    ticks: int, intents: list[tuple[int, Any]], ours: list[tuple[int, Any, int | None]]
) -> list[tuple[int, int]]:
    """Size and cost of our orders, (time, action, until), among the intents of others, (time, action).

    An action is what `List.does` takes; those of others come first within a microsecond, then ours in their order.
    """
    actions = [(at, 0, number, action) for number, (at, action) in enumerate(intents)]
    for number, (at, action, until) in enumerate(ours):
        if until is None or until >= at:
            actions.append((at, 1, number, action))
        if until is not None and until >= at:
            actions.append((until, 2, number, (CANCEL, action[1], 0, 0, 0)))
    book = List(ticks)
    for *_, action in sorted(actions, key=lambda each: each[:3]):
        book.does(*action)
    return [book.traded.get(action[1], (0, 0)) for _, action, _ in ours]
