"""What every target of alerts must do, as checks of a `TargetCase`; each raises `AssertionError` with what is wrong."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oddsengine.plugins import described
from oddsengine.testing.local_servers import Answering, Handler, Request, served
from oddsengine.testing.output import assert_masked, captured
from oddsengine_service.bettors.targets import TIMEOUT_S, AlertMessage, Target

_TITLE, _LINES = "Alert 7", ("Boston Celtics 2.10 at fanduel", "EV 3.4 %")
_STATUSES = (400, 401, 429, 500)


@dataclass(frozen=True)
class TargetCase:
    """What its author says of a target.

    Parameters
    ----------
    make
        Makes the target of a secret that sends to a server of this machine, from the secret and the server's URL.
    address
        An address that it takes.
    refused
        Addresses of its scheme that it refuses, also those that would choose another host or path.
    secret
        The operator's secret; empty without one.

    Examples
    --------
    >>> case = TargetCase(lambda secret, url: None, "ntfy:odds", ["ntfy:../admin"])
    >>> case.secret
    'a-secret-of-mine'
    """

    make: Callable[[str, str], Target]
    address: str
    refused: Sequence[str]
    secret: str = "a-secret-of-mine"


class _Service:
    """Keeps what it is asked, and answers with a status and all that it was sent."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[Request] = []
        self._status = status

    async def __call__(self, request: Request, answering: Answering) -> None:
        self.asked.append(request)
        await answering.answer(repr(request).encode(), self._status)


async def _mute(_: Request, __: Answering) -> None:
    await asyncio.sleep(3600.0)


def _message() -> AlertMessage:
    return AlertMessage(_TITLE, _LINES)


def _sent(case: TargetCase, handler: Handler) -> str:
    """Send a message to a server; return what the owner of the alert reads if that fails."""
    with served(handler) as url:
        return _error(case, url)


def _error(case: TargetCase, url: str) -> str:
    """Send a message; return what `_raised` does."""
    return _raised(case, lambda: case.make(case.secret, url).send(case.address, _message()))


def _raised(case: TargetCase, call: Callable[[], object]) -> str:
    """Call a target; return the text of its `ValueError`, which is the only one allowed; empty without one."""
    try:
        call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if type(error) is ValueError:
            return str(error) or "ValueError"
        said = described(error, lambda text: text.replace(case.secret, "***") if case.secret else text)
    else:
        return ""
    raise AssertionError(f"it must raise ValueError, got {said}")  # not above, where it would hold what was raised


def messages_are_sent(case: TargetCase) -> None:
    """A message is one or more requests, which have its title and its lines."""
    service = _Service()
    if said := _sent(case, service):
        raise AssertionError(f"it must send the message, got: {said}")
    texts = "\n".join(
        f"{request.query} {request.headers} {request.body.decode('utf-8', 'replace')}" for request in service.asked
    )
    if missing := [text for text in (_TITLE, *_LINES) if text not in texts]:
        raise AssertionError(f"a message must have its title and lines, {missing[0]!r} was not sent")


def addresses_are_checked(case: TargetCase) -> None:
    """`check` takes the address and refuses others with `ValueError`, in words; it sends nothing."""
    service = _Service()
    with served(service) as url:

        def check(address: str) -> str:
            return _raised(case, lambda: case.make(case.secret, url).check(address))

        if said := check(case.address):
            raise AssertionError(f"it must take the address {case.address!r}, got: {said}")
        for address in case.refused:
            if not (said := check(address)):
                raise AssertionError(f"it must refuse the address {address!r}")
            if len(said.split()) < 3:
                raise AssertionError(f"it must say which addresses it takes, got: {said!r}")
    if service.asked:
        raise AssertionError("check() must not send anything")


def errors_are_said(case: TargetCase) -> None:
    """A service that refuses the message, or cannot be reached, is a `ValueError` with words for its owner."""
    for status in _STATUSES:
        said = _sent(case, _Service(status))
        if len(said.split()) < 3:
            raise AssertionError(f"status {status} must be said, got: {said!r}")
    if not _error(case, "http://127.0.0.1:9"):
        raise AssertionError("it must raise ValueError without a server, it raised nothing")


def it_ends_in_time(case: TargetCase) -> None:
    """It gives up a service that does not answer before the node does; this takes as long as it waits."""
    began = time.monotonic()
    said = _sent(case, _mute)
    if not said:
        raise AssertionError("it must raise ValueError if the service does not answer, it raised nothing")
    if (took := time.monotonic() - began) >= TIMEOUT_S:
        raise AssertionError(f"it must give up before {TIMEOUT_S:g} s, took {took:.1f} s")


def secrets_are_masked(case: TargetCase) -> None:
    """No secret is logged, printed or raised, also if the service repeats it in an error."""
    texts = []
    with captured() as out:
        for status in (200, *_STATUSES):
            texts.append(_sent(case, _Service(status)))
    assert_masked([case.secret] if case.secret else [], [*texts, *out.getvalue().splitlines()])


TARGET_CHECKS: tuple[Callable[[TargetCase], None], ...] = (
    messages_are_sent, addresses_are_checked, errors_are_said, it_ends_in_time, secrets_are_masked,
)  # fmt: skip
"""All of them, for `pytest.mark.parametrize`."""
