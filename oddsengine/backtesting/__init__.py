"""Compare the EV shown over a history with the close of the other books, by replaying it through the live engine.

`formats` reads histories in pieces; `replay` replays them; `history_scan` lists every opportunity; `shown` records +EV
prices when first shown; `closes` collects the closing boards; `grading` computes the value of each price at the close;
`audit_report` builds tables; `fitting` fits the estimator's constants to a history. A `strategy` bets in a `backtest`,
with the `fills` of its orders.
"""

from oddsengine.backtesting.audit_report import Audit, audit
from oddsengine.backtesting.fitting import Fit, calibrate
from oddsengine.backtesting.grading import SHOWN_SCHEMA, THRESHOLDS
from oddsengine.backtesting.history_scan import SCAN_SCHEMA, scan_history

__all__ = ["SCAN_SCHEMA", "SHOWN_SCHEMA", "THRESHOLDS", "Audit", "Fit", "audit", "calibrate", "scan_history"]
