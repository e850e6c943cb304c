"""Alerts of a key."""

import secrets
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET

from oddsengine_service.accounts.records import changed
from oddsengine_service.bettors.alerts import (
    Alert,
    AlertChanges,
    Confirmation,
    NewAlert,
    StoredAlert,
    edit,
    shown,
    store,
)
from oddsengine_service.bettors.targets import masked
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, Targets, damaged, data
from oddsengine_service.routes.filter_routes import LISTS
from oddsengine_service.wire.envelopes import Data, DataWith, Deleted, RecordsMeta
from oddsengine_service.wire.saved_filters import Filter

_TAG = "Alerts"


class TestMessage(msgspec.Struct):
    """Whether a test message was delivered."""

    sent: bool
    error: str | None


def checked_alert(context: Context, alert: StoredAlert, before: Sequence[str] = ()) -> StoredAlert:
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
    for target in alert.targets:
        if target not in before:
            try:
                _targets(context).check_target(target)
            except ValueError as error:
                raise invalid(str(error)) from None
    every = context.node.records.all(context.caller.key, "alert", StoredAlert)
    confirmed = {target for each in every for target in each.confirmed}
    codes = {target: alert.codes.get(target) or secrets.token_hex(4) for target in targets if target not in confirmed}
    return msgspec.structs.replace(alert, codes=codes)


def _targets(context: Context) -> Targets:
    assert context.targets is not None, "a node that serves requests has them"
    return context.targets


def _shown(context: Context, alert: StoredAlert) -> Alert:
    return shown(context.node.records, context.caller, alert, LISTS)


def alerts(context: Context) -> Any:
    every = context.node.records.all(context.caller.key, "alert", StoredAlert)
    return data(context, [_shown(context, alert) for alert in every], **damaged(context, "alert"))


def create(context: Context) -> Any:
    new: NewAlert = context.body
    if context.caller.signed_in:
        raise Problem(404, "not_found", "alerts belong to API keys, and this node has none")
    context.node.records.get(context.caller.key, "filter", new.filter, Filter)
    alert = checked_alert(context, StoredAlert(**msgspec.structs.asdict(new), id=secrets.token_hex(8)))
    store(context.node.records, context.caller.key, alert)
    return data(context, _shown(context, alert))


def change(context: Context) -> Any:
    changes: AlertChanges = context.body
    before = context.node.records.get(context.caller.key, "alert", context.path["alertId"], StoredAlert)
    checked = checked_alert(context, changed(before, changes), before.targets)

    def change(now: StoredAlert) -> StoredAlert:
        now = changed(now, changes)
        if changes.targets is UNSET:
            return now
        return msgspec.structs.replace(now, targets=checked.targets, codes=checked.codes, failures=0, error=None)

    return data(context, _shown(context, edit(context.node.records, context.caller.key, before.id, change)))


def delete(context: Context) -> Any:
    context.node.records.delete(context.caller.key, "alert", context.path["alertId"])
    context.node.records.forget(context.caller.key, "sent", context.path["alertId"])
    return data(context, Deleted(deleted=True))


def test(context: Context) -> Any:
    alert = context.node.records.get(context.caller.key, "alert", context.path["alertId"], StoredAlert)
    errors = _targets(context).test(context.caller.account, alert)
    return data(context, TestMessage(not errors, "; ".join(errors) or None))


def confirm(context: Context) -> Any:
    code = context.body.code.strip().lower()

    def change(now: StoredAlert) -> StoredAlert:
        codes = {
            target: each
            for target, each in now.codes.items()
            if not secrets.compare_digest(each.encode(), code.encode())
        }
        if len(codes) == len(now.codes):
            waiting = f"those of {', '.join(map(masked, codes))}" if codes else "none, all targets are confirmed"
            raise invalid(f"code must be that of a test message to a target to confirm ({waiting}), got {quoted(code)}")
        return msgspec.structs.replace(now, codes=codes)

    changed = edit(context.node.records, context.caller.key, context.path["alertId"], change)
    return data(context, _shown(context, changed))


endpoints = (
    Endpoint(
        "/alerts", alerts, "Alerts of this key", _TAG, DataWith[list[Alert], RecordsMeta], cache="records",
        doc="Secrets in targets are masked.",
    ),
    Endpoint(
        "/alerts", create, "Create an alert", _TAG, Data[Alert], method="POST", body=NewAlert, cache="records",
        status=201, errors=(404,), outgoing=True,
        doc="Sends matches of a saved filter: once per opportunity, again when it improves. Each target has to be "
        "confirmed with the code of a test message.",
    ),
    Endpoint(
        "/alerts/{alertId}", change, "Change an alert", _TAG, Data[Alert], method="PATCH", body=AlertChanges,
        cache="records", outgoing=True, doc="A masked target leaves the stored one unchanged.",
    ),
    Endpoint(
        "/alerts/{alertId}/test", test, "Send a test message", _TAG, Data[TestMessage], method="POST", cache="records",
        outgoing=True, doc="It has the code that confirms a target.",
    ),
    Endpoint(
        "/alerts/{alertId}/confirm", confirm, "Confirm a target", _TAG, Data[Alert], method="POST", body=Confirmation,
        cache="records", doc="The code is in the test message to that target; nothing else is sent there before.",
    ),
    Endpoint("/alerts/{alertId}", delete, "Delete an alert", _TAG, Data[Deleted], method="DELETE", cache="records"),
)  # fmt: skip
