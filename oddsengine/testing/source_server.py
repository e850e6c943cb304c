"""A source of lists on this machine: what it is asked, and what it answers instead of its lists if a test says so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from oddsengine.feeds.venue_contracts import Contract
from oddsengine.testing.contract_check import ContractCheck
from oddsengine.testing.local_servers import Answering, Request

Json = dict[str, Any]
Special = Callable[[Request, Answering], Awaitable[bool]]


class SourceServer:
    """A server; a subclass says what a path has: a body, or a body and a status.

    `venue` is the contract that requests have to keep, or the kind of ours whose contract that is.
    """

    venue: str | Contract = ""

    def __init__(self) -> None:
        self.check = ContractCheck(self.venue) if self.venue else None
        self.asked: list[tuple[float, Request]] = []
        self.special: Special | None = None  # answers a request, or returns false

    def paths(self) -> list[str]:
        return [request.path for _, request in self.asked]

    async def __call__(self, request: Request, answering: Answering) -> None:
        at = asyncio.get_running_loop().time()
        self.asked.append((at, request))
        if self.check is not None and (refusal := self.check.refused(*request, at)):
            await answering.answer({"error": refusal.reason}, refusal.status)
            return
        if self.special is not None and await self.special(request, answering):
            return
        found = self.reply(request)
        body, status = found if isinstance(found, tuple) else (found, 200)
        await answering.answer(body, status)

    def reply(self, request: Request) -> Any:
        raise NotImplementedError

    def spoil(self, path: str, *answers: Callable[[Answering], Awaitable[None]]) -> list[Request]:
        """Answer the first requests whose path ends in `path` by `answers`, one each, and later ones as usual."""
        spoiled: list[Request] = []

        async def special(request: Request, answering: Answering) -> bool:
            if not request.path.endswith(path) or len(spoiled) >= len(answers):
                return False
            spoiled.append(request)
            await answers[len(spoiled) - 1](answering)
            return True

        self.special = special
        return spoiled


def paged(rows: list[Any], at: int, size: int) -> tuple[list[Any], int | None]:
    """A page of rows, and where the next one begins."""
    end = at + size
    return rows[at:end], end if end < len(rows) else None
