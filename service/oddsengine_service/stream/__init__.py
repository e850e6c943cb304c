"""The stream: changes of the board, and opportunities that open and expire, sent to subscribers.

    updates -> hub (one thread) -> moves, prices, opportunities -> bytes of each group -> event loop -> subscribers

Subscribers with equal filters and rights are a group, and a group's events are encoded once. Reading order: `sse`
(what is sent), `stream_events` (the message format), `moves` (what an update means to a client that holds the board),
`watched_view` (the open opportunities of a view) and `watches`, `group_prices`, `group_opportunities` and
`group_games` (what a group gets), `subscriber` and `connection` (one client), `sending` and `subscribers` (all clients,
in the event loop), `resuming` (what returning clients need), `stream_hub` (the thread).
"""
