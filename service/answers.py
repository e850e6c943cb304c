"""Answers as bytes: encoded and compressed once, and named by a validator; their headers are made with them."""

import gzip
import re
from functools import lru_cache
from typing import Any

import msgspec
import xxhash
import zstandard

from oddsengine_service.endpoints import Answer

CODINGS = ("zstd", "gzip")  # of bodies, the best one first
SMALL = 1024  # bytes; smaller bodies are not compressed
LARGE = 16 << 10  # bytes; the event loop compresses no larger body
Header = tuple[bytes, bytes]
Headers = list[Header]
NO_STORE: Header = (b"cache-control", b"no-store")
_REVALIDATE: Header = (b"cache-control", b"private, no-cache")
_VARY: Header = (b"vary", b"Accept-Encoding, X-API-Key, Authorization")
_UNSAFE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
encode = msgspec.json.Encoder().encode


class RawResponse:
    """A status, headers and a body: all that is left is to send it."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class CachedAnswer:
    """An encoded answer, and what is sent of it: in each coding, and where the caller has it already."""

    def __init__(self, answer: Answer, *, cacheable: bool = True) -> None:
        self.answer = answer
        self._tagged = cacheable and answer.status == 200
        self._etag = xxhash.xxh3_128_hexdigest(answer.body).encode() if self._tagged else b""
        self.tags = frozenset(self._tag(coding) for coding in ("", *CODINGS)) if self._tagged else frozenset()
        self._made: dict[tuple[str, bool], RawResponse] = {}
        self._more = [_header(name, value) for name, value in answer.headers]

    def at_hand(self, given: bytes, codings: bytes) -> RawResponse | None:
        """The same as `sent` if there is nothing to compress but a small body."""
        whole = self._made.get(self._wanted(given, codings))
        return self.sent(given, codings) if whole is None and len(self.answer.body) <= LARGE else whole

    def _wanted(self, given: bytes, codings: bytes) -> tuple[str, bool]:
        """The coding, and whether the caller has the body already."""
        coding = _coding(codings) if self.answer.status == 200 and len(self.answer.body) >= SMALL else ""
        return coding, bool(given) and self._tagged and self._matches(given)

    def sent(self, given: bytes, codings: bytes) -> RawResponse:
        """What goes to a caller who has the bodies `given` (If-None-Match) and takes some codings."""
        coding, known = self._wanted(given, codings)
        whole = self._made.get((coding, known))
        if whole is None:
            whole = self._made[coding, known] = self._whole(coding, known=known)
        return whole

    def _whole(self, coding: str, *, known: bool) -> RawResponse:
        answer = self.answer
        headers = [(b"etag", self._tag(coding)), _REVALIDATE] if self._tagged else [NO_STORE]
        headers.append(_VARY)
        if known:
            return RawResponse(304, headers, b"")
        body = answer.body
        if coding:
            body = (_zstd if coding == "zstd" else _gzip)(body)
            headers.append((b"content-encoding", coding.encode()))
        if answer.status != 204:
            headers += [_header("content-type", answer.type), (b"content-length", b"%d" % len(body))]
        return RawResponse(answer.status, headers + self._more, body)

    def _tag(self, coding: str) -> bytes:
        """The validator of the body in a coding: other bytes, another one."""
        return b'"%b-%b"' % (self._etag, coding.encode()) if coding else b'"%b"' % self._etag

    def _matches(self, given: bytes) -> bool:
        """Whether a caller has this answer, in whatever coding."""
        if given in self.tags:
            return True
        return given.strip() == b"*" or any(part.strip().removeprefix(b"W/") in self.tags for part in given.split(b","))


def encoded(found: Any) -> Answer:
    """What an endpoint found, as bytes."""
    return found if isinstance(found, Answer) else Answer(encode(found))


def _header(name: str, value: str) -> Header:
    """A header as bytes.

    Raises
    ------
    ValueError
        If the value would end the line.
    """
    text = value.encode("latin-1")
    if _UNSAFE.search(text):
        raise ValueError(f"the header {name} must not contain control characters, got {value!r}")
    return name.lower().encode("latin-1"), text


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 5, mtime=0)


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(3).compress(body)


@lru_cache(maxsize=1024)
def _coding(accepted: bytes) -> str:
    """The first of our codings that a caller takes; one with weight 0 is not taken, `*` is any that is not named."""
    weights: dict[str, bool] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, _, weight = part.partition(";")
        weights[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((coding for coding in CODINGS if weights.get(coding, weights.get("*", False))), "")
