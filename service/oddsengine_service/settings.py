"""Settings: one file, `oddsengine.toml`, overridden by environment variables, read once at startup.

    [data]
    folder = "oddsengine-data"

    [feeds.american]
    kind = "the_odds_api"
    key_env = "ODDS_API_KEY"        # the name of the variable that holds the key, never the key
    sports = ["basketball_nba"]
    interval = 30

The variable for a setting is `ODDSENGINE_` and its path: `ODDSENGINE_FEEDS_AMERICAN_INTERVAL=60`. Lists are separated
by commas there, and an empty variable counts as not set. Invalid settings are rejected with one sentence: file, key,
value, and what is allowed.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from oddsengine import catalog

FILE = "oddsengine.toml"
PREFIX = "ODDSENGINE"
MOST_PORT = 65_535
_OTHERS = frozenset({f"{PREFIX}_API_KEY", f"{PREFIX}_CACHE"})  # variables that are read elsewhere
# Kubernetes sets these in every container for a Service whose name begins with ours.
_OF_KUBERNETES = re.compile(
    rf"{PREFIX}_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*|PORT_\d+_(TCP|UDP|SCTP)\w*=.*|PORT=(tcp|udp|sctp)://.*)"
)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000, description="a number of seconds above 0")]
Text = Annotated[str, Meta(min_length=1, description="a non-empty string")]
Days = Annotated[float, Meta(gt=0, le=36_500, description="a number of days above 0")]
Texts = Annotated[tuple[Text, ...], Meta(description="a list of texts")]
Switch = Annotated[bool, Meta(description="true or false")]
Count = Annotated[int, Meta(ge=0, description="a whole number from 0 up")]
Day = Annotated[int, Meta(ge=1, le=28, description="a day of the month from 1 to 28")]
Port = Annotated[int, Meta(ge=0, le=MOST_PORT, description=f"a port from 0 to {MOST_PORT}")]
Reference = Annotated[str, Meta(pattern="^(close|classical)$", description="close or classical")]
OddsFormat = Annotated[str, Meta(pattern="^(auto|american|decimal)$", description="auto, american or decimal")]
Variable = Annotated[
    str, Meta(pattern="^([A-Za-z_][A-Za-z0-9_]*)?$", description="the name of an environment variable")
]
Required = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$", description="the name of an environment variable")]
Url = Annotated[str, Meta(pattern="^https?://[^/]", description="a URL that starts with http:// or https://")]
Origins = Annotated[
    tuple[Annotated[str, Meta(pattern=r"^(\*|https?://[^/*\s]+)$")], ...],
    Meta(description="a list of origins such as https://app.example.com without a path, or *"),
]
Public = Annotated[
    str,
    Meta(pattern=r"^(https?://[^/\s]+)?$", description="an address such as https://odds.example.com without a path"),
]
_ADDRESS = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$"
Addresses = Annotated[
    tuple[Annotated[str, Meta(pattern=_ADDRESS)], ...], Meta(description="a list of addresses such as 10.0.0.2")
]
Socket = Annotated[str, Meta(pattern=r"^(tls|tcp)://[^/:]+:\d+$", description="tls://HOST:PORT or tcp://HOST:PORT")]


class SettingsError(ValueError):
    """An invalid setting; the message is one sentence for the operator."""


class DataSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[data]`: files of a node."""

    folder: Text = "oddsengine-data"
    catalog: str = ""  # an operator's own file of books, leagues, teams and market names
    kept_files: Count = 50  # number of payloads that failed to parse to retain, the newest ones
    kept_bytes: Count = 20_000_000
    tape: Switch = False  # record every step
    tape_days: Days = 7.0  # older tapes are deleted at the next start


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """`[keys]`: location of keys; both files are in the data folder unless their paths are absolute."""

    file: Text = "keys.sqlite"
    pepper: Text = "keys.pepper"  # the other file is useless without it


class MatchingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[matching]`: how events of different sources are matched."""

    overrides: str = ""  # a file with an operator's decisions
    fields: str = ""  # a file with the contestants of futures


class AlertSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[alerts]`: allowed targets of alerts."""

    private: Switch = False  # allow private networks
    mail_env: Variable = ""  # the variable with the mail server, as an apprise URL
    every: Seconds = 5.0  # between two checks


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[service]`: addresses, and trusted proxies."""

    host: Text = "127.0.0.1"
    port: Port = 8000
    url: Public = ""  # base URL for clients; empty: the Host header of each request
    trusted: Addresses = ()  # proxies whose X-Forwarded-For is used
    connections: Count = 0  # per address; 0 is a quarter of what the process can hold
    origins: Origins = ()  # of web pages that may use the API from a browser
    quiet: Switch = False  # do not log successful requests
    demo_hazards: Switch = False  # the demo's feeds have the errors of real ones
    heartbeat: Seconds = 30.0  # between two heartbeats of a stream
    stalled: Seconds = 30.0  # a stream or response whose client receives nothing for so long is closed
    unread_bytes: Count = 33_554_432  # of responses, per account and per address; beyond it connections are closed
    send_buffer: Count = 262_144  # bytes of kernel buffer per stream; 0 is the kernel's default
    metrics_port: Port = 0  # a separate port for metrics; 0 is none
    metrics_host: Text = "127.0.0.1"  # address of that port
    metrics_token_env: Variable = ""  # the variable with the token for metrics, on either port
    splits_token_env: Variable = ""  # the variable with the token for posting betting splits


class FairSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[fair]`: the reference for expected values if a request names none."""

    reference: Reference = "close"  # all other books, at the close; or "classical": the first sharp book
    table: str = ""  # a file of constants, as written by `calibrate`; empty: fair.toml in the data folder, if any
    calibrate_days: Annotated[float, Meta(ge=0, le=3650, description="a number of days, 0 for never")] = 0.0


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[archive]`: all prices as a table for other programs; see `oddsengine archive`."""

    to: str = ""  # a folder, or an address such as s3://bucket/odds; empty: no archive
    interval: Seconds = 3600.0


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """`[scale]`: the log that several processes share; without the section there is only one process."""

    servers: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(nats|tls)://[^/\s]+$")], ...],
        Meta(min_length=1, description="a list of addresses such as nats://10.0.0.11:4222"),
    ]
    role: Annotated[str, Meta(pattern="^(writer|gateway)$", description="writer or gateway")]
    shard: Annotated[str, Meta(pattern="^[a-z0-9_]+$", description="lower-case letters, digits and _")] = "main"
    replicas: Annotated[int, Meta(ge=1, le=5, description="a whole number from 1 to 5")] = 1
    credentials_env: Variable = ""  # the variable with the path of a credentials file
    lease_s: Annotated[float, Meta(ge=0.5, le=300, description="0.5 to 300 seconds")] = 5.0
    log_hours: Annotated[float, Meta(gt=0, le=8784, description="a number of hours above 0")] = 24.0
    log_bytes: Annotated[int, Meta(ge=1 << 20, description="a whole number from 1048576 up")] = 16 << 30
    snapshot_s: Seconds = 10.0


class Feed(msgspec.Struct, frozen=True, kw_only=True):
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


class TheOddsApi(Feed, frozen=True, kw_only=True):
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


class Interface(Feed, frozen=True, kw_only=True):
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


class Optic(Feed, frozen=True, kw_only=True):
    """A stream in the form of OpticOdds, version 3."""

    key_env: Required
    sports: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its sports")]
    books: Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one of its sportsbooks")]
    url: Url = "https://api.opticodds.com/api/v3"
    leagues: Texts = ()
    markets: Texts = ()
    silence: Seconds = 60.0


class Betfair(Feed, frozen=True, kw_only=True):
    """The stream of the Betfair exchange; `sports` are the numbers of its event types, "1" is soccer."""

    key_env: Required
    session_env: Variable = ""  # a session token; or a user and password to log in with
    user_env: Variable = ""
    password_env: Variable = ""
    url: Socket = "tls://stream-api.betfair.com:443"
    login_url: Url = "https://identitysso.betfair.com/api/login"
    catalogue_url: str = "https://api.betfair.com/exchange/betting/rest/v1.0"  # for names; empty: not requested
    countries: Texts = ()
    market_types: Texts = ("MATCH_ODDS", "ASIAN_HANDICAP", "ALT_TOTAL_GOALS", "OVER_UNDER_25", "MONEY_LINE")
    heartbeat: Annotated[float, Meta(ge=0.5, le=30, description="0.5 to 30 seconds")] = 5.0
    silence: Seconds = 15.0


class BetfairHistory(Feed, frozen=True, kw_only=True):
    """Recorded lines of the Betfair stream: .bz2, .gz or plain; a file or a folder of them."""

    path: Text


class Document(Feed, frozen=True, kw_only=True):
    """A file, a folder or a URL, read once or polled."""

    path: str = ""
    url: str = ""
    interval: Annotated[float, Meta(ge=0, description="a number of seconds, 0 for once")] = 0.0


class FootballData(Document, frozen=True, kw_only=True):
    """CSV files of football-data.co.uk."""


class Table(Document, frozen=True, kw_only=True):
    """A table with the columns of an odds table."""


KINDS: dict[str, type[Feed]] = {
    "the_odds_api": TheOddsApi,
    "interface": Interface,
    "optic": Optic,
    "betfair": Betfair,
    "betfair_history": BetfairHistory,
    "football_data": FootballData,
    "table": Table,
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings: the sections, and the feeds by name."""

    file: str
    archive: ArchiveSettings
    data: DataSettings
    fair: FairSettings
    keys: Keys
    matching: MatchingSettings
    alerts: AlertSettings
    service: ServiceSettings
    feeds: Mapping[str, Feed]
    scale: Scale | None = None


