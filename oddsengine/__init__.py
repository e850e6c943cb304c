"""Sports odds in, trustworthy opportunities out.

Reading order: odds, devig, kelly, arbitrage, value, middle (the maths); catalog, schema, tables (what a table is and
what is known of the world); wording, traits, markets, terms, groups (identity); reasons, guards; detect, tails
(detection); find, results, opportunities, explain (what comes out); board, open, view, update, engine (the same, live);
tape, simulate; cli.
"""

from oddsengine.arbitrage import arbitrage_stakes, hold, round_stakes
from oddsengine.devig import DEVIG_METHODS, devig, devig_groups
from oddsengine.explain import Explanation, explain
from oddsengine.find.board import prepare
from oddsengine.kelly import kelly, kelly_exclusive
from oddsengine.odds import (
    american_to_decimal,
    decimal_to_american,
    decimal_to_fractional,
    decimal_to_probability,
    format_fractional,
    fractional_to_decimal,
    parse_fractional,
    probability_to_decimal,
)
from oddsengine.opportunities import (
    Opportunities,
    find_all,
    find_arbitrage,
    find_ev,
    find_low_hold,
    find_middles,
    markets,
    rejected,
)
from oddsengine.reasons import GUARDS
from oddsengine.results import ARBITRAGE_SCHEMA, EV_SCHEMA, LOW_HOLD_SCHEMA, MIDDLES_SCHEMA
from oddsengine.schema import ODDS_SCHEMA, OddsError, OddsTable, check_odds
from oddsengine.tables import read_odds, write_table
from oddsengine.warm import compile_kernels

__version__ = "0.1.0"

__all__ = [
    "ARBITRAGE_SCHEMA",
    "DEVIG_METHODS",
    "EV_SCHEMA",
    "GUARDS",
    "LOW_HOLD_SCHEMA",
    "MIDDLES_SCHEMA",
    "ODDS_SCHEMA",
    "Explanation",
    "OddsError",
    "OddsTable",
    "Opportunities",
    "__version__",
    "american_to_decimal",
    "arbitrage_stakes",
    "check_odds",
    "compile_kernels",
    "decimal_to_american",
    "decimal_to_fractional",
    "decimal_to_probability",
    "devig",
    "devig_groups",
    "explain",
    "find_all",
    "find_arbitrage",
    "find_ev",
    "find_low_hold",
    "find_middles",
    "format_fractional",
    "fractional_to_decimal",
    "hold",
    "kelly",
    "kelly_exclusive",
    "markets",
    "parse_fractional",
    "prepare",
    "probability_to_decimal",
    "read_odds",
    "rejected",
    "round_stakes",
    "write_table",
]
