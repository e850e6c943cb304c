"""The finders: +EV, arbitrage, middles, low hold and fair prices of a table."""
