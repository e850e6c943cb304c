"""The fair price at the close again, slowly: one judged book at a time, as the formula reads.

Constants come as the tables of fair.toml. It imports nothing of the package.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from naive.devig import power

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Price:
    """One book's complete prices of a line: odds in the order of outcomes, times in seconds."""

    book: str
    line: float  # what outcome 0 has to beat: the total, or minus the home handicap
    odds: tuple[float, ...]
    seen: float  # of the older side
    changed: float | None
    latest: float = math.nan  # of the newer side

    @property
    def logits(self) -> list[float]:
        return [math.log(p / (1.0 - p)) for p in power(list(self.odds))]

    @property
    def total(self) -> float:
        return math.fsum(1.0 / d for d in self.odds)


@dataclass(frozen=True)
class Books:
    """What is known of the books: provider, weight as a sharp, factor of `own`, exchange or not."""

    provider: Mapping[str, str]
    sharp: Mapping[str, float]
    own: Mapping[str, float]
    exchange: frozenset[str]
    alone: frozenset[str] = frozenset()  # enough as the only reference in the market in question


@dataclass(frozen=True)
class Moment:
    """When and where a ladder is judged; times in seconds, slope in logits a point."""

    minute: float
    start: float | None
    live: bool
    slope: float | None
    momentum: Sequence[float]

    @property
    def hours(self) -> float | None:
        return None if self.start is None else (self.start - self.minute) / 3600.0


@dataclass
class Vote:
    logits: list[float]
    weight: float
    fresh: float
    seen: float
    sharp: float
    alone: bool
    same: bool
    margin: float


def clip(x: float, limit: float) -> float:
    return min(max(x, -limit), limit)


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def adds_up(price: Price, params: Params) -> bool:
    return bool(params["vote"]["sum_low"] - 1e-9 <= price.total <= params["vote"]["sum_high"] + 1e-9)


def may_vote(price: Price, at: Moment, params: Params) -> bool:
    return adds_up(price, params) and bool(at.live or price.seen >= at.minute - params["vote"]["age_s"])


def provider_votes(
    prices: Sequence[Price], line: float, but: str, at: Moment, books: Books, params: Params
) -> list[Vote]:
    """One vote of each provider but the judged book's own: from the line itself, else from the nearest ones."""
    vote = params["vote"]
    out = []
    for provider in sorted({books.provider[p.book] for p in prices} - {books.provider.get(but, "")}):
        mine = [p for p in prices if books.provider[p.book] == provider and may_vote(p, at, params)]
        mine = [p for p in mine if p.line == line or (at.slope is not None and books.sharp[p.book] == 0.0)]
        mine = [p for p in mine if abs(p.line - line) <= vote["neighbour_points"] + 1e-9]
        if not mine:
            continue
        distance = min(abs(p.line - line) for p in mine)
        nearest = []
        for where in sorted({p.line for p in mine if abs(p.line - line) == distance}):
            nearest.append(min((p for p in mine if p.line == where), key=lambda p: p.book))
        weight = 1.0 if distance == 0.0 else vote["neighbour_weight"]
        fresh = [
            0.0 if p.changed is None else math.exp(-max(at.minute - p.changed, 0.0) / params["fresh"]["fade_s"])
            for p in nearest
        ]
        moved = [[x + (at.slope or 0.0) * (line - p.line) for x in p.logits] for p in nearest]
        out.append(
            Vote(
                logits=[sum(column) / len(column) for column in zip(*moved, strict=True)],
                weight=weight,
                fresh=weight * sum(fresh) / len(fresh),
                seen=min(p.seen for p in nearest),
                sharp=books.sharp[nearest[0].book],
                alone=any(book in books.alone for book, of in books.provider.items() if of == provider),
                same=distance == 0.0,
                margin=nearest[0].total - 1.0,
            )
        )
    return out


def agreeing(
    prices: Sequence[Price], judged: str, line: float, side: int, odds: float, books: Books, params: Params
) -> tuple[int, int]:
    """Providers beside the judged book's with a vote on a line, and those by which a price of it has a positive EV."""
    voters = dict[str, Price]()
    for price in sorted((p for p in prices if p.line == line), key=lambda p: p.book):
        if adds_up(price, params):
            voters.setdefault(books.provider[price.book], price)
    voters.pop(books.provider[judged], None)
    return len(voters), sum(power(list(p.odds))[side] * odds > 1.0 + 1e-9 for p in voters.values())


