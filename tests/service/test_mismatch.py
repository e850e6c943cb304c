"""What is wrong with a JSON value: every kind of error that the decoder has, in terms of JSON."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from oddsengine_service.http.mismatch import decoded, mismatch


class Leg(msgspec.Struct, forbid_unknown_fields=True):
    line: Annotated[float, Meta(gt=0)]


class Slip(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    name: Annotated[str, Meta(max_length=3)] | None = None
    side: Literal["home", "away"] | None = None
    legs: Annotated[list[Leg], Meta(min_length=1)] | None = None
    code: Annotated[str, Meta(pattern="^a$")] = "a"
    clock: Annotated[str, Meta(pattern="^[0-9:]+$", examples=["23:00"])] | None = None
    odds: dict[str, int] = {}
    live: bool = False
    start: datetime | None = None


@pytest.mark.parametrize(("body", "message"), [
    (b"[1]", "invalid slip: expected an object, got an array"),
    (b"null", "invalid slip: expected an object, got null"),
    (b'{"count": "1"}', "invalid slip: count must be a whole number, got '1'"),
    (b'{"count": 1.5}', "invalid slip: count must be a whole number, got 1.5"),
    (b'{"count": 0}', "invalid slip: count must be a whole number of at least 1, got 0"),
    (b'{"count": 10000000}', "invalid slip: count must be a whole number of at most 1,000,000, got 10000000"),
    (b'{"name": 4}', "invalid slip: name must be a string or null, got 4"),
    (b'{"name": "four"}', "invalid slip: name must be a string of at most 3 characters, got 4 characters"),
    (b'{"side": "draw"}', "invalid slip: side must be one of home, away, got 'draw'"),
    (b'{"legs": []}', "invalid slip: legs must be an array of at least 1 item, got 0 items"),
    (b'{"legs": {}}', "invalid slip: legs must be an array or null, got an object"),
    (b'{"legs": [{"line": 0}]}', "invalid slip: legs[0].line must be a number above 0, got 0"),
    (b'{"legs": [{"line": 1}, {}]}', "invalid slip: legs[1].line is required"),
    (b'{"legs": [{"lin": 0}]}', "unknown field 'lin' in the slip at legs[0]; allowed: line"),
    (b'{"code": "b"}', "invalid slip: code must be a string that matches '^a$', got 'b'"),
    (b'{"clock": "noon"}', "invalid slip: clock must be a string such as '23:00', got 'noon'"),
    (b'{"odds": {"x": "y"}}', "invalid slip: odds[...] must be a whole number, got a string"),
    (b'{"live": "yes"}', "invalid slip: live must be true or false, got 'yes'"),
    (b'{"start": "noon"}', "invalid slip: start must be a time (RFC 3339, such as 2026-02-08T18:00:00Z), got 'noon'"),
    (b'{"count": "1", "name": nonsense', "invalid slip: count must be a whole number, got a string"),
    (b'{"side": "draw", "name": nonsense', "invalid slip: side must be one of home, away, got 'draw'"),
    (b'{"name": "' + b"x" * 99 + b'", "count": 1e999}', "invalid slip: name must be a string of at most 3 characters, "
     "got another value"),
])  # fmt: skip
def test_a_mismatch_names_the_field_what_came_and_what_is_allowed(body: bytes, message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=Slip)
    assert mismatch(str(caught.value), decoded(body), Slip, "slip") == message
