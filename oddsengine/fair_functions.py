"""Fair prices that are functions of the prices of one market: what they get, and how their answers are checked.

A function of one `MarketPrices` returns the probabilities of the outcomes, or these and their standard errors, or None
where it has no answer. Whatever else it does is counted by name, and the others are asked.
"""

import ctypes
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from oddsengine.bounds import excerpt
from oddsengine.columns import Floats
from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS
from oddsengine.plugins import FAIR, Plugin, described, find, load

OWN_NAMES = frozenset({*DEVIG_METHODS, *DEVIG_ALIASES, "close", "ours"})
"""Ours, as `method=`, `--method` and results name them; a plugin cannot have them."""
LIMIT_S = 1.0  # of one call
MOST_SLOW = 20  # calls over the limit, after which a method is not called any more
_ROUNDING = 1e-6  # tolerance of probabilities that sum to 1
_LONGEST = 120  # characters of an example

Method = Callable[["MarketPrices"], Any]


class MarketPrices(NamedTuple):
    """The prices of one market at one moment: what a fair price gets.

    In `benchmark`, teams are not among them, since their results are known today.

    Parameters
    ----------
    market, outcomes
        The family, such as ``moneyline_3way``, and its outcomes: ``home``, ``draw`` and ``away``.
    league
        The league's id; empty if it is not known.
    at, start
        The time of the prices, and the start of the game; None if it is not known.
    odds
        Decimal odds by book, in the order of `outcomes`; of books that quote all of them.
    seen
        When the prices of each book were seen; without those of which it is not known.
    sport, period
        The sport's id, and the part of the game, such as ``1st_half``.
    line
        Of totals, props and spreads, that of the home team; None without one.
    subject
        The player of a prop with its stat (``LeBron James points``), or the team of a team total: ``home`` or ``away``.
    event, home, away
        The event's id and its teams, as the prices have them.
    live
        Whether the game is in play.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> at, start = datetime(2020, 9, 11, 15, tzinfo=UTC), datetime(2020, 9, 12, 14, tzinfo=UTC)
    >>> odds, seen = {"pinnacle": (2.7, 3.3, 2.8)}, {"pinnacle": at}
    >>> sides = ("home", "draw", "away")
    >>> prices = MarketPrices("moneyline_3way", sides, "england_premier_league", at, start, odds, seen)
    >>> dict(zip(prices.outcomes, prices.odds["pinnacle"]))
    {'home': 2.7, 'draw': 3.3, 'away': 2.8}
    """

    market: str
    outcomes: tuple[str, ...]
    league: str
    at: datetime | None
    start: datetime | None
    odds: Mapping[str, tuple[float, ...]]
    seen: Mapping[str, datetime]
    sport: str = "soccer"
    period: str = "full_game"
    line: float | None = None
    subject: str = ""
    event: str = ""
    home: str = ""
    away: str = ""
    live: bool = False


class RegisteredFair(NamedTuple):
    """A fair price of a plugin."""

    plugin: Plugin
    method: Method


def fair_plugin(name: str) -> Plugin | None:
    """Return the plugin that registers a fair price under a name, without importing it; None if there is none.

    Raises `AmbiguousNameError` if two packages do, or if the name is ours.
    """
    return find(FAIR, name, OWN_NAMES)


def registered_fair(name: str) -> RegisteredFair | None:
    """Import the fair price that a package registers under a name; None if there is none.

    Raises `PluginError` if it cannot be used.
    """
    plugin = fair_plugin(name)
    if plugin is None:
        return None
    method = load(plugin)
    if not callable(method):
        raise plugin.error(f"{plugin.object} must be a function of the prices of a market, got {excerpt(method)}")
    return RegisteredFair(plugin, method)


class _Unusable(Exception):  # noqa: N818  it is expected, and not a bug
    """An answer that is not used: its kind and an example."""

    def __init__(self, kind: str, example: str) -> None:
        super().__init__(f"{kind}: {example}")
        self.kind, self.example = kind, example


class _TooLong(BaseException):
    """A call has reached the limit; no `except Exception` of a method catches it."""


