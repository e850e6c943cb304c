"""Plots of prices, audits and backtests with matplotlib (extra `plots`), as `oddsengine.plot`.

Each function returns a `matplotlib.figure.Figure`: notebooks show it, `figure.savefig(path)` writes it. Colours of text
and background are those of matplotlib's current style, so that `plt.style.use("dark_background")` works; those of lines
can be told apart with any kind of colour vision. Times are UTC, odds decimal.

`price_plots` draws boards and histories, `opportunity_plots` what was found in them and stakes, `audit_plots` audits
and backtests, `tearsheet` puts several into one file; `figure` has what all share, and `canvas` what needs matplotlib
to be imported. That happens when the first figure is drawn.
"""

from oddsengine.plot.audit_plots import bankroll, calibration, models
from oddsengine.plot.opportunity_plots import edges, lifetimes, stakes
from oddsengine.plot.price_plots import board, ladder, movement

__all__ = ["bankroll", "board", "calibration", "edges", "ladder", "lifetimes", "models", "movement", "stakes"]
