"""What the EV that was shown was worth at the close: any history, through the live engine, graded by the other books.

`formats` reads a history into looks; `scanning` plays them; `grading` says what each first showing was worth;
`reporting` makes the tables; `fitting` fits the constants of the estimator to a history.
"""

from oddsengine.audit.grading import SHOWN_SCHEMA, THRESHOLDS
from oddsengine.audit.reporting import Audit, audit
from oddsengine.audit.scanning import SCAN_SCHEMA, scan_history

__all__ = ["SCAN_SCHEMA", "SHOWN_SCHEMA", "THRESHOLDS", "Audit", "audit", "scan_history"]
