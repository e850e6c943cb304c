"""Origins: which web pages may open a WebSocket or call tools from a browser, where CORS does not apply."""

from collections.abc import Iterable

from oddsengine_service.problems import origin_of


class Origins:
    """The origins that the operator allows, and the node's own."""

    def __init__(self, allowed: Iterable[str], address: str = "") -> None:
        self._allowed, self._address = frozenset(allowed), address.rstrip("/")

    def allow(self, headers: Iterable[tuple[bytes, bytes]], host: bytes) -> bool:
        """Whether a request comes from an allowed origin, or not from a web page at all."""
        origin = next((value.decode("latin-1") for name, value in headers if name == b"origin"), None)
        if origin is None or "*" in self._allowed or origin in self._allowed:
            return True
        here = origin_of(host)
        return origin in {here, here.replace("http://", "https://", 1), self._address}
