"""The service around the engine: feeds, the HTTP API, and the settings of both.

The library computes and never fetches; everything that needs a clock, a socket or the environment is here.
Reading order: `settings`, `server`, `node`, `app`, `api`, `endpoints`, `routes`, `stream`, `feeds`.

`application` is a node as a Starlette application, to be mounted in another one.
"""

from oddsengine_service.embedding import application
from oddsengine_service.tiers import Account

__all__ = ["Account", "application"]
