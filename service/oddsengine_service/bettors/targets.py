"""Targets of alerts, by the scheme of their addresses: webhooks, Telegram, Discord and mail; plugins add others.

Addresses come from users and are not trusted: the host of a webhook is resolved, every address of it must be public
unless the operator allows private ones, and the connection goes to the address that was checked, so a later change in
DNS has no effect. Telegram and Discord have fixed hosts; mail goes through the operator's server. Redirects are not
followed.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import httpx2
import msgspec

try:
    import apprise
except ImportError:  # the extra `alerts` is not installed
    apprise = None  # type: ignore[assignment]

TIMEOUT_S = 10.0
_SERVICES = ("tgram", "discord")
SCHEMES = ("https", "http", *_SERVICES, "mailto")
"""Our own; a plugin cannot have them."""
SCHEME = re.compile("[a-z][a-z0-9+.-]*")
"""What a scheme of a plugin must be."""
# Not public, by the registries of the IANA; what `ipaddress` says differs between versions of Python.
_UNICAST = ipaddress.IPv6Network("2000::/3")  # IPv6 addresses outside of it are not public
_SPECIAL6 = tuple(map(ipaddress.IPv6Network, (
    "2001::/23",  # protocols, among them Teredo, whose addresses contain IPv4 addresses
    "2001:db8::/32", "2002::/16", "3fff::/20",  # documentation, 6to4
)))  # fmt: skip
_SPECIAL4 = tuple(map(ipaddress.IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/3",
)))  # fmt: skip


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


def addressee(target: str) -> str:
    """Where messages to a target go: equal for spellings of one address.

    Examples
    --------
    >>> addressee("HTTPS://Example.com:443/hook?x=1#y"), addressee("mailto://Ann@example.com")
    ('https://example.com:443/hook', 'mailto:ann@example.com')
    """
    if is_webhook(target):
        url = _parsed(target)
        return f"{url.scheme}://{url.host.lower()}:{_port(url)}{url.path}"
    scheme = _scheme(target)
    rest = target.partition(":")[2].strip("/")
    return f"{scheme}:{rest.lower() if scheme == 'mailto' else rest}"


def _parsed(target: str) -> httpx2.URL:
    """Parse a URL and decode its host, which httpx2 does only on use."""
    try:
        url = httpx2.URL(target)
        _ = url.host
    except (httpx2.InvalidURL, UnicodeError):
        raise ValueError("a target is not a valid address") from None
    return url


def checked(host: str, port: int, *, private: bool) -> str:
    """Resolve a host to an address, and reject one in a private network.

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
    return str(addresses[0])


def _public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _public(ip.ipv4_mapped)
        return ip in _UNICAST and not any(ip in network for network in _SPECIAL6)
    return not any(ip in network for network in _SPECIAL4)


class AlertMessage:
    """A message in the forms of all targets; `more` are further fields for webhooks."""

    def __init__(self, title: str, lines: Sequence[str], **more: Any) -> None:
        self.title, self.text = title, "\n".join(lines)
        self.body = msgspec.json.encode({"title": title, "text": self.text, **more})

    def size(self, target: str) -> int:
        """Bytes sent to a target, without headers."""
        if _scheme(target) in (*_SERVICES, "mailto"):
            return len(self.title.encode()) + len(self.text.encode())
        return len(self.body)


class Target(Protocol):
    """Where messages to the addresses of a scheme go; its methods raise `ValueError`, in words without secrets."""

    def check(self, address: str) -> None:
        """Raise if nothing can be sent to an address, as far as that is known without sending."""

    def send(self, address: str, message: AlertMessage) -> None:
        """Send a message. Raises if it could not be delivered."""


class Sender:
    """Sends messages to targets, by their schemes; `others` are those of plugins."""

    def __init__(self, *, private: bool = False, mail: str = "", others: Mapping[str, Target] | None = None) -> None:
        self.webhooks, self._services = Webhooks(private=private), _Services(mail)
        self._targets: dict[str, Target] = {
            **dict.fromkeys(SCHEMES, self._services), **dict.fromkeys(("http", "https"), self.webhooks),
            **(others or {}),
        }  # fmt: skip
        self._others = sorted(others or ())

    def mail_problem(self) -> str:
        """Why no mail can be sent with the operator's setting; empty if it can, or if there is none."""
        return self._services.mail_problem()

    def check(self, target: str) -> None:
        """Reject an unusable target. Raises `ValueError` if the target is not valid; the message says why."""
        if not target.isprintable() or any(c.isspace() for c in target):
            raise ValueError("a target must be one address, without spaces")
        self._of(target).check(target)

    def send(self, target: str, message: AlertMessage) -> None:
        """Send one message. Raises `ValueError` if it could not be delivered."""
        self._of(target).send(target, message)

    def _of(self, target: str) -> Target:
        scheme = _scheme(target)
        if scheme not in self._targets:
            got = repr(scheme[:20]) if scheme else "no scheme"
            *names, last = ["https://", "tgram://", "discord://", "mailto:", *(f"{name}:" for name in self._others)]
            raise ValueError(f"a target must begin with {', '.join(names)} or {last}, got {got}")
        return self._targets[scheme]


