"""Use your own model as the reference: find the prices that beat it, and stake on them.

    $ python own_model.py
    12 prices beat the model by 1 % or more; the best of each event:
    5.28 %  Boston Celtics at pinnacle, 2.328
    1.85 %  Philadelphia Eagles at pinnacle, 1.430
    stake 10 on Boston Celtics at pinnacle
    stake 11 on Philadelphia Eagles at pinnacle

Each team has a rating in points. The difference of two teams, plus the advantage of playing at home, gives the
probability of a win. The prices are those of the sample board, or yours: python own_model.py prices.csv
"""

import sys
from statistics import NormalDist

import polars as pl

import oddsengine as oe
from oddsengine.tables.sample import SAMPLE_BOARD

RATINGS = {"Boston Celtics": 4.0, "Los Angeles Lakers": 3.0, "Dallas Cowboys": -1.0, "Philadelphia Eagles": 3.5}
HOME = 2.5  # points of advantage
SPREAD = 12.5  # points: the standard deviation of a result

odds = oe.read_odds(sys.argv[1] if len(sys.argv) > 1 else SAMPLE_BOARD)
# One book of the sample has the teams in the wrong order: take the order of most rows.
games = odds.group_by("event_id", maintain_order=True).agg(pl.col("home_team", "away_team").mode().first())
rows = []
for event, home, away in games.iter_rows():
    if home in RATINGS and away in RATINGS:
        probability = NormalDist().cdf((RATINGS[home] - RATINGS[away] + HOME) / SPREAD)
        rows.append({"event_id": event, "market_type": "moneyline", "selection": home, "probability": probability})

bets = oe.find_ev(odds, model=pl.DataFrame(rows), min_ev=1)
print(bets.height, "prices beat the model by 1 % or more; the best of each event:")
for bet in bets.unique("event_id", keep="first", maintain_order=True).iter_rows(named=True):
    print(f"{bet['ev_percentage']:.2f} %  {bet['selection']} at {bet['sportsbook']}, {bet['odds_decimal']:.3f}")
staked = oe.kelly_portfolio(bets, bankroll=1000, fraction=0.25, step=1).bets  # quarter Kelly, in whole units
for bet in staked.filter(pl.col("stake") > 0).iter_rows(named=True):
    print(f"stake {bet['stake']:.0f} on {bet['selection']} at {bet['sportsbook']}")
