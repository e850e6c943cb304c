"""Find +EV bets, arbitrages, middles and low-hold markets in sports odds.

Reading order of the folders: maths, catalog, tables, identity, guards, pricing, staking, detection (tables of odds);
board, live, query, tape (the live board); history, backtesting; feeds, matching; futures; simulate; compiling,
commands.
"""

import importlib
from typing import Any

from oddsengine import _moved
from oddsengine._installation import __version__
from oddsengine.catalog.reasons import GUARDS
from oddsengine.compiling.loading import load_kernels
from oddsengine.detection.explain import Explanation, explain
from oddsengine.detection.fair import FAIR_COLUMNS
from oddsengine.detection.finders import (
    Opportunities,
    fair,
    find_all,
    find_arbitrage,
    find_ev,
    find_low_hold,
    find_middles,
    markets,
    rejected,
)
from oddsengine.detection.question import prepare
from oddsengine.detection.results import ARBITRAGE_SCHEMA, EV_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA
from oddsengine.feeds.reading import read_odds
from oddsengine.live.engine import Engine
from oddsengine.live.update import Update
from oddsengine.live.view import View
from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes
from oddsengine.maths.devig import DEVIG_METHODS, devig, devig_groups
from oddsengine.maths.kelly import kelly, kelly_exclusive
from oddsengine.maths.odds import (
    american_to_decimal,
    decimal_to_american,
    decimal_to_fractional,
    decimal_to_probability,
    format_fractional,
    fractional_to_decimal,
    parse_fractional,
    probability_to_decimal,
)
from oddsengine.staking.stakes import COVER_SCHEMA, PLAN_SCHEMA, Portfolio, arbitrage_plan, cover, kelly_portfolio
from oddsengine.tables.expressions import OddsExpr
from oddsengine.tables.files import write_table
from oddsengine.tables.frames import flatten
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, OddsTable, OddsWarning, check_odds

_moved.install()

__all__ = [
    "ARBITRAGE_SCHEMA",
    "COVER_SCHEMA",
    "DEVIG_METHODS",
    "EV_SCHEMA",
    "FAIR_COLUMNS",
    "FUTURES_SCHEMA",
    "GUARDS",
    "LOW_HOLD_SCHEMA",
    "MIDDLES_SCHEMA",
    "ODDS_SCHEMA",
    "PLAN_SCHEMA",
    "SCAN_SCHEMA",
    "TRADES_SCHEMA",
    "Backtest",
    "Engine",
    "Explanation",
    "Futures",
    "FuturesBoard",
    "FuturesField",
    "OddsError",
    "OddsExpr",
    "OddsTable",
    "OddsWarning",
    "Opportunities",
    "Portfolio",
    "Strategy",
    "Tape",
    "TapeError",
    "Trader",
    "Update",
    "View",
    "World",
    "__version__",
    "american_to_decimal",
    "arbitrage_plan",
    "arbitrage_stakes",
    "audit",
    "backtest",
    "calibrate",
    "check_odds",
    "compile_kernels",
    "cover",
    "decimal_to_american",
    "decimal_to_fractional",
    "decimal_to_probability",
    "devig",
    "devig_groups",
    "explain",
    "fair",
    "find_all",
    "find_arbitrage",
    "find_ev",
    "find_futures",
    "find_low_hold",
    "find_middles",
    "flatten",
    "format_fractional",
    "fractional_to_decimal",
    "hold",
    "kelly",
    "kelly_exclusive",
    "kelly_portfolio",
    "load_kernels",
    "markets",
    "parse_fractional",
    "prepare",
    "probability_to_decimal",
    "read_odds",
    "rejected",
    "replay",
    "resume",
    "round_stakes",
    "scan_history",
    "tear_sheet",
    "write_table",
    "write_tear_sheet",
]

# Imported on first use, since most programs need none of these.
_LATER = {
    "World": "simulate",
    "Tape": "tape",
    "TapeError": "tape",
    "replay": "tape",
    "resume": "tape",
    "FUTURES_SCHEMA": "futures",
    "Futures": "futures",
    "FuturesBoard": "futures",
    "FuturesField": "futures",
    "find_futures": "futures",
    "audit": "backtesting",
    "scan_history": "backtesting",
    "calibrate": "backtesting",
    "SCAN_SCHEMA": "backtesting.scan",
    "Backtest": "backtesting.strategy",
    "Strategy": "backtesting.strategy",
    "TRADES_SCHEMA": "backtesting.strategy",
    "Trader": "backtesting.strategy",
    "compile_kernels": "compiling.compilation",
    "backtest": "backtesting.strategy",
    "tear_sheet": "backtesting.tearsheet",
    "write_tear_sheet": "backtesting.tearsheet",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"oddsengine.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return __all__