class Webhooks:
    """Addresses that take a POST of JSON; those in private networks only if the operator allows them."""

    def __init__(self, *, private: bool) -> None:
        self.private = private

    def check(self, address: str) -> None:
        url = self._read(address)
        checked(url.host, _port(url), private=self.private)

    def send(self, address: str, message: AlertMessage) -> None:
        url = self._read(address)
        to = checked(url.host, _port(url), private=self.private)
        try:
            status = asyncio.run(_posted(url, to, message.body))
        except (httpx2.HTTPError, TimeoutError) as error:
            raise ValueError(f"{masked(address)} cannot be reached: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise ValueError(f"{masked(address)} answered {status}")

    def _read(self, address: str) -> httpx2.URL:
        url = _parsed(address)
        if not 0 < _port(url) < 65536 or "\\" in address:
            raise ValueError("a target is not a valid address")
        if url.scheme == "http" and not self.private:
            raise ValueError("webhooks must begin with https://")
        if not url.host or url.userinfo:
            raise ValueError("a webhook must be https://HOST/PATH, without a user in it")
        return url


class _Services:
    """Telegram, Discord and mail, through apprise."""

    def __init__(self, mail: str) -> None:
        self._mail = mail

    def mail_problem(self) -> str:
        if self._mail and apprise is None:
            return "needs the package apprise; run pip install 'oddsengine[alerts]'"
        if self._mail and (
            _scheme(self._mail) not in ("mailto", "mailtos") or self._service("mailto:a@example.com") is None
        ):
            return "must name a variable that holds a mail server such as mailtos://USER:PASSWORD@smtp.example.com"
        return ""

    def check(self, address: str) -> None:
        scheme = _scheme(address)
        if apprise is None:
            raise ValueError("Telegram, Discord and mail need the package apprise; install oddsengine[alerts]")
        if scheme == "mailto" and not self._mail:
            raise ValueError("this node has no mail server; its operator sets alerts.mail_env")
        if self._service(address) is None:
            raise ValueError(f"a target is not a valid {scheme} address")

    def send(self, address: str, message: AlertMessage) -> None:
        service = self._service(address)
        if service is None or not service.notify(title=message.title, body=message.text, body_format="text"):
            raise ValueError(f"{masked(address)} did not accept the message")

    def _service(self, address: str) -> Any:
        """The apprise service for an address; None if it is not valid.

        Exactly one service is created: `Apprise.add` would split "discord://ID/TOKEN,json://10.0.0.1" into two targets.
        """
        if apprise is None:
            return None
        kind, url = _scheme(address), address
        if kind == "mailto":
            to = address[len("mailto:") :].strip("/")
            if to.count("@") != 1 or any(c in to for c in "?&=,;: /%"):
                return None
            url = f"{self._mail}{'&' if '?' in self._mail else '?'}to={to}"
        elif "?" in address or "," in address:
            return None  # options of apprise could name other hosts
        one = apprise.Apprise.instantiate(url)
        if one is None or kind not in ("mailto", one.secure_protocol):
            return None
        service = apprise.Apprise()
        return service if service.add(one) else None


def is_webhook(target: str) -> bool:
    return _scheme(target) in ("http", "https")


def _scheme(target: str) -> str:
    return target.partition(":")[0].lower() if ":" in target else ""


def _port(url: httpx2.URL) -> int:
    return (443 if url.scheme == "https" else 80) if url.port is None else url.port


async def _posted(url: httpx2.URL, address: str, body: bytes) -> int:
    """POST to a checked address, within `TIMEOUT_S` in total, so that a slow server does not delay the others."""
    headers = {"host": url.netloc.decode("ascii"), "user-agent": "oddsengine", "content-type": "application/json"}
    to, sni = url.copy_with(host=address, port=_port(url)), {"sni_hostname": url.raw_host.decode("ascii")}
    async with (
        asyncio.timeout(TIMEOUT_S),
        httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream("POST", to, content=body, headers=headers, extensions=sni) as answer,
    ):
        return answer.status_code
