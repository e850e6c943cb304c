"""The reliability diagram as SVG: value at the close over EV shown, with error bars."""

from itertools import pairwise

import numpy as np
import polars as pl

from oddsengine.backtesting.reporting import MOST_ODDS, clustered_mean

_SIZE, _EDGE = 480, 56
_LOW, _HIGH = -2.0, 8.0  # percent, both axes
_BANDS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0)
_LEAST = 10


def reliability(shown: pl.DataFrame, hours: float = 72.0) -> str:
    """Plot prices first shown at an EV of at least 1 by EV band, as SVG; each point is a mean with two standard errors.

    `shown` has the columns of `SHOWN_SCHEMA`; prices shown more than `hours` before the start are left out.
    """
    graded = shown.filter(
        (pl.col("threshold") == 1.0) & (pl.col("odds") < MOST_ODDS) & (pl.col("hours") < hours)
    ).drop_nulls("worth")
    points = []
    for low, high in pairwise(_BANDS):
        band = graded.filter((pl.col("ev") >= low) & (pl.col("ev") < high))
        if band.height >= _LEAST:
            game = np.unique(band["event"].to_numpy(), return_inverse=True)[1]
            mean, error = clustered_mean(band["worth"].to_numpy(), game)
            points.append((float(np.mean(band["ev"].to_numpy())), mean, error, band.height))
    return _svg(points)


def _svg(points: list[tuple[float, float, float, int]]) -> str:
    def x(value: float) -> float:
        return _EDGE + (value - _LOW) / (_HIGH - _LOW) * (_SIZE - 2 * _EDGE)

    def y(value: float) -> float:
        return _SIZE - x(min(max(value, _LOW), _HIGH))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="white"/>',
    ]
    for tick in range(int(_LOW), int(_HIGH) + 1, 2):
        parts.append(
            f'<path d="M{x(tick):.1f} {y(_LOW):.1f}V{y(_HIGH):.1f}" stroke="#ddd"/>'
            f'<path d="M{x(_LOW):.1f} {y(tick):.1f}H{x(_HIGH):.1f}" stroke="#ddd"/>'
            f'<text x="{x(tick):.1f}" y="{y(_LOW) + 18:.1f}" text-anchor="middle">{tick}</text>'
            f'<text x="{x(_LOW) - 8:.1f}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    parts.append(
        f'<path d="M{x(_LOW):.1f} {y(_LOW):.1f}L{x(_HIGH):.1f} {y(_HIGH):.1f}" stroke="#888" stroke-dasharray="4 4"/>'
    )
    for ev, mean, error, n in points:
        parts.append(
            f'<path d="M{x(ev):.1f} {y(mean - 2 * error):.1f}V{y(mean + 2 * error):.1f}" stroke="#1f5fa8"/>'
            f'<circle cx="{x(ev):.1f}" cy="{y(mean):.1f}" r="4" fill="#1f5fa8"><title>{n} showings: {ev:.2f} % shown, '
            f"{mean:.2f} +-{error:.2f} % worth</title></circle>"
        )
    parts.append(
        f'<text x="{_SIZE / 2}" y="{_SIZE - 10}" text-anchor="middle">EV shown, %</text>'
        f'<text x="14" y="{_SIZE / 2}" text-anchor="middle" transform="rotate(-90 14 {_SIZE / 2})">'
        "EV at the others' close, % (two standard errors)</text></svg>\n"
    )
    return "\n".join(parts)
