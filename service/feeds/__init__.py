"""Fetchers: what brings payloads in, one file per kind of source, and the hub that puts them on the board.

A fetcher knows addresses, keys, waits and failures, and nothing of markets; the parsers of `oddsengine.feeds` know
what the bytes say. Reading order: `sink`, `retry`, `status`, `web`, one fetcher, `hub`, `build`.
"""
