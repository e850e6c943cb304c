"""Manual decisions on single games, which take precedence over matching.

One TOML table per source maps the source's ids to an event id, `new` (an event of its own) or `never` (ignored):

    [the_odds_api]
    "e912304de2b2ce35b473ce2ecd3d1502" = "nba_celtics_lakers_2026-02-08"
    "f57b0a2a3ee8d3d1b7c0a1b58ab04b2d" = "new"
"""

import tomllib
from collections.abc import Mapping
from types import MappingProxyType

NEW, NEVER = "new", "never"

Overrides = Mapping[tuple[str, str], str]
NONE: Overrides = MappingProxyType({})


class OverrideError(ValueError):
    """An invalid overrides file; the message is for the user."""


def parse_overrides(text: str) -> Overrides:
    r"""Parse overrides: (source, source's id) to event id, `new` or `never`.

    Examples
    --------
    >>> dict(parse_overrides('[feed]\n"17" = "never"'))
    {('feed', '17'): 'never'}
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OverrideError(f"overrides: not valid TOML: {error}") from error
    decisions = {}
    for source, entries in tables.items():
        if not isinstance(entries, dict):
            raise OverrideError(f"{source!r} is not in a table; put it into one named after its feed: [name]")
        for id_, meant in entries.items():
            if not isinstance(meant, str) or not meant.strip():
                raise OverrideError(f"{id_!r} of {source} must be an event id, new or never")
            decisions[source, id_] = meant.strip()
    return MappingProxyType(decisions)
