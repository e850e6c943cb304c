"""Plugins: what installed packages add by entry points, each under a name that settings and arguments take.

| group | name | object |
| --- | --- | --- |
| `oddsengine.sources` | `kind` of a feed | `oddsengine.sources.SourceKind` |
| `oddsengine.targets` | the scheme of an address of alerts | `oddsengine_service.bettors.targets.Target` |
| `oddsengine.fair` | `model=`, `audit --against`, `benchmark --method` | a function of `MarketPrices` |
| `oddsengine.guards` | `guards=`, `[data] guards` | `oddsengine.guards.plugin_guards.Guard` |

A plugin runs with the rights of the process, so only `load` imports one, and is called for what settings or arguments
name. What is installed is read from the metadata of distributions. docs/plugins.md describes how one is written.
"""

import re
import sys
from collections.abc import Callable, Container
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions
from typing import Any, NamedTuple

from oddsengine.bounds import printable, shortened, text_of

SOURCES, TARGETS, FAIR, GUARDS = GROUPS = (
    "oddsengine.sources", "oddsengine.targets", "oddsengine.fair", "oddsengine.guards",
)  # fmt: skip
_WHAT = {SOURCES: "kind of source", TARGETS: "target", FAIR: "fair price", GUARDS: "guard"}
_OURS = "oddsengine"
MOST_SAID = 300  # characters of a text of a plugin


class PluginError(ValueError):
    """A plugin that cannot be used; the message says which, of which package, and why."""


class AmbiguousNameError(PluginError):
    """A name that is registered more than once."""


class Plugin(NamedTuple):
    """An entry point, and the distribution that registers it."""

    group: str
    name: str
    object: str  # module:attribute
    distribution: str
    version: str

    @property
    def package(self) -> str:
        """The distribution and its version."""
        return f"{self.distribution} {self.version}".rstrip()

    @property
    def is_ours(self) -> bool:
        """Whether this package registers it."""
        return self.distribution == _OURS

    @property
    def label(self) -> str:
        """What it is, for a message."""
        return f"the {_WHAT[self.group]} {self.name!r} of {self.package}"

    def error(self, why: str) -> PluginError:
        """Return an error that names the plugin."""
        return PluginError(f"{self.label} cannot be used: {why}")


def registered(group: str | None = None) -> list[Plugin]:
    """Return what installed distributions register, without importing it.

    Parameters
    ----------
    group
        One of `GROUPS`; None is all of them.

    Examples
    --------
    >>> [each.object for each in registered(SOURCES) if each.is_ours]
    ['oddsengine.sources.odds_api_io_client:KIND']
    """
    return [each for each in _scanned(tuple(sys.path)) if group in (None, each.group)]


@lru_cache(4)
def _scanned(_: tuple[str, ...]) -> tuple[Plugin, ...]:
    """All plugins on a path. A distribution that is on it twice counts once, as it does for imports."""
    found, names = [], set()
    for each in distributions():
        try:
            name, version, entries = each.name, each.version, each.entry_points
        except Exception:  # broken metadata of another package
            continue
        normalised = re.sub(r"[-_.]+", "-", str(name)).lower()
        if normalised not in names:
            names.add(normalised)
            package = printable(shortened(str(name))), printable(shortened(str(version or "")))
            found += [Plugin(one.group, one.name, one.value, *package) for one in _of_groups(entries)]
    return tuple(sorted(found))


def _of_groups(entries: Any) -> list[EntryPoint]:
    return [each for each in entries if each.group in GROUPS]


def find(group: str, name: str, own: Container[str] = ()) -> Plugin | None:
    """Return the plugin of a name; None if there is none.

    `own` are names that are taken without an entry point. Raises `AmbiguousNameError` if a name is registered twice.
    """
    plugins = [each for each in registered(group) if each.name == name]
    owners = [*([_OURS] if name in own else []), *(each.package for each in plugins)]
    if len(owners) > 1:
        raise AmbiguousNameError(
            f"the {_WHAT[group]} {name!r} is registered by {' and by '.join(owners)}; uninstall all but one"
        )
    return plugins[0] if plugins else None


def load(plugin: Plugin, clean: Callable[[str], str] = str) -> Any:
    """Import a plugin. Raises `PluginError` if that fails in any way; `clean` masks secrets in its reason."""
    try:
        return EntryPoint(plugin.name, plugin.object, plugin.group).load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the module does when it is imported
        raise plugin.error(f"importing {plugin.object} raises {described(error, clean)}") from error


def first_of(error: BaseException) -> BaseException:
    """Return the first exception of a group, such as a `TaskGroup` raises; any other as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def described(error: BaseException, clean: Callable[[str], str] = str) -> str:
    """Return the type of an exception and the beginning of its message; of a group, those of its first one.

    `clean` masks secrets in it. Of a text that is cut, it would not find the one at the cut.

    Examples
    --------
    >>> described(KeyError("price")), described(SystemExit()), described(ExceptionGroup("of tasks", [OSError("full")]))
    ("KeyError: 'price'", 'SystemExit', 'OSError: full')
    """
    error = first_of(error)
    return clean(f"{type(error).__name__}: {text_of(error)}")[:MOST_SAID].rstrip(": ")
