"""Bodies of requests: JSON objects, optionally compressed, whose fields are all declared."""

import re
import zlib
from typing import Any, get_args, get_type_hints

import msgspec
from starlette.types import Receive

from oddsengine_service.problems import Problem, invalid, quoted
from oddsengine_service.request import Request, read_body

MOST_BODY = 1 << 20
_UNKNOWN = re.compile(r"Object contains unknown field `(?:(.*)` - at `(\$.*)|(.*))`", re.DOTALL)


async def body_of(kind: Any, request: Request, receive: Receive) -> Any:
    """Read and decode a body. Raises `Problem` 400, 408, 413 or 415."""
    raw = await read_body(receive, MOST_BODY, "request body")
    raw = _unpacked(raw, request.given.get(b"content-encoding", b"").strip().lower())
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(_mismatch(str(error), kind)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise invalid(f"request body is not valid JSON: {error}") from None


def _mismatch(error: str, kind: Any) -> str:
    """What is wrong with a body; for an unknown field also which fields there are."""
    if unknown := _UNKNOWN.fullmatch(error):
        name, path = unknown[1] or unknown[3] or "", unknown[2] or ""
        for part in re.findall(r"\.(\w+)", path):
            kind = _struct(get_type_hints(kind).get(part)) if kind is not None else None
        if kind is not None:  # otherwise the name of the field looks like a path
            where, allowed = f" at {path}" if path else "", ", ".join(kind.__struct_encode_fields__)
            return f"unknown field {quoted(name)} in the request body{where}; allowed: {allowed}"
    return f"request body does not match the schema: {error}"


def _struct(hint: Any) -> Any:
    """The struct in the type of a field, such as that of a list's items."""
    return hint if isinstance(hint, type(msgspec.Struct)) else next(filter(None, map(_struct, get_args(hint))), None)


def _unpacked(raw: bytes, coding: bytes) -> bytes:
    if coding in (b"", b"identity"):
        return raw
    if coding != b"gzip":
        raise Problem(415, "validation_error", f"content-encoding must be gzip or identity, got {coding[:40]!r}")
    unpack = zlib.decompressobj(31)
    try:
        out = unpack.decompress(raw, MOST_BODY + 1)
    except zlib.error as error:
        raise invalid(f"request body is not valid gzip: {error}") from None
    if len(out) > MOST_BODY or unpack.unconsumed_tail:
        raise Problem(413, "payload_too_large", f"request body must be at most {MOST_BODY:,} bytes")
    if not unpack.eof:
        raise invalid("request body is truncated gzip")
    return out
