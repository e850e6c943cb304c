"""The service around the engine: what fetches, what serves, and the settings of both.

The library computes and never fetches; here is everything that has a clock, a socket or an environment.
Reading order: `settings`, `feeds`.
"""
