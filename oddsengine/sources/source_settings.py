"""Settings of sources: what each kind of source can be told, and how a table of settings is read.

A setting that names an environment variable ends in `_env`. Invalid settings are rejected with one sentence: where,
which, what came, and what is allowed.
"""

from collections.abc import Mapping
from typing import Annotated, Any, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from oddsengine.feeds.novig import TYPES

PREFIX = "ODDSENGINE"

Seconds = Annotated[float, Meta(gt=0, le=31_536_000, description="a number of seconds above 0")]
Text = Annotated[str, Meta(min_length=1, description="a non-empty string")]
Texts = Annotated[tuple[Text, ...], Meta(description="a list of texts")]
Paths = Annotated[  # `extra`: one may stand without the list; an empty text is an empty list
    tuple[Text, ...], Meta(description="a file, a folder, or a list of them", extra={"one": True})
]
Switch = Annotated[bool, Meta(description="true or false")]
Count = Annotated[int, Meta(ge=0, description="a whole number from 0 up")]
Day = Annotated[int, Meta(ge=1, le=28, description="a day of the month from 1 to 28")]
OddsFormat = Annotated[str, Meta(pattern="^(auto|american|decimal)$", description="auto, american or decimal")]
Variable = Annotated[
    str, Meta(pattern="^([A-Za-z_][A-Za-z0-9_]*)?$", description="the name of an environment variable")
]
Required = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$", description="the name of an environment variable")]
Rate = Annotated[float, Meta(ge=0.01, le=100_000, description="a number of requests a second from 0.01 up")]
Requests = Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number from 1 up")]
Url = Annotated[str, Meta(pattern="^https?://[^/]", description="a URL that starts with http:// or https://")]
WebSocketUrl = Annotated[
    str, Meta(pattern=r"^wss?://[^/:]+(:\d{1,5})?(/.*)?$", description="a URL that starts with ws:// or wss://")
]
Socket = Annotated[str, Meta(pattern=r"^(tls|tcp)://[^/:]+:\d+$", description="tls://HOST:PORT or tcp://HOST:PORT")]

_NOVIG_TYPES = ", ".join(TYPES)
NovigType = Annotated[str, Meta(pattern=f"^({'|'.join(TYPES)})$", description=f"one of {_NOVIG_TYPES}")]


class SettingsError(ValueError):
    """An invalid setting; the message is one sentence for the operator."""


class FeedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Common settings of all sources: `[feeds.NAME]`."""

    name: str
    kind: str
    books: Texts = ()  # empty: all books of the source
    sports: Texts = ()
    timeout: Seconds = 15.0  # of a complete request, or of connecting
    backoff: Seconds = 1.0  # wait after the first failure; it doubles
    backoff_cap: Seconds = 60.0
    down_after: Seconds = 120.0  # without a payload or heartbeat
    body_bytes: Count = 64_000_000  # maximum length of a body, line or event


class UnusableSettings(FeedSettings, frozen=True, kw_only=True):
    """What is left of a feed whose kind cannot be used: it is down, for a reason."""

    reason: str


class PolledSettings(FeedSettings, frozen=True, kw_only=True):
    """A source that is read in turns."""

    sports: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one league or sport")]
    url: Url
    interval: Seconds = 30.0  # between two turns
    rate: Rate = 5.0  # requests a second
    within: Seconds = 604_800.0  # only games that start so soon


class TheOddsApiSettings(FeedSettings, frozen=True, kw_only=True):
    """The Odds API, version 4: featured markets of sports, and props event by event."""

    key_env: Required
    sports: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its sport keys")]
    url: Url = "https://api.the-odds-api.com"
    regions: Texts = ("us",)
    odds_format: OddsFormat = "auto"  # American if all books are of the US
    markets: Texts = ("h2h", "spreads", "totals")
    props: Texts = ()  # requested event by event
    props_within: Seconds = 86_400.0  # before the start
    scores: Switch = False  # of games in progress; one credit per sport and request
    interval: Seconds = 30.0  # between two requests for games that are on or near
    credits_kept: Count = 0  # reserve that is not spent
    details: Switch = True  # request links, ids and bet limits; not included in every plan
    renews: Day = 1  # of the month, when credits are renewed


class InterfaceSettings(FeedSettings, frozen=True, kw_only=True):
    """Another node with the same API."""

    url: Url  # with /api/v1
    key_env: Variable = ""
    leagues: Texts = ()
    markets: Texts = ()
    stream: Switch = True  # else REST: a list, then deltas
    interval: Seconds = 2.0  # of REST
    silence: Seconds = 60.0  # a stream without even a heartbeat for so long has failed
    freshen: Seconds = 30.0  # between two complete requests, if the upstream does not report `seen`
    games: Switch = False  # also read game states, if the key has access to them


class OpticSettings(FeedSettings, frozen=True, kw_only=True):
    """A stream in the form of OpticOdds, version 3."""

    key_env: Required
    sports: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its sports")]
    books: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its sportsbooks")]
    url: Url = "https://api.opticodds.com/api/v3"
    leagues: Texts = ()
    markets: Texts = ()
    silence: Seconds = 60.0


class BetfairSettings(FeedSettings, frozen=True, kw_only=True):
    """The stream of the Betfair exchange; `sports` are our ids, or numbers of its event types; "1" is soccer."""

    key_env: Required
    session_env: Variable = ""  # a session token; or a user and password to log in with
    user_env: Variable = ""
    password_env: Variable = ""
    url: Socket = "tls://stream-api.betfair.com:443"
    login_url: Url = "https://identitysso.betfair.com/api/login"
    catalogue_url: Url = "https://api.betfair.com/exchange/betting/rest/v1.0"  # lists of markets, with names
    countries: Texts = ()
    market_types: Texts = ()  # empty: those of the sports
    markets: Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")] = 200  # at once
    levels: Annotated[int, Meta(ge=1, le=10, description="a whole number from 1 to 10")] = 10  # of each price
    refresh: Seconds = 60.0  # between two lists of markets
    pause: Seconds = 10.0  # between two changes of the subscription
    min_bet: Annotated[float, Meta(ge=0, le=1_000_000, description="an amount from 0 up")] = 0.0  # 0: not known
    heartbeat: Annotated[float, Meta(ge=0.5, le=5, description="0.5 to 5 seconds")] = 5.0
    silence: Seconds = 15.0


class KalshiSettings(FeedSettings, frozen=True, kw_only=True):
    """Kalshi: lists of markets, and its stream if there is a key; `sports` are its series of winners or our leagues."""

    sports: Annotated[
        tuple[Text, ...], Meta(min_length=1, description="a list of at least one series of winners, such as KXNFLGAME")
    ]
    key_env: Variable = ""  # the id of a key; with the file of its private key, the stream is used
    private_key_env: Variable = ""
    url: Url = "https://external-api.kalshi.com/trade-api/v2"
    stream_url: WebSocketUrl = "wss://external-api-ws.kalshi.com/trade-api/ws/v2"
    series: Texts = ()  # besides winners; empty: all of the games
    order_books: Switch = False  # also request books without a key; lists of markets have the best price of each
    interval: Seconds = 30.0  # between two lists without the stream
    refresh: Seconds = 60.0  # and with it
    silence: Seconds = 30.0
    quiet: Seconds = 60.0  # without a book or change of the stream, until books are requested again
    rate: Annotated[float, Meta(ge=10, le=100_000, description="a number of tokens from 10 up")] = 200.0  # a second


class BetfairHistorySettings(FeedSettings, frozen=True, kw_only=True):
    """Recorded lines of the Betfair stream: .bz2, .gz or plain; a file or a folder of them."""

    path: Text


class PolymarketSettings(FeedSettings, frozen=True, kw_only=True):
    """The books of Polymarket: its list of events, and their order books from its WebSocket."""

    sports: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its league codes")]
    url: Url = "https://gamma-api.polymarket.com"  # events
    books_url: Url = "https://clob.polymarket.com"
    stream_url: WebSocketUrl = "wss://ws-subscriptions-clob.polymarket.com/ws/market"
    markets: Texts = ()  # its market types
    within: Seconds = 604_800.0  # until the start of a game
    stream: Switch = True  # else the books are polled
    interval: Seconds = 5.0  # between two polls
    events_interval: Seconds = 60.0  # between two lists of events
    silence: Seconds = 15.0
    quiet_live: Seconds = 60.0  # without a book or change on a connection, until its books are read over REST
    quiet_prematch: Seconds = 600.0
    socket_tokens: Annotated[int, Meta(ge=2, le=200, description="a whole number from 2 to 200")] = 200


class SxBetSettings(PolledSettings, frozen=True, kw_only=True):
    """SX Bet; `sports` are our ids of leagues or sports, or its labels of leagues."""

    url: Url = "https://api.sx.bet"
    key_env: Variable = ""  # sent if there is one
    main_lines: Switch = True  # only the main line of spreads and totals; each market is a request


class SmarketsSettings(PolledSettings, frozen=True, kw_only=True):
    """Smarkets; `sports` are our ids of leagues or sports."""

    url: Url = "https://api.smarkets.com/v3"
    rate: Rate = 3.0
    quotes_a_minute: Requests = 20  # requests of quotes
    markets: Texts = (
        "WINNER_3_WAY", "WINNER_2_WAY", "MATCH_WINNER", "WINNER_DNB", "ASIAN_HANDICAP", "HANDICAP", "OVER_UNDER", "BTTS"
    )  # its market types  # fmt: skip


class NovigSettings(PolledSettings, frozen=True, kw_only=True):
    """Novig; `sports` are our ids of leagues or sports."""

    url: Url = "https://api.novig.com"
    rate: Rate = 2.0
    within: Seconds = 86_400.0
    lines: Annotated[int, Meta(ge=1, le=1000, description="1 to 1000 lines of each type of a game")] = 3
    markets: Annotated[tuple[NovigType, ...], Meta(min_length=1, description=f"a list of {_NOVIG_TYPES}")] = (
        "MONEY", "SPREAD", "TOTAL"
    )  # fmt: skip


class MatchbookSettings(PolledSettings, frozen=True, kw_only=True):
    """Matchbook; `sports` are our ids of leagues or sports."""

    url: Url = "https://api.matchbook.com/edge/rest"
    rate: Rate = 2.0
    markets: Texts = ()  # its market types; empty: all
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$", description="three letters such as GBP")] = "GBP"  # of amounts
    depth: Annotated[int, Meta(ge=1, le=100, description="a whole number from 1 to 100")] = 5  # levels of each side


class SportsGameOddsSettings(PolledSettings, frozen=True, kw_only=True):
    """SportsGameOdds; `sports` are its ids of leagues, `books` its ids of bookmakers."""

    key_env: Required
    url: Url = "https://api.sportsgameodds.com/v2"
    interval: Seconds = 120.0  # between two turns; each event of a turn counts
    rate: Rate = 1.0
    requests_a_minute: Requests = 10  # of the plan
    alternates: Switch = False  # also alternate lines
    within: Seconds = 172_800.0


class DocumentSettings(FeedSettings, frozen=True, kw_only=True):
    """A file, a folder or a URL, read once or polled."""

    path: str = ""
    url: str = ""
    interval: Annotated[float, Meta(ge=0, description="a number of seconds, 0 for once")] = 0.0


class FootballDataSettings(DocumentSettings, frozen=True, kw_only=True):
    """CSV files of football-data.co.uk."""


class TableSettings(DocumentSettings, frozen=True, kw_only=True):
    """A table of odds."""

    columns: Annotated[
        dict[str, str],
        Meta(description='a table of its columns and what they are in an odds table, such as {Bookie = "sportsbook"}'),
    ] = {}
    max_age: Annotated[
        Annotated[float, Meta(gt=0, le=31_536_000)] | None, Meta(description="a number of seconds above 0")
    ] = None  # of the file; None: as old as it is


def from_text(text: str, kind: Any) -> Any:
    """Parse a setting given as text, as in the environment; lists are comma-separated.

    Raises `msgspec.ValidationError` if it is not valid.
    """
    return msgspec.convert(_parts(text, kind), kind, strict=False)


def _parts(text: str, kind: Any) -> Any:
    if is_list(kind):
        return [part.strip() for part in text.split(",") if part.strip()]
    if get_origin(getattr(kind, "__origin__", kind)) is dict:
        return dict(_pair(part) for part in text.split(",") if part.strip())
    return text


class SettingsTable:
    """One table of settings, from a file or from arguments, overridden by the environment."""

    def __init__(self, file: str, place: str, table: Any, environ: Mapping[str, str], used: set[str]) -> None:
        self._file, self._place = file, place
        self._table = mapping(file, place, table)
        self._environ, self._used = environ, used

    def error(self, why: str) -> SettingsError:
        return SettingsError(f"{self._file}: {self._place} {why}")

    def refused(self, key: str, value: Any, allowed: str) -> SettingsError:
        variable = self._variable(key)
        where = f"environment: {variable}" if variable in self._environ else f"{self._file}: {self._place}.{key}"
        return SettingsError(f"{where} must be {allowed}, got {_quoted(value)}")

    def take(self, key: str, kind: Any, default: Any = msgspec.NODEFAULT) -> Any:
        variable = self._variable(key)
        text = self._environ.get(variable)
        self._used.add(variable)
        value: Any = self._table.get(key) if text is None else text
        if value is None:
            if default is msgspec.NODEFAULT:
                raise self.refused(key, None, _allowed(kind))
            return default
        if text is not None:
            value = _parts(text, kind)
        elif isinstance(value, str) and _may_be_one(kind):
            value = [value] if value else []
        try:
            return msgspec.convert(value, kind, strict=text is None)
        except msgspec.ValidationError:
            raise self.refused(key, value, _allowed(kind)) from None

    def read(self, struct: type[msgspec.Struct], **fixed: str) -> Any:
        """Read all settings of a struct. A `ValueError` that it raises itself is a reason to refuse them."""
        hints = get_type_hints(struct, include_extras=True)
        fields = {field.name: field for field in msgspec.structs.fields(struct) if field.name not in fixed}
        unknown = sorted(set(self._table) - {*fields, *fixed} | ({"name"} & set(self._table)))
        if unknown:
            allowed = ", ".join(sorted({*fields, *fixed} - {"name"}))
            raise SettingsError(f"{self._file}: {self._place}.{unknown[0]} is not a setting; allowed: {allowed}")
        values = {name: self.take(name, hints[name], _default(field)) for name, field in fields.items()}
        try:
            return struct(**values, **fixed)
        except ValueError as error:
            raise self.error(str(error)) from None

    def pass_over(self) -> None:
        """Leave all settings unread, those of the environment too."""
        own = {variable for variable in self._environ if variable.startswith(self._variable(""))}
        self._used |= own | {self._environ[variable] for variable in own if variable.endswith("_ENV")}
        self._used |= {value for name, value in self._table.items() if name.endswith("_env") and isinstance(value, str)}

    def _variable(self, key: str) -> str:
        return f"{PREFIX}_{self._place.replace('.', '_')}_{key}".upper()


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """Return the default of a field; `msgspec.NODEFAULT` if it has none."""
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def _pair(text: str) -> tuple[str, str]:
    """Split `name=value`."""
    name, _, value = text.rpartition("=")
    return name.strip(), value.strip()


def is_list(kind: Any) -> bool:
    """Whether a setting of this type is a list."""
    return get_origin(getattr(kind, "__origin__", kind)) is tuple


def _may_be_one(kind: Any) -> bool:
    """Whether a setting is a list, of which one may stand by itself."""
    return any(isinstance(meta, Meta) and (meta.extra or {}).get("one") for meta in getattr(kind, "__metadata__", ()))


def mapping(file: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: {key} must be a table, got {_quoted(value)}")
    return value


def has_address(url: str, schemes: tuple[str, ...]) -> bool:
    """Whether a URL has one of these schemes, a host, and a port that exists."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _allowed(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.description:
            return meta.description
    return {str: "a string", bool: "true or false"}.get(kind, f"of type {kind}")


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as in TOML
    return "nothing" if value is None else repr(value)[:80]
