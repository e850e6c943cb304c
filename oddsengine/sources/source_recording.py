"""What a source sent and got, kept in a file to look at or to give to others, and read again as the source reads it.

A recording is text: a line of JSON for each answer to a request, each message of a connection, and a last line that
counts them. It has no secrets: known values are replaced wherever they are, and so are the values of fields that are
private by their name, lists and objects too. What a source answers to a body is taken to be as private as what it was
sent: the answer to a login is a token. Of headers it has those that say how a body is to be read or how often one may
ask.
"""

import asyncio
import base64
import re
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from oddsengine.sources.failure import FAILED, REFUSED, Failure, of_status
from oddsengine.sources.secrets import MARK

FORMAT = "oddsengine recording 1"
MOST_BYTES = 200_000_000
LONGEST_S = 86_400.0  # it takes as long to play
_HEADERS = re.compile(r"(?i)content-type|etag|last-modified|date|retry-after|(x-)?rate-?limit.*|x-requests-.*")
_PRIVATE = (
    r"x-api-key|x-sx-api-key|x-application|x-authentication|api[_-]?key|app[_-]?key|session|jwt|"
    r"(?:access|auth|bearer|csrf|id|login|refresh|session)[_-]?token|"
    r"(?:client[_-]?)?secret|password|passphrase|signature|authorization|cookie|set-cookie|ssoid|"
    r"account(?:[_-]?(?:id|name|number))?|user[_-]?(?:id|name)|member[_-]?id|subscriber[_-]?id|wallet[_-]?address|"
    r"customer_?(?:id|ref|strategy_?ref)|e?mail|"
    r"kalshi-access-(?:key|signature)"
)
_PRIVATE_WHEN_SENT = rf"{_PRIVATE}|key|token"
_LEAST = 4  # characters: shorter ones are in ordinary text
_VALUE = r"\"(?:[^\"\\]|\\.)*\"|-?\d[\d.eE+-]*"


class Entry(msgspec.Struct, omit_defaults=True):
    """A line: an answer to a request (`http`), or of a connection `open`, `sent` or `got`."""

    what: str
    after: float  # seconds after the begin
    method: str = ""
    path: str = ""
    query: list[tuple[str, str]] = []
    status: int | None = None  # None: there was no answer, or no complete one
    failure: str = ""
    headers: dict[str, str] = {}
    connection: int = 0
    text: str | None = None
    base64: bytes | None = None  # of a body that is no text

    @property
    def answers_what_was_sent(self) -> bool:
        """Whether it was sent, or is the answer to a body."""
        return self.what == "sent" or self.method == "POST"

    @property
    def body(self) -> bytes:
        return (self.text or "").encode() if self.base64 is None else self.base64


class Head(msgspec.Struct, omit_defaults=True):
    """The first line."""

    format: str
    feed: str
    kind: str
    version: str
    began: datetime
    settings: dict[str, Any] = {}


class _End(msgspec.Struct):
    end: int


class Recording(NamedTuple):
    """A recording that was read."""

    head: Head
    entries: list[Entry]


class Answer(NamedTuple):
    """A complete body, and its headers, whose names are asked for in lower case."""

    body: bytes
    headers: Mapping[str, str]


class Connection(Protocol):
    """A connection that sends and receives messages."""

    async def send(self, message: bytes, /) -> None:
        """Send a message."""

    async def receive(self) -> bytes:
        """Wait for the next message."""


