"""A seeded world of sportsbooks: games with known true probabilities, books that follow them, and feeds.

It answers what recorded prices cannot: whether an opportunity was real. Probabilities are exact at all times, honest
prices and feed errors are labelled, and every bet can be settled. All randomness comes from the seed.

Reading order: `simulated_leagues` (sports and markets), `simulated_games` (scores and public information),
`simulated_books` (each book's opinion and price format), `screens` (displayed prices), `simulated_labels` and
`calendar` (names and schedule), `order_books` (matching), `simulated_venues` and `traders` (who trades at exchanges),
`exchanges` and `order_fills` (their ladders, and what they fill), `hazards` (feed errors), `surebets` (true
arbitrages), `scoreboards` (scores as reported by books), `world` (time).
"""

from oddsengine.simulate.hazards import HAZARDS, Phantom
from oddsengine.simulate.order_fills import SimulatedFill, SimulatedOrder
from oddsengine.simulate.simulated_games import Chances
from oddsengine.simulate.simulated_labels import Place
from oddsengine.simulate.surebets import TrueArbitrage
from oddsengine.simulate.world import FeedBatch, World

__all__ = [
    "HAZARDS",
    "Chances",
    "FeedBatch",
    "Phantom",
    "Place",
    "SimulatedFill",
    "SimulatedOrder",
    "TrueArbitrage",
    "World",
]
