"""Targets of alerts that plugins add: the settings name their schemes, and `[alerts] targets` the secret of each.

One that raises, or does not answer within `TIMEOUT_S`, fails the message and nothing else; its thread is left behind.
"""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from oddsengine.plugins import TARGETS, AmbiguousNameError, Plugin, PluginError, described, find, load, registered
from oddsengine_service.bettors.targets import SCHEMES, TIMEOUT_S, AlertMessage, Target
from oddsengine_service.monitoring import log
from oddsengine_service.settings import Settings, SettingsError

_SCHEME = re.compile("[a-z][a-z0-9+.-]*")
_MOST_RUNNING = 8  # calls of one target


def plugin_targets(
    settings: Settings, environ: Mapping[str, str], failed: Callable[[str, str], None]
) -> dict[str, Target]:  # fmt: skip
    """Return the targets that the settings name, by scheme; `failed` is told of those that cannot be used.

    Raises `SettingsError` for a name that no installed package registers or that two do, or a variable that is not set.
    """
    targets: dict[str, Target] = {}
    for scheme, variable in settings.alerts.targets.items():
        place = f"{settings.file}: alerts.targets.{scheme}"
        try:
            plugin = find(TARGETS, scheme, SCHEMES)
        except AmbiguousNameError as error:
            raise SettingsError(f"{place} is ambiguous: {error}") from None
        if not _SCHEME.fullmatch(scheme):
            raise SettingsError(f"{place} must be a scheme of lower-case letters, digits, +, . and -, after a letter")
        if plugin is None:
            names = ", ".join(each.name for each in registered(TARGETS)) or "none"
            raise SettingsError(f"{place} must be the scheme of a target that a package registers: {names}")
        secret = environ.get(variable, "").strip()
        if variable and not secret:
            raise SettingsError(f"{place} is {variable!r}, but that environment variable is not set or empty")
        try:
            targets[scheme] = PluginTarget(plugin, _made(plugin, secret))
        except PluginError as error:
            targets[scheme] = _UnusableTarget(plugin)
            failed(f"alert target {scheme}", str(error).replace(secret, "***") if secret else str(error))
    return targets


def _made(plugin: Plugin, secret: str) -> Target:
    make = load(plugin)
    if not callable(make):
        raise plugin.error(f"{plugin.object} must be a function that makes a target, got {make!r:.80}")
    try:
        target = make(secret)
    except (Exception, SystemExit) as error:
        raise plugin.error(f"{plugin.object} raises {described(error)}") from error
    if missing := [name for name in ("check", "send") if not callable(getattr(target, name, None))]:
        raise plugin.error(f"its target has no {missing[0]}, got {target!r:.80}")
    return target  # type: ignore[no-any-return]


class _UnusableTarget:
    """A target that could not be made; the operator's log and `/health` say why."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    def check(self, _: str) -> None:
        raise ValueError(str(self._plugin.error("the node's log says why")))

    def send(self, address: str, _: AlertMessage) -> None:
        self.check(address)


class PluginTarget:
    """A target of a plugin, which fails with `ValueError` only, and in time."""

    def __init__(self, plugin: Plugin, target: Target) -> None:
        self._plugin, self._target = plugin, target
        self._room = threading.BoundedSemaphore(_MOST_RUNNING)

    def check(self, address: str) -> None:
        self._call(self._target.check, address)

    def send(self, address: str, message: AlertMessage) -> None:
        self._call(self._target.send, address, message)

    def _call(self, method: Callable[..., Any], *words: Any) -> None:
        if not self._room.acquire(blocking=False):
            raise ValueError(f"{self._plugin.label} has not finished earlier messages")
        raised: list[BaseException] = []

        def work() -> None:
            try:
                method(*words)
            except BaseException as error:
                raised.append(error)
            finally:
                self._room.release()

        thread = threading.Thread(target=work, name=f"target {self._plugin.name}", daemon=True)
        thread.start()
        thread.join(TIMEOUT_S)
        if thread.is_alive():
            raise ValueError(f"{self._plugin.label} has not finished within {TIMEOUT_S:g} s")
        if raised:
            raise self._said(raised[0])

    def _said(self, error: BaseException) -> ValueError:
        """The error for the user. The text of an unexpected one may have secrets: only its place is logged."""
        if type(error) is ValueError:
            return error
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" in line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename}" if trace is not None else ""
        log.event("alert target", message=f"{self._plugin.label} raises {type(error).__name__}{where}")
        return ValueError(f"{self._plugin.label} fails: {type(error).__name__}")
