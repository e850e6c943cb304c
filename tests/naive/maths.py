"""Slow twins of the Kelly, arbitrage, value and middle maths: plain Python that reads like the formulas."""

import math
from collections.abc import Sequence
from itertools import product

# Kelly


def kelly(prob: float, odds: float) -> float:
    return max(0.0, (prob * odds - 1.0) / (odds - 1.0))


def growth(probs: Sequence[float], odds: Sequence[float], stakes: Sequence[float]) -> float:
    """Mean log growth of the bankroll; what is not listed loses every stake."""
    aside = 1.0 - sum(stakes)
    ends = [(p, aside + f * d) for p, d, f in zip(probs, odds, stakes, strict=True)]
    ends.append((1.0 - sum(probs), aside))
    if any(p > 1e-12 and end <= 0.0 for p, end in ends):
        return -math.inf
    return sum(p * math.log(end) for p, end in ends if p > 1e-12)


def gains(probs: Sequence[float], odds: Sequence[float], stakes: Sequence[float]) -> list[float]:
    """Growth per unit moved into each outcome, and into cash (last), over that of the whole bankroll.

    At the optimum none is above 1, and the log of the largest bounds how far the growth is from the best:
    T. Cover, "An algorithm for maximizing expected log investment return" (1984).
    """
    aside = 1.0 - sum(stakes)
    ends = [aside + f * d for d, f in zip(odds, stakes, strict=True)]
    each = [p * d / end if p > 0.0 else 0.0 for p, d, end in zip(probs, odds, ends, strict=True)]
    cash = sum(p / end for p, end in zip(probs, ends, strict=True) if p > 0.0)
    rest = 1.0 - sum(probs)
    return [*each, cash + (rest / aside if rest > 1e-12 else 0.0)]


def kelly_exclusive(probs: Sequence[float], odds: Sequence[float], rounds: int = 2000) -> list[float]:
    """Cover's iteration from equal stakes: each part of the bankroll grows by its gain; the sum stays 1."""
    stakes = [1.0 / (len(odds) + 1)] * len(odds)
    for _ in range(rounds):
        stakes = [f * gain for f, gain in zip(stakes, gains(probs, odds, stakes)[:-1], strict=True)]
    return stakes


# Portfolios

Game = tuple[Sequence[float], Sequence[Sequence[float]]]  # probabilities of scenarios; gains, a row a scenario


def portfolio_growth(games: Sequence[Game], stakes: Sequence[float]) -> float:
    """Mean log of the wealth over every combination of the games' scenarios."""
    total = 0.0
    for ends in product(*(range(len(probs)) for probs, _ in games)):
        p, wealth, first = 1.0, 1.0, 0
        for (probs, gains), end in zip(games, ends, strict=True):
            p *= probs[end]
            wealth += sum(f * r for f, r in zip(stakes[first:], gains[end], strict=False))
            first += len(gains[end])
        if p > 0.0:
            if wealth <= 0.0:
                return -math.inf
            total += p * math.log(wealth)
    return total


def portfolio_search(games: Sequence[Game], most: Sequence[float], total: float, rounds: int = 60) -> list[float]:
    """Pattern search: move stakes, and pairs of stakes against each other, as long as growth rises; halve the step."""
    stakes = [0.0] * len(most)
    best, step = 0.0, 0.25
    for _ in range(rounds):
        moved = True
        while moved:
            moved = False
            for changes in product((-1, 0, 1), repeat=len(most)):
                new = [min(max(f + c * step, 0.0), m) for f, c, m in zip(stakes, changes, most, strict=True)]
                if sum(new) <= total and (value := portfolio_growth(games, new)) > best + 1e-15:
                    stakes, best, moved = new, value, True
        step *= 0.5
        if step < 1e-6:
            break
    return stakes


# Arbitrage


def hold(odds: Sequence[float]) -> float:
    return sum(1.0 / d for d in odds) - 1.0


def arbitrage_stakes(odds: Sequence[float], total: float) -> list[float]:
    return [total / d / sum(1.0 / o for o in odds) for d in odds]


