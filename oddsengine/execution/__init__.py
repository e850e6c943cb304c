"""What orders would have been filled: ladders of prices, plans, queues and attempts at opportunities.

`ladders` reads what a board offers at a price; `plans` says how much of an opportunity is worth taking; `taken` keeps
what we took, so that it is taken once; `queues` follows orders that rest; `attempts` sends the orders of an opportunity
one after the other, and closes what is left open. They decide fills of `fills`, of backtests and of paper trading.
"""