class Wire(Protocol):
    """What requests and connections of a source go through."""

    async def answer(
        self, method: str, path: str, query: Sequence[tuple[str, str]], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:  # fmt: skip
        """Return the answer to a request; `ask` asks the source."""

    def through(self, url: str, connection: Connection | None) -> Connection:
        """Return what sends and receives in place of a connection, which is None if `offline`."""

    @property
    def offline(self) -> bool:
        """Whether nothing is asked of the source."""


_wire: ContextVar[Wire | None] = ContextVar("wire", default=None)


def wire() -> Wire | None:
    """What the requests of this task go through, if not straight to the source."""
    return _wire.get()


@contextmanager
def going_through(new: Wire | None) -> Iterator[None]:
    """Let requests and connections of this task, and of those that it starts, go through a recorder or a player."""
    token = _wire.set(new)
    try:
        yield
    finally:
        _wire.reset(token)


# ---- recording ----


class Recorder:
    """A wire that takes note."""

    offline = False

    def __init__(self, feed: str, kind: str, settings: Mapping[str, Any], version: str) -> None:
        self.recording = Recording(Head(FORMAT, feed, kind, version, datetime.now(UTC), dict(settings)), [])
        self.left_out = 0  # entries after `MOST_BYTES`
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._connections = 0

    async def answer(
        self, method: str, path: str, query: Sequence[tuple[str, str]], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:  # fmt: skip
        about: dict[str, Any] = {"method": method, "path": path, "query": list(query)}
        try:
            answer = await ask()
        except Failure as failure:
            self.note("http", b"", **about, status=failure.status, failure=str(failure))
            raise
        headers = {name.lower(): value for name, value in answer.headers.items() if _HEADERS.fullmatch(name)}
        self.note("http", answer.body, **about, status=200, headers=headers)
        return answer

    def through(self, url: str, connection: Connection | None) -> Connection:
        assert connection is not None
        self._connections += 1
        self.note("open", b"", path=urlsplit(url).path or "/", connection=self._connections)
        return _Noted(self, self._connections, connection)

    def note(self, what: str, body: bytes, **more: Any) -> None:
        """Add an entry, as long as there is room."""
        self._size += len(body) + 200
        after = round(asyncio.get_running_loop().time() - self._began, 3)
        if self._size > MOST_BYTES or after > LONGEST_S:
            self.left_out += 1
            return
        text, raw = None, None
        if body:
            try:
                text = body.decode()
            except UnicodeDecodeError:
                raw = body
        self.recording.entries.append(Entry(what, after, text=text, base64=raw, **more))


class _Noted:
    def __init__(self, recorder: Recorder, number: int, connection: Connection) -> None:
        self._recorder, self._number, self._connection = recorder, number, connection

    async def send(self, message: bytes) -> None:
        self._recorder.note("sent", message, connection=self._number)
        await self._connection.send(message)

    async def receive(self) -> bytes:
        message = await self._connection.receive()
        self._recorder.note("got", message, connection=self._number)
        return message


# ---- what is private ----


class Cleaned(NamedTuple):
    """The lines of a recording without secrets, and how often what was removed."""

    lines: list[bytes]
    removed: Counter[str]
    left_out: int


def cleaned(recording: Recording, secrets: Iterable[str], left_out: int = 0) -> Cleaned:
    """Return the lines of a recording without what is private; `secrets` are known values.

    `left_out` are the entries for which there was no room.
    """
    removed: Counter[str] = Counter()
    known = _known(secrets)

    def clean(text: str, *, sent: bool = False) -> str:
        for value in known:
            if count := text.count(value):
                removed["values of the settings"] += count
                text = text.replace(value, MARK)
        return _without_private(text, removed, sent=sent)

    head = msgspec.json.decode(clean(msgspec.json.encode(recording.head).decode()))
    lines = [msgspec.json.encode(head)]
    for entry in recording.entries:
        raw = entry.base64 and entry.base64.decode("latin-1")
        plain = msgspec.structs.replace(
            entry,
            path=clean(entry.path),
            query=[(clean(name), _private_query(name, clean(value), removed)) for name, value in entry.query],
            text=entry.text and clean(entry.text, sent=entry.answers_what_was_sent),
            base64=raw and clean(raw, sent=entry.answers_what_was_sent).encode("latin-1", "replace"),
            headers={name: clean(value) for name, value in entry.headers.items()},
            failure=clean(entry.failure),
        )
        lines.append(msgspec.json.encode(plain))
    lines.append(msgspec.json.encode(_End(len(recording.entries))))
    return Cleaned(lines, removed, left_out)


def _known(secrets: Iterable[str]) -> list[str]:
    """Known values as they may be written, the longest first."""
    found = set()
    for value in secrets:
        if len(value) >= _LEAST:
            found |= {value, quote(value, safe=""), urlencode({"": value})[1:]}
            found |= {base64.b64encode(value.encode()).decode(), value.replace("/", r"\/")}  # JSON may write it so
    found |= {msgspec.json.encode(value).decode()[1:-1] for value in found}
    found |= {value.encode().decode("latin-1") for value in found}  # in a body that is no text
    return sorted(found, key=lambda each: (-len(each), each))


class _Fields(NamedTuple):
    """Patterns of a private field in JSON, and in JSON that is a text of JSON; and of its name."""

    plain: re.Pattern[str]
    inner: re.Pattern[str]
    name: re.Pattern[str]


def _fields(names: str) -> _Fields:
    inner = r"\\\"(?:[^\"\\]|\\\\.)*\\\"|-?\d[\d.eE+-]*"
    return _Fields(
        re.compile(rf"(?i)(\"({names})\"\s*:\s*)(?:{_VALUE})"),
        re.compile(rf"(?i)(\\\"({names})\\\"\s*:\s*)(?:{inner})"),
        re.compile(rf"(?i){names}"),
    )


_OF_GOT, _OF_SENT = _fields(_PRIVATE), _fields(_PRIVATE_WHEN_SENT)
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?!\*)[^\s\"',;\\]{4,}")
_JSON = re.compile(r"(?m)^((?:data:)?[ \t]*)([\[{].*)$")  # a line, or one of an event
_FORM = re.compile(rf"(?i)(^|[?&;\s])((?:{_PRIVATE_WHEN_SENT})=)([^&#\s\"'\\]+)")


def _without_private(text: str, removed: Counter[str], *, sent: bool) -> str:
    fields = _OF_SENT if sent else _OF_GOT
    for pattern, mark in ((fields.plain, f'"{MARK}"'), (fields.inner, rf"\"{MARK}\"")):

        def hide(match: re.Match[str], mark: str = mark) -> str:
            if match[0] != match[1] + mark and not match[0].endswith(('""', '\\"\\"')):
                removed[match[2]] += 1
                return match[1] + mark
            return match[0]

        text = pattern.sub(hide, text)
    text = _without_private_parts(text, removed, fields.name)

    def hide_bearer(match: re.Match[str]) -> str:
        removed["bearer"] += 1
        return match[1] + MARK

    text = _BEARER.sub(hide_bearer, text)

    def hide_form(match: re.Match[str]) -> str:
        if match[3] == MARK:
            return match[0]
        removed[match[2].rstrip("=")] += 1
        return match[1] + match[2] + MARK

    return _FORM.sub(hide_form, text)


def _without_private_parts(text: str, removed: Counter[str], names: re.Pattern[str]) -> str:
    """Return JSON, or a text with lines of it, without private values that patterns do not see: lists and objects.

    A text that has none is unchanged.
    """

    def hidden(given: str) -> str:
        found: Counter[str] = Counter()
        plain = _hidden(msgspec.json.decode(given), "", names, found)
        removed.update(found)
        return msgspec.json.encode(plain).decode() if found else given

    def of_line(line: re.Match[str]) -> str:
        try:
            return line[1] + hidden(line[2])
        except (msgspec.MsgspecError, RecursionError):
            return line[0]

    try:
        return hidden(text)
    except (msgspec.MsgspecError, RecursionError):
        return _JSON.sub(of_line, text)


def _hidden(value: Any, name: str, names: re.Pattern[str], removed: Counter[str]) -> Any:
    """A document with the mark for all values in a field whose name is private; `name` is that of the field around."""
    if isinstance(value, dict):
        return {
            key: _hidden(each, name or (key if names.fullmatch(key) else ""), names, removed)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_hidden(each, name, names, removed) for each in value]
    if not name or isinstance(value, bool) or value in (None, "", MARK):
        return value
    removed[name] += 1
    return MARK


def _private_query(name: str, value: str, removed: Counter[str]) -> str:
    if value in ("", MARK) or not _OF_SENT.name.fullmatch(name):
        return value
    removed[name] += 1
    return MARK


def _public(query: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in query if not _OF_SENT.name.fullmatch(name))


# ---- reading a recording ----


def read(path: Path) -> Recording:
    """Read a recording.

    Raises
    ------
    ValueError
        If the file is not a recording, is not whole, or has something private in it.
    """
    lines = path.read_bytes().splitlines()
    try:
        head = msgspec.json.decode(lines[0] if lines else b"", type=Head)
    except msgspec.MsgspecError:
        head = None
    if head is None or head.format != FORMAT:
        raise ValueError(
            f"{path} is not a recording: its first line must say {FORMAT!r} (feeds check --record makes it)"
        )
    entries: list[Entry] = []
    for at, line in enumerate(lines[1:], 2):
        try:
            end = msgspec.json.decode(line, type=_End).end
        except msgspec.MsgspecError:
            end = -1
        if end >= 0:
            if end != len(entries) or at != len(lines):
                raise ValueError(f"{path} is not whole: line {at} counts {end} entries before it, got {len(entries)}")
            break
        try:
            entries.append(msgspec.json.decode(line, type=Entry))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path} is damaged: line {at} cannot be read: {error}") from None
        if not 0.0 <= (after := entries[-1].after) <= LONGEST_S:
            raise ValueError(
                f"{path} is damaged: line {at} is of {after:g} s after the begin, not of 0 to {LONGEST_S:g}"
            )
    else:
        raise ValueError(f"{path} is not whole: it ends after {len(entries)} entries without the line that counts them")
    for at, line in enumerate([msgspec.json.encode(head), *map(msgspec.json.encode, entries)], 1):
        private = _privates(line, entries[at - 2] if at > 1 else None)
        if private:
            raise ValueError(f"{path} has a secret in it: {private} in line {at}; do not pass it on")
    return Recording(head, entries)


