"""Sources of odds: fetchers of what the parsers of `oddsengine.feeds` read. The only folder that opens sockets.

A fetcher delivers payloads to a `Receiver`: the board of a node, or the caller of `fetch` and `source`. A new source is
its settings in `source_settings`, a module with its fetcher, and an entry of `KINDS`; or all of that in one module, as
`odds_api_io_client` has it, and an entry point, by which other packages add theirs. It needs the extra `[feeds]`.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

try:
    import httpx2  # noqa: F401
    import websockets  # noqa: F401
except ImportError as error:
    raise ModuleNotFoundError(
        "sources of odds need httpx2 and websockets: pip install 'oddsengine[feeds]'", name=error.name
    ) from error

from oddsengine.bounds import excerpt
from oddsengine.feeds import venue_contracts
from oddsengine.feeds.the_odds_api_names import SPORT_KEYS
from oddsengine.feeds.venue_contracts import Contract
from oddsengine.plugins import SOURCES, AmbiguousNameError, Plugin, PluginError, described, find, load, registered
from oddsengine.sources import (
    betfair_client,
    documents,
    kalshi_client,
    matchbook_client,
    node_client,
    novig_client,
    optic_client,
    polymarket_client,
    smarkets_client,
    source_settings,
    sportsgameodds_client,
    sx_bet_client,
    the_odds_api_client,
)
from oddsengine.sources.drift import venue_of
from oddsengine.sources.failure import Failure
from oddsengine.sources.plugin_source import UnusableSource, checked_kind, made
from oddsengine.sources.receiver import Receiver, Source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_kinds import SourceKind
from oddsengine.sources.source_settings import (
    BetfairSettings,
    DocumentSettings,
    FeedSettings,
    KalshiSettings,
    SettingsError,
    SettingsTable,
    TableSettings,
    UnusableSettings,
)
from oddsengine.tables.column_names import check_columns
from oddsengine.tables.schema import ODDS_SCHEMA

__all__ = [
    "KINDS",
    "Failure",
    "FeedSettings",
    "Receiver",
    "Secrets",
    "SettingsError",
    "Source",
    "SourceKind",
    "contract_of",
    "create",
    "declared",
    "is_historical",
    "kind_names",
    "read_feed",
    "source_kind",
]


KINDS = {
    "the_odds_api": SourceKind(
        source_settings.TheOddsApiSettings, the_odds_api_client.TheOddsApiSource, variables={"key_env": "ODDS_API_KEY"},
        leagues=SPORT_KEYS,
    ),
    "interface": SourceKind(source_settings.InterfaceSettings, node_client.source,
        variables={"key_env": "ODDSENGINE_API_KEY"}),
    "optic": SourceKind(source_settings.OpticSettings, optic_client.OpticSource,
        variables={"key_env": "OPTICODDS_API_KEY"}),
    "betfair": SourceKind(
        source_settings.BetfairSettings, betfair_client.BetfairSource,
        variables={
            "key_env": "BETFAIR_APP_KEY", "session_env": "BETFAIR_SESSION", "user_env": "BETFAIR_USER",
            "password_env": "BETFAIR_PASSWORD",
        },
    ),
    "polymarket": SourceKind(
        source_settings.PolymarketSettings, polymarket_client.PolymarketSource, leagues=polymarket_client.LEAGUE_CODES
    ),
    "betfair_history": SourceKind(source_settings.BetfairHistorySettings, betfair_client.BetfairFiles, historical=True),
    "football_data": SourceKind(source_settings.FootballDataSettings, documents.football_data, historical=True),
    "table": SourceKind(source_settings.TableSettings, documents.table),
    "kalshi": SourceKind(
        source_settings.KalshiSettings, kalshi_client.KalshiSource,
        variables={"key_env": "KALSHI_KEY_ID", "private_key_env": "KALSHI_PRIVATE_KEY_FILE"},
        leagues=kalshi_client.SERIES,
    ),
    "sx_bet": SourceKind(source_settings.SxBetSettings, sx_bet_client.source, variables={"key_env": "SX_BET_API_KEY"}),
    "smarkets": SourceKind(source_settings.SmarketsSettings, smarkets_client.source),
    "matchbook": SourceKind(source_settings.MatchbookSettings, matchbook_client.source),
    "novig": SourceKind(source_settings.NovigSettings, novig_client.source),
    "sportsgameodds": SourceKind(
        source_settings.SportsGameOddsSettings, sportsgameodds_client.source,
        variables={"key_env": "SPORTS_GAME_ODDS_API_KEY"},
        leagues=sportsgameodds_client.LEAGUES,
    ),
}  # fmt: skip


def kind_names() -> list[str]:
    """Return the kinds of sources: ours, then those of plugins."""
    return list(dict.fromkeys([*KINDS, *(plugin.name for plugin in registered(SOURCES))]))


def source_kind(name: str) -> SourceKind:
    """Return a kind of source; that of a plugin is imported.

    Raises `PluginError` if it cannot be used, `AmbiguousNameError` if two packages register it, and `SettingsError` if
    there is none of that name.
    """
    plugin = _plugin(name)
    if plugin is not None:
        return _loaded(plugin)
    if name not in KINDS:
        raise SettingsError(f"{excerpt(name)} is not a kind of source; allowed: {', '.join(kind_names())}")
    return KINDS[name]


def _plugin(name: str) -> Plugin | None:
    return find(SOURCES, name, KINDS)


@lru_cache
def _loaded(plugin: Plugin) -> SourceKind:
    return checked_kind(plugin, load(plugin))


def create(feed: FeedSettings, env: Mapping[str, str], secrets: Secrets) -> Source:
    """Create the fetcher of a feed; `env` has its secrets by the names of their settings.

    That of a plugin is a `PluginSource`, and one that cannot be used an `UnusableSource`.
    """
    if isinstance(feed, UnusableSettings):
        return UnusableSource.of(feed)
    plugin, kind = _plugin(feed.kind), source_kind(feed.kind)
    return kind.fetcher(feed, env, secrets) if plugin is None else made(plugin, kind, feed, env, secrets)


def is_historical(feed: FeedSettings) -> bool:
    """Whether the data of a feed has its own time."""
    return not isinstance(feed, UnusableSettings) and source_kind(feed.kind).historical


def contract_of(feed: FeedSettings) -> Contract | None:
    """Return the contract of what a feed reads; None without one."""
    if isinstance(feed, UnusableSettings) or not (venue := venue_of(feed)):
        return None
    plugin = _plugin(feed.kind)
    own = None if plugin is None else _loaded(plugin).contract
    return venue_contracts.find(venue) if own is None else own


def declared(names: Iterable[str], leagues: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that declare sources for some leagues, named after their kinds.

    A secret is the usual variable of its kind, if it is set. Raises `ValueError` for a kind that cannot be used.

    Examples
    --------
    >>> declared(["polymarket"], ["ncaaf"], {})
    {'ODDSENGINE_FEEDS_POLYMARKET_KIND': 'polymarket', 'ODDSENGINE_FEEDS_POLYMARKET_SPORTS': 'cfb'}
    """
    out = {}
    for name in names:
        kind, start = source_kind(name), f"ODDSENGINE_FEEDS_{name.upper()}_"
        out[f"{start}KIND"] = name
        out[f"{start}SPORTS"] = ",".join(kind.leagues.get(league, league) for league in leagues)
        out |= {start + setting.upper(): named for setting, named in kind.variables.items() if environ.get(named)}
    return out


