"""Numbers in, numbers out: odds, de-vig, Kelly, arbitrage, middles, scores; numpy and numba only."""
