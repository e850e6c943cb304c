"""The command `watch`: live opportunities in the terminal. Requires the extra `watch`."""

import argparse
from contextlib import closing
from typing import Any

from oddsengine.commands.mcp import api_key
from oddsengine.tables.sample import SAMPLE_BOARD


def watch_command(arguments: argparse.Namespace) -> None:
    sources = [name for name in ("file", "sample", "tape", "url") if getattr(arguments, name)]
    if len(sources) != 1:
        raise ValueError(f"give exactly one of FILE, --sample, --tape and --url, got {' and '.join(sources) or 'none'}")
    try:
        from oddsengine.commands import watch_app  # noqa: PLC0415  textual is an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "oddsengine":
            raise
        raise ValueError(f"watch needs the package {error.name}; run pip install 'oddsengine[watch]'") from None
    every, words = arguments.every, arguments.filter
    if arguments.url:
        with closing(_client(arguments.url, arguments.key_env)) as client:
            watch_app.WatchApp(watch_app.NodeSource(client, arguments.books), every or 5.0, words).run()
        return
    source: Any
    if arguments.tape:
        source = watch_app.TapeSource(arguments.tape, arguments.speed, arguments.books)
    else:
        source = watch_app.FileSource(arguments.file or str(SAMPLE_BOARD), arguments.books, arguments.columns)
    watch_app.WatchApp(source, every or 1.0, words).run()


def _client(url: str, variable: str) -> Any:
    import httpx2  # noqa: PLC0415  of the service

    base = f"{url.rstrip('/').removesuffix('/api/v1')}/api/v1"
    return httpx2.Client(base_url=base, headers={"X-API-Key": api_key(variable)}, timeout=20.0)
