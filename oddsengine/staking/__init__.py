"""How much to stake: one bet, many open bets, arbitrages within limits."""
