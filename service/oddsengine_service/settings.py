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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from oddsengine import catalog
from oddsengine.sources import KINDS, FeedSettings, declared, kind_names, read_feed
from oddsengine.sources import SettingsError as SettingsError  # noqa: PLC0414  what `load` raises
from oddsengine.sources.source_settings import (
    PREFIX,
    Count,
    Paths,
    Seconds,
    SettingsTable,
    Switch,
    Text,
    Texts,
    Variable,
    has_address,
    mapping,
)

FILE = "oddsengine.toml"
MOST_PORT = 65_535
_OTHERS = frozenset({f"{PREFIX}_API_KEY", f"{PREFIX}_CACHE"})  # variables that are read elsewhere
# Kubernetes sets these in every container for a Service whose name begins with ours.
_OF_KUBERNETES = re.compile(
    rf"{PREFIX}_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*|PORT_\d+_(TCP|UDP|SCTP)\w*=.*|PORT=(tcp|udp|sctp)://.*)"
)

Days = Annotated[float, Meta(gt=0, le=36_500, description="a number of days above 0")]
_RATE = "USD per unit, a number above 0"
Rate = Annotated[float, Meta(gt=0, le=1e6, description=_RATE)]
NoRate = Annotated[Annotated[float, Meta(gt=0, le=1e6)] | None, Meta(description=_RATE)]
OptionalSwitch = Annotated[bool | None, Meta(description="true or false")]
Port = Annotated[int, Meta(ge=0, le=MOST_PORT, description=f"a port from 0 to {MOST_PORT}")]
Reference = Annotated[str, Meta(pattern="^(close|classical)$", description="close or classical")]
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


class DataSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[data]`: files of a node."""

    folder: Text = "oddsengine-data"
    catalog: Paths = ()  # an operator's own files of books, leagues, teams and market names, or folders of them
    guards: Texts = ()  # of plugins, by name
    kept_files: Count = 50  # number of payloads that failed to parse to retain, the newest ones
    kept_bytes: Count = 20_000_000
    tape: Switch = False  # record every step
    tape_days: Days = 7.0  # older tapes are deleted at the next start
    truth: str = ""  # a report of `audit --live`; empty: truth/report.json in the folder


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
    targets: Annotated[
        dict[str, Variable],
        Meta(description='a table of schemes and variables with their secrets, such as {ntfy = "NTFY_TOKEN"}'),
    ] = {}  # of plugins
    every: Seconds = 5.0  # between two checks


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[service]`: addresses, and trusted proxies."""

    host: Text = "127.0.0.1"
    port: Port = 8000
    url: Public = ""  # base URL for clients; empty: the Host header of each request
    trusted: Addresses = ()  # proxies whose X-Forwarded-For is used
    connections: Count = 0  # per address; 0 is a quarter of what the process can hold
    origins: Origins = ()  # of web pages that may use the API from a browser
    quiet: OptionalSwitch = None  # log only requests with a server error; None: if the log goes to a terminal
    strict: Switch = False  # refuse parameters that requests do not have, instead of ignoring them
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


class RateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[rates]`: what a unit of a currency is worth in USD, for sizes of arbitrages between currencies."""

    GBP: NoRate = None
    EUR: NoRate = None
    USDC: Rate = 1.0

    @property
    def table(self) -> dict[str, float]:
        """The rates as `largest_arbitrages` takes them; empty if no currency has one."""
        given = {name: rate for name in ("GBP", "EUR") if (rate := getattr(self, name)) is not None}
        return {"USD": 1.0, "USDC": self.USDC, **given} if given or self.USDC != 1.0 else {}


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


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings: the sections, and the feeds by name."""

    file: str
    archive: ArchiveSettings
    data: DataSettings
    fair: FairSettings
    rates: RateSettings
    keys: Keys
    matching: MatchingSettings
    alerts: AlertSettings
    service: ServiceSettings
    feeds: Mapping[str, FeedSettings]
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
        section: SettingsTable(name, section, tables.get(section, {}), environ, used).read(kind)
        for section, kind in SECTIONS.items()
    }
    scale = None
    if "scale" in tables or any(variable.startswith(f"{PREFIX}_SCALE_") for variable in environ):
        section = SettingsTable(name, "scale", tables.get("scale", {}), environ, used)
        scale = section.read(Scale)
        if any(not has_address(server, ("nats", "tls")) for server in scale.servers):
            raise section.refused("servers", scale.servers, "a list of addresses such as nats://10.0.0.11:4222")
    declared = mapping(name, "feeds", tables.get("feeds", {}))
    feeds = {}
    for feed in [*declared, *_from_environment(declared, environ)]:
        if not feed.isidentifier() or not feed.islower() or not feed.isascii():
            raise SettingsError(f"{name}: feed names must be lower-case letters, digits and _, got feeds.{feed!r}")
        feeds[feed] = read_feed(SettingsTable(name, f"feeds.{feed}", declared.get(feed, {}), environ, used), feed)
    settings = Settings(file=name, feeds=feeds, scale=scale, **sections)
    _check_variables(settings, environ, used)
    return settings


def with_sources(names: Iterable[str], leagues: Iterable[str], environ: Mapping[str, str]) -> Settings:
    """The settings of the environment, with these kinds of sources as the only feeds: what `serve --live` reads."""
    names = list(names)
    read = load(None, {**environ, **declared(names, leagues, environ)})
    return msgspec.structs.replace(read, feeds={name: read.feeds[name] for name in names})


def _check_variables(settings: Settings, environ: Mapping[str, str], used: set[str]) -> None:
    """Raise `SettingsError` for a variable with our prefix that nothing reads; `used` are those of all settings."""
    parts = [*(getattr(settings, section) for section in (*SECTIONS, "scale")), *settings.feeds.values()]
    fields = [(part, field) for part in parts if part for field in part.__struct_fields__]
    named = {getattr(part, field) for part, field in fields if field.endswith("_env")} | {
        *settings.alerts.targets.values()
    }
    places = [f"{PREFIX}_{section}_".upper() for section in _ALL]
    for variable in sorted({*environ} - used - named - _OTHERS):
        if variable.startswith(f"{PREFIX}_") and not _OF_KUBERNETES.fullmatch(f"{variable}={environ[variable]}"):
            place = next((each for each in places if variable.startswith(each)), "")
            allowed = sorted(each for each in used if place and each.startswith(place))
            if kind := _missing_kind(variable, used):
                allowed.append(f"{kind} beside it, one of {', '.join(kind_names())}")
            allowed = allowed or [*sorted(_OTHERS), *(f"{each}..." for each in places)]
            raise SettingsError(f"environment: {variable} is not a setting; allowed: {', '.join(allowed)}")


def _missing_kind(variable: str, used: set[str]) -> str:
    """The variable missing beside one such as `ODDSENGINE_FEEDS_NAME_PATH`; empty if it is given, or for others."""
    start = f"{PREFIX}_FEEDS_"
    keys = {f"_{field}".upper() for kind in KINDS.values() for field in kind.settings.__struct_fields__}
    key = max((key for key in keys if variable.endswith(key)), key=len, default="")
    name = variable.removeprefix(start).removesuffix(key)
    kind = f"{start}{name}_KIND"
    return kind if variable.startswith(start) and key and name and kind not in used else ""


def learn(settings: Settings) -> None:
    """Load the operator's own catalog files; call it before any lookup in the catalog.

    Raises `SettingsError` if one is not valid, or they contradict each other.
    """
    if settings.data.catalog:
        try:
            catalog.load(*settings.data.catalog)
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


def _from_environment(declared: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Feeds that are declared only in the environment, with their kind."""
    start, end = f"{PREFIX}_FEEDS_", "_KIND"
    names = [v[len(start) : -len(end)].lower() for v in environ if v.startswith(start) and v.endswith(end)]
    return sorted(name for name in names if name and name not in declared)
