"""The command `terms`: whether bets at two books settle alike."""

import argparse
import json

from oddsengine import catalog
from oddsengine.bounds import excerpt
from oddsengine.commands.output import echo
from oddsengine.commands.price import price_of
from oddsengine.detection.settles_alike import settles_alike


def terms_command(arguments: argparse.Namespace) -> None:
    league = catalog.league(arguments.league)
    sport = arguments.sport or league.sport
    if not sport:
        raise ValueError(f"--league {excerpt(arguments.league)} is not known; give its --sport too")
    if arguments.sport and league.sport and catalog.sport(arguments.sport).id != league.sport:
        raise ValueError(f"--league {excerpt(arguments.league)} is of {league.sport}, got --sport {arguments.sport}")
    prices = [] if arguments.odds is None else [price_of(text) for text in arguments.odds.split(",")]
    if arguments.odds is not None and len(prices) != 2:
        raise ValueError(f"--odds takes two prices, such as 1.72,2.45, got {len(prices)}")
    legs = [
        {"sportsbook": book, "sport": sport, "league": arguments.league, "market_type": arguments.market}
        for book in (arguments.first, arguments.second)
    ]
    for leg, odds in zip(legs, prices, strict=False):
        leg["odds_decimal"] = odds
    found = settles_alike(*legs, stake=arguments.stake)
    if arguments.format == "json":
        cases = [each._asdict() for each in found.cases]
        echo(json.dumps({**found._asdict(), "unknown": found.unknown, "cases": cases}, indent=2) + "\n")
    else:
        echo(f"{found}\n")
