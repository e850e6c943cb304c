"""Write the opportunities in a file of prices as CSV files for a spreadsheet.

    $ python spreadsheet.py
    ev.csv: 20 rows
    arbitrage.csv: 8 rows
    low_hold.csv: 14 rows
    middles.csv: 3 rows

The prices are those of the sample board, or yours: python spreadsheet.py prices.csv
An arbitrage has a row for each of its bets. With --comma, decimals have a comma and fields a semicolon.
"""

import argparse

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("prices", nargs="?", default=SAMPLE_BOARD, help="a file of prices (docs/columns.md)")
parser.add_argument("--comma", action="store_true", help="for spreadsheets that expect 1,95 instead of 1.95")
args = parser.parse_args()

found = oe.find_all(oe.read_odds(args.prices))
for kind in ("ev", "arbitrage", "low_hold", "middles"):
    rows = oe.flatten(getattr(found, kind), join="; ")  # a row per bet, lists as text
    rows.write_csv(
        f"{kind}.csv",
        separator=";" if args.comma else ",",
        decimal_comma=args.comma,
        float_precision=4,
        datetime_format="%Y-%m-%d %H:%M:%S",  # UTC
        include_bom=True,  # so that Excel reads names with accents
    )
    print(f"{kind}.csv: {rows.height} rows")
