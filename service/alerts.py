"""Alerts: opportunities that match a saved filter are sent once, and again when they improve.

A check queries the list's own endpoint with the rights of the key, so tiers, books and delays are those of a request.
New matches of one check are sent as one message. Addresses come from users and are not trusted: the host of a webhook
is resolved, every address of it must be public unless the operator allows private ones, and the connection goes to the
address that was checked, so a later change in DNS has no effect. Telegram and Discord have fixed hosts; mail goes
through the operator's server. Redirects are not followed.
"""

import asyncio
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import httpx
import msgspec
from msgspec import UNSET, Meta, UnsetType

from oddsengine_service.endpoints import MOST_LIMIT, Context, Endpoint
from oddsengine_service.keys import KeysError, Record
from oddsengine_service.kinds import KINDS
from oddsengine_service.node import Node
from oddsengine_service.params import parse
from oddsengine_service.problems import Problem, invalid
from oddsengine_service.records import Records
from oddsengine_service.routes.filters import Filter

try:
    import apprise
except ImportError:  # the extra `alerts` is not installed
    apprise = None  # type: ignore[assignment]

MOST_TARGETS, MOST_LINES, MOST_ROWS, MOST_SENT = 5, 10, 1000, 2000
TIMEOUT_S = 10.0
SENDERS, SHARE_S = 32, 15.0  # accounts served at once; seconds per account and check
REMEMBERED_S = 6 * 3600.0  # for this long after an opportunity was last open
FIRST_RETRY_S, LAST_RETRY_S = 30.0, 3600.0
_SERVICES = ("tgram", "discord")
_UNICAST = ipaddress.IPv6Network("2000::/3")  # IPv6 addresses outside of it are not public
_TUNNELS = tuple(map(ipaddress.IPv6Network, ("2002::/16", "2001::/32")))  # they contain IPv4 addresses
Clock = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Target = Annotated[str, Meta(min_length=1, max_length=1000)]
_Improve = Annotated[float, Meta(gt=0.0, le=1000.0, description="Percentage points after which one is sent again.")]


class NewAlert(msgspec.Struct, kw_only=True):
    """What to send, where, and when not to."""

    filter: Annotated[str, Meta(description="Name of a saved filter.")]
    targets: Annotated[
        list[Target],
        Meta(
            max_length=MOST_TARGETS,
            description="`https://...` for a webhook, `tgram://TOKEN/CHAT`, `discord://ID/TOKEN`, `mailto:ADDRESS`; "
            "none for alerts on the page only.",
        ),
    ] = []
    improve: _Improve = 1.0
    quiet_from: Clock | None = None
    quiet_to: Clock | None = None
    time_zone: Annotated[str, Meta(max_length=60, description="Of the quiet hours, such as `America/New_York`.")] = (
        "UTC"
    )
    sound: Annotated[bool, Meta(description="The page plays a sound.")] = True
    active: bool = True


class AlertChanges(msgspec.Struct, kw_only=True):
    """The fields to change."""

    targets: Annotated[list[Target], Meta(max_length=MOST_TARGETS)] | UnsetType = UNSET
    improve: _Improve | UnsetType = UNSET
    quiet_from: Clock | UnsetType | None = UNSET
    quiet_to: Clock | UnsetType | None = UNSET
    time_zone: Annotated[str, Meta(max_length=60)] | UnsetType = UNSET
    sound: bool | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class Alert(NewAlert, kw_only=True):
    """An alert, and the status of its messages."""

    id: str
    sent: int = 0
    sent_at: datetime | None = None
    failures: Annotated[int, Meta(description="Since the last message that arrived.")] = 0
    error: Annotated[str | None, Meta(description="Why the last message did not arrive.")] = None


class ShareError(Exception):
    """The account has used its share of computing time for now."""


_Name = tuple[str, str]  # owner and id of an alert
Share = Callable[[str, Callable[[], Any], float], Any]
"""Runs a job of an account when it is its turn, within some seconds; else raises `ShareError`."""


class Sent(msgspec.Struct):
    """For each opportunity, the value that was last sent and when it was last open."""

    values: dict[str, tuple[float, float]] = {}


# ---- targets ----


class Address(NamedTuple):
    """A host that has been checked."""

    host: str
    ip: str
    port: int


def masked(target: str) -> str:
    """A target without its secrets."""
    scheme = _scheme(target)
    if scheme == "mailto":
        name, _, host = target[len("mailto:") :].strip("/").partition("@")
        return f"mailto:{name[:1]}...@{host}"
    try:
        host = _parsed(target).host if scheme in ("http", "https") else ""
    except ValueError:
        host = ""
    return f"{scheme}://{host}/..."