SECTIONS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)[1:-2]}
_ALL = (*SECTIONS, "scale", "feeds")


def load(path: str | Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings from a file, overridden by the environment; raises `SettingsError` if one is not valid.

    Without a path it is `oddsengine.toml` in the working directory, if that exists.
    """
    tables = _tables(path)
    name = str(path or FILE)
    environ = {variable: value for variable, value in environ.items() if value}
    used: set[str] = set()
    unknown = sorted(set(tables) - set(_ALL))
    if unknown:
        raise SettingsError(f"{name}: [{unknown[0]}] is not a section; allowed: {', '.join(_ALL)}")
    sections = {
        section: _Section(name, section, tables.get(section, {}), environ, used).read(kind)
        for section, kind in SECTIONS.items()
    }
    scale = None
    if "scale" in tables or any(variable.startswith(f"{PREFIX}_SCALE_") for variable in environ):
        section = _Section(name, "scale", tables.get("scale", {}), environ, used)
        scale = section.read(Scale)
        if any(not _has_address(server, ("nats", "tls")) for server in scale.servers):
            raise section.refused("servers", scale.servers, "a list of addresses such as nats://10.0.0.11:4222")
    declared = _mapping(name, "feeds", tables.get("feeds", {}))
    feeds = {}
    for feed in [*declared, *_from_environment(declared, environ)]:
        if not feed.isidentifier() or not feed.islower() or not feed.isascii():
            raise SettingsError(f"{name}: feed names must be lower-case letters, digits and _, got feeds.{feed!r}")
        feeds[feed] = _feed(_Section(name, f"feeds.{feed}", declared.get(feed, {}), environ, used), feed)
    settings = Settings(file=name, feeds=feeds, scale=scale, **sections)
    _check_variables(settings, environ, used)
    return settings


def _check_variables(settings: Settings, environ: Mapping[str, str], used: set[str]) -> None:
    """Raise `SettingsError` for a variable with our prefix that nothing reads; `used` are those of all settings."""
    parts = [*(getattr(settings, section) for section in (*SECTIONS, "scale")), *settings.feeds.values()]
    fields = [(part, field) for part in parts if part for field in part.__struct_fields__]
    named = {getattr(part, field) for part, field in fields if field.endswith("_env")}
    places = [f"{PREFIX}_{section}_".upper() for section in _ALL]
    for variable in sorted({*environ} - used - named - _OTHERS):
        if variable.startswith(f"{PREFIX}_") and not _OF_KUBERNETES.fullmatch(f"{variable}={environ[variable]}"):
            place = next((each for each in places if variable.startswith(each)), "")
            allowed = sorted(each for each in used if place and each.startswith(place))
            if kind := _missing_kind(variable, used):
                allowed.append(f"{kind} beside it, one of {', '.join(KINDS)}")
            allowed = allowed or [*sorted(_OTHERS), *(f"{each}..." for each in places)]
            raise SettingsError(f"environment: {variable} is not a setting; allowed: {', '.join(allowed)}")


def _missing_kind(variable: str, used: set[str]) -> str:
    """The variable missing beside one such as `ODDSENGINE_FEEDS_NAME_PATH`; empty if it is given, or for others."""
    start = f"{PREFIX}_FEEDS_"
    keys = {f"_{field}".upper() for kind in KINDS.values() for field in kind.__struct_fields__}
    key = max((key for key in keys if variable.endswith(key)), key=len, default="")
    name = variable.removeprefix(start).removesuffix(key)
    kind = f"{start}{name}_KIND"
    return kind if variable.startswith(start) and key and name and kind not in used else ""


def learn(settings: Settings) -> None:
    """Load the operator's own catalog file; call it before any lookup in the catalog.

    Raises `SettingsError` if the file is not valid.
    """
    if settings.data.catalog:
        try:
            catalog.load(settings.data.catalog)
        except catalog.CatalogError as error:
            raise SettingsError(f"{settings.file}: data.catalog: {error}") from None


def make_folder(settings: Settings) -> None:
    """Create the data folder if it does not exist. Raises `SettingsError` if it cannot be created."""
    try:
        Path(settings.data.folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{settings.file}: data.folder must be a folder that can be created, got {settings.data.folder!r}: "
            f"{(error.strerror or str(error)).lower()}"
        ) from None


def secret(settings: Settings, place: str, environ: Mapping[str, str]) -> str:
    """The secret in the environment variable that a setting such as `alerts.mail_env` names; empty if the setting is.

    Raises `SettingsError` if the variable is not set.
    """
    section, _, field = place.rpartition(".")
    of = settings.feeds[section.removeprefix("feeds.")] if "." in section else getattr(settings, section)
    variable: str = getattr(of, field)
    value = environ.get(variable, "").strip()
    if variable and not value:
        raise SettingsError(
            f"{settings.file}: {place} is {variable!r}, but that environment variable is not set or empty; "
            "it must name the variable that holds the secret"
        )
    return value if variable else ""


def _tables(path: str | Path | None) -> dict[str, Any]:
    file = Path(path or FILE)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path is None:
            return {}
        raise SettingsError(f"{path}: no such file") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from None


def _mapping(file: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: {key} must be a table, got {_quoted(value)}")
    return value


def _from_environment(declared: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Feeds that are declared only in the environment, with their kind."""
    start, end = f"{PREFIX}_FEEDS_", "_KIND"
    names = [v[len(start) : -len(end)].lower() for v in environ if v.startswith(start) and v.endswith(end)]
    return sorted(name for name in names if name and name not in declared)


def _feed(section: "_Section", name: str) -> Feed:
    kind = section.take("kind", str, "")
    if kind not in KINDS:
        raise section.refused("kind", kind or None, f"one of {', '.join(KINDS)}")
    feed = section.read(KINDS[kind], name=name, kind=kind)
    if isinstance(feed, Document):
        if not (feed.path or feed.url):
            raise section.error("needs path or url")
        if feed.path and feed.url:
            raise section.error("takes path or url, not both")
    for key in ("url", "login_url", "catalogue_url"):
        if (url := getattr(feed, key, "")) and not _has_address(url, ("http", "https", "tls", "tcp")):
            raise section.refused(key, url, "a URL that starts with http:// or https://, with a port up to 65535")
    if isinstance(feed, Betfair) and not feed.session_env and not (feed.user_env and feed.password_env):
        raise section.refused("session_env", "", "given, or user_env and password_env instead")
    assert isinstance(feed, Feed)
    return feed


def _has_address(url: str, schemes: tuple[str, ...]) -> bool:
    """Whether a URL has one of these schemes, a host, and a port that exists."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class _Section:
    """One table of the file, overridden by the environment."""

    def __init__(self, file: str, place: str, table: Any, environ: Mapping[str, str], used: set[str]) -> None:
        self._file, self._place = file, place
        self._table = _mapping(file, place, table)
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
        if text is not None and get_origin(getattr(kind, "__origin__", kind)) is tuple:
            value = [part.strip() for part in text.split(",") if part.strip()]
        try:
            return msgspec.convert(value, kind, strict=text is None)
        except msgspec.ValidationError:
            raise self.refused(key, value, _allowed(kind)) from None

    def read(self, struct: type[msgspec.Struct], **fixed: str) -> Any:
        """Read all settings of a struct."""
        hints = get_type_hints(struct, include_extras=True)
        fields = {field.name: field for field in msgspec.structs.fields(struct) if field.name not in fixed}
        unknown = sorted(set(self._table) - {*fields, *fixed} | ({"name"} & set(self._table)))
        if unknown:
            allowed = ", ".join(sorted({*fields, *fixed} - {"name"}))
            raise SettingsError(f"{self._file}: {self._place}.{unknown[0]} is not a setting; allowed: {allowed}")
        values = {name: self.take(name, hints[name], field.default) for name, field in fields.items()}
        return struct(**values, **fixed)

    def _variable(self, key: str) -> str:
        return f"{PREFIX}_{self._place.replace('.', '_')}_{key}".upper()


def _allowed(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.description:
            return meta.description
    return {str: "a string", bool: "true or false"}.get(kind, f"of type {kind}")


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as in TOML
    return "nothing" if value is None else repr(value)[:80]
