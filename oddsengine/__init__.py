"""Find +EV bets, arbitrages, middles and low-hold markets in sports odds.

Reading order of the folders: maths, catalog, tables, identity, guards, pricing, staking, detection (tables of odds);
board, live, query, tape (the live board); history, execution, backtesting; feeds, matching, sources; futures; simulate;
compiling, commands.
"""

import importlib
from typing import TYPE_CHECKING, Any

from oddsengine._installation import __version__
from oddsengine.catalog.reasons import GUARDS
from oddsengine.maths.arbitrage import arbitrage_stakes, hold, round_stakes
from oddsengine.maths.calculators import boost, free_bet, hedge, qualifying
from oddsengine.maths.devig import DEVIG_ALIASES, DEVIG_METHODS, devig, devig_groups
from oddsengine.maths.joint import JointProbabilities, joint_probabilities
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
from oddsengine.tables.expressions import OddsExpr
from oddsengine.tables.files import write_table
from oddsengine.tables.frames import flatten
from oddsengine.tables.schema import ODDS_SCHEMA, OddsError, OddsTable, OddsWarning, check_odds

if TYPE_CHECKING:
    from oddsengine import plot
    from oddsengine.backtesting import audit, calibrate, scan_history
    from oddsengine.backtesting.backtest import Backtest, backtest
    from oddsengine.backtesting.estimator import FairPrice
    from oddsengine.backtesting.fair_benchmark import BENCHMARK_SCHEMA, Benchmark, benchmark
    from oddsengine.backtesting.fill_report import FILLS_SCHEMA, Fills
    from oddsengine.backtesting.graded import GRADED_SCHEMA, Graded, grade
    from oddsengine.backtesting.history_fills import fills
    from oddsengine.backtesting.history_scan import SCAN_SCHEMA
    from oddsengine.backtesting.past_prices import PRICE_HISTORY_SCHEMA, price_history
    from oddsengine.backtesting.positions import POSITIONS_SCHEMA
    from oddsengine.backtesting.strategy import Strategy
    from oddsengine.backtesting.trader import Trader
    from oddsengine.backtesting.trades import TRADES_SCHEMA
    from oddsengine.commands.show import show
    from oddsengine.compiling.compilation import compile_kernels
    from oddsengine.compiling.loading import load_kernels
    from oddsengine.detection.arbitrage_sizes import largest_arbitrages
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
        why,
    )
    from oddsengine.detection.model_input import check_model
    from oddsengine.detection.promos import PROMO_SCHEMA, find_promos
    from oddsengine.detection.question import prepare
    from oddsengine.detection.result_columns import ARBITRAGE_SCHEMA, EV_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA
    from oddsengine.detection.settles_alike import Settled, settles_alike
    from oddsengine.detection.windows import middle_probability
    from oddsengine.execution.venues import BetAnswer, BetOrder, BetVenue
    from oddsengine.fair_functions import MarketPrices
    from oddsengine.feeds.price_files import columns_of, read_odds
    from oddsengine.futures import FUTURES_SCHEMA, Futures, FuturesBoard, FuturesField, find_futures
    from oddsengine.guards.plugin_guards import Guard
    from oddsengine.history.importing import ImportedHistory, import_history
    from oddsengine.live.delayed import NotYetError
    from oddsengine.live.engine import Engine
    from oddsengine.live.update import Update
    from oddsengine.live.view import View
    from oddsengine.plot.tearsheet import tear_sheet, write_tear_sheet
    from oddsengine.simulate import World
    from oddsengine.sources.failure import FetchError
    from oddsengine.sources.fetching import fetch, source
    from oddsengine.staking.parlays import DependentLegs, PricedParlay, parlay
    from oddsengine.staking.stakes import COVER_SCHEMA, PLAN_SCHEMA, Portfolio, arbitrage_plan, cover, kelly_portfolio
    from oddsengine.tape import Tape, TapeError, replay, resume

