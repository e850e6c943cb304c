"""What the EV that was shown was worth at the close: any history, through the live engine, graded by the other books.

`formats` reads a history into looks; `scanning` plays them; `grading` says what each first showing was worth;
`reporting` makes the tables; `fitting` fits the constants of the estimator to a history.
"""

from oddsengine.auditing.fitting import Fit, calibrate
from oddsengine.auditing.grading import SHOWN_SCHEMA, THRESHOLDS
from oddsengine.auditing.reporting import Audit, audit
from oddsengine.auditing.scanning import SCAN_SCHEMA, scan_history

__all__ = ["SCAN_SCHEMA", "SHOWN_SCHEMA", "THRESHOLDS", "Audit", "Fit", "audit", "calibrate", "scan_history"]
