"""What a venue of this machine refuses, by the contract of its kind, and what was sent against it."""

from urllib.parse import parse_qs

from oddsengine.feeds import venue_contracts
from oddsengine.feeds.venue_contracts import Contract, Refusal

TOO_MANY = 429


class ContractCheck:
    """Holds requests against a contract, or that of a kind of ours by its name.

    A server of `http` that has one as `check` fails its test if something was refused. `prefix` begins the paths of the
    venue and is not in its contract. `pace`: more requests than allowed are refused.
    """

    def __init__(self, venue: str | Contract, prefix: str = "") -> None:
        self.contract = venue_contracts.load(venue) if isinstance(venue, str) else venue
        self.violations: list[str] = []
        self.pace = False
        self._prefix = prefix
        self._times: dict[str, list[float]] = {}

    def refused(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], body: bytes, at: float
    ) -> Refusal | None:  # fmt: skip
        """Return why a request that arrives at a time is refused."""
        path = path.removeprefix(self._prefix)
        form = (
            parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
            if "form" in headers.get("content-type", "")
            else {}
        )
        request = venue_contracts.Request(method, path, query, headers, b"" if form else body, form)
        reasons = self.contract.check_request(request)
        send = self.contract.send_of(method, path)
        for name in send.pace if send is not None else ():
            limit, times = self.contract.paces[name], self._times.setdefault(name, [])
            times.append(at)
            if self.pace and len(times) > limit.requests and at - times[-limit.requests - 1] < limit.seconds:
                reasons.append(
                    Refusal(f"{path}: more than {limit.requests} requests in {limit.seconds:g} s", TOO_MANY)
                )  # fmt: skip
        self.violations += [one.reason for one in reasons]
        return reasons[0] if reasons else None

    def message(self, name: str, document: object) -> list[str]:
        """Return what is refused in a message of the connection `name`."""
        reasons = self.contract.check_sent(name, document)
        self.violations += reasons
        return reasons

    def assert_kept(self) -> None:
        """Fail if anything was sent that the contract does not allow."""
        assert not self.violations, f"{self.contract.name} refuses: {'; '.join(self.violations[:5])}"
