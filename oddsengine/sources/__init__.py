"""Sources of odds: fetchers of what the parsers of `oddsengine.feeds` read. The only folder that opens sockets.

A fetcher delivers payloads to a `Receiver`: the board of a node, or the caller of `fetch` and `source`. A new source is
its settings in `source_settings`, a module with its fetcher, and an entry of `KINDS`. It needs the extra `[feeds]`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

try:
    import httpx2  # noqa: F401
    import websockets  # noqa: F401
except ImportError as error:
    raise ModuleNotFoundError(
        "sources of odds need httpx2 and websockets: pip install 'oddsengine[feeds]'", name=error.name
    ) from error

from oddsengine.bounds import excerpt
from oddsengine.feeds.the_odds_api_names import SPORT_KEYS
from oddsengine.sources import (
    betfair_client,
    documents,
    kalshi_client,
    matchbook_client,
    node_client,
    novig_client,
    odds_api_io_client,
    optic_client,
    polymarket_client,
    smarkets_client,
    source_settings,
    sportsgameodds_client,
    sx_bet_client,
    the_odds_api_client,
)
from oddsengine.sources.failure import Failure
from oddsengine.sources.receiver import Receiver, Source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import (
    BetfairSettings,
    DocumentSettings,
    FeedSettings,
    KalshiSettings,
    SettingsError,
    SettingsTable,
    TableSettings,
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
    "declared",
    "read_feed",
]


class SourceKind(NamedTuple):
    """A kind of source. A fetcher is created from its settings, and the secrets by the names of their settings."""

    settings: type[FeedSettings]
    fetcher: Callable[[Any, Mapping[str, str], Secrets], Source]
    historical: bool = False  # its data has its own time
    variables: Mapping[str, str] = {}
    leagues: Mapping[str, str] = {}


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
    "odds_api_io": SourceKind(
        source_settings.OddsApiIoSettings, odds_api_io_client.source, variables={"key_env": "ODDS_API_IO_KEY"},
        leagues=odds_api_io_client.LEAGUES,
    ),
}  # fmt: skip


def declared(names: Iterable[str], leagues: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that declare sources for some leagues, named after their kinds.

    A secret is the usual variable of its kind, if it is set. Raises `SettingsError` for an unknown kind.

    Examples
    --------
    >>> declared(["polymarket"], ["ncaaf"], {})
    {'ODDSENGINE_FEEDS_POLYMARKET_KIND': 'polymarket', 'ODDSENGINE_FEEDS_POLYMARKET_SPORTS': 'cfb'}
    """
    out = {}
    for name in names:
        if name not in KINDS:
            raise SettingsError(f"{excerpt(name)} is not a kind of source; allowed: {', '.join(KINDS)}")
        kind, start = KINDS[name], f"ODDSENGINE_FEEDS_{name.upper()}_"
        out[f"{start}KIND"] = name
        out[f"{start}SPORTS"] = ",".join(kind.leagues.get(league, league) for league in leagues)
        out |= {start + setting.upper(): named for setting, named in kind.variables.items() if environ.get(named)}
    return out


def read_feed(section: SettingsTable, name: str) -> FeedSettings:
    """Read the settings of a feed. Raises `SettingsError` if one is not valid."""
    kind = section.take("kind", str, "")
    if kind not in KINDS:
        raise section.refused("kind", kind or None, f"one of {', '.join(KINDS)}")
    feed = section.read(KINDS[kind].settings, name=name, kind=kind)
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
    assert isinstance(feed, FeedSettings)
    return feed
