"""Audit a CSV of past prices: what the EV that oddsengine showed was worth when the games began.

    $ python audit_csv.py
    68 snapshots; EV when a price first had 1 % or more, and its value at the other books' close:
    all books      45 prices  2.45   1.91 +-0.54
    bet365          9 prices  2.33  -0.14 +-1.32
    betvictor      13 prices  2.63   3.39 +-1.14
    bwin            6 prices  2.07   0.65 +-0.89
    interwetten    13 prices  2.11   1.94 +-0.84
    williamhill     4 prices  3.87   3.51 +-3.79

Yours is a season of football-data.co.uk, or a table of prices with times: python audit_csv.py history.csv
If its columns have other names, audit oe.read_odds(path, columns={"seen": "last_seen_at"}) instead of the path.
Without a file, a simulated one is audited. docs/how_we_know.md says how prices are graded.
"""

import sys
from pathlib import Path

import oddsengine as oe
from oddsengine.simulate.football_seasons import seasons

if len(sys.argv) > 1:
    path = Path(sys.argv[1])
else:
    path = Path("simulated.csv")
    path.write_bytes(b"".join(next(seasons(7)).data.splitlines(keepends=True)[:101]))  # the first 100 games

audit = oe.audit(path)
cells = audit.table.filter(threshold=1.0)
print(audit.observations, "snapshots; EV when a price first had 1 % or more, and its value at the other books' close:")
for cell in cells.filter(cells["by"].is_in(["all", "book"]), cells["graded"] > 1).iter_rows(named=True):
    book = cell["value"] or "all books"
    print(f"{book:<12} {cell['graded']:>4} prices {cell['shown']:5.2f} {cell['worth']:6.2f} +-{cell['worth_se']:.2f}")
if not cells["graded"].sum():
    print(audit)  # says why no price was graded
