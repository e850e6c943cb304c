"""A line-based TCP connection, with or without TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from math import inf
from urllib.parse import urlsplit

from oddsengine.sources.failure import TIMEOUT, UNREACHABLE, Failure
from oddsengine.sources.source_recording import Connection, wire

_CLOSE_S = 2.0


class Lines:
    """An open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, line: bytes) -> None:
        try:
            self._writer.write(line + b"\r\n")
            await self._writer.drain()
        except OSError as error:
            raise Failure(f"the connection failed: {type(error).__name__}") from None

    async def receive(self, silence: float) -> bytes:
        try:
            async with asyncio.timeout(silence if silence < inf else None):
                line = await self._reader.readuntil(b"\n")
        except TimeoutError:
            raise Failure(f"no data within {silence:g} s") from None
        except asyncio.IncompleteReadError as error:
            half = f" within a line, after {len(error.partial)} bytes of it" if error.partial else ""
            raise Failure(f"the connection was closed{half}") from None
        except asyncio.LimitOverrunError:
            raise Failure("line too long") from None
        except OSError as error:
            raise Failure(f"the connection failed: {type(error).__name__}") from None
        return line.rstrip(b"\r\n")


class _Whole:
    """Lines as a connection of messages."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def send(self, message: bytes) -> None:
        await self._lines.send(message)

    async def receive(self) -> bytes:
        return await self._lines.receive(inf)


class _Through(Lines):
    """Lines that go through a recorder or a player."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, line: bytes) -> None:
        await self._connection.send(line)

    async def receive(self, silence: float) -> bytes:
        try:
            async with asyncio.timeout(silence):
                return await self._connection.receive()
        except TimeoutError:
            raise Failure(f"no data within {silence:g} s") from None


@asynccontextmanager
async def connected(url: str, timeout: float, most: int) -> AsyncIterator[Lines]:
    """Open `tls://HOST:PORT` or `tcp://HOST:PORT`; no line may be longer than `most` bytes."""
    through = wire()
    if through is not None and through.offline:
        yield _Through(through.through(url, None))
        return
    where = urlsplit(url)
    context = ssl.create_default_context() if where.scheme == "tls" else None
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=context, limit=most)
    except TimeoutError:
        raise Failure(f"no connection within {timeout:g} s", kind=TIMEOUT) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Failure(f"{where.hostname} cannot be reached: {why}", kind=UNREACHABLE) from None
    try:
        lines = Lines(reader, writer)
        yield lines if through is None else _Through(through.through(url, _Whole(lines)))
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await writer.wait_closed()
