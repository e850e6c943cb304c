"""`feeds replay`: read what `feeds check --record` kept as the source of a feed reads it."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from oddsengine.live.engine import Engine
from oddsengine.matching import Matcher
from oddsengine.sources import create, is_historical, read_feed
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_recording import Player, going_through, read
from oddsengine.sources.source_settings import SettingsError, SettingsTable
from oddsengine_service.board.writer import Writer
from oddsengine_service.feeds.check import Checked, run
from oddsengine_service.feeds.hub import Hub

_MORE_S = 2.0  # after the last entry


def replay(path: Path) -> Checked:
    """Read a recording as its source reads what comes, at the times of the recording, without the source.

    Raises `SettingsError` if it cannot be read, or no longer fits the settings of its kind.
    """
    try:
        recording = read(path)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    head = recording.head
    if "path" in head.settings:
        raise SettingsError(
            f"{path}: its feed reads files, which a recording does not have, and none here are read for it"
        )
    feed = read_feed(SettingsTable(str(path), "settings", head.settings | {"kind": head.kind}, {}, set()), head.feed)

    async def play() -> Checked:
        player = Player(recording)
        with TemporaryDirectory() as folder:
            env = {name: _stand_in(name, Path(folder)) for name in feed.__struct_fields__ if name.endswith("_env")}
            made = create(feed, env, Secrets())
        clock = None if is_historical(feed) else player.now
        hub = Hub(Writer(Engine()), Matcher(), clock=clock)
        with going_through(player):
            return await run(hub, feed, made, player.lasts + _MORE_S)

    return asyncio.run(play())


def _stand_in(name: str, folder: Path) -> str:
    """What stands for a secret of the source, which a recording does not have."""
    if name != "private_key_env":
        return "recorded"
    key = rsa.generate_private_key(65537, 2048)
    path = folder / "key.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(path)
