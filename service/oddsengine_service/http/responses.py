"""Encoded responses: bodies are encoded and compressed once, with their ETag and headers."""

import gzip
import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote

import msgspec
import xxhash
import zstandard
from starlette.responses import Response

from oddsengine_service.http.endpoints import Answer

CODINGS = ("zstd", "gzip")  # of bodies, in order of preference
SMALL = 1024  # bytes; smaller bodies are not compressed
LARGE = 16 << 10  # bytes; the event loop compresses no larger body
_MOST_SENT, _MOST_GIVEN = 16, 200  # pairs of headers that are cached, and bytes of one
Header = tuple[bytes, bytes]
Headers = list[Header]
NO_STORE: Header = (b"cache-control", b"no-store")
_REVALIDATE: Header = (b"cache-control", b"private, no-cache")
_VARY: Header = (b"vary", b"Accept-Encoding, X-API-Key, Authorization")
_WEIGHT = re.compile(r"\s*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*")
_UNLISTED = 1e-6  # weight of a plain body that the client does not mention: below every other
_UNSAFE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
encode = msgspec.json.Encoder().encode


def warning_of(ignored: Iterable[str]) -> str:
    """The `Warning` header of a response to a request with parameters that are ignored.

    Examples
    --------
    >>> warning_of(["colour", 'a"b'])
    '299 - "ignored parameters: colour, a%22b"'
    """
    return f'299 - "ignored parameters: {", ".join(quote(name, safe="") for name in ignored)}"'


class EncodedResponse(Response):
    """A response that is ready to send, to any number of clients."""

    body: bytes
    background = None

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status_code, self.raw_headers, self.body = status, headers, body


def json_response(status: int, contents: Any, *more: Header) -> EncodedResponse:
    """A response in JSON that is not cached; `more` are additional headers."""
    return page("application/json", encode(contents), NO_STORE, *more, status=status)


def page(kind: str, body: bytes, *more: Header, status: int = 200) -> EncodedResponse:
    """A response with a body of some media type; `more` are additional headers."""
    headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *more]
    return EncodedResponse(status, headers, body)


class CachedResponse:
    """An encoded response in each content encoding, including the 304 response."""

    def __init__(self, answer: Answer, *, cacheable: bool = True) -> None:
        self.answer = answer
        self._tagged = cacheable and answer.status == 200
        self._etag = xxhash.xxh3_128_hexdigest(answer.body).encode() if self._tagged else b""
        self._made: dict[tuple[str, bool], EncodedResponse] = {}
        self._sent: dict[tuple[bytes, bytes], EncodedResponse] = {}  # by headers, as most clients repeat them
        self._more = [_header(name, value) for name, value in answer.headers]

    @cached_property
    def tags(self) -> frozenset[bytes]:
        """The ETag in each encoding."""
        return frozenset(self._tag(coding) for coding in ("", *CODINGS)) if self._tagged else frozenset()

    def at_hand(self, given: bytes, codings: bytes) -> EncodedResponse | None:
        """Like `sent`, if at most a small body has to be compressed."""
        whole = self._sent.get((given, codings))
        if whole is None and (len(self.answer.body) <= LARGE or self._variant(given, codings) in self._made):
            whole = self.sent(given, codings)
        return whole

    def _variant(self, given: bytes, codings: bytes) -> tuple[str, bool]:
        """Return the encoding, and whether the client already has the body."""
        coding = _codings(codings)[len(self.answer.body) < SMALL] if self.answer.status == 200 else ""
        return coding, bool(given) and self._tagged and self._matches(given)

    def sent(self, given: bytes, codings: bytes) -> EncodedResponse:
        """Return the response for a client with these `If-None-Match` and `Accept-Encoding` headers."""
        coding, known = self._variant(given, codings)
        whole = self._made.get((coding, known))
        if whole is None:
            whole = self._made[coding, known] = self._whole(coding, known=known)
        if len(self._sent) < _MOST_SENT and len(given) <= _MOST_GIVEN:
            self._sent[given, codings] = whole
        return whole

    def _whole(self, coding: str, *, known: bool) -> EncodedResponse:
        answer = self.answer
        headers = [(b"etag", self._tag(coding)), _REVALIDATE] if self._tagged else [NO_STORE]
        headers.append(_VARY)
        if known:
            return EncodedResponse(304, headers, b"")
        body = answer.body
        if coding:
            zstd = coding == "zstd"
            body = zstandard.ZstdCompressor(3).compress(body) if zstd else gzip.compress(body, 5, mtime=0)
            headers.append((b"content-encoding", coding.encode()))
        if answer.status != 204:
            headers += [_header("content-type", answer.type), (b"content-length", b"%d" % len(body))]
        return EncodedResponse(answer.status, headers + self._more, body)

    def _tag(self, coding: str) -> bytes:
        """Return the ETag of the body in an encoding."""
        return b'"%b-%b"' % (self._etag, coding.encode()) if coding else b'"%b"' % self._etag

    def _matches(self, given: bytes) -> bool:
        """Whether the client has this response, in any encoding."""
        if given in self.tags:
            return True
        return given.strip() == b"*" or any(part.strip().removeprefix(b"W/") in self.tags for part in given.split(b","))


@lru_cache(maxsize=256)
def _header(name: str, value: str) -> Header:
    """Encode a header.

    Raises
    ------
    ValueError
        If the value contains a line break.
    """
    text = value.encode("latin-1")
    if _UNSAFE.search(text):
        raise ValueError(f"the header {name} must not contain control characters, got {value!r}")
    return name.lower().encode("latin-1"), text


@lru_cache(maxsize=1024)
def _codings(accepted: bytes) -> tuple[str, str]:
    """Choose the encoding of large and of small bodies by RFC 9110, section 12.5.3; empty for none.

    The highest weight wins, then the order of `CODINGS`; a small body is encoded only if the client refuses it plain.
    Invalid entries are ignored, and a client that accepts nothing gets the plain body.

    Examples
    --------
    >>> _codings(b"zstd;q=0.5, gzip"), _codings(b"zstd, gzip, identity;q=0")
    (('gzip', ''), ('zstd', 'zstd'))
    """
    weights: dict[str, float] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, parameter, text = part.partition(";")
        weight = _WEIGHT.fullmatch(text if parameter else "q=1")
        if weight:
            weights[name.strip()] = float(weight[1])
    others = weights.get("*", 0.0)
    coding = max(CODINGS, key=lambda coding: weights.get(coding, others))
    weight_of_coding = weights.get(coding, others)
    plain = weights.get("identity", weights.get("*", _UNLISTED))
    if not weight_of_coding or weight_of_coding < plain:
        return "", ""
    return coding, "" if plain else coding
