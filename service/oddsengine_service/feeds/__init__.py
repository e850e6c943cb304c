"""The feeds of a node, and the hub that applies their payloads to the board.

The fetchers of `oddsengine.sources` handle addresses, keys, waits and failures, and know nothing of markets; the
parsers of `oddsengine.feeds` interpret the bytes. Reading order: `status`, `source_games`, `feed_rows`, `applying`,
`hub`, `build`.
"""
