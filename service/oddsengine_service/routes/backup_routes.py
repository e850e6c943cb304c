"""Backup and restore of what a key stores (bets, marks, filters, alerts), as one document."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from oddsengine_service.accounts.records import NamedRecord
from oddsengine_service.bettors.alerts import NewAlert, StoredAlert
from oddsengine_service.bettors.bets import Bet, Score, figures, placing_time, waiting_event
from oddsengine_service.bettors.targets import masked
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint, damaged, data
from oddsengine_service.routes.alert_routes import checked_alert
from oddsengine_service.routes.filter_routes import checked
from oddsengine_service.routes.marks import Mark
from oddsengine_service.routes.named import checked_name
from oddsengine_service.wire.envelopes import Body, Data, DataWith, RecordsMeta, Share
from oddsengine_service.wire.saved_filters import Filter

_FORMAT: Literal[1] = 1
_MOST_REASON = 5000  # characters; it may have the names of two teams
_MOST = 6 << 20  # bytes of a document to restore; a log takes messages of 8 MB


class SavedAlert(NewAlert, kw_only=True):
    """An alert without its delivery status; in a backup its targets are masked."""

    id: str


class Backup(Body, kw_only=True):
    """Everything that a key stores."""

    format: Literal[1] = _FORMAT
    made_at: datetime | None = None
    bets: list[Bet] = msgspec.field(default_factory=list)
    marks: list[Mark] = msgspec.field(default_factory=list)
    filters: list[Filter] = msgspec.field(default_factory=list)
    alerts: list[SavedAlert] = msgspec.field(default_factory=list)


class RestoredBet(Bet, kw_only=True, forbid_unknown_fields=False):
    """A bet of a document to restore; the figures that follow from others are computed anew."""

    home_score: Score | None = None
    away_score: Score | None = None
    closing_odds: Annotated[float, Meta(ge=1.0, le=1e6)] | None = None
    closing_probability: Share | None = None
    no_close: Annotated[str, Meta(max_length=_MOST_REASON)] | None = None


class RestoredBackup(Backup, kw_only=True):
    """A backup to restore, or a part of one."""

    bets: list[RestoredBet] = msgspec.field(default_factory=list)  # type: ignore[assignment]  # stricter


class Restored(msgspec.Struct):
    """The result of a restore."""

    bets: int
    marks: int
    filters: int
    alerts: int
    changed: Annotated[int, Meta(description="Records that were new or different; the others were there already.")]
    missing_targets: Annotated[
        list[str],
        Meta(description="Masked alert targets that the key does not have; add them to the alerts again."),
    ]


def backup(context: Context) -> Any:
    records, owner = context.node.records, context.caller.key
    alerts = [
        SavedAlert(
            id=alert.id,
            **{name: getattr(alert, name) for name in NewAlert.__struct_fields__ if name != "targets"},
            targets=[masked(target) for target in alert.targets],
        )
        for alert in records.all(owner, "alert", StoredAlert)
    ]
    return data(
        context,
        Backup(
            made_at=context.node.clock.now(), bets=records.all(owner, "bet", Bet),
            marks=records.all(owner, "mark", Mark), filters=records.all(owner, "filter", Filter), alerts=alerts,
        ),
        **damaged(context, "bet", "mark", "filter", "alert"),
    )  # fmt: skip


def restore(context: Context) -> Any:
    """Check all records, then store them."""
    document: RestoredBackup = context.body
    records, owner = context.node.records, context.caller.key
    if document.alerts and context.caller.signed_in:
        raise Problem(404, "not_found", "alerts belong to API keys, and this node has none")
    _check_names("bets", [bet.id for bet in document.bets])
    _check_names("marks", [mark.id for mark in document.marks])
    _check_names("filters", [saved.name for saved in document.filters])
    _check_names("alerts", [alert.id for alert in document.alerts])
    bets = list(_each("bets", document.bets, _bet))
    filters = list(_each("filters", document.filters, lambda saved: checked(saved, saved.name)))
    names = {saved.name for saved in filters} | {saved.name for saved in records.all(owner, "filter", Filter)}
    before = {alert.id: alert for alert in records.all(owner, "alert", StoredAlert)}
    missing: list[str] = []
    alerts = list(_each("alerts", document.alerts, lambda saved: _alert(context, saved, names, before, missing)))
    changed = records.put_all(
        owner,
        [
            *(NamedRecord("bet", bet.id, bet, waiting_event(bet)) for bet in bets),
            *(NamedRecord("mark", mark.id, mark) for mark in document.marks),
            *(NamedRecord("filter", saved.name, saved) for saved in filters),
            *(NamedRecord("alert", alert.id, alert, "active" if alert.active else None) for alert in alerts),
        ],
    )
    return data(
        context,
        Restored(len(bets), len(document.marks), len(filters), len(alerts), changed, sorted(set(missing))),
    )


def _alert(
    context: Context, saved: SavedAlert, names: set[str], before: Mapping[str, StoredAlert], missing: list[str]
) -> StoredAlert:
    """An alert to store; a masked target becomes the target of the key that it stands for, or is left out."""
    if saved.filter not in names:
        raise invalid(f"filter must be one of the document or of the key, got {quoted(saved.filter)}")
    stored = before.get(saved.id)
    here = [] if stored is None else list(stored.targets)
    every = {target for alert in before.values() for target in alert.targets}
    targets = []
    for target in saved.targets:
        found = _unmasked(target, here, every)
        if found is None:
            missing.append(target)
            continue
        targets.append(found)
        if found in here:
            here.remove(found)
    fields = {name: getattr(saved, name) for name in SavedAlert.__struct_fields__} | {"targets": targets}
    alert = StoredAlert(**fields) if stored is None else msgspec.structs.replace(stored, **fields)
    return checked_alert(context, alert, sorted(every))


def _unmasked(target: str, here: Sequence[str], every: Iterable[str]) -> str | None:
    """The target that a masked one is: the next of the alert's own, else the only one that the key has; else None."""
    if target != masked(target):
        return target
    same = [one for one in here if masked(one) == target][:1] or [one for one in every if masked(one) == target]
    return same[0] if len(same) == 1 else None