def round_stakes(odds: Sequence[float], most: int) -> float:
    """Largest worst-case profit over every way to stake whole steps, in steps."""
    grid = product(range(most + 1), repeat=len(odds))
    return max(
        min(d * s for d, s in zip(odds, steps, strict=True)) - sum(steps) for steps in grid if sum(steps) <= most
    )


def limited_stakes(
    odds: Sequence[float], total: int, steps: Sequence[float], limits: Sequence[float], least: Sequence[float] = ()
) -> float:
    """Largest worst-case profit over every way to stake whole steps of each outcome within its limits, or nothing."""
    ranges = [range(int(min(most, total) / step + 1e-9) + 1) for step, most in zip(steps, limits, strict=True)]
    ways = ([n * step for n, step in zip(counts, steps, strict=True)] for counts in product(*ranges))
    fine = (
        way
        for way in ways
        if sum(way) <= total and (not any(way) or all(s >= low for s, low in zip(way, least, strict=False)))
    )
    return max(min(d * s for d, s in zip(odds, way, strict=True)) - sum(way) for way in fine)


# Value


def edge(prob: float, odds: float) -> float:
    return prob * (odds - 1.0) - (1.0 - prob)


def confidence(width: float, gap: float | None, age: float, live: bool, prob: float, edge: float) -> float:
    score = 100.0
    score *= min(1.0, max(0.2, 1.0 - (100.0 * width - 2.0) / 8.0))
    score *= 0.7 if gap is None else math.exp(-gap / 0.15)
    score *= math.exp(-age / 15.0) if live else math.exp(-age / 300.0)
    score *= math.sqrt(min(1.0, prob / 0.10))
    return score * min(1.0, max(0.0, 1.0 - (100.0 * edge - 5.0) / 25.0))


# Middles. Lines are in hundredths, `pmf` maps whole numbers to their probability.


def settle_over(line: int, odds: float, number: int) -> float:
    if line % 50:
        return (settle_over(line - 25, odds, number) + settle_over(line + 25, odds, number)) / 2.0
    if 100 * number > line:
        return odds
    return 1.0 if 100 * number == line else 0.0


def settle_under(line: int, odds: float, number: int) -> float:
    if line % 50:
        return (settle_under(line - 25, odds, number) + settle_under(line + 25, odds, number)) / 2.0
    if 100 * number < line:
        return odds
    return 1.0 if 100 * number == line else 0.0


