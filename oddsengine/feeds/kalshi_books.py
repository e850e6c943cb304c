"""The order books of the markets of Kalshi: bids for Yes and No, from lists, order books, and messages of the stream.

Messages of a subscription are numbered; a gap puts all books of the subscription in doubt, until their next snapshot.
So does a change that is not valid, and a book whose bids for Yes and No cross.

**The scale of No.** The stream is asked for one scale, on which a bid of 0.40 for No is 0.60. Whether it does so is
seen in its books: on the right scale the two sides do not cross, and many books cross on the wrong one. What most of
those say counts, each with its first snapshot that crosses on one, as any single one may cross on the right scale, too;
if that changes, all books are in doubt. Of the first books, one that crosses on neither is requested once more; by then
others have mostly shown the scale.
"""

from collections import Counter
from decimal import Decimal

from oddsengine.feeds.kalshi_format import ONE, BookChange, Ladder, decimal, is_crossed, is_price, ladder_of

_SIDES = ("yes", "no")
_CROSSED = "a book whose prices cross"


class KalshiBooks:
    """The books of one feed, by market.

    Examples
    --------
    >>> books, refused = KalshiBooks(), Counter()
    >>> books.keep("M", {"yes": {Decimal("0.59"): Decimal(10)}, "no": {Decimal("0.42"): Decimal(5)}}, refused)
    >>> books.is_known("M"), refused
    (False, Counter({'a book whose prices cross': 1}))
    """

    def __init__(self) -> None:
        self.ladders: dict[str, dict[str, Ladder]] = {}  # yes, no; none while a book is not known
        self.doubtful: dict[str, None] = {}  # streamed markets whose book is not known
        self.updates = 0  # books and changes of the stream that were taken
        self._streamed: dict[str, int] = {}  # market -> the subscription that its book comes from
        self._sequences: dict[int, int] = {}  # subscription -> last number
        self._shown: dict[str, bool] = {}  # markets that have shown a scale first, and whether it is that of Yes
        self._yes_scale: bool | None = None  # whether prices of No are on the scale of Yes, once it is seen
        self._unclear: dict[str, None] = {}  # markets whose first book did not show the scale

    @property
    def streamed(self) -> list[str]:
        """The markets whose books the stream has sent."""
        return list(self._streamed)

    def is_streamed(self, ticker: str) -> bool:
        """Whether the stream has sent a market's book."""
        return ticker in self._streamed

    def is_known(self, ticker: str) -> bool:
        """Whether a market's book is known."""
        return ticker not in self.doubtful and ticker in self.ladders

    def keep(self, ticker: str, ladders: dict[str, Ladder], refused: Counter[str]) -> None:
        """Take the bids of a market; the book is not known if they cross."""
        if is_crossed(ladders):
            refused[_CROSSED] += 1
            self.ladders.pop(ticker, None)
        else:
            self.ladders[ticker] = ladders

    def close(self, ticker: str) -> None:
        """Empty the book of a market that is not listed; changes may be missed from now on."""
        self._streamed.pop(ticker, None)
        self.doubtful.pop(ticker, None)
        self.ladders[ticker] = {"yes": {}, "no": {}}

    def drop(self, ticker: str) -> None:
        """Forget a market."""
        for state in (self.ladders, self.doubtful, self._streamed, self._unclear, self._shown):
            state.pop(ticker, None)

    def doubt(self, ticker: str) -> None:
        """Doubt the book of a market, if it is streamed."""
        if ticker in self._streamed:
            self.doubtful[ticker] = None

    # ---- the stream ----

    def follows(self, sid: int, seq: int) -> bool:
        """Take the number of a message. Returns whether it follows the last one of its subscription."""
        last = self._sequences.get(sid)
        self._sequences[sid] = seq
        return last is None or seq == last + 1

    def doubt_all(self, sid: int) -> list[str]:
        """Doubt the books of a subscription. Returns their markets."""
        markets = [ticker for ticker, own in self._streamed.items() if own == sid]
        self.doubtful |= dict.fromkeys(markets)
        return markets

    def end(self, sid: int) -> list[str]:
        """Doubt the books of a subscription that has ended. Returns their markets."""
        self._sequences.pop(sid, None)
        return self.doubt_all(sid)

    def disconnect(self) -> None:
        """Forget all books of the stream."""
        for ticker in self._streamed:
            self.ladders.pop(ticker, None)
        self._streamed, self.doubtful, self._sequences = {}, {}, {}
        self._yes_scale, self._unclear, self._shown = None, {}, {}

    def replace(self, ticker: str, snapshot: BookChange, sid: int, refused: Counter[str]) -> list[str]:
        """Take a complete book; the book is not known if that is not valid. Returns others that are in doubt now."""
        wrong: Counter[str] = Counter()
        yes, no = (ladder_of(levels, wrong) for levels in (snapshot.yes_dollars_fp, snapshot.no_dollars_fp))
        self._streamed[ticker] = sid
        self.updates += 1
        self.doubtful.pop(ticker, None)
        if wrong:
            refused.update(wrong)
            self.ladders.pop(ticker, None)
            return []
        also: list[str] = []
        as_sent, mirrored = (
            {"yes": yes, "no": no},
            {"yes": yes, "no": {ONE - price: size for price, size in no.items()}},
        )
        fits = not is_crossed(mirrored), not is_crossed(as_sent)
        if no and fits[0] != fits[1]:
            self._shown.setdefault(ticker, fits[0])
            also = self._scaled(ticker)
        elif no and self._yes_scale is None and ticker not in self._unclear:
            self._unclear[ticker] = None
            self.doubtful[ticker] = None
            return []
        self.keep(ticker, as_sent if self._yes_scale is False else mirrored, refused)
        return also

    def _scaled(self, ticker: str) -> list[str]:
        """Decide about the scale anew after a market's book. Returns the others that were read on another one."""
        before, yes = self._yes_scale, sum(self._shown.values())
        no = len(self._shown) - yes
        self._yes_scale = None if yes == no else yes > no
        if (self._yes_scale is False) == (before is False):  # an unknown scale is taken for what was asked
            return []
        also = [one for one in self._streamed if one != ticker]
        self.doubtful |= dict.fromkeys(also)
        return also

    def change(self, ticker: str, change: BookChange, refused: Counter[str]) -> None:
        """Apply a change to a book that is known."""
        if not self.is_known(ticker) or ticker not in self._streamed:
            return
        price, delta = decimal(change.price_dollars), decimal(change.delta_fp)
        if change.side not in _SIDES or price is None or not is_price(price) or delta is None:
            refused["a change of an order book that is not valid"] += 1
            self.doubtful[ticker] = None
            return
        if change.side == "no" and self._yes_scale is not False:
            price = ONE - price
        self.updates += 1
        ladder = self.ladders[ticker][change.side]
        size = ladder.get(price, Decimal(0)) + delta
        if size > 0:
            ladder[price] = size
        else:
            ladder.pop(price, None)
        if is_crossed(self.ladders[ticker]):
            refused[_CROSSED] += 1
            self.doubtful[ticker] = None
