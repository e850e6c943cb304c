"""Fetchers, one module per kind of feed, and the hub that applies their payloads to the board.

A fetcher handles addresses, keys, waits and failures, and knows nothing of markets; the parsers of `oddsengine.feeds`
interpret the bytes. Reading order: `retry`, `status`, `hub`, `web`, one fetcher, `build`.
"""