def _bet(bet: Bet) -> Bet:
    """A bet to store: `placed_at` in UTC, so that it can be compared with others, and its figures."""
    fields = {name: getattr(bet, name) for name in Bet.__struct_fields__}
    return figures(Bet(**fields | {"placed_at": placing_time(bet.placed_at)}))


def _check_names(where: str, names: Iterable[str]) -> None:
    """Raises `Problem` 400 if a name is not valid or occurs twice."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        with _at(where, at):
            checked_name("its name" if where == "filters" else "id", name)
            if name in seen:
                raise invalid(f"{quoted(name)} occurs twice")
        seen.add(name)


def _each(where: str, given: Iterable[Any], make: Callable[[Any], Any]) -> Iterator[Any]:
    for at, one in enumerate(given):
        with _at(where, at):
            made = make(one)
        yield made


@contextmanager
def _at(where: str, at: int) -> Iterator[None]:
    """Say in an error which entry of the document is not valid."""
    try:
        yield
    except Problem as problem:
        raise invalid(f"nothing was restored: {where}[{at}]: {problem.message}") from None


endpoints = (
    Endpoint(
        "/account/backup", backup, "Back up what this key stores", "Account", DataWith[Backup, RecordsMeta],
        cache="records",
        doc="Bets, marks, filters and alerts in one document, for `POST /account/restore` on this or another node. "
        "Alert targets are masked.",
    ),
    Endpoint(
        "/account/restore", restore, "Restore a backup", "Account", Data[Restored], method="POST", body=RestoredBackup,
        most_body=_MOST, cache="records", outgoing=True,
        doc="Takes the `data` of a backup, or part of it, up to 6 MiB (`Content-Encoding: gzip` allowed). Records with "
        "the same id or name are replaced, others stay; repeating it changes nothing. A document with an invalid entry "
        "changes nothing, and the error names the entry. Masked alert targets that the key already has are used again; "
        "others are left out and listed in `missing_targets`. New targets must be confirmed.",
    ),
)  # fmt: skip
