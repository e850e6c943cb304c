"""Blocks of markets with equally many outcomes, solved side by side: one lane each.

A block has the prices of up to `LANES` markets, an outcome per row, so that each operation of a solver is a loop over
lanes that the processor does several at a time. Lanes without a market have no price.

Arguments of the kernels:

- `odds`, `out` (float64 per outcome): prices, market after market, and the probabilities to write
- `n`: number of outcomes
- `starts` (int64 per market): where each market begins; empty if they follow each other
- `first`, `m`: the first market of a block, and the number of its markets, at most `LANES`
- `cell` (float64, n by any number by lanes): the first value per outcome and lane is the price, later the probability
"""

from oddsengine._jit import fused
from oddsengine.columns import Floats, Longs

LANES = 128  # markets solved side by side
GREATEST = 1.7976931348623157e308  # largest finite price


@fused
def read(odds: Floats, n: int, starts: Longs, first: int, m: int, cell: Floats) -> None:
    """Prices of markets first .. first + m into cell[:, 0], an outcome per row; spare lanes get no price."""
    for j in range(n):
        for i in range(m, LANES):
            cell[j, 0, i] = 0.0
    if starts.size == 0 and n == 2:
        pairs = odds[2 * first : 2 * (first + m)]
        for i in range(m):
            cell[0, 0, i] = pairs[2 * i]
            cell[1, 0, i] = pairs[2 * i + 1]
    elif starts.size == 0 and n == 3:
        triples = odds[3 * first : 3 * (first + m)]
        for i in range(m):
            cell[0, 0, i] = triples[3 * i]
            cell[1, 0, i] = triples[3 * i + 1]
            cell[2, 0, i] = triples[3 * i + 2]
    else:
        for j in range(n):
            for i in range(m):
                start = starts[first + i] if starts.size > 0 else (first + i) * n
                cell[j, 0, i] = odds[start + j]


@fused
def write(out: Floats, n: int, starts: Longs, first: int, m: int, cell: Floats) -> None:
    """cell[:, 0] to the places that `read` read."""
    if starts.size == 0 and n == 2:
        pairs = out[2 * first : 2 * (first + m)]
        for i in range(m):
            pairs[2 * i] = cell[0, 0, i]
            pairs[2 * i + 1] = cell[1, 0, i]
    elif starts.size == 0 and n == 3:
        triples = out[3 * first : 3 * (first + m)]
        for i in range(m):
            triples[3 * i] = cell[0, 0, i]
            triples[3 * i + 1] = cell[1, 0, i]
            triples[3 * i + 2] = cell[2, 0, i]
    else:
        for j in range(n):
            for i in range(m):
                start = starts[first + i] if starts.size > 0 else (first + i) * n
                out[start + j] = cell[j, 0, i]
