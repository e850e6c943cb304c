"""Alerts of a key."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET

from oddsengine_service.alerts import Alert, AlertChanges, Alerts, NewAlert, edit, shown, store
from oddsengine_service.endpoints import Context, Endpoint, data
from oddsengine_service.problems import Problem, invalid
from oddsengine_service.records import changed
from oddsengine_service.routes.filters import LISTS
from oddsengine_service.targets import masked
from oddsengine_service.wire.envelopes import Data, Deleted
from oddsengine_service.wire.filters import Filter

_TAG = "Alerts"


class TestMessage(msgspec.Struct):
    """Whether a test message was delivered."""

    sent: bool
    error: str | None


@contextmanager
def _reaching(context: Context) -> Iterator[Alerts]:
    """Limit concurrent outgoing requests, since each occupies an answer thread."""
    alerts = context.node.alerts
    if not alerts.requests.acquire(timeout=1.0):
        raise Problem(503, "unavailable", "other targets are being checked; retry in a few seconds", retry_after=2)
    try:
        yield alerts
    finally:
        alerts.requests.release()


def _checked(context: Context, alert: Alert, before: Sequence[str] = ()) -> Alert:
    """Reject an alert that could not be sent; a masked target refers to the existing one."""
    unmatched, targets = list(before), []
    for target in alert.targets:
        stored = next((each for each in unmatched if target in (each, masked(each))), None)
        if stored is None and target == masked(target):
            raise invalid(f"a masked target must match one of the alert, got {target}")
        if stored is not None:
            unmatched.remove(stored)
        targets.append(target if stored is None else stored)
    alert = msgspec.structs.replace(alert, targets=targets)
    try:
        ZoneInfo(alert.time_zone)
    except (KeyError, ValueError, OSError):
        raise invalid(f"time_zone must be a name such as America/New_York, got {alert.time_zone!r}") from None
    if (alert.quiet_from is None) != (alert.quiet_to is None):
        raise invalid("quiet_from and quiet_to must be given together")
    new = [target for target in alert.targets if target not in before]
    if new:
        with _reaching(context) as alerts:
            for target in new:
                try:
                    alerts.sender.check(target)
                except ValueError as error:
                    raise invalid(str(error)) from None
    return alert


def _shown(context: Context, alert: Alert) -> Alert:
    return shown(context.node.records, context.caller, alert, LISTS)


def alerts(context: Context) -> Any:
    every = context.node.records.all(context.caller.key, "alert", Alert)
    return data(context, [_shown(context, alert) for alert in every])


def create(context: Context) -> Any:
    new: NewAlert = context.body
    context.node.records.get(context.caller.key, "filter", new.filter, Filter)
    alert = _checked(context, Alert(**msgspec.structs.asdict(new), id=secrets.token_hex(8)))
    store(context.node.records, context.caller.key, alert)
    return data(context, _shown(context, alert))


def change(context: Context) -> Any:
    changes: AlertChanges = context.body
    before = context.node.records.get(context.caller.key, "alert", context.path["alertId"], Alert)
    targets = _checked(context, changed(before, changes), before.targets).targets

    def change(now: Alert) -> Alert:
        now = changed(now, changes)
        if changes.targets is UNSET:
            return now
        return msgspec.structs.replace(now, targets=targets, failures=0, error=None)

    return data(context, _shown(context, edit(context.node.records, context.caller.key, before.id, change)))


def delete(context: Context) -> Any:
    context.node.records.delete(context.caller.key, "alert", context.path["alertId"])
    context.node.records.forget(context.caller.key, "sent", context.path["alertId"])
    return data(context, Deleted(deleted=True))


def test(context: Context) -> Any:
    alert = context.node.records.get(context.caller.key, "alert", context.path["alertId"], Alert)
    with _reaching(context) as alerts:
        errors = alerts.deliver(alert, f"{alert.filter}: test", ["This is a test of an alert."], [])
    return data(context, TestMessage(not errors, "; ".join(errors) or None))


endpoints = (
    Endpoint(
        "/alerts", alerts, "Alerts of this key", _TAG, Data[list[Alert]], cache="records",
        doc="Secrets in targets are masked.",
    ),
    Endpoint(
        "/alerts", create, "Create an alert", _TAG, Data[Alert], method="POST", body=NewAlert, cache="records",
        status=201, errors=(404,), doc="Sends matches of a saved filter: once per opportunity, again when it improves.",
    ),
    Endpoint(
        "/alerts/{alertId}", change, "Change an alert", _TAG, Data[Alert], method="PATCH", body=AlertChanges,
        cache="records", doc="A masked target leaves the stored one unchanged.",
    ),
    Endpoint(
        "/alerts/{alertId}/test", test, "Send a test message", _TAG, Data[TestMessage], method="POST", cache="records",
    ),
    Endpoint("/alerts/{alertId}", delete, "Delete an alert", _TAG, Data[Deleted], method="DELETE", cache="records"),
)  # fmt: skip
