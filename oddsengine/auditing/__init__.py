"""Compare the EV shown over a history with the close of the other books, by playing it through the live engine.

`formats` reads a history in pieces; `playing` takes them through an engine; `opportunities` lists what it found;
`scanning` takes what was shown as +EV; `closes` has the boards at the starts; `grading` says what each first showing
was worth; `reporting` makes the tables; `fitting` fits the constants of the estimator to a history.
"""

from oddsengine.auditing.fitting import Fit, calibrate
from oddsengine.auditing.grading import SHOWN_SCHEMA, THRESHOLDS
from oddsengine.auditing.opportunities import SCAN_SCHEMA, scan_history
from oddsengine.auditing.reporting import Audit, audit

__all__ = ["SCAN_SCHEMA", "SHOWN_SCHEMA", "THRESHOLDS", "Audit", "Fit", "audit", "calibrate", "scan_history"]
