"""What venues accept and send: one table for each kind of feed, in `contracts/KIND.toml`.

A table has facts of the venue's documentation and clients, each source with its address and date. Tests hold what is
sent against it, and make what is read from it; a running feed counts what came that it does not know.

    name, checked, tried      the venue, the day of the last comparison, whether this was tried against the venue
    needs, not_read           what a user must have first, and what the venue has that is not read
    [[sources]]               url, date, says
    [pace.NAME]               requests in any so many seconds
    [send.NAME]               method, path with {fields}, and what it may have: path_fields, query, headers, form,
                              body (JSON) and message (of a connection that stays open); answer, the table of what
                              comes back; pace, those it counts for; refusal, the status for what is not allowed
    [read.NAME], [type.NAME]  fields and their types (contract_types.py), or a text such as read.prices = "map of price"
    [enum.NAME]               values, with spaces too; decides = true if what a price is depends on them
    [choice.NAME]             of several tables the one that is named by a field: by, of = {value = table}
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from oddsengine.feeds.contract_types import (
    Choice,
    ContractError,
    Difference,
    FieldType,
    ListOf,
    OneOf,
    Optional,
    Record,
    Walk,
    parse,
    reached,
)

_FOLDER = Path(__file__).parent / "contracts"
_NOT_FOUND, _UNAUTHORIZED = 404, 401
_USUAL = {
    "host", "accept", "accept-encoding", "connection", "user-agent", "content-length", "content-type", "cache-control"
}  # fmt: skip
_PLACE = re.compile(r"\{(\w+)\}")


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where facts come from."""

    url: str
    date: date
    says: str = ""


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most so many requests in any so many seconds."""

    requests: int
    seconds: float


class _Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    method: str
    path: str
    answer: str = ""
    pace: list[str] = []
    refusal: int = 400
    path_fields: dict[str, str] = {}
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    form: dict[str, str] = {}
    body: str = ""
    message: str = ""


class _Enum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    values: list[str]
    decides: bool = False


class _Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    by: str
    of: dict[str, str]


_Types = dict[str, str | dict[str, str]]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    checked: date
    tried: bool
    needs: list[str]
    not_read: list[str]
    sources: list[Document]
    send: dict[str, _Sent]
    pace: dict[str, Pace] = {}
    read: _Types = {}
    type: _Types = {}
    enum: dict[str, _Enum] = {}
    choice: dict[str, _Choice] = {}


class Request(NamedTuple):
    """A request as it arrives; values of its query and its form are texts."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    form: Mapping[str, Sequence[str]] = {}


class Refusal(NamedTuple):
    """Why a venue refuses a request, and with which status."""

    reason: str
    status: int


@dataclass(frozen=True)
class Send:
    """A request that a venue accepts, or a connection that stays open."""

    name: str
    method: str
    path: str
    pattern: re.Pattern[str]
    pace: tuple[str, ...]
    refusal: int
    path_fields: Record
    query: Record
    headers: Record
    form: Record
    body: FieldType | None
    message: FieldType | None
    answer: FieldType | None

    def types(self) -> Iterator[FieldType]:
        """Yield its types."""
        yield from (self.path_fields, self.query, self.headers, self.form)
        yield from (one for one in (self.body, self.message, self.answer) if one is not None)


