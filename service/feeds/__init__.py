"""Fetchers, one module per kind of feed, and the hub that applies their payloads to the board.

A fetcher knows addresses, keys, waits and failures, and nothing of markets; the parsers of `oddsengine.feeds` know
what the bytes say. Reading order: `sink`, `retry`, `status`, `web`, one fetcher, `hub`, `build`.
"""
