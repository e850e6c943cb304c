"""The command `init`: a settings file with comments, the folder of a node, and its first key."""

import argparse
import os
from pathlib import Path

from oddsengine.commands.output import echo, service_needed

_FILE = "oddsengine.toml"
_SETTINGS = """\
# Settings of this node. Each line that begins with # is a default or an example: remove the # to use it.
# `oddsengine feeds check` tries the feeds, `oddsengine serve` starts the node.

[service]
# host = "127.0.0.1"    # "0.0.0.0" lets others in your network connect
# port = 8000

[data]
folder = "oddsengine-data"
# tape = true           # record all prices, for `oddsengine replay`, `archive` and `audit`

# ---- where prices come from: one table [feeds.NAME] each ----

# A file of prices, read again when it changes: CSV, Parquet or JSON.
# [feeds.mine]
# kind = "table"
# path = "prices.csv"

# Kalshi and Polymarket need no key.
# [feeds.kalshi]
# kind = "kalshi"
# sports = ["nfl", "nba"]
#
# [feeds.polymarket]
# kind = "polymarket"
# sports = ["nfl", "nba"]

# The Odds API: the variable ODDS_API_KEY has the key.
# [feeds.books]
# kind = "the_odds_api"
# key_env = "ODDS_API_KEY"
# sports = ["americanfootball_nfl", "basketball_nba"]
# regions = ["us", "eu"]
"""


def init_command(arguments: argparse.Namespace) -> None:
    with service_needed():
        from oddsengine_service.accounts.keys import KeyTerms, open_store  # noqa: PLC0415  see serve.py
        from oddsengine_service.settings import load, make_folder  # noqa: PLC0415
    file = Path(arguments.config or _FILE)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(_SETTINGS)
        echo(f"{file}: written; it says how feeds are added\n")
    except FileExistsError:
        echo(f"{file}: exists already, and stays as it is\n")
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}") from None
    settings = load(str(file), os.environ)
    if settings.scale is not None:
        raise ValueError(
            f"{file} has [scale]: keys of a cluster are made with `oddsengine keys create --config {file}`"
        )
    make_folder(settings)
    store = open_store(settings)
    try:
        if active := [record for record in store.list() if record.active]:
            count = "a key" if len(active) == 1 else f"{len(active):,} keys"
            echo(f"{settings.data.folder}: has {count} already; `oddsengine keys create` makes another\n")
            return
        made = store.create(arguments.account, KeyTerms("enterprise", streaming=True), "first")
    finally:
        store.close()
    named = "" if arguments.config is None else f" --config {file}"
    host = "127.0.0.1" if settings.service.host in ("0.0.0.0", "::") else settings.service.host
    host = f"[{host}]" if ":" in host else host
    echo(
        f"{settings.data.folder}: made, with a key of the highest tier and its add-ons, for {arguments.account}\n\n"
        f"  {made.key}\n\n"
        "Store the key now: it cannot be shown again. Then\n\n"
        f"  oddsengine serve{named}\n\n"
        "and open the page with the key in its address, which it removes:\n\n"
        f"  {settings.service.url or f'http://{host}:{settings.service.port}'}/#key={made.key}\n"
    )
