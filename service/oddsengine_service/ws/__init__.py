"""WebSocket: the hub's events as messages, and the messages of a client.

Reading order: `ws_messages` and `wire` (their encoding), `socket` (one connection), `ws_protocol` (frames and limits,
under uvicorn), `session` (the handshake and messages from the client).
"""
