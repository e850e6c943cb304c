"""The command `serve`. The service is imported only when it runs."""

import argparse
import os
import signal
import sys
import threading
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from oddsengine.commands.output import echo, service_needed


def serve_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        import msgspec  # noqa: PLC0415

        from oddsengine_service.server import serve  # noqa: PLC0415  see the module's docstring
        from oddsengine_service.settings import MOST_PORT, Settings, learn, load, make_folder, with_sources  # noqa: PLC0415
    if bool(arguments.live) != bool(arguments.sport):
        raise ValueError("--live takes sources and --sport their leagues: --live kalshi,polymarket --sport nfl")
    if arguments.live and (arguments.demo or arguments.config is not None):
        raise ValueError(f"give either --live or {'--demo' if arguments.demo else '--config'}, got both")
    if arguments.port is not None and arguments.port > MOST_PORT:
        raise ValueError(f"--port must be a port from 0 to {MOST_PORT}, got {arguments.port}")
    if arguments.host == "":
        raise ValueError("--host must be an address or host name, got an empty string")
    environ = dict(os.environ)
    for name, value in (("HOST", arguments.host), ("PORT", arguments.port)):
        if value is not None:
            environ[f"ODDSENGINE_SERVICE_{name}"] = str(value)
    if arguments.log_requests:
        environ["ODDSENGINE_SERVICE_QUIET"] = "false"
    with ExitStack() as stack:
        temporary = arguments.live or (arguments.demo and arguments.config is None)
        if temporary:
            if threading.current_thread() is threading.main_thread():  # else it leaves the folder
                stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _ended))
            folder = stack.enter_context(TemporaryDirectory(prefix="oddsengine-demo-", ignore_cleanup_errors=True))
            environ.setdefault("ODDSENGINE_DATA_FOLDER", folder)
        settings: Settings
        if arguments.live:
            settings = with_sources(arguments.live, arguments.sport, environ)
        else:
            settings = load(arguments.config, environ)
            if temporary:  # not those of a file that lies here
                settings = msgspec.structs.replace(settings, feeds={})
        if arguments.demo and settings.feeds:
            raise ValueError(
                f"--demo cannot be combined with feeds, but {settings.file} declares "
                f"{', '.join(f'feeds.{name}' for name in settings.feeds)}"
            )
        make_folder(settings)
        learn(settings)
        follows = settings.scale is not None and settings.scale.role == "gateway"  # its prices come from the log
        if not (arguments.demo or settings.feeds or follows):
            sys.stderr.write(f"oddsengine: {settings.file} has no feeds, so the board stays empty; try --demo\n")
        serve(settings, environ, demonstration=arguments.demo or bool(arguments.live), announce=_announce)


def _ended(number: int, *_: object) -> None:
    """End by an exception: the server raises the signal that stopped it again."""
    sys.exit(128 + number)


def _announce(text: str) -> None:
    echo(text)
    sys.stdout.flush()
