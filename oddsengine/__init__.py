"""Sports odds in, trustworthy opportunities out.

Reading order: odds, devig, kelly, arbitrage, value, middle (the maths); schema, tables, catalog (what a table is and what
is known of the world); wording, markets, groups (identity); guards; detect, tails (detection); find, opportunities
(results); explain; cli.
"""

from oddsengine.arbitrage import arbitrage_stakes, round_stakes
from oddsengine.devig import DEVIG_METHODS, devig, devig_groups
from oddsengine.kelly import kelly, kelly_exclusive
from oddsengine.odds import (
    american_to_decimal,
    decimal_to_american,
    decimal_to_fractional,
    decimal_to_probability,
    fractional_to_decimal,
    probability_to_decimal,
)
from oddsengine.opportunities import (
    find_all,
    find_arbitrage,
    find_ev,
    find_low_hold,
    find_middles,
    markets,
    rejected,
)
from oddsengine.schema import ODDS_SCHEMA, OddsError, OddsTable, check_odds
