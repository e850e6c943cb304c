"""The calculators `devig`, `kelly`, `stakes`, `parlay`, `hedge`, `free-bet` and `middle`."""

import argparse
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from oddsengine.bounds import check_number, excerpt
from oddsengine.commands.output import bold, echo, terminal
from oddsengine.commands.report import csv_text, decimal
from oddsengine.commands.text_tables import Column, table
from oddsengine.detection.windows import middle_probability, middle_value
from oddsengine.maths import calculators
from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes
from oddsengine.maths.devig import DEVIG_METHODS, devig, method_name
from oddsengine.maths.kelly import kelly, kelly_exclusive
from oddsengine.maths.odds import (
    american_to_decimal,
    decimal_to_american,
    format_american,
    fractional_to_decimal,
    parse_fractional,
)
from oddsengine.maths.rounding import CALCULATED_DIGITS, exact


def price_of(text: str) -> float:
    """Parse a price in any of the three formats, told apart by their form."""
    text = text.strip()
    if re.fullmatch(r"[1-9]\d{2,}", text):
        raise ValueError(f"{text} may be decimal or American: write {text}.0 or +{text}")
    try:
        if text[:1] in ("+", "-"):
            odds = float(american_to_decimal(float(text)))
        elif "/" in text or text.isalpha():
            odds = float(fractional_to_decimal(*parse_fractional(text)))
        else:
            odds = float(text)
    except ValueError:
        odds = 0.0
    if not 1.0 < odds < float("inf"):
        raise ValueError(
            f"{excerpt(text)} is not a price: "
            "use decimal odds above 1 (1.87), American (+150, -110) or fractional (5/2)"
        )
    return odds


def _probability(text: str) -> float:
    try:
        prob = float(text.strip().removesuffix("%")) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        prob = -1.0
    if not 0.0 <= prob <= 1.0:
        raise ValueError(f"{excerpt(text)} is not a probability: use 0 to 1, or 0% to 100%")
    return prob


def _small(rows: list[dict[str, Any]], form: str, note: str, facts: Mapping[str, Any], what: str = "outcomes") -> None:
    """Print the rows of a calculation: a table for people, numbers in JSON and CSV; `what` are the rows."""
    names = list(rows[0])
    figures = [{name: _rounded(value) for name, value in row.items()} for row in rows]
    if form == "json":
        document = {name: _rounded(value) for name, value in facts.items()} | {what: figures}
        echo(json.dumps(document, indent=2) + "\n")
    elif form == "csv":
        echo(csv_text(figures, names))
    else:
        cells = [[_figure(name, row[name]) for name in names] for row in rows]
        titles = [Column(name.replace("_", " "), right=True) for name in names]
        lines = table(titles, [[row] for row in cells], terminal(), bold=bold())
        echo("\n".join([*lines, "", note]) + "\n")


def _rounded(value: Any) -> Any:
    """Round; nan and inf become null."""
    if isinstance(value, float):
        return exact(value, CALCULATED_DIGITS) if math.isfinite(value) else None
    return value


