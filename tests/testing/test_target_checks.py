"""The checks of targets: a good one passes them, and each fault that is planted in it is caught."""

import urllib.request
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from oddsengine.testing import target_checks as checks
from oddsengine.testing.target_checks import TARGET_CHECKS, TargetCase

SECRET = "a-secret-of-mine"


class Ntfy:
    """That of docs/plugins.md, with a server and a timeout of the test."""

    timeout = 0.3

    def __init__(self, secret: str, url: str) -> None:
        self._headers, self._url = {"Authorization": f"Bearer {secret}"}, url

    def check(self, address: str) -> None:
        if not address.removeprefix("ntfy:").isalnum():
            raise ValueError("a target of ntfy is ntfy:TOPIC, of letters and digits")

    def send(self, address: str, message: Any) -> None:
        try:
            self.post(address, message)
        except OSError as error:
            raise self.said(error) from None

    def post(self, address: str, message: Any) -> None:
        url = f"{self._url}/{address.removeprefix('ntfy:')}"
        request = urllib.request.Request(url, message.text.encode(), self._headers | {"Title": message.title})
        urllib.request.urlopen(request, timeout=self.timeout).close()

    def said(self, error: OSError) -> Exception:
        return ValueError("ntfy did not take the message")


CASE = TargetCase(Ntfy, "ntfy:odds", ["ntfy:../admin", "ntfy:", "ntfy:a b"], SECRET)


@pytest.mark.parametrize("check", TARGET_CHECKS)
def test_a_good_one_passes(check: Callable[[TargetCase], None]) -> None:
    check(CASE)


class Untitled(Ntfy):
    def post(self, address: str, message: Any) -> None:
        message.title = ""
        super().post(address, message)


class Unchecked(Ntfy):
    def check(self, address: str) -> None:
        return


class Terse(Ntfy):
    def said(self, error: OSError) -> Exception:
        return ValueError("no")


class Raw(Ntfy):
    def said(self, error: OSError) -> Exception:
        return OSError("refused")


class Silent(Ntfy):
    def send(self, address: str, message: Any) -> None:
        try:
            super().send(address, message)
        except ValueError:
            return


class Telling(Ntfy):
    def said(self, error: Any) -> Exception:
        text = error.read().decode() if hasattr(error, "read") else str(error)
        return ValueError(f"ntfy says {text}")


class Printing(Ntfy):
    def post(self, address: str, message: Any) -> None:
        print(self._headers)
        super().post(address, message)


class Eager(Ntfy):
    def check(self, address: str) -> None:
        super().check(address)
        urllib.request.urlopen(self._url, timeout=5.0).close()


class Faulty(Ntfy):
    def check(self, address: str) -> None:
        raise AttributeError(f"no topics for {self._headers}")


class Strict(Ntfy):
    def check(self, address: str) -> None:
        raise ValueError("not today")


class Unmade(Ntfy):
    def __init__(self, secret: str, url: str) -> None:
        raise Panic


class Panic(BaseException):
    """As polars raises one."""


class Binary(Ntfy):
    def post(self, address: str, message: Any) -> None:
        body = b"\xff" + message.text.encode()
        headers = self._headers | {"Title": message.title, "From": "Jos\xe9"}
        urllib.request.urlopen(urllib.request.Request(self._url, body, headers), timeout=5.0).close()


def test_a_message_may_have_more_than_texts() -> None:
    checks.messages_are_sent(replace(CASE, make=Binary))


class Slow(Ntfy):
    timeout = 0.6


@pytest.mark.parametrize(
    ("target", "check", "says"),
    [
        (Untitled, checks.messages_are_sent, "'Alert 7' was not sent"),
        (Unchecked, checks.addresses_are_checked, "it must refuse the address 'ntfy:../admin'"),
        (Faulty, checks.addresses_are_checked, "it must raise ValueError, got AttributeError: no topics for {'Auth"),
        (Strict, checks.addresses_are_checked, "it must take the address 'ntfy:odds', got: not today"),
        (Unmade, checks.addresses_are_checked, "it must raise ValueError, got Panic"),
        (Eager, checks.addresses_are_checked, "check() must not send anything"),
        (Terse, checks.errors_are_said, "status 400 must be said, got: 'no'"),
        (Raw, checks.errors_are_said, "it must raise ValueError, got OSError"),
        (Silent, checks.errors_are_said, "status 400 must be said, got: ''"),
        (Slow, checks.it_ends_in_time, "it must give up before 0.5 s, took 0."),
        (Telling, checks.secrets_are_masked, "a secret must not be logged or reported: ntfy says Request("),
        (Printing, checks.secrets_are_masked, "Bearer ***"),
    ],
)
def test_a_planted_fault_is_found(
    target: Any, check: Callable[[TargetCase], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "TIMEOUT_S", 0.5)
    with pytest.raises(AssertionError) as error:
        check(replace(CASE, make=target))
    assert says in str(error.value)
    assert SECRET not in str(error.value)
