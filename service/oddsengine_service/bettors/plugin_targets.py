"""Targets of alerts that plugins add: the settings name their schemes, and `[alerts] targets` the secret of each.

One that raises, or does not answer within `TIMEOUT_S`, fails the message and nothing else; its thread is left behind.
The same holds for its import and for what makes it: the node starts without it.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

from oddsengine.bounds import excerpt, text_of
from oddsengine.plugins import (
    MOST_SAID,
    TARGETS,
    AmbiguousNameError,
    Plugin,
    PluginError,
    described,
    find,
    load,
    registered,
)
from oddsengine.sources import Secrets
from oddsengine_service.bettors.targets import SCHEME, SCHEMES, TIMEOUT_S, AlertMessage, Target
from oddsengine_service.monitoring import log
from oddsengine_service.settings import Settings, SettingsError

_MOST_RUNNING = 8  # calls of one target
T = TypeVar("T")


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
        if not SCHEME.fullmatch(scheme):
            raise SettingsError(f"{place} must be a scheme of lower-case letters, digits, +, . and -, after a letter")
        if plugin is None:
            names = ", ".join(each.name for each in registered(TARGETS)) or "none"
            raise SettingsError(f"{place} must be the scheme of a target that a package registers: {names}")
        secret = environ.get(variable, "").strip()
        if variable and not secret:
            raise SettingsError(f"{place} is {variable!r}, but that environment variable is not set or empty")
        clean = Secrets([secret]).clean
        try:
            making = _began(plugin, partial(_made, plugin, secret, clean))
            if not making.done():
                raise plugin.error(f"it was not made within {TIMEOUT_S:g} s")
            targets[scheme] = PluginTarget(plugin, making.result(), clean)
        except PluginError as error:
            targets[scheme] = _UnusableTarget(plugin)
            failed(f"alert target {scheme}", str(error))
    return targets


def _began(plugin: Plugin, work: Callable[[], T]) -> "Future[T]":
    """Call something of a plugin in a thread of its own, and wait for its result for up to `TIMEOUT_S`."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=f"target {plugin.name}", daemon=True).start()
    wait([done], TIMEOUT_S)
    return done


def _made(plugin: Plugin, secret: str, clean: Callable[[str], str]) -> Target:
    """Import and make a target. Raises `PluginError`, without secrets, for whatever happens."""
    make = load(plugin, clean)
    if not callable(make):
        raise plugin.error(f"{plugin.object} must be a function that makes a target, got {clean(excerpt(make))}")
    try:
        target = make(secret)
        missing = [name for name in ("check", "send") if not callable(getattr(target, name, None))]
    except BaseException as error:
        raise plugin.error(f"{plugin.object} raises {described(error, clean)}") from error
    if missing:
        raise plugin.error(f"its target has no {missing[0]}, got {clean(excerpt(target))}")
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

    def __init__(self, plugin: Plugin, target: Target, clean: Callable[[str], str]) -> None:
        self._plugin, self._target, self._clean = plugin, target, clean
        self._room = threading.BoundedSemaphore(_MOST_RUNNING)

    def check(self, address: str) -> None:
        self._call(self._target.check, address)

    def send(self, address: str, message: AlertMessage) -> None:
        self._call(self._target.send, address, message)

    def _call(self, method: Callable[..., Any], *words: Any) -> None:
        if not self._room.acquire(blocking=False):
            raise ValueError(f"{self._plugin.label} has not finished earlier messages")

        def work() -> None:
            try:
                method(*words)
            finally:
                self._room.release()

        done = _began(self._plugin, work)
        if not done.done():
            raise ValueError(f"{self._plugin.label} has not finished within {TIMEOUT_S:g} s")
        if (error := done.exception()) is not None:
            raise self._said(error)

    def _said(self, error: BaseException) -> ValueError:
        """The error for the user. The text of an unexpected one may have secrets: only its place is logged."""
        if type(error) is ValueError:
            return ValueError(self._clean(text_of(error))[:MOST_SAID])
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" in line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename}" if trace is not None else ""
        log.event("alert target", message=f"{self._plugin.label} raises {type(error).__name__}{where}")
        return ValueError(f"{self._plugin.label} fails: {type(error).__name__}")