__all__ = [
    "ARBITRAGE_SCHEMA",
    "BENCHMARK_SCHEMA",
    "COVER_SCHEMA",
    "DEVIG_ALIASES",
    "DEVIG_METHODS",
    "EV_SCHEMA",
    "FAIR_COLUMNS",
    "FILLS_SCHEMA",
    "FUTURES_SCHEMA",
    "GRADED_SCHEMA",
    "GUARDS",
    "LOW_HOLD_SCHEMA",
    "MIDDLES_SCHEMA",
    "ODDS_SCHEMA",
    "PLAN_SCHEMA",
    "POSITIONS_SCHEMA",
    "PRICE_HISTORY_SCHEMA",
    "PROMO_SCHEMA",
    "SCAN_SCHEMA",
    "TRADES_SCHEMA",
    "Backtest",
    "Benchmark",
    "BetAnswer",
    "BetOrder",
    "BetVenue",
    "DependentLegs",
    "Engine",
    "Explanation",
    "FairPrice",
    "FetchError",
    "Fills",
    "Futures",
    "FuturesBoard",
    "FuturesField",
    "Graded",
    "Guard",
    "ImportedHistory",
    "JointProbabilities",
    "MarketPrices",
    "NotYetError",
    "OddsError",
    "OddsExpr",
    "OddsTable",
    "OddsWarning",
    "Opportunities",
    "Portfolio",
    "PricedParlay",
    "Settled",
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
    "benchmark",
    "boost",
    "calibrate",
    "check_model",
    "check_odds",
    "columns_of",
    "compile_kernels",
    "cover",
    "decimal_to_american",
    "decimal_to_fractional",
    "decimal_to_probability",
    "devig",
    "devig_groups",
    "explain",
    "fair",
    "fetch",
    "fills",
    "find_all",
    "find_arbitrage",
    "find_ev",
    "find_futures",
    "find_low_hold",
    "find_middles",
    "find_promos",
    "flatten",
    "format_fractional",
    "fractional_to_decimal",
    "free_bet",
    "grade",
    "hedge",
    "hold",
    "import_history",
    "joint_probabilities",
    "kelly",
    "kelly_exclusive",
    "kelly_portfolio",
    "largest_arbitrages",
    "load_kernels",
    "markets",
    "middle_probability",
    "parlay",
    "parse_fractional",
    "plot",
    "prepare",
    "price_history",
    "probability_to_decimal",
    "qualifying",
    "read_odds",
    "rejected",
    "replay",
    "resume",
    "round_stakes",
    "scan_history",
    "settles_alike",
    "show",
    "source",
    "tear_sheet",
    "why",
    "write_table",
    "write_tear_sheet",
]

# Imported on first use: importing all of them takes as long as importing numpy.
_MODULES = {
    "backtesting": "audit calibrate scan_history",
    "fair_functions": "MarketPrices",
    "guards.plugin_guards": "Guard",
    "backtesting.estimator": "FairPrice",
    "backtesting.fair_benchmark": "BENCHMARK_SCHEMA Benchmark benchmark",
    "backtesting.graded": "GRADED_SCHEMA Graded grade",
    "backtesting.fill_report": "FILLS_SCHEMA Fills",
    "backtesting.history_fills": "fills",
    "backtesting.past_prices": "PRICE_HISTORY_SCHEMA price_history",
    "backtesting.history_scan": "SCAN_SCHEMA",
    "backtesting.backtest": "Backtest backtest",
    "backtesting.positions": "POSITIONS_SCHEMA",
    "backtesting.trades": "TRADES_SCHEMA",
    "backtesting.trader": "Trader",
    "backtesting.strategy": "Strategy",
    "commands.show": "show",
    "compiling.compilation": "compile_kernels",
    "compiling.loading": "load_kernels",
    "detection.explain": "Explanation explain",
    "detection.fair": "FAIR_COLUMNS",
    "detection.finders": (
        "Opportunities fair find_all find_arbitrage find_ev find_low_hold find_middles markets rejected why"
    ),
    "detection.arbitrage_sizes": "largest_arbitrages",
    "detection.model_input": "check_model",
    "detection.promos": "PROMO_SCHEMA find_promos",
    "detection.question": "prepare",
    "detection.result_columns": "ARBITRAGE_SCHEMA EV_SCHEMA LOW_HOLD_SCHEMA MIDDLES_SCHEMA",
    "detection.settles_alike": "Settled settles_alike",
    "detection.windows": "middle_probability",
    "execution.venues": "BetAnswer BetOrder BetVenue",
    "feeds.price_files": "columns_of read_odds",
    "futures": "FUTURES_SCHEMA Futures FuturesBoard FuturesField find_futures",
    "history.importing": "ImportedHistory import_history",
    "live.delayed": "NotYetError",
    "live.engine": "Engine",
    "live.update": "Update",
    "live.view": "View",
    "plot.tearsheet": "tear_sheet write_tear_sheet",
    "simulate": "World",
    "sources.failure": "FetchError",
    "sources.fetching": "fetch source",
    "staking.parlays": "DependentLegs PricedParlay parlay",
    "staking.stakes": "COVER_SCHEMA PLAN_SCHEMA Portfolio arbitrage_plan cover kelly_portfolio",
    "tape": "Tape TapeError replay resume",
}
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "plot":  # a folder, which its import makes an attribute
            return importlib.import_module("oddsengine.plot")
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"oddsengine.{_LATER[name]}"), name)
        return value


def __dir__() -> list[str]:
    return __all__
