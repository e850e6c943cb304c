"""Sources that mean harm: each fails with a sentence, within bounds of time and memory, and the others go on."""

import asyncio
import json
import re
import sys
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sources.test_the_odds_api import HEADERS, Provider, declared, source, well
from support.effort import less
from support.local_servers import game, new_hub, prices, running, until

from oddsengine.sources import codings
from oddsengine.sources import node_client as interface
from oddsengine.sources.documents import table
from oddsengine.sources.failure import Failure
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import InterfaceSettings, TableSettings
from oddsengine.testing.local_servers import Answering, Request, http

MB = 1 << 20
LIMIT = MB  # of a body
BOMB_MB = less(200, 50)
MOST_MEMORY = 24 * MB  # one bomb holds more
Attack = Callable[[Request, Answering], Awaitable[None]]


@cache
def packed(body: bytes, times: int = BOMB_MB) -> bytes:
    """A body, so many times over, as gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(packer.compress(body) for _ in range(times)), packer.flush()])


def sends(body: bytes | Callable[[], bytes], **headers: str) -> Attack:
    """Answers with a body, or with what makes it, if that takes long."""

    async def attack(_: Request, answering: Answering) -> None:
        sent = body if isinstance(body, bytes) else body()
        await answering.answer(sent, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return attack


async def _drip(_: Request, answering: Answering) -> None:
    await answering.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await answering.send(b"1\r\n{\r\n")
        await asyncio.sleep(0.01)


async def _hang(_: Request, answering: Answering) -> None:
    await answering.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{")
    await asyncio.sleep(60)


async def _redirect(_: Request, answering: Answering) -> None:
    await answering.answer(b"", 302, {"location": "http://169.254.169.254/latest/meta-data/"})


async def _headers(_: Request, answering: Answering) -> None:
    await answering.answer(b"{}", headers={f"x-{at}": "a" * 1000 for at in range(5000)})


async def _slow_refusal(_: Request, answering: Answering) -> None:
    await answering.send(b"HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await answering.send(b"1\r\nx\r\n")
        await asyncio.sleep(0.05)


def reset_peak_memory() -> int:
    """Let `peak_memory` start again (Linux); return the memory in use.

    `tracemalloc` would also count what is allocated and freed, but `tracemalloc.stop()` crashes a process in which
    another thread allocates without the GIL, before Python 3.12.9 and 3.13.2 (gh-128679).
    """
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_memory()


def peak_memory() -> int:
    """Most bytes of memory that this process has had at once (Linux); 0 elsewhere."""
    if sys.platform != "linux":
        return 0
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))[0]) << 10


_ZEROS = bytes(MB)
ATTACKS: dict[str, tuple[Attack, str]] = {  # what it does, what the status says
    "gzip in gzip": (sends(lambda: packed(packed(_ZEROS), times=1), content_encoding="gzip, gzip"), "one encoding"),
    "gzip": (sends(lambda: packed(_ZEROS), content_encoding="gzip"), "more than 1048576 bytes"),
    "x-gzip": (sends(lambda: packed(_ZEROS), content_encoding="X-GZIP"), "more than 1048576 bytes"),
    "deflate": (sends(zlib.compress(b"[]"), content_encoding="deflate"), "not supported; allowed: gzip, zstd"),
    "zstd": (sends(zstandard.compress(_ZEROS * BOMB_MB), content_encoding="zstd"), "more than 1048576 bytes"),
    "wide zstd": (
        sends(zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(
            window_log=27, enable_ldm=True)).compress(_ZEROS * 20), content_encoding="zstd"), "invalid zstd",
    ),
    "brotli": (sends(b"\x0b", content_encoding="br"), "not supported; allowed: gzip, zstd"),
    "no gzip": (sends(b"plain", content_encoding="gzip"), "an invalid gzip body"),
    "half a gzip": (sends(packed(b"{}", times=1)[:-4], content_encoding="gzip"), "a truncated gzip body"),
    "giant": (sends(bytes(3 * MB)), "more than 1048576 bytes"),
    "deep list": (sends(b"[" * 500_000), "nested too deeply"),
    "deep object": (sends(b'{"a":' * 200_000), "nested too deeply"),
    "drip": (_drip, "no complete response within 0.3 s"),
    "hang": (_hang, "no complete response within 0.3 s"),
    "redirect": (_redirect, "status 302"),
    "headers": (_headers, "the connection failed"),
    "slow refusal": (_slow_refusal, "status 500"),
}  # fmt: skip
SLOW = ("drip", "hang", "slow refusal")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_source_fails_alone(name: str) -> None:
    """It is degraded with a reason and takes little memory; a source beside it is well all the time."""
    attack, reason = ATTACKS[name]

    async def check() -> None:
        hub = new_hub()
        async with http(attack) as bad, http(Provider(well)) as good:
            feed = TableSettings(
                name="bad", kind="table", url=f"{bad}/board.json", interval=0.05, backoff=0.01,
                timeout=0.3 if name in SLOW else 20.0, backoff_cap=0.04, down_after=30.0, body_bytes=LIMIT,
            )  # fmt: skip
            beside = source(declared(good, timeout=20.0))
            async with running(hub, table(feed, {}, Secrets()), beside):

                def seen() -> bool:
                    return {one.name: one.failures_total for one in hub.statuses()}["bad"] >= failed + 2

                def well_once() -> bool:  # what both need is loaded
                    return {one.name: one.payloads for one in hub.statuses()}["main"] > 0

                await until(well_once, "the other")
                for _ in range(3):  # what else this process does takes memory, too, but not each time
                    before = reset_peak_memory()
                    failed = {one.name: one.failures_total for one in hub.statuses()}["bad"]
                    await until(seen, "two failures")
                    if (taken := peak_memory() - before) < MOST_MEMORY:
                        break
                assert taken < MOST_MEMORY
                found = {one.name: one for one in hub.statuses()}
                assert reason in found["bad"].reason
                payloads = found["main"].payloads
                await until(lambda: {o.name: o.payloads for o in hub.statuses()}["main"] > payloads, "the other")
                assert len(prices(hub)) == 4
                good_one = {one.name: one for one in hub.statuses()}["main"]
                assert (good_one.status, good_one.failures_total) == ("ok", 0), good_one.reason

    asyncio.run(check())


@pytest.mark.parametrize("coding", ["gzip", "zstd", "identity"])
def test_a_body_with_one_coding_is_read(coding: str) -> None:
    async def odds(request: Request, answering: Answering, _: int) -> None:
        assert request.headers["accept-encoding"] == codings.ACCEPTED
        plain = json.dumps([game()]).encode()
        body = {"gzip": packed(plain, times=1), "zstd": zstandard.compress(plain), "identity": plain}[coding]
        await answering.answer(body, headers={**HEADERS, "content-encoding": coding})

    async def check() -> None:
        hub = new_hub()
        async with http(Provider(odds)) as url, running(hub, source(declared(url))):
            await until(lambda: len(prices(hub)) == 4, "four prices")

    asyncio.run(check())


@pytest.mark.parametrize("stream", ["drip", "bomb"])
def test_a_hostile_stream_is_ended(stream: str) -> None:
    """Bytes that never make an event are no sign of life, and an event has an end."""

    async def handle(request: Request, answering: Answering) -> None:
        coding = b"content-encoding: gzip\r\n" if stream == "bomb" else b""
        await answering.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + coding + b"\r\n")
        if stream == "bomb":
            await answering.send(packed(b"data: " + _ZEROS))
        while True:
            await answering.send(b"d" if stream == "drip" else b"")
            await asyncio.sleep(0.01)

    async def check() -> None:
        hub = new_hub()
        async with http(handle) as url:
            more: dict[str, Any] = dict(backoff=0.01, backoff_cap=0.02, down_after=60.0, body_bytes=LIMIT)
            feed = InterfaceSettings(name="up", kind="interface", url=url, silence=0.2, timeout=5.0, **more)
            async with running(hub, interface.source(feed, {"key_env": ""}, Secrets())):
                await until(lambda: hub.statuses()[0].failures_total >= 2, "two failures")
                reason = "no complete event within 0.2 s" if stream == "drip" else "larger than 1,048,576 bytes"
                await until(lambda: reason in hub.statuses()[0].reason, reason)  # a slow start may have been silent

    asyncio.run(check())


def test_pieces_are_bounded() -> None:
    """What is decoded comes in pieces of which none is large, however much one byte of the wire stands for."""
    for coding, body in (("gzip", packed(_ZEROS, times=40)), ("zstd", zstandard.compress(_ZEROS * 40))):
        pieces = [len(piece) for piece in codings.decoder_of(coding).pieces(body)]
        assert sum(pieces) == 40 * MB
        assert max(pieces) <= 3 * MB
    with pytest.raises(Failure, match="only one encoding"):
        codings.decoder_of("gzip, identity, zstd")
