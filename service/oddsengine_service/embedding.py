"""A node inside another application."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette

from oddsengine_service.tiers import Account


def application(
    settings: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    demo: bool = False,
    authenticate: Callable[[Any], Account | None] | None = None,
) -> Starlette:
    """A node as a Starlette application, for `Mount` or for a server of your own.

    The node runs within the lifespan of the application. Starlette runs no lifespan of mounted applications, so that
    of yours has to enter it: ``async with node.router.lifespan_context(node): yield``.

    The node logs with the loggers ``oddsengine.node``, ``oddsengine.requests`` and ``oddsengine.feeds``. It adds no
    handlers and sets no levels.

    Parameters
    ----------
    settings
        The settings file; None is `oddsengine.toml` in the working directory, if that exists.
    environ
        The environment, whose variables come before the file; None is that of the process.
    demo
        Serve the simulated market, without feeds.
    authenticate
        Says whose request it is, from its ASGI scope; None is nobody. It replaces the API keys.

    Raises
    ------
    SettingsError
        If a setting is not valid, or needs a process of its own: [scale], metrics_port.

    Examples
    --------
    A node below ``/odds`` of an application that has signed its users in::

        node = application("oddsengine.toml", authenticate=lambda scope: Account(scope["user"].name, "pro"))

        @asynccontextmanager
        async def lifespan(_):
            async with node.router.lifespan_context(node):
                yield

        app = Starlette(routes=[Mount("/odds", node)], lifespan=lifespan)
    """
    from oddsengine_service.server import build  # noqa: PLC0415  all of the service; see `settings`
    from oddsengine_service.settings import SettingsError, learn, load, make_folder  # noqa: PLC0415

    variables = dict(os.environ if environ is None else environ)
    read = load(settings, variables)
    if read.scale is not None or read.service.metrics_port:
        what = "[scale]" if read.scale is not None else "service.metrics_port"
        raise SettingsError(f"{read.file}: {what} needs a process of its own: run oddsengine serve")
    make_folder(read)
    learn(read)
    if demo:
        read = msgspec.structs.replace(read, feeds={})
    return build(read, variables, demonstration=demo, authenticate=authenticate).app
