"""Guards of plugins on a node: those that the settings name, and when one is stopped.

A guard is stopped if it fails, or takes over a tenth of a step and 5 ms, in twenty steps more than it does not. The log
and `/health` name it then, and so does a tape, so that its replay stops it at the same step. What counts is the time of
its own function, not that of making the columns which it gets.
"""

import logging
from collections import Counter
from collections.abc import Callable
from operator import sub

from oddsengine.guards.plugin_guards import loaded, own_names
from oddsengine.live.engine import Engine
from oddsengine.plugins import GUARDS, AmbiguousNameError, PluginError, find, registered
from oddsengine_service.monitoring import log
from oddsengine_service.settings import Settings, SettingsError

SHARE, LEAST_S, STEPS = 0.1, 0.005, 20


def guards_of(settings: Settings, failed: Callable[[str, str], None]) -> dict[str, bool]:
    """Return the guards of plugins that the settings name, as an engine takes them; `failed` is told of unusable ones.

    Raises `SettingsError` for a name that no installed package registers, or that is registered twice.
    """
    guards: dict[str, bool] = {}
    place = f"{settings.file}: data.guards"
    if settings.data.guards and settings.scale is not None:
        raise SettingsError(f"{place} cannot be combined with [scale]: guards of plugins run in one process only")
    for name in settings.data.guards:
        try:
            is_known = find(GUARDS, name, own_names()) is not None
            loaded({name: True})
        except AmbiguousNameError as error:
            raise SettingsError(f"{place} is ambiguous: {error}") from None
        except PluginError as error:
            failed(_what(name), str(error))
            continue
        if not is_known:
            names = ", ".join(each.name for each in registered(GUARDS)) or "none"
            more = f"; {name} is one of ours and always runs" if name in own_names() else ""
            raise SettingsError(f"{place} must be names of guards that packages register ({names}), got {name!r}{more}")
        guards[name] = True
    return guards


class GuardWatch:
    """Watches the guards of plugins of an engine, and stops those that fail or are slow."""

    def __init__(self, engine: Engine, report: Callable[[str, str], None]) -> None:
        self._engine, self._report = engine, report
        self._before: dict[str, tuple[int, float, int]] = {}  # calls, seconds and failures by guard
        self._bad: Counter[str] = Counter()  # steps with a fault, less others

    def after(self, seconds: float) -> None:
        """A step is over, which took so long; only in the writer."""
        for guard in self._engine.plugin_guards:
            name, now = guard.name, (guard.calls, guard.seconds, guard.failures.total())
            calls, took, failures = map(sub, now, self._before.get(name, (0, 0.0, 0)))
            self._before[name] = now
            if not calls:
                continue
            slow = took > max(LEAST_S, SHARE * seconds)
            self._bad[name] = self._bad[name] + 1 if failures or slow else max(0, self._bad[name] - 1)
            if self._bad[name] >= STEPS:
                self._engine.stop_guard(name)
                why = guard.problem if failures else f"{guard.label} takes over a tenth of each step: {took:.3f} s"
                log.event("guard stopped", logging.WARNING, message=why)
                self._report(_what(name), f"{why}; it is stopped")
            elif failures:
                self._report(_what(name), guard.problem)
            elif not self._bad[name]:
                self._report(_what(name), "")


def _what(name: str) -> str:
    """The name of its failure, in the log and `/health`."""
    return f"guard {name}"
