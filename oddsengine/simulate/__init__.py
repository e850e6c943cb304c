"""A seeded world of sportsbooks: games with true probabilities, books that follow them, feeds that bring the prices.

It answers what no record of real prices can: whether an opportunity was one. Probabilities are exact at every moment,
honest prices and errors of feeds are told apart, and every bet can be settled. All randomness comes from the seed.

Reading order: `leagues` (what is played), `games` (scores, and what can be known of them), `desks` (what each book
thinks and writes), `screens` (what it shows), `wording` and `calendar` (names), `hazards` (what feeds get wrong),
`surebets` (arbitrages that are truly there), `scoreboards` (what books say of scores), `world` (time).
"""

from oddsengine.simulate.games import Chances
from oddsengine.simulate.hazards import HAZARDS, Phantom
from oddsengine.simulate.surebets import TrueArbitrage
from oddsengine.simulate.wording import Place
from oddsengine.simulate.world import Batch, World

__all__ = ["HAZARDS", "Batch", "Chances", "Phantom", "Place", "TrueArbitrage", "World"]
