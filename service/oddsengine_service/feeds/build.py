"""Creates the fetchers of a node from its settings."""

from collections.abc import Mapping

from oddsengine.sources import FeedSettings, Secrets, Source, create
from oddsengine.sources.plugin_source import PluginSource
from oddsengine_service.feeds.own_thread import ThreadedSource
from oddsengine_service.settings import Settings, secret


def source(settings: Settings, feed: FeedSettings, environ: Mapping[str, str], secrets: Secrets) -> Source:
    """Create the fetcher of a feed; its secrets are resolved and masked in all output. That of a plugin has a thread.

    Raises `SettingsError` if the environment lacks a variable that the feed names.
    """
    fields = [name for name in feed.__struct_fields__ if name.endswith("_env")]
    env = {name: secret(settings, f"feeds.{feed.name}.{name}", environ) for name in fields}
    secrets.add(*env.values())
    made = create(feed, env, secrets)
    return ThreadedSource(made) if isinstance(made, PluginSource) else made


def sources(settings: Settings, environ: Mapping[str, str], secrets: Secrets) -> list[Source]:
    return [source(settings, feed, environ, secrets) for feed in settings.feeds.values()]