class Calls:
    """Calls of a method, and what became of them; if they are `limited`, none may take longer than `LIMIT_S`.

    A longer one is stopped at its next line of Python. In the main thread that ends a sleep, too; on Windows and in
    other threads, what waits or computes outside of Python is stopped only when it returns.
    """

    def __init__(self, method: Method, *, limited: bool = True) -> None:
        self._method, self._limited, self._slow = method, limited, 0
        self.asked = 0
        self.failures: Counter[str] = Counter()  # by kind
        self.examples: dict[str, str] = {}  # the first of each kind
        self.seconds = 0.0  # of processor time

    def ask(self, prices: MarketPrices) -> tuple[Floats, Floats] | None:
        """Return probabilities and their errors (nan without); None without an answer that can be used."""
        self.asked += 1
        began = time.process_time()
        try:
            if self._slow >= MOST_SLOW:
                raise _Unusable(f"not called after {MOST_SLOW} calls over {LIMIT_S:g} s", "")
            return _called(self._method, prices, LIMIT_S if self._limited else math.inf)
        except _Unusable as unusable:
            self.failures[unusable.kind] += 1
            self.examples.setdefault(unusable.kind, unusable.example)
            self._slow += unusable.kind == _slow()
            return None
        finally:
            self.seconds += time.process_time() - began

    def said(self) -> str:
        """What could not be used, in words; empty if all could.

        >>> calls = Calls(lambda prices: 5)
        >>> calls.said()
        ''
        """
        if not self.failures:
            return ""
        some = [
            f"{kind} ({n:,} {'time' if n == 1 else 'times'}{self.examples[kind] and f', first {self.examples[kind]}'})"
            for kind, n in self.failures.most_common()
        ]
        of = f"{self.failures.total():,} of {self.asked:,} markets"
        return f"it has no usable answer for {of}: {'; '.join(some)}"


def _slow() -> str:
    return f"a call over {LIMIT_S:g} s"


def _called(method: Method, prices: MarketPrices, limit: float) -> tuple[Floats, Floats] | None:
    """Call a method, and return its probabilities and their errors (nan without); None if it has no answer."""
    began = time.monotonic()
    try:
        with _limited(limit):
            answer = method(prices)
            found = None if answer is None else checked(answer, len(prices.outcomes))
    except _TooLong:
        raise _Unusable(_slow(), "it was stopped") from None
    except (_Unusable, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _Unusable("an exception", described(error)[:_LONGEST]) from None
    if (took := time.monotonic() - began) > limit:
        raise _Unusable(_slow(), f"{took:.1f} s")
    return found


def checked(answer: Any, outcomes: int) -> tuple[Floats, Floats]:
    """Return the probabilities of an answer and their errors, nan without; raises for one that cannot be used."""
    error: Any = math.nan
    if isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1:
        answer, error = answer
    prob = _floats(answer, "probabilities")
    if prob.shape != (outcomes,):
        came = f"{prob.size} probabilities" if prob.ndim == 1 else f"an array of shape {prob.shape}"
        raise _Unusable("a wrong length", f"{came} for {outcomes} outcomes")
    if np.isnan(prob).any():
        raise _Unusable("NaN", f"{prob.tolist()}")
    if not ((prob > 0.0) & (prob < 1.0)).all():
        raise _Unusable("a probability outside 0 and 1", f"{prob.tolist()}")
    if abs(float(prob.sum()) - 1.0) > _ROUNDING:
        raise _Unusable("a sum other than 1", f"{float(prob.sum()):.6f}")
    se = _floats(error, "an error")
    if se.shape not in ((), (outcomes,)):
        raise _Unusable("a wrong length", f"{se.size} errors for {outcomes} outcomes")
    if (se <= 0.0).any():
        raise _Unusable("an error that is not above 0", f"{se.tolist()}")
    return prob, np.broadcast_to(se, (outcomes,))


def _floats(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise _Unusable("no numbers", f"{type(values).__name__} for {what}") from None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` in the body after so long: by a signal where there are some, and else by another thread."""
    if math.isinf(seconds):
        yield
    elif not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        with _limited_thread(seconds):
            yield
    else:
        with _limited_by_signal(seconds):
            yield


@contextmanager
def _limited_thread(seconds: float) -> Iterator[None]:
    """Have another thread raise it in this one, unless the body has ended."""
    ident, lock, over = ctypes.c_ulong(threading.get_ident()), threading.Lock(), False
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def stop() -> None:
        with lock:
            if not over:
                raise_in(ident, ctypes.py_object(_TooLong))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over = True
        raise_in(ident, None)  # one that is set, and that this thread has not come to
        timer.cancel()


@contextmanager
def _limited_by_signal(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
