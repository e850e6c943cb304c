"""The command `serve`. The service is imported only when it runs."""

import argparse
import os
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

from oddsengine.commands.output import say


def serve_command(arguments: argparse.Namespace) -> None:
    """Serve the interface until a signal says stop."""
    try:
        from service.server import serve  # noqa: PLC0415  see the module's docstring
        from service.settings import learn, load  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(f"this needs the package {error.name}: pip install 'oddsengine[service]' brings it") from None
    environ = dict(os.environ)
    for name, value in (("HOST", arguments.host), ("PORT", arguments.port)):
        if value is not None:
            environ[f"ODDSENGINE_SERVICE_{name}"] = str(value)
    with ExitStack() as held:
        if arguments.demo and arguments.config is None:  # what a demo counts goes with it
            folder = held.enter_context(TemporaryDirectory(prefix="oddsengine-demo-", ignore_cleanup_errors=True))
            environ.setdefault("ODDSENGINE_DATA_FOLDER", folder)
        settings = load(arguments.config, environ)
        learn(settings)
        _warn(settings, demo=arguments.demo)
        serve(settings, environ, demonstration=arguments.demo, say=_say)


def _warn(settings: Any, *, demo: bool) -> None:
    if not demo and not settings.feeds:
        sys.stderr.write(
            f"oddsengine: {settings.file} declares no source, so the board stays empty; --demo has a world\n"
        )


def _say(text: str) -> None:
    say(text)
    sys.stdout.flush()


COMMANDS = {"serve": serve_command}
