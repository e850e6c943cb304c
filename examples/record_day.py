"""Record a day of prices to a tape. Run it again to continue the tape.

    $ python record_day.py --hours 0
    2 prices at ...
    day.tape: 1 steps, 2 prices

Kalshi needs no key. The NBA by The Odds API: python record_day.py the_odds_api nba
docs/tape.md says what a tape is good for. Needs pip install 'oddsengine[feeds]'.
"""

import argparse
import sys
import time
from datetime import UTC, datetime

import oddsengine as oe

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("source", nargs="?", default="kalshi", help="one of those in docs/fetch.md")
parser.add_argument("sport", nargs="?", default="nfl", help="a league")
parser.add_argument("--url", help="another address of the source")
parser.add_argument("--hours", type=float, default=24, help="0 reads the prices once")
parser.add_argument("--interval", type=float, default=60, help="seconds between two reads")
args = parser.parse_args()

settings = {"sport": args.sport} | ({"url": args.url} if args.url else {})
end = time.monotonic() + args.hours * 3600
books: set[str] = set()
engine, writer = oe.resume("day.tape")
with writer:
    while True:
        try:
            odds = oe.fetch(args.source, **settings)
            books |= set(odds["sportsbook"])
            engine.step(odds, now=datetime.now(UTC), complete=books)  # prices that are gone leave the board
            print(f"{odds.height:,} prices at {engine.now:%H:%M:%S}", flush=True)
        except oe.FetchError as error:  # the source could not be read: the board stays as it was
            print(error, file=sys.stderr)
        if time.monotonic() + args.interval > end:
            break
        time.sleep(args.interval)
tape = oe.Tape("day.tape")
print(f"day.tape: {tape.steps:,} steps, {tape.quotes:,} prices")
