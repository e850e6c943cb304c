"""A client of the WebSocket that follows the rules of docs/websocket.md, over the library `websockets`."""

import contextlib
import json
import socket
import threading
from typing import Any
from urllib.parse import urlencode

from support.stream_running import DELTA, Served, lasting, wait_for
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from oddsengine_service.http.request import BASE
from oddsengine_service.ws.wire import CHANNELS, MOST_FRAME

KINDS = {channel: kind for kind, channel in CHANNELS.items()}


class SocketClient(threading.Thread):
    """Holds what messages say, and notes whatever breaks a promise."""

    def __init__(
        self, served: Served, tier: str = "sharp", path: str = f"{BASE}/ws", before: "SocketClient | None" = None,
        room: int = 0, **query: Any,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self.tier, self.query = tier, {name: value for name, value in query.items() if value is not None}
        self.odds: dict[str, dict[str, Any]] = {} if before is None else before.odds
        self.finds: dict[str, dict[str, Any]] = {kind: {} for kind in CHANNELS}
        self.names: list[str] = []
        self.answers: list[dict[str, Any]] = []  # to `subscribe`, and to the first subscription
        self.samples: dict[str, Any] = {}
        self.faults: list[str] = []
        self.resumed = False  # who resumes may be told twice of what it missed
        self.seq = self.global_seq = self.rounds = 0
        self.code: int | None = None
        self.ready, self.ended, self.lock = threading.Event(), threading.Event(), threading.Lock()
        self.reading = threading.Event()  # it reads nothing while this is not set
        self.reading.set()
        asked = {"api_key": served.key(tier), **self.query}
        if before is not None:
            asked |= {"resume": "true", "from_seq": str(before.global_seq)}
        address = f"ws://127.0.0.1:{served.port}{path}?{urlencode(asked)}"
        line = socket.socket()
        if room:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        line.connect(("127.0.0.1", served.port))
        self._opened = connect(
            address, sock=line, max_size=MOST_FRAME, max_queue=1 if room else 16, compression=None, open_timeout=20,
            ping_interval=None,
        )  # fmt: skip
        self.socket = self._opened.__enter__()
        self.start()

    def run(self) -> None:
        try:
            for text in self.socket:
                assert isinstance(text, str)
                self.reading.wait()
                with self.lock:
                    self._read(json.loads(text))
        except ConnectionClosed:
            pass
        except Exception as error:
            self.faults.append(repr(error))
        finally:
            self._opened.__exit__(None, None, None)
            self.code = self.socket.close_code
            self.ended.set()
            self.ready.set()

    def say(self, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    def subscribe(self, *channels: str, **filters: Any) -> None:
        rounds = self.rounds
        self.say("subscribe", channels=list(channels), filters=filters)
        wait_for(lambda: self.rounds > rounds or self.ended.is_set())

    def close(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            self.socket.close()

    def drop(self) -> None:
        """Break off without a word."""
        with contextlib.suppress(OSError):
            self.socket.socket.shutdown(2)

    def held(self) -> dict[str, dict[str, Any]]:
        """Active prices, as REST has them."""
        with self.lock:
            return {id_: lasting(row) for id_, row in self.odds.items() if row["is_active"]}

    def _read(self, said: dict[str, Any]) -> None:
        name = said["type"]
        if said["seq"] != self.seq + 1:
            self.faults.append(f"seq {said['seq']} after {self.seq}")
        self.seq = said["seq"]
        if "global_seq" in said and name != "connected":
            if said["global_seq"] < self.global_seq:
                self.faults.append(f"global_seq {said['global_seq']} after {self.global_seq}")
            self.global_seq = said["global_seq"]
        if "timestamp" not in said:
            self.faults.append(f"{name} has no timestamp")
        self.names.append(name)
        self.samples[name] = said
        kind, _, what = name.partition(":")
        if name == "connected":
            self.resumed = said["resumed"]
        if name == "subscribed":
            self.answers.append(said)
        if name == "subscribed" and (self.rounds or not self.resumed):
            self.odds.clear()
        elif name == "initial":
            self._put(said)
        elif name == "opportunities_snapshot":
            self._open(said)
        elif name == "snapshot:complete":
            self.rounds += 1
            self.ready.set()
        elif name == "odds:update":
            self._put(said)
        elif name == "odds:removed":
            for id_ in said["ids"]:
                self.odds.pop(id_, None)
        elif what == "detected":
            self.finds[kind].update({row["id"]: row for row in said["data"]})
        elif what == "expired":
            for id_ in said["data"]["expired"]:
                if self.finds[kind].pop(id_, None) is None:
                    self.faults.append(f"expired {id_} was not here")

    def _put(self, said: dict[str, Any]) -> None:
        if said["count"] != len(said["data"]):
            self.faults.append("count is wrong")
        for row in said["data"]:
            if "sportsbook" not in row and row["id"] not in self.odds:
                if not self.resumed:
                    self.faults.append(f"delta of {row['id']}, which is not here")
                continue
            if "sportsbook" not in row and not set(row) <= DELTA | {"is_active"}:
                self.faults.append(f"delta has {sorted(row)}")
            held = self.odds.setdefault(row["id"], {})
            held.update(row)
            if held["sportsbook"] != said["source"]:
                self.faults.append(f"{row['id']} is not of {said['source']}")

    def _open(self, said: dict[str, Any]) -> None:
        (channel,) = set(said) & set(KINDS)
        rows = {row["id"]: row for row in said[channel]}
        if said.get("chunk", 1) == 1:
            self.finds[KINDS[channel]] = {}
        self.finds[KINDS[channel]].update(rows)


def told(client: SocketClient, name: str, times: int = 1) -> Any:
    wait_for(lambda: client.names.count(name) >= times or client.faults or client.ended.is_set())
    assert not client.faults, client.faults
    return client.samples[name]
