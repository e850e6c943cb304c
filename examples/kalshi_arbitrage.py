"""Alert on arbitrages between Kalshi and Polymarket, which need no key, or between sources of your own.

    $ python kalshi_arbitrage.py --rounds 1
    4.78 %  Dallas Cowboys @ Seattle Seahawks, moneyline
            polymarket Seattle Seahawks at 1.923: 55.3 % of the stake
            kalshi Dallas at 2.439: 44.7 % of the stake
            not the same bet: cancelled: polymarket pays 0.50, kalshi pays a fair price; ...

For other sources name a file with [feeds.NAME] sections, as of a node (docs/feeds.md), and with --books your books.
Needs pip install 'oddsengine[feeds]'.
"""

import argparse
import sys
import time
import tomllib
from pathlib import Path

import oddsengine as oe

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("settings", nargs="?", type=Path, help="a TOML file with [feeds.NAME] sections")
parser.add_argument("--sport", default="nfl", help="the league, if no file is given")
parser.add_argument("--books", type=lambda text: text.split(","), help="where you bet: kalshi,fanduel,betmgm")
parser.add_argument("--interval", type=float, default=30, help="seconds between two looks")
parser.add_argument("--rounds", type=int, default=sys.maxsize, help="how many looks")
args = parser.parse_args()

sources = {name: {"sport": args.sport} for name in ("kalshi", "polymarket")}
if args.settings:
    sources = tomllib.loads(args.settings.read_text())["feeds"]

known: set[str] = set()  # an arbitrage keeps its id while its books and sides stay the same
for look in range(args.rounds):
    time.sleep(args.interval if look else 0)
    try:
        found = oe.find_arbitrage(oe.fetch(sources), books=args.books, min_profit=0.5)  # percent
    except oe.FetchError as error:  # a source could not be read: look again later
        print(error, file=sys.stderr)
        continue
    for arb in found.filter(~found["id"].is_in(known)).iter_rows(named=True):  # send a message here
        line = "" if arb["line"] is None else f" {arb['line']:g}"
        print(f"{arb['profit_percent']:.2f} %  {arb['event_name']}, {arb['market_type']}{line}")
        for leg in arb["legs"]:
            stake = f"{leg['stake_percent']:.1f} % of the stake"
            print(f"        {leg['sportsbook']} {leg['selection']} at {leg['odds_decimal']:.3f}: {stake}")
        if arb["terms_differ"]:
            print("        not the same bet:", "; ".join(arb["terms"]))
    sys.stdout.flush()
    known = set(found["id"])