def inside(low: int, high: int) -> list[int]:
    return [n for n in range(low // 100 - 2, high // 100 + 3) if low < 100 * n < high]


def evaluate(
    low: int, high: int, over_odds: float, under_odds: float, pmf: dict[int, float]
) -> tuple[float, float, float, float]:
    s = 1.0 / over_odds + 1.0 / under_odds
    back = {
        x: settle_over(low, over_odds, x) / over_odds / s + settle_under(high, under_odds, x) / under_odds / s
        for x in {*pmf, *range(low // 100 - 2, high // 100 + 3)}
    }
    chance = sum(pmf.get(n, 0.0) for n in inside(low, high))
    ev = sum(p * (back[x] - 1.0) for x, p in pmf.items())
    return chance, ev, min(back.values()) - 1.0, max(back.values()) - 1.0


def quality(ev: float, prob: float, source: float, age: float) -> float:
    score = 45.0 * min(1.0, 100.0 * ev / 5.0) + 25.0 * min(1.0, prob / 0.25)
    return min(100.0, max(0.0, score + 20.0 * source + 10.0 * (1.0 - age / 120.0)))


def tail(pmf: dict[int, float], point: int) -> float:
    return sum(p for x, p in pmf.items() if 100 * x > point)


def two_way(pmf: dict[int, float], line: int) -> float:
    """Chance that a price on over speaks of: what is won of what is won or lost."""
    won = sum(p * max(0.0, settle_over(line, 2.0, x) - 1.0) for x, p in pmf.items())
    lost = sum(p * max(0.0, 1.0 - settle_over(line, 2.0, x)) for x, p in pmf.items())
    return won / (won + lost)


def poisson(mean: float) -> dict[int, float]:
    last = int(mean + 12.0 * math.sqrt(mean) + 30.0)
    return {x: math.exp(x * math.log(mean) - mean - math.lgamma(x + 1.0)) for x in range(last)}


def negative_binomial(mean: float, ratio: float) -> dict[int, float]:
    """Variance `ratio` times the mean: size r = mean/(ratio - 1), success probability 1/ratio."""
    r = mean / (ratio - 1.0)
    last = int(mean + 12.0 * math.sqrt(mean * ratio) + 40.0 * ratio)
    return {
        x: math.exp(
            math.lgamma(x + r)
            - math.lgamma(x + 1.0)
            - math.lgamma(r)
            - r * math.log(ratio)
            + x * math.log(1.0 - 1.0 / ratio)
        )
        for x in range(last)
    }


def between(low: float, high: float) -> float:
    """P(low < Z < high), Z standard Normal, from the side where nothing cancels."""
    if low > 0.0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))


def normal(mean: float, sd: float) -> dict[int, float]:
    far = int(10.0 * sd + 2.0)
    middle = round(mean)
    return {x: between((x - 0.5 - mean) / sd, (x + 0.5 - mean) / sd) for x in range(middle - far, middle + far + 1)}


def skellam(difference: float, total: float, level: float) -> dict[int, float]:
    home, away = poisson((total + difference) / 2.0), poisson((total - difference) / 2.0)
    pmf: dict[int, float] = {}
    for (x, p), (y, q) in product(home.items(), away.items()):
        pmf[x - y] = pmf.get(x - y, 0.0) + p * q
    if not math.isnan(level):
        above, below, moved = tail(pmf, 0), 1.0 - tail(pmf, -50), pmf[0] - level
        pmf[0] = level
        pmf[1] += moved * above / (above + below)
        pmf[-1] += moved * below / (above + below)
    return pmf


def margin(mean: float, sd: float, level: float, weights: Sequence[float]) -> dict[int, float]:
    pmf = normal(mean, sd)
    for m in pmf:
        if abs(m) < len(weights):
            density = math.exp(-0.5 * ((m - mean) / sd) ** 2) / sd / math.sqrt(2.0 * math.pi)
            pmf[m] = weights[abs(m)] * density
    if not math.isnan(level):
        rest = sum(p for m, p in pmf.items() if m != 0)
        pmf = {m: p / rest * (1.0 - level) for m, p in pmf.items()}
        pmf[0] = level
    whole = sum(pmf.values())
    return {m: p / whole for m, p in pmf.items()}


def distribution(kind: str, location: float, scale: float, level: float, weights: Sequence[float]) -> dict[int, float]:
    if kind == "poisson":
        return poisson(location)
    if kind == "negative_binomial":
        return negative_binomial(location, scale)
    if kind == "normal":
        return normal(location, scale)
    if kind == "skellam":
        return skellam(location, scale, level)
    return margin(location, scale, level, weights)


def fit(kind: str, scale: float, level: float, weights: Sequence[float], line: int, prob: float) -> float:
    """Location by bisection."""
    low, high = {
        "poisson": (1e-9, 700.0),
        "negative_binomial": (1e-9, 700.0),
        "skellam": (-scale, scale),
    }.get(kind, (line / 100.0 - 8.0 * scale, line / 100.0 + 8.0 * scale))
    for _ in range(50):
        middle = (low + high) / 2.0
        if two_way(distribution(kind, middle, scale, level, weights), line) > prob:
            high = middle
        else:
            low = middle
    return (low + high) / 2.0


def net_odds(odds: float, rate: float, fee: float) -> float:
    """A price after a commission on winnings, then a fee per contract."""
    after = 1.0 + (1.0 - rate) * (odds - 1.0)
    if fee == 0.0:
        return after
    price = 1.0 / after
    return 1.0 / (price + fee * price * (1.0 - price))
