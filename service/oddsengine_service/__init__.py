"""The service around the engine: feeds, the HTTP API, and the settings of both.

The library computes and never fetches; everything that needs a clock, a socket or the environment is here.
Reading order: `settings`, `server`, `node`, `app`, `api`, `endpoints`, `routes`, `stream`, `feeds`.

`application` is a node as a Starlette application, to be mounted in another one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddsengine_service.embedding import application
    from oddsengine_service.tiers import Account

__all__ = ["Account", "application"]


def __getattr__(name: str) -> Any:
    """Import what is public when it is first used: `healthcheck`, which runs every ten seconds, needs none of it."""
    if name == "application":
        from oddsengine_service.embedding import application  # noqa: PLC0415

        return application
    if name == "Account":
        from oddsengine_service.tiers import Account  # noqa: PLC0415

        return Account
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
