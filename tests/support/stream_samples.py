"""Messages of real streams over sockets: `python tests/support/stream_samples.py` stores one of each as an example."""

import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import msgspec
from support.service_running import PATIENCE_S, Running, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.site import STREAM_EXAMPLES

SUBSCRIBE = {"type": "subscribe", "channels": ["odds", "ev"], "filters": {"sports": ["basketball"], "min_ev": 3}}
PING = {"type": "ping"}
_PROVOKED = ("odds:locked", "gamestate:removed", "error", "heartbeat", "pong")
_SHOWN = 2  # rows of an example
Messages = dict[str, list[Any]]


class _Events(threading.Thread):
    """Reads Server-Sent Events until the server ends."""

    def __init__(self, server: Running, path: str, seen: Messages) -> None:
        super().__init__(daemon=True)
        self._url, self._seen = f"{server.base}{path}", seen
        self.start()

    def run(self) -> None:
        headers, timeout = {"X-API-Key": "demo_enterprise"}, httpx2.Timeout(PATIENCE_S)
        try:
            with httpx2.stream("GET", self._url, headers=headers, timeout=timeout) as answer:
                name = ""
                for line in answer.iter_lines():
                    if line.startswith("event: "):
                        name = line[7:]
                    elif line.startswith("data: "):
                        self._seen.setdefault(f"sse {name}", []).append(json.loads(line[6:]))
        except httpx2.HTTPError:
            return


class _Socket(threading.Thread):
    """Reads the messages of a WebSocket until the server ends."""

    def __init__(self, server: Running, seen: Messages, query: str) -> None:
        super().__init__(daemon=True)
        self._seen = seen
        address = f"ws://127.0.0.1:{server.port}/api/v1/ws?api_key=demo_enterprise&{query}"
        self._opened = connect(address, max_size=2**18, compression=None, open_timeout=PATIENCE_S, ping_interval=None)
        self.socket = self._opened.__enter__()
        self.start()

    def run(self) -> None:
        try:
            for text in self.socket:
                message = json.loads(text)
                self._seen.setdefault(f"ws {message['type']}", []).append(message)
        except ConnectionClosed:
            pass
        finally:
            self._opened.__exit__(None, None, None)

    def say(self, message: Any) -> None:
        self.socket.send(json.dumps(message))


def declared() -> set[str]:
    """Every message that a stream sends or takes."""
    return {
        f"{'ws' if endpoint.envelope else 'sse'} {name}"
        for endpoint in ENDPOINTS
        for name in (*endpoint.sends, *endpoint.takes)
    }


def collected(folder: Path) -> Messages:
    """All messages of some streams of a server, until there was at least one of each."""
    seen: Messages = {"ws subscribe": [SUBSCRIBE], "ws ping": [PING]}
    server = Running(folder, heartbeat="0.2").start()
    try:
        _Events(server, "/stream/all?seen=true&min_ev=-5&min_profit=-5", seen)
        _Events(server, "/stream/all?min_ev=-5&min_profit=-5", seen)
        _Events(server, "/stream/opportunities?resume=true&sport=curling", seen)
        _Socket(server, seen, "min_ev=-5&min_profit=-5")
        talking = _Socket(server, seen, "channels=odds&league=nba,lunar")
        until(lambda: {"sse snapshot:complete", "ws snapshot:complete"} <= seen.keys(), "a start")
        talking.say(PING)
        talking.say(SUBSCRIBE)
        talking.say({"type": "dance"})
        for _ in range(60):
            if declared() - seen.keys() <= {f"{kind} {name}" for kind in ("sse", "ws") for name in _PROVOKED}:
                break
            server.advance()
        node, now = server.node, server.node.engine.now
        active = node.engine.table().filter("is_active").tail(2).drop("row_id")
        node.write(node.step, active.with_columns(is_active=False, last_seen_at=now), now).result(PATIENCE_S)
        event = next(iter(node.games.states()))
        server.service.api.streams().games({}, [event])
        node.report("feed", "it fails")
        until(lambda: not (declared() - seen.keys()), f"each of {sorted(declared() - seen.keys())}")
    finally:
        server.stop()
    return seen


def shortened(value: Any) -> Any:
    """A message with the first rows and names only."""
    if isinstance(value, list):
        return [shortened(each) for each in value[:_SHOWN]]
    if isinstance(value, dict):
        wide = value and all(isinstance(each, dict) for each in value.values()) and not {"books", "meta"} & value.keys()
        return {name: shortened(each) for name, each in (list(value.items())[:_SHOWN] if wide else value.items())}
    return value


def record() -> None:
    with TemporaryDirectory() as folder:
        seen = collected(Path(folder))
    # The longest of the first ones has most fields; counts are of what is left.
    chosen = {name: max(seen[name][:5], key=lambda message: len(json.dumps(message))) for name in sorted(seen)}
    STREAM_EXAMPLES.write_bytes(
        msgspec.json.format(msgspec.json.encode({name: shortened(each) for name, each in chosen.items()}), indent=1)
        + b"\n"
    )


if __name__ == "__main__":
    record()
