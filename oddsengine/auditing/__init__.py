"""Compare the EV shown over a history with the close of the other books, by replaying it through the live engine.

`formats` reads histories in pieces; `playing` replays them; `opportunities` lists every opportunity; `scanning` records
+EV prices when first shown; `closes` collects the closing boards; `grading` computes the value of each price at the
close; `reporting` builds tables; `fitting` fits the estimator's constants to a history.
"""

from oddsengine.auditing.fitting import Fit, calibrate
from oddsengine.auditing.grading import SHOWN_SCHEMA, THRESHOLDS
from oddsengine.auditing.opportunities import SCAN_SCHEMA, scan_history
from oddsengine.auditing.reporting import Audit, audit

__all__ = ["SCAN_SCHEMA", "SHOWN_SCHEMA", "THRESHOLDS", "Audit", "Fit", "audit", "calibrate", "scan_history"]