@dataclass(frozen=True)
class Contract:
    """A venue's contract."""

    venue: str
    name: str
    checked: date
    tried: bool
    needs: tuple[str, ...]
    not_read: tuple[str, ...]
    sources: tuple[Document, ...]
    paces: Mapping[str, Pace]
    sends: Mapping[str, Send]
    types: Mapping[str, FieldType]

    def send_of(self, method: str, path: str) -> Send | None:
        """Return the request that a method and a path are; None if the venue has no such one."""
        return next(
            (send for send in self.sends.values() if send.method == method and send.pattern.fullmatch(path)), None
        )

    def answer_to(self, place: str) -> FieldType | None:
        """Return what comes back to a request such as `GET /v3/events/`, or on a connection; None if that is not known.

        A path may begin with other segments.
        """
        if place in self.sends:
            return self.sends[place].answer
        method, _, path = place.partition(" ")
        while path:
            if send := self.send_of(method, path):
                return send.answer
            at = path.find("/", 1)
            path = path[at:] if at > 0 else ""
        return None

    def check_request(self, request: Request) -> list[Refusal]:
        """Return what the venue would refuse in a request."""
        send = self.send_of(request.method, request.path)
        if send is None:
            known = ", ".join(f"{one.method} {one.path}" for one in self.sends.values())
            return [Refusal(f"{request.method} {request.path}; allowed: {known}", _NOT_FOUND)]
        found = send.pattern.fullmatch(request.path)
        assert found is not None
        parts = {name: [unquote(text)] for name, text in found.groupdict().items()}
        headers = {
            name: [text] for name, text in request.headers.items() if name not in _USUAL or name in send.headers.fields
        }
        reasons = [Refusal(text, send.refusal) for text in _texts(send.path_fields, parts, "path")]
        reasons += [Refusal(text, send.refusal) for text in _texts(send.query, request.query, "query")]
        reasons += [Refusal(text, _UNAUTHORIZED) for text in _texts(send.headers, headers, "headers")]
        reasons += [Refusal(text, send.refusal) for text in _texts(send.form, request.form, "form")]
        if send.body is not None:
            reasons += [Refusal(text, send.refusal) for text in self._body(send.body, request.body)]
        elif request.body and not send.form.fields:
            reasons.append(Refusal(f"body: {len(request.body)} bytes; allowed: none", send.refusal))
        return reasons

    @staticmethod
    def _body(kind: FieldType, body: bytes) -> list[str]:
        try:
            document = msgspec.json.decode(body)
        except (ValueError, RecursionError) as error:  # msgspec raises UnicodeDecodeError for bytes that are no text
            return [f"body: {error}; allowed: JSON"]
        kind.check(document, "body", walk := Walk())
        return [str(one) for one in walk.differences]

    def check_sent(self, name: str, document: Any) -> list[str]:
        """Return what the venue would refuse in a message of the connection that the table `name` describes."""
        message = self.sends[name].message
        if message is None:
            raise ContractError(f"{self.venue}: send.{name} has no messages")
        message.check(document, "", walk := Walk())
        return [str(one) for one in walk.differences]

    def unknown(self, table: str | FieldType, document: Any, turn: int | None = None) -> list[Difference]:
        """Return what a document has that a table does not know; with a turn, only a part of it is looked at."""
        kind = self.types[table] if isinstance(table, str) else table
        kind.check(document, "", walk := Walk(turn))
        return walk.differences


def _texts(record: Record, given: Mapping[str, Sequence[str]], where: str) -> list[str]:
    """Check values that are texts, each of which may be given several times."""
    walk, out = Walk(), []
    for name, texts in given.items():
        kind = record.fields.get(name)
        if kind is None:
            allowed = ", ".join(record.fields) or "none"
            out.append(f"{where}.{name}: {', '.join(texts)!r}; allowed: {allowed}")
            continue
        plain = kind.item if isinstance(kind, Optional) else kind
        values = [plain.read(text) for text in texts]
        if isinstance(plain, ListOf) and not plain.commas:  # a parameter that is repeated
            plain.check([plain.item.read(text) for text in texts], f"{where}.{name}", walk)
        elif len(values) > 1:
            out.append(f"{where}.{name}: {len(values)} times; allowed: once")
        else:
            kind.check(values[0], f"{where}.{name}", walk)
    out += [
        f"{where}.{name}: nothing; allowed: {kind.name}"
        for name, kind in record.fields.items()
        if name not in given and not isinstance(kind, Optional)
    ]
    return out + [str(one) for one in walk.differences]


def venues() -> list[str]:
    """Return the kinds of feeds that have a contract.

    Examples
    --------
    >>> "smarkets" in venues()
    True
    """
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


@cache
def load(venue: str) -> Contract:
    """Return the contract of a kind of feed. Raises `ContractError` if it is wrong.

    Examples
    --------
    >>> load("smarkets").paces["quotes"].requests
    20
    """
    return read(venue, (_FOLDER / f"{venue}.toml").read_text(encoding="utf-8"))


def find(kind: str) -> Contract | None:
    """Return the contract of a kind of feed, if it has one."""
    return load(kind) if kind in venues() else None


