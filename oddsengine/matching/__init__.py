"""Matching of events and players across feeds.

`Matcher` says of each source's game which event of ours it is; `match_player` does the same for the players of props
within an event. Names are compared in `names` (teams) and `persons`, starts in `schedule`; `overrides` reads what a
person decided. `docs/matching.md` has the measured quality.
"""

from oddsengine.matching.matcher import THRESHOLD, Decision, Match, Matcher, Quarantined
from oddsengine.matching.overrides import OverrideError, Overrides, parse_overrides
from oddsengine.matching.persons import Player, match_player

__all__ = [
    "THRESHOLD",
    "Decision",
    "Match",
    "Matcher",
    "OverrideError",
    "Overrides",
    "Player",
    "Quarantined",
    "match_player",
    "parse_overrides",
]
