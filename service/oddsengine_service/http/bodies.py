"""Bodies of requests: JSON objects, optionally compressed, whose fields are all declared."""

import zlib
from typing import Any

from starlette.types import Receive

from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Endpoint
from oddsengine_service.http.mismatch import decode
from oddsengine_service.http.request import Request, read_body

MOST_SHOWN = 200  # bytes of a body, in a message


async def body_of(endpoint: Endpoint, request: Request, receive: Receive) -> Any:
    """Read and decode the body that an endpoint declares. Raises `Problem` 400, 408, 413 or 415."""
    raw = await read_body(receive, endpoint.most_body, "request body")
    raw = _unpacked(raw, request.received.get(b"content-encoding", b"").strip().lower(), endpoint.most_body)
    if not raw:
        raise invalid("request body must be a JSON object, got an empty body")
    return decode(raw, endpoint.body, "request body")


async def refuse_body(endpoint: Endpoint, request: Request, receive: Receive) -> None:
    """Read the body of a request to an endpoint that takes none.

    Raises `Problem` 400 unless it is empty or an empty object, as some clients send, and 408 or 413.
    """
    raw = await read_body(receive, endpoint.most_body, "request body")
    if "".join(raw.decode("latin-1").split()) not in ("", "{}"):
        got = quoted(raw[:MOST_SHOWN].decode("utf-8", "replace"))
        raise invalid(
            f"{endpoint.method} {endpoint.path} takes no request body: parameters belong in the query, and the body "
            f"must be empty or {{}}, got {got}"
        )


def _unpacked(raw: bytes, coding: bytes, most: int) -> bytes:
    if coding in (b"", b"identity"):
        return raw
    if coding != b"gzip":
        got = quoted(coding.decode("latin-1"))
        raise Problem(415, "validation_error", f"content-encoding must be gzip or identity, got {got}")
    unpack = zlib.decompressobj(31)
    try:
        out = unpack.decompress(raw, most + 1)
    except zlib.error as error:
        raise invalid(f"request body is not valid gzip: {error}") from None
    if len(out) > most or unpack.unconsumed_tail:
        raise Problem(413, "payload_too_large", f"request body must be at most {most:,} bytes")
    if not unpack.eof:
        raise invalid("request body is truncated gzip")
    return out