def needs_of(kind: str) -> str:
    """Return what a user of a kind of feed must have first, in words.

    Examples
    --------
    >>> needs_of("smarkets")[:38]
    'Smarkets needs: a verified account, an'
    """
    table = find(kind)
    if table is None:
        return "check whether it needs an account"
    return f"{table.name} needs: {', '.join(table.needs)}"


def values_of(venue: str, name: str) -> frozenset[str]:
    """Return the values of an enumeration of a kind of feed.

    Examples
    --------
    >>> "HOME" in values_of("smarkets", "side")
    True
    """
    kind = load(venue).types[name]
    if not isinstance(kind, OneOf):
        raise ContractError(f"{venue}: {name} is no enumeration")
    return frozenset(kind.values)


def read(venue: str, text: str) -> Contract:
    """Read a contract. Raises `ContractError` with what is wrong with it."""
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ContractError(f"{venue}: {error}") from None
    try:
        tables = _tables(file)
        sends = {name: _send(name, one, file, tables) for name, one in file.send.items()}
    except ContractError as error:
        raise ContractError(f"{venue}: {error}") from None
    used = reached([kind for send in sends.values() for kind in send.types()])
    if idle := [name for name, kind in tables.items() if id(kind) not in used]:
        raise ContractError(f"{venue}: nothing refers to {', '.join(idle)}")
    if not file.sources:
        raise ContractError(f"{venue}: no sources; needed: at least one")
    return Contract(
        venue, file.name, file.checked, file.tried, tuple(file.needs), tuple(file.not_read), tuple(file.sources),
        file.pace, sends, tables,
    )  # fmt: skip


def _tables(file: _File) -> dict[str, FieldType]:
    """Return the named types; those of fields are filled in when all names are there."""
    records = {**file.read, **file.type}
    sections: list[Mapping[str, Any]] = [file.read, file.type, file.enum, file.choice]
    names = [name for section in sections for name in section]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ContractError(f"{', '.join(sorted(twice))}: more than one table of that name")
    tables: dict[str, FieldType] = {}
    for name, enum in file.enum.items():
        tables[name] = OneOf(name, tuple(enum.values), enum.decides)
    for name, choice in file.choice.items():
        tables[name] = Choice(name, choice.by)
    for name, given in records.items():
        if isinstance(given, dict):
            tables[name] = Record(name)
    for name, given in records.items():  # a text may name another text only if that stands before it
        if isinstance(given, str):
            tables[name] = _typed(given, tables, name)
    for name, given in records.items():
        if isinstance(record := tables[name], Record) and isinstance(given, dict):
            record.fields = {key: _typed(one, tables, f"{name}.{key}") for key, one in given.items()}
    for name, choice in file.choice.items():
        kind = tables[name]
        assert isinstance(kind, Choice)
        kind.of = {value: _typed(one, tables, f"{name}.{value}") for value, one in choice.of.items()}
    return tables


def _typed(text: str, tables: Mapping[str, FieldType], where: str) -> FieldType:
    try:
        return parse(text, tables)
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None


def _send(name: str, given: _Sent, file: _File, tables: Mapping[str, FieldType]) -> Send:
    where = f"send.{name}"

    def record(part: str) -> Record:
        fields = {key: _typed(text, tables, f"{where}.{part}.{key}") for key, text in getattr(given, part).items()}
        return Record(part, fields)

    def named(part: str) -> FieldType | None:
        text = getattr(given, part)
        return _typed(text, tables, f"{where}.{part}") if text else None

    places = _PLACE.findall(given.path)
    if set(places) != set(given.path_fields):
        needed = ", ".join(places) or "none"
        raise ContractError(f"{where}.path_fields: {', '.join(given.path_fields) or 'none'}; needed: {needed}")
    if strange := [pace for pace in given.pace if pace not in file.pace]:
        raise ContractError(f"{where}.pace: {', '.join(strange)}; allowed: {', '.join(file.pace) or 'none'}")
    pattern = "".join(
        f"(?P<{text}>[^/]+)" if at % 2 else re.escape(text) for at, text in enumerate(_PLACE.split(given.path))
    )
    return Send(
        name, given.method, given.path, re.compile(pattern), tuple(given.pace), given.refusal, record("path_fields"),
        record("query"), record("headers"), record("form"), named("body"), named("message"), named("answer"),
    )  # fmt: skip
