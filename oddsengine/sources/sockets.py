"""WebSockets of sources."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from oddsengine.sources.failure import TIMEOUT, UNREACHABLE, Failure, of_status
from oddsengine.sources.source_recording import Connection, wire
from oddsengine.sources.source_settings import FeedSettings


@asynccontextmanager
async def opened(
    feed: FeedSettings, url: str, headers: Mapping[str, str] | None = None, ping: float | None = None
) -> AsyncIterator[ClientConnection]:
    """Open a connection. Raises `Failure` if that is not possible, or when it is closed.

    `ping` are the seconds between two pings, and until the answer to one; None sends none.
    """
    through = wire()
    if through is not None and through.offline:
        yield cast("ClientConnection", _Through(through.through(url, None)))
        return
    try:
        connection = await connect(
            url, additional_headers=headers, open_timeout=feed.timeout, ping_interval=ping, ping_timeout=ping,
            close_timeout=1.0, max_size=feed.body_bytes or None,
        )  # fmt: skip
    except InvalidStatus as error:
        raise of_status(error.response.status_code) from None
    except TimeoutError:
        raise Failure(f"no connection within {feed.timeout:g} s", kind=TIMEOUT) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Failure(f"the stream cannot be reached: {why}", kind=UNREACHABLE) from None
    except (WebSocketException, ValueError) as error:
        raise Failure(f"the connection failed: {type(error).__name__}") from None
    try:
        if through is None:
            yield connection
        else:
            yield cast("ClientConnection", _Through(through.through(url, _Socket(connection))))
    except ConnectionClosed as error:
        raise Failure(f"the connection was closed: {error}"[:200]) from None
    finally:
        await connection.close()


class _Socket:
    """A WebSocket as a connection of messages."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, message: bytes) -> None:
        await self._connection.send(message.decode())

    async def receive(self) -> bytes:
        return bytes(await self._connection.recv(decode=False))


class _Through:
    """A connection of messages, with what sources use of a WebSocket."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, message: str) -> None:
        await self._connection.send(message.encode())

    async def recv(self, *, decode: bool) -> bytes:
        assert not decode
        return await self._connection.receive()

    async def close(self) -> None:
        """What opened the WebSocket closes it."""