def voting(
    prices: Sequence[Price], judged: str | None, line: float, seen: float, at: Moment, books: Books, params: Params
) -> list[Vote]:
    """The votes that count: in play those not far behind the judged price, or behind the newest of them."""
    votes = provider_votes(prices, line, judged or "", at, books, params)
    if not at.live:
        return votes
    if judged is None:
        seen = max((b.seen for b in votes), default=0.0)
    return [b for b in votes if b.seen >= seen - params["vote"]["live_behind_s"]]


def fair(
    prices: Sequence[Price], judged: str | None, line: float, seen: float, at: Moment, books: Books, params: Params
) -> list[float] | None:
    """Fair probabilities of a line for a judged book, or of the line itself; None where too few vote."""
    votes = voting(prices, judged, line, seen, at, books, params)
    soft, sharp = [b for b in votes if b.sharp == 0.0], [b for b in votes if b.sharp > 0.0 and b.same]
    others = sum(b.same for b in soft)
    most = max((b.sharp for b in sharp), default=0.0)
    enough = bool(sharp) if judged else any(b.alone for b in sharp)
    if others + len(sharp) < params["vote"]["others"] and not enough:
        return None
    momentum, freshness = (1.0 - most * (1.0 - params[of]["beside_sharp"]) for of in ("momentum", "fresh"))
    mine = [p for p in prices if p.book == judged and p.line == line]
    mine = [p for p in mine if adds_up(p, params)]
    outcomes = len(prices[0].odds)
    logits = []
    for k in range(outcomes):
        reference = math.fsum(b.sharp * b.logits[k] for b in sharp) / sum(b.sharp for b in sharp) if sharp else math.nan
        mean, fresh = reference, 0.0
        if soft:
            on_line = [b.logits[k] for b in soft if b.same]
            centre = median(on_line if len(on_line) >= 2 else [b.logits[k] for b in soft])
            wide = params["vote"]["clip"]
            voted = [(b, min(max(b.logits[k], centre - wide), centre + wide)) for b in soft]
            mean = math.fsum(b.weight * x for b, x in voted) / math.fsum(b.weight for b in soft)
            fresh = math.fsum(b.fresh * (x - mean) for b, x in voted) / (1.0 + math.fsum(b.fresh for b in soft))
        x = mean + momentum * push(at, k, params)
        x += freshness * params["fresh"]["weight"] * clip(fresh, params["fresh"]["clip"])
        if soft and sharp:
            x += params["sharp"]["share"] * most * (reference - mean)
        if mine and judged is not None:
            own = own_weight(judged, others, most, bool(soft), books, params)
            x += own * clip(mine[0].logits[k] - mean, params["own"]["clip"])
        logits.append(x)
    chances = [sigmoid(x) for x in logits]
    if outcomes == 2:
        return [chances[0], 1.0 - chances[0]]
    return [p / math.fsum(chances) for p in chances]


def width(prices: Sequence[Price], line: float, at: Moment, books: Books, params: Params) -> float:
    """The mean margin of the sharps on a line, or of all books there if none of them is sharp."""
    votes = [b for b in provider_votes(prices, line, "", at, books, params) if b.same]
    margins = [b.margin for b in votes if b.sharp > 0.0] or [b.margin for b in votes]
    return math.fsum(margins) / max(len(margins), 1)


def flags(
    votes: Sequence[Vote], outcomes: int, odds: float, at: Moment, params: Params, prop: str | None = None,
    p: float = 0.0,
) -> set[str]:  # fmt: skip
    """What is said of a price by its odds, time, probability and the votes on its line; `prop` is the sport of one."""
    of, props = params["flags"], params["props"]
    others, sharps = sum(b.same and b.sharp == 0.0 for b in votes), [b for b in votes if b.same and b.sharp > 0.0]
    sharp, enough = bool(sharps), any(b.alone for b in sharps)
    one = others + len(sharps) == 1
    said = {
        "one_reference": one,
        "unmeasured": prop is not None and not enough,
        "suspect": (one and not enough)
        or (
            prop is not None
            and not sharp
            and others <= props["suspect_others"]
            and 100.0 * (p * odds - 1.0) > props["suspect_ev"]
        ),
        "thin": others <= of["thin_others"] and not (sharp and others) and not one,
        "no_sharp": outcomes > 2 and not sharp,
        "early": at.hours is not None and at.hours > of["early_h"],
        "long": odds >= of["long_odds"],
        "live": at.live,
    }
    return {name for name, true in said.items() if true}


