"""Futures the slow way: plain loops over prices as (selection, book, odds, age, offered), nothing of the package."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple


class Price(NamedTuple):
    selection: str
    book: str
    odds: float
    age: float
    offered: bool


class Facts(NamedTuple):
    """What is known of a book."""

    provider: str
    commission: float = 0.0
    exchange: bool = False


class Rules(NamedTuple):
    stale: float = 3600.0
    fresh: float = 600.0
    low: float = 1.0
    low_exchange: float = 0.995
    others: int = 3
    bound: float = 0.35
    slope: float = 0.015
    wide: float = 0.25
    wide_two: float = 0.08
    ev_cap: float = 0.30
    cap: float = 0.10
    epsilon: float = 1e-9


def hashed(*values: str | int) -> str:
    """Sixteen digits of a chain of texts and whole numbers."""
    h = 0
    for value in values:
        if isinstance(value, str):
            value = int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "little")  # noqa: PLW2901
        h = (h ^ value) * 0x9E3779B97F4A7C15 % 2**64
        h ^= h >> 29
        h = h * 0xBF58476D1CE4E5B9 % 2**64
        h ^= h >> 32
    return f"{h:016x}"


class Verdict(NamedTuple):
    complete: bool
    aside: dict[tuple[str, str], str]
    reference: str
    fair: dict[str, float]
    edge: dict[tuple[str, str], float]
    hold: float | None
    profit: float | None
    legs: dict[str, str]


def power(odds: Sequence[float], places: int) -> list[float]:
    low, high = 1e-9, 1e9
    for _ in range(400):
        k = math.sqrt(low * high)
        if sum((1 / d) ** k for d in odds) > places:
            low = k
        else:
            high = k
    return [(1 / d) ** low for d in odds]


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def judge(
    prices: Sequence[Price], field: Sequence[str], places: int, books: Mapping[str, Facts], sharp: Sequence[str],
    rules: Rules, mine: Sequence[str] | None = None,
) -> Verdict:  # fmt: skip
    q = {(p.selection, p.book): 1 / (1 + (p.odds - 1) * (1 - books[p.book].commission)) for p in prices}
    aside: dict[tuple[str, str], str] = {}
    for p in prices:
        if not p.offered:
            aside[p.selection, p.book] = "unusable"
        elif p.age > rules.stale:
            aside[p.selection, p.book] = "stale"
    for book in sorted({p.book for p in prices}):
        low = rules.low_exchange if books[book].exchange else rules.low
        own = [q[c, book] for c in field if (c, book) in q and (c, book) not in aside]
        if len(own) == len(field) and sum(own) < places * (low - rules.epsilon):
            for key in q:
                if key[1] == book and key not in aside:
                    aside[key] = "book_sum"
    stingy, generous = set(), []
    for key, own_q in q.items():
        if key in aside:
            continue
        voices = {}
        for book in sorted({p.book for p in prices}, reverse=True):
            if (key[0], book) in q and (key[0], book) not in aside and books[book].provider != books[key[1]].provider:
                voices[books[book].provider] = q[key[0], book]
        if len(voices) < rules.others:
            continue
        m = median(voices.values())
        bound = rules.bound + rules.slope / (m * (1 - m)) + rules.epsilon
        if logit(own_q) < logit(m) - bound:
            generous.append(key)
        if logit(own_q) > logit(m) + bound:
            stingy.add(key)
    for key in generous:
        aside[key] = "outlier"
    strangers = {p.selection for p in prices} - set(field)
    priced = all(any(key[0] == c and key not in aside for key in q) for c in field)
    complete = not strangers and priced and len(field) > places
    reference, fair, edge = "", {}, {}
    if complete:
        wide = rules.wide_two if len(field) == 2 else rules.wide
        for book in sharp:
            keys = [(c, book) for c in field]
            if not all(key in q and key not in aside and key not in stingy for key in keys):
                continue
            if sum(q[key] for key in keys) / places <= 1 + wide + rules.epsilon:
                reference = book
                fair = dict(zip(field, power([1 / q[key] for key in keys], places), strict=True))
                break
    for key, own_q in q.items():
        if reference and key not in aside and books[key[1]].provider != books[reference].provider:
            e = fair[key[0]] / own_q - 1
            if e > rules.ev_cap + rules.epsilon:
                aside[key] = "ev_cap"
            else:
                edge[key] = e
    hold, _ = best(q, aside, field, places, mine, None)
    tired = {(p.selection, p.book) for p in prices if p.age > rules.fresh}
    implied, legs = best(q, aside, field, places, mine, tired)
    profit = None
    if complete and implied is not None and 1 / implied - 1 >= 1e-9:
        profit = 1 / implied - 1
        if profit > rules.cap + rules.epsilon or len({books[book].provider for book in legs.values()}) < 2:
            profit = None
    return Verdict(
        complete, aside, reference, fair, edge, hold - 1 if complete and hold is not None else None, profit,
        legs if profit is not None else {},
    )  # fmt: skip


def best(
    q: Mapping[tuple[str, str], float], aside: Mapping[tuple[str, str], str], field: Sequence[str], places: int,
    mine: Sequence[str] | None, without: set[tuple[str, str]] | None,
) -> tuple[float | None, dict[str, str]]:  # fmt: skip
    legs = {}
    for c in field:
        offers = [
            (q[key], key[1])
            for key in q
            if key[0] == c and key not in aside and (mine is None or key[1] in mine) and key not in (without or ())
        ]
        if not offers:
            return None, {}
        legs[c] = min(offers)[1]
    return sum(q[c, legs[c]] for c in field) / places, legs
