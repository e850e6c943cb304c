"""The calculators `devig`, `kelly` and `stakes`."""

import argparse
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from oddsengine.commands.layout import Column, table
from oddsengine.commands.output import bold, echo, terminal
from oddsengine.commands.report import csv_text, decimal
from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes
from oddsengine.maths.devig import DEVIG_METHODS, devig
from oddsengine.maths.kelly import kelly, kelly_exclusive
from oddsengine.maths.odds import (
    american_to_decimal,
    decimal_to_american,
    format_american,
    fractional_to_decimal,
    parse_fractional,
)


def _price(text: str) -> float:
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
            f"{text!r} is not a price: use decimal odds above 1 (1.87), American (+150, -110) or fractional (5/2)"
        )
    return odds


def _probability(text: str) -> float:
    try:
        prob = float(text.strip().removesuffix("%")) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        prob = -1.0
    if not 0.0 <= prob <= 1.0:
        raise ValueError(f"{text!r} is not a probability: use 0 to 1, or 0% to 100%")
    return prob


def _small(rows: list[dict[str, Any]], form: str, note: str, facts: Mapping[str, Any]) -> None:
    """Print the rows of a calculation: a table for people, numbers in JSON and CSV."""
    names = list(rows[0])
    figures = [{name: _rounded(value) for name, value in row.items()} for row in rows]
    if form == "json":
        document = {name: _rounded(value) for name, value in facts.items()} | {"outcomes": figures}
        echo(json.dumps(document, indent=2) + "\n")
    elif form == "csv":
        echo(csv_text(figures, names))
    else:
        cells = [[_figure(name, row[name]) for name in names] for row in rows]
        titles = [Column(name.replace("_", " "), right=True) for name in names]
        lines = table(titles, [[row] for row in cells], terminal(), bold=bold())
        echo("\n".join([*lines, "", note]) + "\n")


def _rounded(value: Any) -> Any:
    """Round to ten decimals; nan and inf become null."""
    if isinstance(value, float):
        return round(value, 10) + 0.0 if math.isfinite(value) else None
    return value


def _figure(name: str, value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    if name.endswith("american"):
        return format_american(value)
    if name.endswith(("odds", "price")):
        return decimal(value)
    if name in ("stake", "pays"):
        return f"{value + 0.0:.2f}"
    return f"{value * 100.0 + 0.0:.2f} %"


def devig_command(arguments: argparse.Namespace) -> None:
    odds = [_price(text) for text in arguments.odds]
    if len(odds) < 2:
        raise ValueError("a market needs at least two prices, got one")
    total = sum(1.0 / price for price in odds)
    methods = DEVIG_METHODS if arguments.all_methods else (arguments.method,)
    fair = {method: devig(odds, method).tolist() for method in methods}
    rows: list[dict[str, Any]] = []
    for at, price in enumerate(odds):
        row: dict[str, Any] = {"odds": price, "american": float(decimal_to_american(price)), "implied": 1.0 / price}
        if arguments.all_methods:
            row |= {method: chances[at] for method, chances in fair.items()}
        else:
            p = fair[arguments.method][at]
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
    bank, odds = arguments.bankroll, [_price(text) for text in arguments.odds.split(",")]
    if bank is not None and not 0.0 < bank < float("inf"):
        raise ValueError(f"--bankroll must be a finite number above 0, got {bank:g}")
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


def stakes_command(arguments: argparse.Namespace) -> None:
    odds, total, step = [_price(text) for text in arguments.odds], arguments.total, arguments.step
    if len(odds) < 2:
        raise ValueError("a market needs at least two prices, got one")
    if not 0.0 < total < float("inf"):
        raise ValueError(f"--total must be a finite number above 0, got {total:g}")
    stakes = (arbitrage_stakes(odds, total) if step is None else round_stakes(odds, total, step).stakes).tolist()
    staked = sum(stakes)
    least = min(price * stake for price, stake in zip(odds, stakes, strict=True)) - staked
    rows = [
        {"odds": price, "implied": 1.0 / price, "stake": stake, "pays": price * stake}
        for price, stake in zip(odds, stakes, strict=True)
    ]
    hold_percent = float(hold(odds)) * 100.0
    if staked == 0.0:
        note = f"no profitable stakes in steps of {step:g}: the hold is {hold_percent + 0.0:.2f} %"
    else:
        word = "wins" if least >= 0 else "loses"
        note = f"{word} {abs(least):.2f} on {staked:.2f} at worst, {abs(least) / staked * 100.0:.2f} %"
        note += f"; hold {hold_percent + 0.0:.2f} %"
    _small(rows, arguments.format, note, {"staked": staked, "profit": least, "hold_percentage": hold_percent})
