"""What a kind of source consists of: our own, and those of plugins (docs/plugins.md)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oddsengine.feeds.venue_contracts import Contract
from oddsengine.sources.receiver import Source
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_settings import FeedSettings


class SourceKind(NamedTuple):
    """A kind of source. A fetcher is created from its settings, and the secrets by the names of their settings."""

    settings: type[FeedSettings]
    fetcher: Callable[[Any, Mapping[str, str], Secrets], Source]
    historical: bool = False  # its data has its own time
    variables: Mapping[str, str] = {}  # the usual environment variable of each secret
    leagues: Mapping[str, str] = {}  # its names of sports and leagues, by our ids
    contract: Contract | None = None  # of a plugin; ours are in `oddsengine/feeds/contracts`