def shown(p: float, odds: float, flags: Container[str], params: Params) -> float:
    """The probability at which a positive EV is what its flags leave of it."""
    edge = p * odds - 1.0
    for name, scale in params["flags"]["scale"].items() if edge > 0.0 else ():
        if name in flags and (name != "live" or edge * 100.0 < params["flags"]["live_below"]):
            edge *= scale
    return (1.0 + edge) / odds


def own_weight(book: str, others: int, most: float, soft: bool, books: Books, params: Params) -> float:
    own = params["own"]
    weight = books.own[book] * own["weight"] / (own["base"] + others)
    if most > 0.0:
        weight = (1.0 - most) * weight + most * (own["sharp"] if soft else own["sharp_alone"])
    weight = max(weight, params["sharp"]["share"] * books.sharp[book])
    return 1.0 if book in books.exchange else min(weight, 1.0)


def push(at: Moment, k: int, params: Params) -> float:
    of = params["momentum"]
    ramp = 1.0 if at.hours is None else min(max((at.hours - of["near_h"]) / (of["far_h"] - of["near_h"]), 0.0), 1.0)
    return float(of["far"] * ramp + of["near"] * (1.0 - ramp)) * clip(at.momentum[k], of["clip"])


def standard_error(at: Moment, params: Params, league: str = "other") -> float:
    if at.live or at.hours is None:
        return math.nan
    close = params["close"]
    hours, errors = close["hours"], close["sigma"].get(league, close["sigma"]["other"])
    x = min(max(at.hours, hours[0]), hours[-1])
    for (low, a), (high, b) in pairwise(zip(hours, errors, strict=True)):
        if low <= x <= high:
            sigma = a + (b - a) * math.log(x / low) / math.log(high / low)
            break
    return float(close["scale"] * sigma * math.cbrt(max(at.hours, float(close["least_h"]))))


def below(z: float) -> float:
    """The distribution function of Student's t with four degrees of freedom: its density, summed in small steps."""
    n = 4000
    density = [0.375 / (1.0 + (z * (k + 0.5) / n) ** 2 / 4.0) ** 2.5 for k in range(n)]
    return 0.5 + math.fsum(density) * z / n


def still_there(ev: float, stood_s: float, hours: float, moved: float, params: Params) -> float:
    of = params["stands"]
    v = of["base"] + of["stood"] * math.log(1.0 + stood_s / of["stood_s"])
    v += of["hours"] * math.log(max(hours, of["least_h"]))
    v += of["ev"] * (min(max(ev, 0.0), of["ev_most"]) - 1.0)
    return sigmoid(v + of["momentum"] * clip(moved, of["momentum_clip"]))


def momentum(
    states: Sequence[tuple[float, Mapping[str, tuple[float, Sequence[float]]]]], minute: float,
    provider: Mapping[str, str], slope: float | None, reach: float, params: Params,
) -> list[float]:  # fmt: skip
    """Momentum by its definition: the mean moves from each sample to the next, each halved since.

    `states` are what the books said after each change: minute, {book: (line, logits)}; a minute's last is its sample.
    """
    of = params["momentum"]
    samples = [state for at, state in enumerate(states) if at + 1 == len(states) or states[at + 1][0] > state[0]]
    width = max((len(x) for _, said in states for _, x in said.values()), default=1)
    out = [0.0] * width
    for (_, before), (then, after) in pairwise(samples):
        speakers: dict[str, str] = {}
        for book in sorted(after):
            speakers.setdefault(provider[book], book)
        for book in speakers.values():
            if book not in before:
                continue
            (line, x), (line_before, x_before) = after[book], before[book]
            shift = 0.0
            if line != line_before:
                if slope is None or abs(line - line_before) > reach:
                    continue
                shift = slope * (line_before - line)
            for k in range(width):
                move = clip(x[k] + shift - x_before[k], of["move_clip"])
                out[k] += move / len(speakers) * 2.0 ** (-(minute - then) / of["half_life_s"])
    return out
