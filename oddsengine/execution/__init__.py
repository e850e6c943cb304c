"""What orders would have been filled: ladders of prices, plans, queues and attempts at opportunities.

`ladders` reads what a board offers at a price; `taking` fills orders, and keeps what we took, so that it is taken once;
`queues` follows orders that rest; `attempts` sends the orders of an opportunity one after the other, and closes what is
left open; `shown` does so for all that a view shows. `venues` is the protocol of those who take orders, and `paper` a
venue of paper money, for backtests and paper trading.
"""
