"""Work beside a connection ends with it, and its end hides no other."""

import asyncio

import pytest

from oddsengine.sources.failure import Failure
from oddsengine.sources.retry import alongside


def test_a_cancellation_while_the_work_ends_is_not_lost() -> None:
    ending = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ending.set()
            await asyncio.sleep(0.01)

    async def connections() -> None:
        for _ in range(3):
            try:
                async with alongside(slow_to_end()):
                    await asyncio.sleep(0)
                    raise Failure("the connection was closed")
            except Failure:
                await asyncio.sleep(0)

    async def check() -> None:
        task = asyncio.create_task(connections())
        await ending.wait()
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=1.0)
        assert done
        assert task.cancelled()

    asyncio.run(check())


@pytest.mark.parametrize(("error", "shown"), [(ValueError("a mistake"), ValueError), (Failure("no"), KeyError)])
def test_mistakes_in_the_work_are_not_hidden(error: Exception, shown: type[Exception]) -> None:
    async def failing() -> None:
        raise error

    async def check() -> None:
        async with alongside(failing()) as task:
            await asyncio.wait([task])
            raise KeyError("the connection's own")

    with pytest.raises(shown):
        asyncio.run(check())
