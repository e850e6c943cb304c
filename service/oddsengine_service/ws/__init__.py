"""WebSocket: the hub's events as messages, and the messages of a client.

Reading order: `wire` (messages), `socket` (one connection), `ws_protocol` (frames and limits, under uvicorn), `session`
(the handshake and messages from the client).
"""
