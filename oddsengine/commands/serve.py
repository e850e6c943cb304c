"""The command `serve`. The service is imported only when it runs."""

import argparse
import os
import sys

from oddsengine.commands.output import say


def serve_command(arguments: argparse.Namespace) -> None:
    """Serve the interface until a signal says stop."""
    try:
        from service.server import serve  # noqa: PLC0415  see the module's docstring
        from service.settings import load  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(f"this needs the package {error.name}: pip install 'oddsengine[service]' brings it") from None
    environ = dict(os.environ)
    for name, value in (("HOST", arguments.host), ("PORT", arguments.port)):
        if value is not None:
            environ[f"ODDSENGINE_SERVICE_{name}"] = str(value)
    settings = load(arguments.config, environ)
    if not arguments.demo and not settings.feeds:
        sys.stderr.write(
            f"oddsengine: {settings.file} declares no source, so the board stays empty; --demo has a world\n"
        )
    serve(settings, environ, demonstration=arguments.demo, say=_say)


def _say(text: str) -> None:
    say(text)
    sys.stdout.flush()


COMMANDS = {"serve": serve_command}