def _read_settings(section: SettingsTable, name: str, kind: str) -> FeedSettings:
    """Read the settings of a feed. If the plugin of its kind fails, they are `UnusableSettings`, which say why."""
    if kind not in kind_names():
        raise section.refused("kind", kind or None, f"one of {', '.join(kind_names())}")
    plugin = None
    try:
        plugin = _plugin(kind)
        feed = section.read(source_kind(kind).settings, name=name, kind=kind)
    except SettingsError:
        raise
    except AmbiguousNameError as error:
        raise section.error(f"has an ambiguous kind: {error}") from None
    except BaseException as error:
        if plugin is None or isinstance(error, KeyboardInterrupt):
            raise
        reason = error if isinstance(error, PluginError) else plugin.error(f"its settings raise {described(error)}")
        section.pass_over()
        return UnusableSettings(name=name, kind=kind, reason=str(reason))
    assert isinstance(feed, FeedSettings)
    return feed


def read_feed(section: SettingsTable, name: str) -> FeedSettings:
    """Read the settings of a feed. Raises `SettingsError` if one is not valid."""
    feed = _read_settings(section, name, section.take("kind", str, ""))
    if isinstance(feed, DocumentSettings):
        if not (feed.path or feed.url):
            raise section.error("needs path or url")
        if feed.path and feed.url:
            raise section.error("takes path or url, not both")
    if isinstance(feed, TableSettings):
        try:
            check_columns(feed.columns, ODDS_SCHEMA)
        except ValueError as error:
            raise section.error(f"has a wrong name: {error}") from None
    for key in ("url", "login_url", "catalogue_url", "books_url", "stream_url"):
        schemes = ("ws", "wss") if key == "stream_url" else ("http", "https", "tls", "tcp")
        if (url := getattr(feed, key, "")) and not source_settings.has_address(url, schemes):
            first, second, *_ = schemes
            raise section.refused(
                key, url, f"a URL that starts with {first}:// or {second}://, with a port up to 65535"
            )  # fmt: skip
    if isinstance(feed, BetfairSettings) and not feed.session_env and not (feed.user_env and feed.password_env):
        raise section.refused("session_env", "", "given, or user_env and password_env instead")
    if isinstance(feed, KalshiSettings) and bool(feed.key_env) != bool(feed.private_key_env):
        missing = "private_key_env" if feed.key_env else "key_env"
        raise section.refused(missing, "", "given, since a key is its id and its private key")
    return feed
