"""The command `mcp`: tools for language models over standard input and output."""

import argparse
import os

from oddsengine.commands.output import service_needed
from oddsengine.feeds.price_files import read_odds
from oddsengine.tables.sample import SAMPLE_BOARD


def mcp_command(arguments: argparse.Namespace) -> None:
    sources = [name for name in ("file", "sample", "url") if getattr(arguments, name)]
    if len(sources) != 1:
        raise ValueError(f"give exactly one of FILE, --sample and --url, got {' and '.join(sources) or 'none'}")
    with service_needed():
        from oddsengine_service.mcp_stdio import serve_file, serve_node  # noqa: PLC0415  only for this command
    if arguments.url:
        serve_node(arguments.url, api_key(arguments.key_env))
        return
    path = arguments.file or str(SAMPLE_BOARD)
    serve_file(lambda: read_odds(path, columns=arguments.columns))


def api_key(variable: str) -> str:
    """Return the node's API key from an environment variable."""
    if not (key := os.environ.get(variable, "")):
        raise ValueError(f"set {variable} to an API key of the node, or name another variable with --key-env")
    return key
