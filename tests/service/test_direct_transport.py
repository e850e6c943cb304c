"""Writing to a socket directly: everything arrives, once and in order, whatever the kernel accepts."""

import asyncio
import random
import socket
from collections.abc import Callable

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from oddsengine_service.stream.connection import DirectTransport

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def received(sizes: list[int], pauses: set[int]) -> tuple[bytes, bytes]:
    """What is written in pieces, and what a client gets that reads only in pauses and at the end."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    theirs.setblocking(False)
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    direct, rng = DirectTransport(transport), random.Random(1)
    sent, got = bytearray(), bytearray()
    for at, size in enumerate(sizes):
        piece = rng.randbytes(size)
        sent += piece
        direct.write(piece)
        if at in pauses and len(got) < len(sent):
            got += await loop.sock_recv(theirs, 1 << 16)
    direct.close()
    while data := await loop.sock_recv(theirs, 1 << 16):
        got += data
    theirs.close()
    return bytes(sent), bytes(got)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 500, 3000, 20_000, 200_000]), max_size=12), pauses=st.sets(st.integers(0, 11))
)
def test_everything_arrives_in_order(
    loop: Callable[[], asyncio.AbstractEventLoop], sizes: list[int], pauses: set[int]
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        sent, got = runner.run(received(sizes, pauses))
    assert got == sent


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_event_loop_learns_that_a_client_has_gone(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """An error of the socket is the transport's to report."""

    async def run() -> Exception | None:
        ours, theirs = socket.socketpair()
        lost = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                lost.set_result(exc)

        transport, _ = await asyncio.get_running_loop().create_connection(Protocol, sock=ours)
        transport.pause_reading()  # else the end of the stream is read first
        theirs.close()
        DirectTransport(transport).write(b"x")
        return await asyncio.wait_for(lost, 10.0)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert isinstance(runner.run(run()), OSError)
