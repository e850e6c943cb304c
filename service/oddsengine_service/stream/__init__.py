"""The stream: changes of the board, and opportunities that open and expire, sent to subscribers.

    updates -> hub (one thread) -> moves, prices, opportunities -> bytes of each group -> event loop -> subscribers

Subscribers with equal filters and rights are a group, and a group's events are encoded once. Reading order: `sse`
(what is sent), `events` (the message format), `moves` (what an update means to a client that holds the board),
`watch` (the open opportunities of a view), `prices`, `opportunities` and `games` (the groups), `subscriber` (one
connection), `sending` (all connections, in the event loop), `hub` (the thread).
"""
