"""Tests of sources, targets of alerts, fair prices and guards of packages (docs/plugin_tests.md); ours use them too.

Servers of a vendor on this machine, a receiver that records, and checks, plain functions that raise `AssertionError`.
It is imported by tests only, and needs the extra `[feeds]`, not pytest. `target_checks` needs `[service]`.
"""

from oddsengine.testing.bad_bodies import BAD_BODIES, BadBody
from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.fair_checks import FAIR_CHECKS, FAIR_MARKETS
from oddsengine.testing.guard_checks import GUARD_CHECKS, GuardCase
from oddsengine.testing.local_servers import Answering, Request, http, iso, now, served
from oddsengine.testing.recorder import Recorder
from oddsengine.testing.source_case import RunningSource, SourceCase, run_source
from oddsengine.testing.source_checks import SOURCE_CHECKS
from oddsengine.testing.source_server import SourceServer

__all__ = [
    "BAD_BODIES", "FAIR_CHECKS", "FAIR_MARKETS", "GUARD_CHECKS", "SOURCE_CHECKS", "Answering", "BadBody",
    "ContractCheck", "GuardCase", "Recorder", "Request", "RunningSource", "SourceCase", "SourceServer", "http", "iso",
    "now", "run_source", "served",
]  # fmt: skip
