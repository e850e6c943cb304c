"""The command `serve`. The service is imported only when it runs."""

import argparse
import os
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from oddsengine.commands.output import echo, service_needed


def serve_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.server import serve  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import MOST_PORT, learn, load, make_folder  # noqa: PLC0415
    if arguments.port is not None and arguments.port > MOST_PORT:
        raise ValueError(f"--port must be a port from 0 to {MOST_PORT}, got {arguments.port}")
    if arguments.host == "":
        raise ValueError("--host must be an address or host name, got an empty string")
    environ = dict(os.environ)
    for name, value in (("HOST", arguments.host), ("PORT", arguments.port)):
        if value is not None:
            environ[f"ODDSENGINE_SERVICE_{name}"] = str(value)
    with ExitStack() as stack:
        if arguments.demo and arguments.config is None:  # a demo's data is temporary
            folder = stack.enter_context(TemporaryDirectory(prefix="oddsengine-demo-", ignore_cleanup_errors=True))
            environ.setdefault("ODDSENGINE_DATA_FOLDER", folder)
        settings = load(arguments.config, environ)
        if arguments.demo and arguments.config is not None and settings.feeds:
            raise ValueError(
                f"--demo cannot be combined with feeds, but {settings.file} declares "
                f"{', '.join(f'feeds.{name}' for name in settings.feeds)}"
            )
        make_folder(settings)
        learn(settings)
        if not arguments.demo and not settings.feeds:
            sys.stderr.write(f"oddsengine: {settings.file} has no feeds, so the board stays empty; try --demo\n")
        serve(settings, environ, demonstration=arguments.demo, announce=_announce)


def _announce(text: str) -> None:
    echo(text)
    sys.stdout.flush()