def _figure(name: str, value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "-"
    if name.endswith("american"):
        return format_american(value)
    if name.endswith(("odds", "price")):
        return decimal(value)
    if name.startswith("line"):
        return f"{value:g}"
    if name in ("stake", "pays") or name.startswith("profit"):
        return f"{value + 0.0:.2f}"
    return f"{value * 100.0 + 0.0:.2f} %"


def devig_command(arguments: argparse.Namespace) -> None:
    odds = [price_of(text) for text in arguments.odds]
    if len(odds) < 2:
        raise ValueError("a market needs at least two prices, got one")
    total = sum(1.0 / price for price in odds)
    methods = DEVIG_METHODS if arguments.all_methods else (method_name(arguments.method),)
    fair = {method: devig(odds, method).tolist() for method in methods}
    rows: list[dict[str, Any]] = []
    for at, price in enumerate(odds):
        row: dict[str, Any] = {"odds": price, "american": float(decimal_to_american(price)), "implied": 1.0 / price}
        if arguments.all_methods:
            row |= {method: chances[at] for method, chances in fair.items()}
        else:
            (p,) = (chances[at] for chances in fair.values())
            row |= {"fair_probability": p, "fair_odds": 1.0 / p, "fair_american": float(decimal_to_american(1.0 / p))}
        rows.append(row)
    note = f"{' '.join(methods) if len(methods) == 1 else 'all methods'}: the prices imply {total * 100.0:.2f} %"
    note += f", a margin of {(total - 1.0) * 100.0 + 0.0:.2f} %"
    empty = [method for method, chances in fair.items() if math.isnan(chances[0])]
    if empty:
        note += f"; no solution for these prices: {', '.join(empty)}"
    facts = {"methods": list(methods), "implied_total": total * 100.0}
    _small(rows, arguments.format, note, facts)


def kelly_command(arguments: argparse.Namespace) -> None:
    bank, odds = arguments.bankroll, [price_of(text) for text in arguments.odds.split(",")]
    if bank is not None:
        check_number("--bankroll", bank, above=0.0)
    probs = [_probability(text) for text in (arguments.probs.split(",") if arguments.probs else [arguments.prob])]
    if len(probs) != len(odds):
        raise ValueError(f"expected one price per probability, got {len(probs)} and {len(odds)}")
    if sum(probs) > 1.0 + 1e-9:
        raise ValueError(f"probabilities of mutually exclusive outcomes must sum to at most 1, got {sum(probs):g}")
    if arguments.probs:
        stakes = kelly_exclusive(probs, odds, arguments.fraction).tolist()
    else:
        stakes = [float(kelly(probs[0], odds[0], arguments.fraction))]
    rows = []
    for p, price, share in zip(probs, odds, stakes, strict=True):
        row = {"probability": p, "odds": price, "edge": p * price - 1.0, "share": share}
        rows.append(row if bank is None else {**row, "stake": share * bank})
    note = f"stake {sum(stakes) * 100.0:.2f} % of the bankroll"
    note += "" if bank is None else f", {sum(stakes) * bank:.2f} of {bank:.2f}"
    note += "" if arguments.fraction == 1.0 else f", at {arguments.fraction:g} Kelly"
    _small(rows, arguments.format, note, {"fraction": arguments.fraction, "bankroll": bank})


def _limits(text: str | None, count: int) -> list[float] | float:
    """Parse maximum stakes, one per outcome."""
    if text is None:
        return math.inf
    try:
        limits = [float(word) for word in text.split(",")]
    except ValueError:
        limits = [-1.0]
    if not all(limit >= 0.0 for limit in limits):
        raise ValueError(f"--limits must be amounts of 0 or more separated by commas (inf: none), got {excerpt(text)}")
    if len(limits) != count:
        raise ValueError(f"expected one limit per price, got {len(limits)} and {count}")
    return limits


def stakes_command(arguments: argparse.Namespace) -> None:
    odds, total, step = [price_of(text) for text in arguments.odds], arguments.total, arguments.step
    if len(odds) < 2:
        raise ValueError("a market needs at least two prices, got one")
    check_number("--total", total, above=0.0)
    limits = _limits(arguments.limits, len(odds))
    if step is None:
        stakes = arbitrage_stakes(odds, total, limits).tolist()
    else:
        stakes = round_stakes(odds, total, step, limits).stakes.tolist()
    staked = sum(stakes)
    least = min(price * stake for price, stake in zip(odds, stakes, strict=True)) - staked
    rows = [
        {"odds": price, "implied": 1.0 / price, "stake": stake, "pays": price * stake}
        for price, stake in zip(odds, stakes, strict=True)
    ]
    hold_percent = float(hold(odds)) * 100.0
    if staked == 0.0 and step is None:
        note = f"the limits allow no stakes; hold {hold_percent + 0.0:.2f} %"
    elif staked == 0.0:
        within = "" if arguments.limits is None else " within the limits"
        note = f"no profitable stakes in steps of {step:g}{within}: the hold is {hold_percent + 0.0:.2f} %"
    else:
        word = "wins" if least >= 0 else "loses"
        note = f"{word} {abs(least):.2f} on {staked:.2f} at worst, {abs(least) / staked * 100.0:.2f} %"
        note += f"; hold {hold_percent + 0.0:.2f} %"
    if arguments.limits is not None and 0.0 < staked < total * (1.0 - 1e-9):
        note += f"; {staked:.2f} of {total:.2f} can be staked"
    _small(rows, arguments.format, note, {"staked": staked, "profit": least, "hold_percentage": hold_percent})


# ---- parlays, hedges, free bets and middles ----


def _american(odds: float) -> float:
    return float(decimal_to_american(odds))


def parlay_command(arguments: argparse.Namespace) -> None:
    odds = [price_of(text) for text in arguments.odds]
    probs = None if arguments.probs is None else [_probability(text) for text in arguments.probs.split(",")]
    plain = calculators.parlay(odds, probs)
    price = calculators.boost(
        plain.odds, arguments.boost / 100.0, stake=arguments.stake, max_extra=arguments.max_extra
    )  # fmt: skip
    rows: list[dict[str, Any]] = [{"odds": d, "american": _american(d), "implied": 1.0 / d} for d in odds]
    note = f"{len(odds)} legs at {decimal(plain.odds)} ({format_american(_american(plain.odds))})"
    if price != plain.odds:
        note += f", boosted to {decimal(price)} ({format_american(_american(price))})"
    note += f": the price implies {100.0 / price:.2f} %"
    facts = {"odds": price, "american": _american(price), "implied": 1.0 / price}
    if probs is not None and plain.prob is not None:
        rows = [{**row, "probability": p} for row, p in zip(rows, probs, strict=True)]
        ev, share = 100.0 * (plain.prob * price - 1.0), float(kelly(plain.prob, price))
        note += f"; all win with {plain.prob * 100.0:.2f} %, EV {ev + 0.0:+.2f} %, Kelly {share * 100.0:.2f} %"
        facts |= {"probability": plain.prob, "ev_percentage": ev, "kelly": share}
    if arguments.stake is not None:
        note += f"; {arguments.stake:.2f} pays {arguments.stake * price:.2f}"
        facts |= {"stake": arguments.stake, "pays": arguments.stake * price}
    _small(rows, arguments.format, note, facts, "legs")


def hedge_command(arguments: argparse.Namespace) -> None:
    stake, odds, against = arguments.stake, price_of(arguments.odds), price_of(arguments.against)
    h = calculators.hedge(stake, odds, against, commission=arguments.commission)
    rows = [
        {"hedge": "equal profit", "stake": h.stake, "profit_if_won": h.profit, "profit_if_lost": h.profit},
        {"hedge": "no loss", "stake": h.no_loss_stake, "profit_if_won": h.no_loss_profit, "profit_if_lost": 0.0},
    ]
    note = f"stakes on the other side at {decimal(against)}; won or lost is the bet of {stake:.2f} at {decimal(odds)}"
    facts = {"bet": stake, "odds": odds, "against": against, "commission": arguments.commission}
    _small(rows, arguments.format, note, facts, "hedges")


def free_bet_command(arguments: argparse.Namespace) -> None:
    amount, odds, against = arguments.amount, price_of(arguments.odds), price_of(arguments.against)
    f = calculators.free_bet(amount, odds, against, returned=arguments.returned, commission=arguments.commission)
    word = "keeps" if f.profit >= 0.0 else "loses"
    note = f"{f.stake:.2f} on the other side at {decimal(against)} {word} {abs(f.profit):.2f} whichever side wins"
    facts = {"amount": amount, "odds": odds, "against": against, "returned": arguments.returned}
    facts |= {"commission": arguments.commission}
    _small([f._asdict()], arguments.format, note, facts, "hedges")


def middle_command(arguments: argparse.Namespace) -> None:
    lines = (arguments.line1, arguments.line2)
    given = {"prob": _probability(arguments.prob), "at": arguments.at, "league": arguments.league}
    given |= {"expected_total": arguments.expected_total}
    p = float(middle_probability(arguments.sport, arguments.market, *lines, **given))
    if math.isnan(p):
        raise ValueError(f"no distribution of {arguments.market} has a probability of {arguments.prob} there")
    facts: dict[str, Any] = {"sport": arguments.sport, "market_type": arguments.market, "probability": p}
    if arguments.odds is None:
        rows = [{"line1": lines[0], "line2": lines[1], "probability": p}]
        note = f"both bets of {arguments.market} in {arguments.sport} win with a probability of {p * 100.0:.2f} %"
        _small(rows, arguments.format, note, facts, "middles")
        return
    odds, total = [price_of(text) for text in arguments.odds.split(",")], arguments.total
    if len(odds) != len(lines):
        raise ValueError(f"--odds must be two prices separated by a comma, got {len(odds)}")
    value = middle_value(arguments.sport, arguments.market, *lines, *odds, **given)
    split = calculators.middle_stakes(total, *odds)
    rows = [
        {"line": line, "odds": price, "implied": 1.0 / price, "stake": stake, "pays": price * stake}
        for line, price, stake in zip(lines, odds, split.stakes, strict=True)
    ]
    ev, worst, best = (100.0 * float(each) + 0.0 for each in (value.ev, value.worst, value.best))
    note = f"both bets win with a probability of {p * 100.0:.2f} %, break even at {split.break_even * 100.0:.2f} %"
    note += f"; EV {ev:+.2f} %, worst {worst:+.2f} %, best {best:+.2f} %"
    facts |= {"break_even": split.break_even, "ev_percentage": ev, "worst_percentage": worst, "best_percentage": best}
    _small(rows, arguments.format, note, facts, "bets")
