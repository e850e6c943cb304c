"""Creates fetchers from settings, by kind."""

from collections.abc import Callable, Mapping
from typing import Any

from oddsengine_service.feeds import betfair, documents, interface, optic, the_odds_api
from oddsengine_service.feeds.hub import Source
from oddsengine_service.feeds.secrets import Secrets
from oddsengine_service.settings import Feed, Settings, secret

HISTORY = {"betfair_history", "football_data"}  # kinds whose data has its own time
BUILDERS: dict[str, Callable[[Any, Mapping[str, str], Secrets], Source]] = {
    "the_odds_api": the_odds_api.TheOddsApiSource,
    "interface": interface.source,
    "optic": optic.OpticSource,
    "betfair": betfair.BetfairSource,
    "betfair_history": betfair.BetfairFiles,
    "football_data": documents.football_data,
    "table": documents.table,
}


def source(settings: Settings, feed: Feed, environ: Mapping[str, str], secrets: Secrets) -> Source:
    """Create the fetcher of a feed; its secrets are resolved and masked in all output.

    Raises `SettingsError` if the environment lacks a variable that the feed names.
    """
    fields = [name for name in feed.__struct_fields__ if name.endswith("_env")]
    env = {name: secret(settings, f"feeds.{feed.name}.{name}", environ) for name in fields}
    secrets.add(*env.values())
    return BUILDERS[feed.kind](feed, env, secrets)


def sources(settings: Settings, environ: Mapping[str, str], secrets: Secrets) -> list[Source]:
    return [source(settings, feed, environ, secrets) for feed in settings.feeds.values()]
