"""Matching of events and players across feeds.

`Matcher` assigns each feed's games to events; `match_player` resolves the players of props within an event. Names are
compared in `name_likeness` (teams) and `persons`, starts in `doubleheaders`; `overrides` parses manual decisions.
`docs/matching.md` has the measured quality.
"""

from oddsengine.matching.matcher import THRESHOLD, Decision, Match, Matcher, QuarantinedGame
from oddsengine.matching.overrides import OverrideError, Overrides, parse_overrides
from oddsengine.matching.persons import Player, match_player
from oddsengine.matching.placing import PlayerNames, placed_quotes
from oddsengine.matching.price_ids import Price, PriceIds, price_of

__all__ = [
    "THRESHOLD",
    "Decision",
    "Match",
    "Matcher",
    "OverrideError",
    "Overrides",
    "Player",
    "PlayerNames",
    "Price",
    "PriceIds",
    "QuarantinedGame",
    "match_player",
    "parse_overrides",
    "placed_quotes",
    "price_of",
]