def _privates(line: bytes, entry: Entry | None) -> str:
    """Fields of a line whose values are private and still there."""
    removed: Counter[str] = Counter()
    if entry is None:
        _without_private(line.decode(), removed, sent=False)
    else:
        raw = (entry.base64 or b"").decode("latin-1")
        for text in (entry.text or "", raw, entry.failure, entry.path, *entry.headers.values()):
            _without_private(text, removed, sent=entry.answers_what_was_sent)
        for name, value in entry.query:
            _private_query(name, value, removed)
    return ", ".join(removed)


# ---- playing ----


class Player:
    """A wire that answers as a recording does, at the times of it."""

    offline = True

    def __init__(self, recording: Recording) -> None:
        loop = asyncio.get_running_loop()
        self._loop, self._began = loop, loop.time()
        self._head = recording.head
        self._exact: defaultdict[Any, deque[Entry]] = defaultdict(deque)
        self._alike: defaultdict[tuple[str, str], deque[Entry]] = defaultdict(deque)
        self._connections: defaultdict[str, deque[deque[Entry]]] = defaultdict(deque)
        self._used: set[int] = set()
        by_number: dict[int, deque[Entry]] = {}
        for entry in recording.entries:
            if entry.what == "http":
                self._exact[entry.method, entry.path, _public(entry.query)].append(entry)
                self._alike[entry.method, entry.path].append(entry)
            elif entry.what == "open":
                by_number[entry.connection] = deque()
                self._connections[entry.path].append(by_number[entry.connection])
            elif entry.what == "got" and entry.connection in by_number:
                by_number[entry.connection].append(entry)
        self.lasts = max((entry.after for entry in recording.entries), default=0.0)

    def now(self) -> datetime:
        """The time in the recording."""
        return self._head.began + timedelta(seconds=self._loop.time() - self._began)

    async def until(self, after: float) -> None:
        """Wait for a moment of the recording."""
        await asyncio.sleep(max(0.0, self._began + after - self._loop.time()))

    async def answer(
        self, method: str, path: str, query: Sequence[tuple[str, str]], ask: Callable[[], Awaitable[Answer]]
    ) -> Answer:  # fmt: skip
        for waiting in (self._exact[method, path, _public(query)], self._alike[method, path]):
            while waiting and id(waiting[0]) in self._used:
                waiting.popleft()
            if waiting:
                entry = waiting.popleft()
                break
        else:
            raise Failure(f"the recording has no further answer to {method} {path}", fatal=True)
        self._used.add(id(entry))
        await self.until(entry.after)
        if entry.failure:
            kind = FAILED if entry.status is None else of_status(entry.status).kind
            raise Failure(entry.failure, kind=kind, fatal=kind == REFUSED, status=entry.status)
        return Answer(entry.body, entry.headers)

    def through(self, url: str, connection: Connection | None) -> Connection:
        path = urlsplit(url).path or "/"
        if not self._connections[path]:
            raise Failure(f"the recording has no further connection to {path}", fatal=True)
        return _Played(self, self._connections[path].popleft())


class _Played:
    def __init__(self, player: Player, messages: deque[Entry]) -> None:
        self._player, self._messages = player, messages

    async def send(self, message: bytes) -> None:
        """It was answered already."""

    async def receive(self) -> bytes:
        if not self._messages:
            await asyncio.Event().wait()  # nothing more came
        await self._player.until(self._messages[0].after)
        return self._messages.popleft().body


def query_of(query: bytes | str) -> list[tuple[str, str]]:
    """The parameters of a URL."""
    return parse_qsl(query.decode() if isinstance(query, bytes) else query, keep_blank_values=True)


async def pieces(connection: Connection) -> AsyncIterator[bytes]:
    """Yield what comes through a connection until it ends."""
    while True:
        try:
            piece = await connection.receive()
        except StopAsyncIteration:
            return
        yield piece