def _parsed(target: str) -> httpx.URL:
    """Parse a URL and decode its host, which httpx does only on use."""
    try:
        url = httpx.URL(target)
        _ = url.host
    except (httpx.InvalidURL, UnicodeError):
        raise ValueError("a target is not a valid address") from None
    return url


def checked(host: str, port: int, *, private: bool) -> Address:
    """Resolve a host, and reject one in a private network.

    Raises `ValueError` if it cannot be resolved, or has an address that is not public.
    """
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ValueError(f"host {host!r} cannot be found") from None
    addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in infos]
    for ip in addresses:
        if not private and not _public(ip):
            raise ValueError(f"host {host!r} is in a private network, which this node's operator does not allow")
    return Address(host, str(addresses[0]), port)


def _public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _public(ip.ipv4_mapped)
        if ip not in _UNICAST or any(ip in network for network in _TUNNELS):
            return False
    return ip.is_global and not ip.is_multicast


class Sender:
    """Sends messages. Failures raise `ValueError` with a message without secrets."""

    def __init__(self, *, private: bool = False, mail: str = "") -> None:
        self.private, self._mail = private, mail

    def check(self, target: str) -> None:
        """Reject an unusable target. Raises `ValueError` if the target is not valid; the message says why."""
        if not target.isprintable() or any(c.isspace() for c in target):
            raise ValueError("a target must be one address, without spaces")
        scheme = _scheme(target)
        if scheme in ("http", "https"):
            url = self._webhook(target)
            checked(url.host, _port(url), private=self.private)
        elif scheme == "mailto" or scheme in _SERVICES:
            if apprise is None:
                raise ValueError("this node lacks what Telegram, Discord and mail need: install oddsengine[alerts]")
            if scheme == "mailto" and not self._mail:
                raise ValueError("this node has no mail server; its operator sets alerts.mail_env")
            if self._service(target) is None:
                raise ValueError(f"a target is not a valid {scheme} address")
        else:
            raise ValueError(f"a target must begin with https://, tgram://, discord:// or mailto:, got {scheme[:20]!r}")

    def send(self, target: str, title: str, lines: list[str], rows: list[Any]) -> None:
        """Send one message. Raises `ValueError` if it could not be delivered."""
        if _scheme(target) in ("http", "https"):
            self._post(target, {"title": title, "text": "\n".join(lines), "opportunities": rows})
            return
        service = self._service(target)
        if service is None or not service.notify(title=title, body="\n".join(lines), body_format="text"):
            raise ValueError(f"{masked(target)} did not take the message")

    def _webhook(self, target: str) -> httpx.URL:
        url = _parsed(target)
        if not 0 < _port(url) < 65536 or "\\" in target:
            raise ValueError("a target is not a valid address")
        if url.scheme == "http" and not self.private:
            raise ValueError("webhooks must begin with https://")
        if not url.host or url.userinfo:
            raise ValueError("a webhook must be https://HOST/PATH, without a user in it")
        return url

    def _post(self, target: str, body: Any) -> None:
        url = self._webhook(target)
        at = checked(url.host, _port(url), private=self.private)
        try:
            status = asyncio.run(_posted(url, at, body))
        except (httpx.HTTPError, TimeoutError) as error:
            raise ValueError(f"{masked(target)} cannot be reached: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise ValueError(f"{masked(target)} answered {status}")

    def _service(self, target: str) -> Any:
        """The apprise service for a target; None if it is not valid.

        Exactly one service is created: `Apprise.add` would split "discord://ID/TOKEN,json://10.0.0.1" into two targets.
        """
        if apprise is None:
            return None
        kind, url = _scheme(target), target
        if kind == "mailto":
            to = target[len("mailto:") :].strip("/")
            if to.count("@") != 1 or any(c in to for c in "?&=,;: /%"):
                return None
            url = f"{self._mail}{'&' if '?' in self._mail else '?'}to={to}"
        elif "?" in target or "," in target:
            return None  # options of apprise could name other hosts
        one = apprise.Apprise.instantiate(url)
        if one is None or kind not in ("mailto", one.secure_protocol):
            return None
        service = apprise.Apprise()
        return service if service.add(one) else None


def _scheme(target: str) -> str:
    return target.partition(":")[0].lower() if ":" in target else ""


def _port(url: httpx.URL) -> int:
    return (443 if url.scheme == "https" else 80) if url.port is None else url.port


async def _posted(url: httpx.URL, at: Address, body: Any) -> int:
    """POST to a checked address, within `TIMEOUT_S` in total, so that a slow server does not delay the others."""
    headers = {"host": url.netloc.decode("ascii"), "user-agent": "oddsengine"}
    to, sni = url.copy_with(host=at.ip, port=at.port), {"sni_hostname": url.raw_host.decode("ascii")}
    async with (
        asyncio.timeout(TIMEOUT_S),
        httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream("POST", to, json=body, headers=headers, extensions=sni) as answer,
    ):
        return answer.status_code


# ---- schedule ----


def quiet(alert: NewAlert, now: datetime) -> bool:
    """Whether an alert is silent at a time.

    Examples
    --------
    >>> night = NewAlert(filter="a", quiet_from="22:00", quiet_to="07:30")
    >>> [quiet(night, datetime(2026, 1, 1, hour, 0, tzinfo=UTC)) for hour in (21, 22, 3, 8)]
    [False, True, True, False]
    """
    if alert.quiet_from is None or alert.quiet_to is None:
        return False
    clock = now.astimezone(ZoneInfo(alert.time_zone)).strftime("%H:%M")
    begin, end = alert.quiet_from, alert.quiet_to
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


def news(kind: str, rows: list[Any], sent: Sent, improve: float, now: float) -> list[Any]:
    """The rows that are new or have improved enough; `sent` is updated."""
    way = -1.0 if kind == "low_hold" else 1.0
    out = []
    for row in rows:
        value = float(row[KINDS[kind].value])
        last = sent.values.get(row["id"])
        if last is None or way * (value - last[0]) >= improve - 1e-9:
            out.append(row)
            sent.values[row["id"]] = value, now
        else:
            sent.values[row["id"]] = last[0], now
    latest = sorted(sent.values.items(), key=lambda item: -item[1][1])[:MOST_SENT]
    sent.values = {name: each for name, each in latest if now - each[1] < REMEMBERED_S}
    return out


def described(kind: str, row: Mapping[str, Any]) -> str:
    """One opportunity as a line of text."""
    value, game = row[KINDS[kind].value], row.get("game") or row.get("event_name") or ""
    if kind == "ev":
        bet = f"{row['selection']} {row['odds_american']:+g} at {row['sportsbook']}"
    elif kind == "arbitrage":
        bet = " / ".join(f"{leg['selection']} {leg['odds_american']:+g} at {leg['sportsbook']}" for leg in row["legs"])
    else:
        sides = [row[name] for name in ("side1", "side2", "side3") if row.get(name)]
        bet = " / ".join(
            f"{side['selection']} {side['odds']['american']:+g} at {side.get('book') or ', '.join(side['books'])}"
            for side in sides
        )
    return f"{value:.2f} % {bet} ({game}, {row.get('market') or row.get('market_type')})"


class Alerts:
    """Checks the alerts of all keys, and sends the matches."""

    def __init__(
        self, node: Node, records: Records, sender: Sender, endpoints: Mapping[str, Endpoint],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._node, self._records, self.sender, self._clock = node, records, sender, clock
        self._endpoints = endpoints  # of the lists, by kind
        self._retry: dict[_Name, float] = {}
        self._looked: dict[_Name, int] = {}  # number of the check in which an alert was last processed
        self._looks = 0
        self._lock = threading.Lock()
        self.share: Share = lambda _, job, __: job()
        self.requests = threading.BoundedSemaphore(2)  # outgoing requests at once: there are few answer threads

    def look(self) -> int:
        """Check all alerts once. Returns the number of messages sent.

        Accounts do not wait for each other: many, slow or failing alerts delay only their own account.
        """
        with self._lock:
            waiting = [(owner, alert) for owner, alert in self._records.waiting("alert", Alert) if alert.targets]
            names = {(owner, alert.id) for owner, alert in waiting}
            self._retry = {name: at for name, at in self._retry.items() if name in names}
            self._looked = {name: look for name, look in self._looked.items() if name in names}
            self._looks += 1
            accounts: dict[str, list[tuple[str, Alert]]] = {}
            for owner, alert in sorted(waiting, key=lambda each: self._looked.get((each[0], each[1].id), 0)):
                accounts.setdefault(self._account_of(owner), []).append((owner, alert))
            if not accounts:
                return 0
            with ThreadPoolExecutor(min(SENDERS, len(accounts)), thread_name_prefix="alerts") as pool:
                done = list(pool.map(self._account, *zip(*accounts.items(), strict=True)))
        for _, error in done:
            if error is not None:
                raise error
        return sum(sent for sent, _ in done)

    def _account_of(self, owner: str) -> str:
        try:
            return self._record(owner).account
        except KeysError:  # reported when its alert is checked
            return owner

    def _record(self, owner: str) -> Record:
        return self._node.keys.record(owner)

    def _account(self, account: str, alerts: list[tuple[str, Alert]]) -> tuple[int, Exception | None]:
        """Check the alerts of one account, those checked longest ago first. Returns the number sent, and any error."""
        sent, failure, until = 0, None, time.monotonic() + SHARE_S
        for owner, alert in alerts:
            left = until - time.monotonic()
            if left <= 0.0 or self._node.closing.is_set():
                break
            try:
                sent += self._one(account, owner, alert, left)
            except ShareError:
                break
            except Exception as error:
                self._put_off(owner, alert)
                failure = error
            self._looked[owner, alert.id] = self._looks
        return sent, failure

    def _one(self, account: str, owner: str, alert: Alert, left: float) -> int:
        now = self._clock()
        if self._retry.get((owner, alert.id), 0.0) > now or quiet(alert, datetime.fromtimestamp(now, UTC)):
            return 0
        try:
            kind, rows = self.share(account, lambda: self.rows(owner, alert.filter), left)
        except (Problem, KeysError) as error:
            self._failed(owner, alert, f"filter {alert.filter!r}: {error}")
            return 0
        try:
            sent = self._records.get(owner, "sent", alert.id, Sent)
        except Problem:
            sent = Sent()
        before = dict(sent.values)
        fresh = news(kind, rows, sent, alert.improve, now)
        if not fresh:
            if sent.values.keys() != before.keys():
                self._records.put(owner, "sent", alert.id, sent)
            return 0
        lines = [described(kind, row) for row in fresh[:MOST_LINES]]
        if len(fresh) > MOST_LINES:
            lines.append(f"and {len(fresh) - MOST_LINES} more")
        title = f"{alert.filter}: {len(fresh)} {'opportunity' if len(fresh) == 1 else 'opportunities'}"
        self._records.put(owner, "sent", alert.id, sent)  # first: a full disk must not cause endless repeats
        errors = self.deliver(alert, title, lines, fresh)
        if len(errors) == len(alert.targets):
            self._records.put(owner, "sent", alert.id, Sent(before))
            self._failed(owner, alert, "; ".join(errors))
            return 0
        self._retry.pop((owner, alert.id), None)
        self._changed(owner, alert.id, sent=1, error="; ".join(errors)[:500] or None)
        return 1

    def rows(self, owner: str, name: str) -> tuple[str, list[Any]]:
        """Current matches of a key's saved filter, ignoring page and format of its query."""
        one = self._records.get(owner, "filter", name, Filter)
        record = self._record(owner)
        if not record.active:
            raise invalid("the key was revoked")
        caller, endpoint = record.caller, self._endpoints[one.list]
        if endpoint.feature not in caller.features:
            raise invalid(f"the key's tier has no {endpoint.feature}")
        query, _ = parse(one.query.encode(), endpoint.by_name)
        query |= {"limit": MOST_LIMIT, "format": "json"}
        rows: list[Any] = []
        for offset in range(0, MOST_ROWS, MOST_LIMIT):
            context = Context(
                caller, query | {"offset": offset}, {}, None, self._node.board(caller.tier), self._node, ()
            )  # fmt: skip
            answer = msgspec.json.decode(endpoint.response(context).body)
            rows += answer["data"]
            if not answer["pagination"]["has_more"]:
                break
        return one.list, rows

    def deliver(self, alert: NewAlert, title: str, lines: list[str], rows: list[Any]) -> list[str]:
        """Send to all targets at once. Returns one error message per failed target."""

        def one(target: str) -> str:
            try:
                self.sender.check(target)
                self.sender.send(target, title, lines, rows)
            except ValueError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(MOST_TARGETS, thread_name_prefix="alert") as pool:
            return [wrong for wrong in pool.map(one, alert.targets) if wrong]

    def _put_off(self, owner: str, alert: Alert) -> None:
        wait = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(alert.failures, 10))
        self._retry[owner, alert.id] = self._clock() + wait

    def _failed(self, owner: str, alert: Alert, error: str) -> None:
        self._put_off(owner, alert)
        self._changed(owner, alert.id, sent=0, error=error[:500])

    def _changed(self, owner: str, name: str, *, sent: int, error: str | None) -> None:
        at = datetime.fromtimestamp(self._clock(), UTC)

        def change(now: Alert) -> Alert:
            failures = now.failures + 1 if error else 0
            sent_at = at if sent else now.sent_at
            return msgspec.structs.replace(now, sent=now.sent + sent, sent_at=sent_at, failures=failures, error=error)

        try:
            edit(self._records, owner, name, change)
        except Problem as problem:
            if problem.status != 404:
                raise
            self._records.forget(owner, "sent", name)  # the alert was deleted meanwhile


def edit(records: Records, owner: str, name: str, change: Callable[[Alert], Alert]) -> Alert:
    """Change a stored alert, excluding concurrent changes."""
    with records.alone:
        alert = change(records.get(owner, "alert", name, Alert))
        store(records, owner, alert)
        return alert


def store(records: Records, owner: str, alert: Alert) -> None:
    records.put(owner, "alert", alert.id, alert, "active" if alert.active else None)


def redacted(alert: Alert) -> Alert:
    """An alert as shown to users: targets without their secrets."""
    return msgspec.structs.replace(alert, targets=[masked(target) for target in alert.targets])
