"""The fees of Kalshi: F of the fee F p (1 - p) per contract that takers pay in a market, at a time.

- A series has a type and a multiplier. Takers pay 0.07 p (1 - p) times the multiplier for the quadratic types, which
  differ in what makers and parlays pay; fees of other types cannot be calculated.
- An event may replace the type, the multiplier, both or neither; what it leaves out is that of its series.
- Either may change at a time that is announced, such as the start of a game; the change then replaces what there is.
- A market's fee may be waived until a time.
"""

from collections.abc import Container, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from oddsengine import catalog
from oddsengine.feeds.decoding import moment
from oddsengine.feeds.kalshi_format import BOOK, Event, FeeChange, Market, Series, number

_QUADRATIC = ("quadratic", "quadratic_with_maker_fees", "quadratic_with_combo_maker_fees")
_TAKER, _MOST_TIMES = 0.07, 10.0  # F of takers, and by how much a series may multiply it


class FeeRule(NamedTuple):
    """What is said of the fee of a series, or of an event instead; None is not said."""

    kind: str | None = None
    multiplier: float | str | None = None

    def over(self, other: "FeeRule") -> "FeeRule":
        """Return this rule, with what it does not say from another one."""
        return FeeRule(
            other.kind if self.kind is None else self.kind,
            other.multiplier if self.multiplier is None else self.multiplier,
        )

    @property
    def fee(self) -> float | None:
        """F of takers; None if the fee is of another form.

        Examples
        --------
        >>> FeeRule("quadratic_with_maker_fees", 0.5).fee, FeeRule("flat", 1).fee, FeeRule("quadratic").fee
        (0.035, None, 0.07)
        >>> FeeRule(None, 2).over(FeeRule("quadratic", 0.5)).fee, FeeRule("quadratic").over(FeeRule("flat", 0.5)).fee
        (0.14, 0.035)
        """
        factor = 1.0 if self.multiplier is None else number(self.multiplier)
        if self.kind not in _QUADRATIC or factor is None or not 0.0 <= factor <= _MOST_TIMES:
            return None
        return _TAKER * factor


_NOTHING = FeeRule()
OLDEST_LIST = timedelta(seconds=60)
"""By how much a list may be older than what the stream says."""
_EVENT, _SERIES = "event", "series"


def _usual() -> FeeRule:
    """The rule of a series of which none is known: the fee of the catalog."""
    return FeeRule(_QUADRATIC[0], catalog.book(BOOK).fee / _TAKER)


class KalshiFees:
    """The fees of the series, events and markets of one feed, and their announced changes.

    Examples
    --------
    >>> fees = KalshiFees()
    >>> fees.set_series("KXMLBGAME", Series(fee_type="quadratic", fee_multiplier=0.5))
    >>> fees.set_event("E", FeeRule("quadratic_with_combo_maker_fees"), datetime(2026, 9, 1))
    >>> fees.fee("KXMLBGAME", Market("E-A", "E", "active"), datetime(2026, 9, 1))
    0.035
    """

    def __init__(self) -> None:
        self._series: dict[str, FeeRule] = {}
        self._events: dict[str, FeeRule] = {}
        self._since: dict[str, datetime] = {}  # event -> its last change that was no list's
        self._changes: list[tuple[datetime, str, str, FeeRule]] = []  # when, of what, its ticker, the new rule
        self._waived: dict[str, tuple[datetime, str]] = {}  # market -> until when, and its event

    def has(self, series: str) -> bool:
        """Whether the fee of a series is known."""
        return series in self._series

    def set_series(self, series: str, given: Series) -> None:
        """Take the fee of a series; the catalog's if the source has none."""
        is_reported = given.fee_type is not None
        self._series[series] = FeeRule(given.fee_type, given.fee_multiplier) if is_reported else _usual()

    def set_event(self, event: str, rule: FeeRule, now: datetime) -> None:
        """Take what an event has instead of its series from now on."""
        self._events[event] = rule
        self._since[event] = now

    def add_events(self, events: Iterable[Event], now: datetime) -> list[str]:
        """Take the rules of listed events. Returns those whose rule is another one than before.

        A list may be older than a change, so events that have just had one keep it.
        """
        changed: list[str] = []
        for given in events:
            event, rule = given.event_ticker, FeeRule(given.fee_type_override, given.fee_multiplier_override)
            if event in self._since and now - self._since[event] < OLDEST_LIST:
                continue
            if rule != self._events.get(event, _NOTHING):
                self._events[event] = rule
                changed.append(event)
        return changed

    def keep(self, events: Container[str]) -> None:
        """Forget all other events."""
        self._events = {event: rule for event, rule in self._events.items() if event in events}
        self._since = {event: at for event, at in self._since.items() if event in events}
        self._waived = {market: until for market, until in self._waived.items() if until[1] in events}

    def announce(self, changes: Iterable[FeeChange]) -> int:
        """Take all announced changes, in place of those before. Returns the number of those without a time."""
        self._changes, wrong = [], 0
        for change in changes:
            at = moment(change.scheduled_ts)
            if at is None:
                wrong += 1
            elif change.event_ticker:
                rule = FeeRule(change.fee_type_override, change.fee_multiplier_override)
                self._changes.append((at, _EVENT, change.event_ticker, rule))
            elif change.series_ticker:
                rule = FeeRule(change.fee_type, change.fee_multiplier)
                self._changes.append((at, _SERIES, change.series_ticker, rule))
        self._changes.sort(key=lambda one: one[0])
        return wrong

    def watch(self, market: Market, now: datetime) -> None:
        """Remember when the waiver of a market ends."""
        until = moment(market.fee_waiver_expiration_time)
        if until is not None and until > now:
            self._waived[market.ticker] = until, market.event_ticker
        else:
            self._waived.pop(market.ticker, None)

    def advance(self, now: datetime) -> tuple[set[str], set[str]]:
        """Apply the changes that are due. Returns the series and the events whose fees have changed."""
        series: set[str] = set()
        events: set[str] = set()
        while self._changes and self._changes[0][0] <= now:
            _, kind, ticker, rule = self._changes.pop(0)
            if kind == _EVENT:
                self.set_event(ticker, rule, now)
                events.add(ticker)
            else:
                self._series[ticker] = rule
                series.add(ticker)
        for market, (until, event) in list(self._waived.items()):
            if until <= now:
                del self._waived[market]
                events.add(event)
        return series, events

    def fee(self, series: str, market: Market, now: datetime) -> float | None:
        """F of a market; None if its fee is of a form that cannot be calculated."""
        until = moment(market.fee_waiver_expiration_time)
        if until is not None and now < until:
            return 0.0
        return self._events.get(market.event_ticker, _NOTHING).over(self._series.get(series) or _usual()).fee
