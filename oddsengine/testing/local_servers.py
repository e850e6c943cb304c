"""Servers on this machine that speak the formats of sources, well or badly.

Handlers are plain functions of a request, so that they can also answer with half a body, or not at all.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from oddsengine.testing.contract_check import ContractCheck


class Request(NamedTuple):
    """What a client asked."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class Answering:
    """The other end of one HTTP connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(
        self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None, *, cut: int | None = None
    ) -> None:
        """Send a whole answer, or only so many bytes of its body."""
        data = self.encoded(body)
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data[:cut])

    @staticmethod
    def encoded(body: Any) -> bytes:
        """Return a body as it is sent: what is not bytes, as JSON."""
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    async def stream(self) -> None:
        """Begin a stream that ends with its connection."""
        await self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")

    async def event(self, name: str, data: Any, id_: str = "") -> None:
        head = f"id: {id_}\n" if id_ else ""
        await self.send(f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode())


Handler = Callable[[Request, Answering], Awaitable[None]]


class Checked:
    """A server that refuses what the contract of a venue does not allow; `prefix` begins its paths."""

    def __init__(self, venue: str, handle: Handler, prefix: str = "") -> None:
        self.check, self._handle = ContractCheck(venue, prefix), handle

    async def __call__(self, request: Request, answering: Answering) -> None:
        if refusal := self.check.refused(*request, asyncio.get_running_loop().time()):
            await answering.answer({"message": refusal.reason}, refusal.status)
        else:
            await self._handle(request, answering)


async def accept_no_more(sockets: Iterable[Any]) -> None:
    """Stop accepting connections before a server is closed.

    asyncio of Python 3.11 makes a connection that was accepted just before `close` only afterwards, when that fails,
    and nobody can close it any more.
    """
    for each in sockets:
        asyncio.get_running_loop().remove_reader(each.fileno())
    for _ in range(5):  # turns of the loop, in which connections are made
        await asyncio.sleep(0)


@asynccontextmanager
async def tcp(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Serve connections on some free port."""
    open_: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handle(reader, writer)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Close the connection at the end of its task, also if that is cancelled before it has begun."""
        task = asyncio.create_task(serve(reader, writer))
        open_[task] = writer
        task.add_done_callback(lambda ended: open_.pop(ended).close())

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await accept_no_more(server.sockets)
        server.close()
        left = dict(open_)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.gather(*(writer.wait_closed() for writer in left.values()), return_exceptions=True)


@asynccontextmanager
async def http(handle: Handler) -> AsyncIterator[str]:
    """Serve HTTP, one request a connection; a server with the contract of a venue (`check`) fails if it was broken."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        where = urlsplit(target)
        await handle(
            Request(method, where.path, parse_qs(where.query, keep_blank_values=True), headers, body), Answering(writer)
        )

    async with tcp(serve) as port:
        yield f"http://127.0.0.1:{port}"
    check = getattr(handle, "check", None)
    if isinstance(check, ContractCheck):
        check.assert_kept()


def now() -> datetime:
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


@contextmanager
def served(serve: Handler) -> Iterator[str]:
    """A server in a thread of its own, as a caller of `fetch` sees it."""
    loop, end = asyncio.new_event_loop(), asyncio.Event()
    addresses: list[str] = []
    begun = threading.Event()

    async def run() -> None:
        async with http(serve) as url:
            addresses.append(url)
            begun.set()
            await end.wait()

    failed: list[Exception] = []

    def serving() -> None:
        try:
            loop.run_until_complete(run())
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=serving)
    thread.start()
    begun.wait()
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()
    for error in failed:
        raise error
