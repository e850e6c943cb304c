"""The stream: what changes on the board and what opens and expires, to whoever listens.

    bus -> hub (one thread) -> moves, prices, finds -> bytes of each group -> event loop -> subscribers

Subscribers with equal filters and rights are a group, and a group's events are encoded once. Reading order: `sse`
(what is sent), `told` (an event and what it says of its rows), `moves` (what an update means to somebody who holds the
board), `watch` (what is open), `prices`, `finds` and `games` (the groups), `backlog` (what a slow reader missed),
`subscriber` (one connection), `lines` (all of them, in the event loop), `hub` (the thread).
"""
