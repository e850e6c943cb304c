"""The service around the engine: feeds, the HTTP API, and the settings of both.

The library computes and never fetches; everything that needs a clock, a socket or the environment is here.
Reading order: `settings`, `server`, `node`, `app`, `endpoints`, `routes`, `stream`, `feeds`.
"""
