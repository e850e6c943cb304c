"""WebSocket: the hub's events as messages, and what a client may say.

Reading order: `wire` (messages), `socket` (one connection), `protocol` (frames and bounds, under uvicorn), `session`
(the handshake and what a client sends).
"""
