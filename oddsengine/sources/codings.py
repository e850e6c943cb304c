"""Content encodings of HTTP bodies, decoded in chunks of bounded size."""

import zlib
from collections.abc import Iterator
from typing import Any

import zstandard

from oddsengine.sources.failure import Failure

ACCEPTED = "gzip, zstd"
_PIECE = 1 << 16  # bytes of output
_SLICE = 64  # bytes of zstd input: a block of 128 KiB may take four
_WINDOW = 1 << 23  # maximum window of zstd; more is not allowed in HTTP (RFC 9659)
_GZIP = 31  # window bits of `zlib`


class _Identity:
    ended = True

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield data


class _Gzip:
    def __init__(self) -> None:
        self._stream: Any = zlib.decompressobj(_GZIP)
        self._begun = False

    @property
    def ended(self) -> bool:
        return bool(self._stream.eof) or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data and not self._stream.eof:
            self._begun = True
            try:
                piece = self._stream.decompress(data, _PIECE)
            except zlib.error as error:
                raise Failure(f"an invalid gzip body: {error}") from None
            data = self._stream.unconsumed_tail
            if piece:
                yield piece


class _Zstd:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        self._begun = False

    @property
    def ended(self) -> bool:
        return self._stream.eof or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _SLICE):
            if self._stream.eof:
                return
            self._begun = True
            try:
                piece = self._stream.decompress(data[at : at + _SLICE])
            except zstandard.ZstdError as error:
                raise Failure(f"an invalid zstd body: {error}") from None
            if piece:
                yield piece


def decoder_of(named: str) -> _Identity | _Gzip | _Zstd:
    """The decoder for a Content-Encoding header; raises `Failure` if it names an unsupported coding, or several.

    Examples
    --------
    >>> b"".join(decoder_of("zstd").pieces(zstandard.compress(b"odds")))
    b'odds'
    """
    codings = [coding for part in named.lower().split(",") if (coding := part.strip()) not in ("", "identity")]
    if not codings:
        return _Identity()
    if len(codings) > 1:
        raise Failure(f"Content-Encoding {named[:80]!r}: only one encoding is supported")
    (coding,) = codings
    if coding in ("gzip", "x-gzip"):
        return _Gzip()
    if coding == "zstd":
        return _Zstd()
    raise Failure(f"Content-Encoding {named[:80]!r} is not supported; allowed: {ACCEPTED}")
