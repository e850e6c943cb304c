"""Alerts: opportunities that match a saved filter are sent once, and again when they improve.

A check queries the list's own endpoint with the rights of the key, so tiers, books and delays are those of a request.
A +EV filter without a minimum begins at `LEAST_EV`: below it, what is sent is mostly gone or noise when it is read.
New matches of one check are sent as one message to the targets of the alert (`targets`) whose owner has confirmed them:
a test message has a code, and until that is returned, nothing but test messages goes there, and few of them.

Each account is checked in a thread of its own, and may send so many messages and bytes a minute.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET, Meta, UnsetType

from oddsengine.detection.kinds import KINDS, bets_of
from oddsengine.maths.odds import format_american
from oddsengine.maths.rounding import AGE_DIGITS, exact
from oddsengine_service.accounts.database import DatabaseError
from oddsengine_service.accounts.keys import KeysError, Record
from oddsengine_service.accounts.limits import WINDOW_S, Bucket
from oddsengine_service.accounts.records import Records
from oddsengine_service.bettors.targets import AlertMessage, Sender, addressee, masked
from oddsengine_service.errors import Problem, invalid, quoted
from oddsengine_service.http.endpoints import Context, Endpoint
from oddsengine_service.http.params import MOST_LIMIT, parse
from oddsengine_service.node import Node
from oddsengine_service.pool import WaitingThreads
from oddsengine_service.tiers import Caller
from oddsengine_service.wire.envelopes import Body
from oddsengine_service.wire.numbers import format_time
from oddsengine_service.wire.reference_objects import books_of_leg
from oddsengine_service.wire.saved_filters import Filter, NewFilter

MOST_TARGETS, MOST_LINES, MOST_ROWS, MOST_SENT = 5, 10, 1000, 2000
SENT_ROWS = 20  # in one message; it links to the rest
ACCOUNTS, SHARE_S = 256, 15.0  # accounts served at once; seconds per account and check
MESSAGES, BYTES = 60, 2 << 20  # sent per account and minute; each target counts
MOST_TESTS, TESTS_S = 3, 3600.0  # messages to a target that is not confirmed, whoever asks for them, and in which time
LEAST_IMPROVE = 0.1
LEAST_EV = 1.0  # percent, of filters without `min_ev`
VIEW_PARAMETERS = (
    "sportsbook",
    "add_sportsbook",
    "location",
    "location_unknown",
    "stake",
    "state",
    "include",
    "devig_book",
    "devig_method",
)
"""Parameters of a list that also apply to one of its opportunities, looked up again by its id."""
_PAGE = ("limit", "offset", "format")  # parameters of a list that a check ignores
REMEMBERED_S = 6 * 3600.0  # for this long after an opportunity was last open
_FILTER = "filter"  # begins an error that is not a target's
FIRST_RETRY_S, LAST_RETRY_S = 30.0, 3600.0
Clock = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["23:00"])]
Target = Annotated[str, Meta(min_length=1, max_length=1000)]
_Improve = Annotated[
    float, Meta(ge=LEAST_IMPROVE, le=1000.0, description="Percentage points after which one is sent again.")
]


class NewAlert(Body, kw_only=True):
    """What to send, where, and when not to."""

    filter: Annotated[str, Meta(description="Name of a saved filter.")]
    targets: Annotated[
        list[Target],
        Meta(
            max_length=MOST_TARGETS,
            description="`https://...` for a webhook, `tgram://TOKEN/CHAT`, `discord://ID/TOKEN`, `mailto:ADDRESS`; "
            "none for alerts on the page only. Each has to be confirmed.",
        ),
    ] = msgspec.field(default_factory=list)
    improve: _Improve = 1.0
    quiet_from: Clock | None = None
    quiet_to: Clock | None = None
    time_zone: Annotated[str, Meta(max_length=60, description="Of the quiet hours, such as `America/New_York`.")] = (
        "UTC"
    )
    sound: Annotated[bool, Meta(description="The page plays a sound.")] = True
    active: bool = True


class AlertChanges(Body, kw_only=True):
    """The fields to change."""

    targets: Annotated[list[Target], Meta(max_length=MOST_TARGETS)] | UnsetType = UNSET
    improve: _Improve | UnsetType = UNSET
    quiet_from: Clock | UnsetType | None = UNSET
    quiet_to: Clock | UnsetType | None = UNSET
    time_zone: Annotated[str, Meta(max_length=60)] | UnsetType = UNSET
    sound: bool | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class Confirmation(Body):
    """The code of a test message."""

    code: Annotated[str, Meta(min_length=1, max_length=100, examples=["1f0c93ab"])]


class Alert(NewAlert, kw_only=True, forbid_unknown_fields=False):
    """An alert, and the status of its messages."""

    id: str
    unconfirmed: Annotated[
        list[str], Meta(description="Targets that get only test messages, until the code of one is sent to `confirm`.")
    ] = msgspec.field(default_factory=list)
    sent: int = 0
    sent_at: datetime | None = None
    failures: Annotated[int, Meta(description="Since the last message that arrived.")] = 0
    error: Annotated[str | None, Meta(description="Why the last message did not arrive, or none can be sent.")] = None


class StoredAlert(Alert, kw_only=True, forbid_unknown_fields=False):
    """An alert with its targets' codes; targets without one are confirmed."""

    improve: float = 1.0
    codes: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def confirmed(self) -> list[str]:
        return [target for target in self.targets if target not in self.codes]


def query_of(saved: NewFilter, endpoint: Endpoint) -> Any:
    """The parameters of a saved filter. Raises `Problem` 400 if its list does not have one of them."""
    query, ignored = parse(saved.query.encode(), endpoint.query)
    if ignored:  # without it, more would match than the filter says
        names = ", ".join(map(quoted, ignored))
        raise invalid(f"query must have parameters of {endpoint.path} only, got {names}")
    return query


def usable(records: Records, caller: Caller, name: str, endpoints: Mapping[str, Endpoint]) -> Filter:
    """A saved filter of a key. Raises `Problem` if it does not exist, or its list cannot be queried with it."""
    saved = records.get(caller.key, "filter", name, Filter)
    endpoint = endpoints[saved.list]
    if endpoint.feature not in caller.features:
        raise invalid(f"the key's tier has no {endpoint.feature}")
    query_of(saved, endpoint)
    return saved


def shown(records: Records, caller: Caller, alert: StoredAlert, endpoints: Mapping[str, Endpoint]) -> Alert:
    """An alert as its key sees it: targets without their secrets; `error` also says why none can be sent."""
    error = alert.error
    if error is None:
        try:
            usable(records, caller, alert.filter, endpoints)
        except Problem as problem:
            error = f"{_FILTER} {alert.filter!r}: {problem.message}"
    unconfirmed = [masked(target) for target in alert.targets if target in alert.codes]
    if error is None and unconfirmed:
        error = (
            f"{', '.join(unconfirmed)} not confirmed: POST /alerts/{alert.id}/test sends a message with a code, which "
            f"POST /alerts/{alert.id}/confirm takes"
        )
    public = {name: getattr(alert, name) for name in Alert.__struct_fields__}
    targets = [masked(target) for target in alert.targets]
    return Alert(**public | {"targets": targets, "unconfirmed": unconfirmed, "error": error})


class ShareError(Exception):
    """The account has used its share of computing time for now."""


_Name = tuple[str, str]  # owner and id of an alert
Share = Callable[[str, Callable[[], Any], float], Any]
"""Runs a job of an account when it is its turn, within some seconds; else raises `ShareError`."""


class Sent(msgspec.Struct):
    """For each opportunity, the value that was last sent and when it was last open."""

    values: dict[str, tuple[float, float]] = {}


# ---- schedule ----


def quiet(alert: NewAlert, now: datetime) -> bool:
    """Whether an alert is silent at a time.

    Examples
    --------
    >>> night = NewAlert(filter="a", quiet_from="22:00", quiet_to="07:30")
    >>> [quiet(night, datetime(2026, 1, 1, hour, 0, tzinfo=UTC)) for hour in (21, 22, 3, 8)]
    [False, True, True, False]
    """
    if alert.quiet_from is None or alert.quiet_to is None:
        return False
    clock = now.astimezone(ZoneInfo(alert.time_zone)).strftime("%H:%M")
    begin, end = alert.quiet_from, alert.quiet_to
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


def unsent(kind: str, rows: list[Any], sent: Sent, improve: float, now: float) -> list[Any]:
    """The rows that were not sent yet, or have improved enough since; `sent` is updated."""
    way = 1.0 if KINDS[kind].rises else -1.0
    out = []
    for row in rows:
        value = float(row[KINDS[kind].value])
        last = sent.values.get(row["id"])
        if last is None or way * (value - last[0]) >= improve - 1e-9:
            out.append(row)
            sent.values[row["id"]] = value, now
        else:
            sent.values[row["id"]] = last[0], now
    latest = sorted(sent.values.items(), key=lambda item: -item[1][1])[:MOST_SENT]
    sent.values = {name: each for name, each in latest if now - each[1] < REMEMBERED_S}
    return out


def described(kind: str, published: Mapping[str, Any]) -> str:
    """One opportunity as a line of text."""
    form = KINDS[kind]
    row = form.row(published)
    bets = " / ".join(
        f"{bet['selection']} {format_american(bet['odds_american'])} at {', '.join(books_of_leg(bet))}"
        for bet in bets_of(row)
    )
    return f"{row[form.value]:.2f} % {bets} ({row['event_name'] or ''}, {row['market_type']})"


def _query_of_check(saved: NewFilter) -> str:
    """The query string of all that a check of a filter finds: without its page and format, and with its minimum.

    Examples
    --------
    >>> _query_of_check(NewFilter(list="ev", query="sport=nba,nfl&limit=5"))
    'sport=nba,nfl&min_ev=1'
    """
    pairs = (part.partition("=") for part in saved.query.split("&"))
    given = {f"{name}={value}": unquote_plus(name) for name, _, value in pairs if value}
    parts = [pair for pair, name in given.items() if name not in _PAGE]
    if saved.list == "ev" and "min_ev" not in given.values():
        parts.append(f"min_ev={LEAST_EV:g}")
    return "&".join(parts)


def _age(row: Mapping[str, Any], at: datetime) -> dict[str, float]:
    """How long before a message its opportunity was found."""
    seconds = (at - datetime.fromisoformat(row["detected_at"])).total_seconds()
    return {"seconds_since_detected": exact(max(0.0, seconds), AGE_DIGITS)}


def _duration(seconds: float) -> str:
    """A duration in one unit.

    Examples
    --------
    >>> [_duration(seconds) for seconds in (3.2, 119.0, 600.0, 7200.0)]
    ['3 s', '119 s', '10 min', '2 h']
    """
    size, unit = next(each for each in ((3600, "h"), (60, "min"), (0, "s")) if seconds >= 2 * each[0])
    return f"{seconds / (size or 1):.0f} {unit}"


class Alerts:
    """Checks the alerts of all keys, and sends the matches."""

    def __init__(
        self, node: Node, records: Records, sender: Sender, endpoints: Mapping[str, Endpoint],
        clock: Callable[[], float] = time.time, origin: str = "", share: Share = lambda _, job, __: job(),
    ) -> None:  # fmt: skip
        self.origin = origin  # of the addresses in messages; if empty, texts have none
        self._node, self._records, self.sender, self._clock = node, records, sender, clock
        self._endpoints = endpoints  # of the lists, by kind
        self._retry: dict[_Name, float] = {}
        self._checked_in: dict[_Name, int] = {}  # number of the check in which an alert was last processed
        self._checks = 0
        self._threads = WaitingThreads(ACCOUNTS, "alerts")
        self._running: dict[str, Future[int]] = {}  # the last check of each account
        self._sent: dict[str, tuple[Bucket, Bucket]] = {}  # messages and bytes that accounts may send
        self._tests: dict[str, list[float]] = {}  # by target: when messages went there before it was confirmed
        self._lock = threading.Lock()
        self._share = share

    def check_target(self, target: str) -> None:
        """Raise `ValueError` if nothing can be sent there."""
        self.sender.check(target)

    def begin(self) -> None:
        """Check the alerts of each account whose last check has ended. Raises an error of a check that has."""
        ended, _ = self._begun()
        for each in ended:
            each.result()

    def check(self) -> int:
        """Check all alerts once. Returns the number of messages sent."""
        _, running = self._begun()
        wait(running)
        with self._lock:
            self._running = {account: each for account, each in self._running.items() if each not in running}
        return sum(each.result() for each in running)

    def _begun(self) -> tuple[list[Future[int]], list[Future[int]]]:
        """Begin the checks that are due. Returns those that have ended since the last call, and those that run.

        Accounts do not wait for each other: many, slow or failing alerts delay only their own account.
        """
        with self._lock:
            waiting = [
                (owner, alert) for owner, alert in self._records.waiting("alert", StoredAlert) if alert.confirmed
            ]
            names = {(owner, alert.id) for owner, alert in waiting}
            self._retry = {name: at for name, at in self._retry.items() if name in names}
            self._checked_in = {name: number for name, number in self._checked_in.items() if name in names}
            self._checks += 1
            accounts: dict[str, list[tuple[str, StoredAlert]]] = {}
            for owner, alert in sorted(waiting, key=lambda each: self._checked_in.get((each[0], each[1].id), 0)):
                accounts.setdefault(self._account_of(owner), []).append((owner, alert))
            ended = [each for each in self._running.values() if each.done()]
            self._running = {account: each for account, each in self._running.items() if not each.done()}
            for account, alerts in accounts.items():
                if account not in self._running:
                    self._running[account] = self._threads.submit(self._account, account, alerts)
            return ended, list(self._running.values())

    def _account_of(self, owner: str) -> str:
        try:
            return self._record(owner).account
        except (KeysError, DatabaseError):  # reported when its alert is checked
            return owner

    def _record(self, owner: str) -> Record:
        return self._node.keys.record(owner)

    def _account(self, account: str, alerts: list[tuple[str, StoredAlert]]) -> int:
        """Check the alerts of one account, those checked longest ago first. Returns the number of messages sent."""
        sent, failure, until = 0, None, time.monotonic() + SHARE_S
        for owner, alert in alerts:
            left = until - time.monotonic()
            if left <= 0.0 or self._node.closing.is_set():
                break
            try:
                sent += self._one(account, owner, alert, left)
            except ShareError:
                break
            except Exception as error:
                self._put_off(owner, alert)
                failure = error
            with self._lock:
                self._checked_in[owner, alert.id] = self._checks
        if failure is not None:
            raise failure
        return sent

    def _one(self, account: str, owner: str, alert: StoredAlert, left: float) -> int:
        now = self._clock()
        if self._retry.get((owner, alert.id), 0.0) > now or quiet(alert, datetime.fromtimestamp(now, UTC)):
            return 0
        try:
            saved, rows = self._share(account, lambda: self.matching_rows(owner, alert.filter), left)
        except (Problem, KeysError) as error:
            why = error.message if isinstance(error, Problem) else str(error)  # without the name of a file
            self._failed(owner, alert, f"{_FILTER} {alert.filter!r}: {why}")
            return 0
        if alert.error is not None and alert.error.startswith(_FILTER):
            self._changed(owner, alert.id, sent=0, error=None)
        try:
            sent = self._records.get(owner, "sent", alert.id, Sent)
        except Problem:
            sent = Sent()
        before = dict(sent.values)
        fresh = unsent(saved.list, rows, sent, alert.improve, now)
        if not fresh:
            if sent.values.keys() != before.keys():
                self._records.put(owner, "sent", alert.id, sent)
            return 0
        message = self._message(saved, fresh)
        targets = alert.confirmed
        if not self._may_send(account, len(targets), sum(message.size(target) for target in targets)):
            raise ShareError
        self._records.put(owner, "sent", alert.id, sent)  # first: a full disk must not cause endless repeats
        errors = self._deliver(dict.fromkeys(targets, message))
        if len(errors) == len(targets):
            self._records.put(owner, "sent", alert.id, Sent(before))
            self._failed(owner, alert, "; ".join(errors))
            return 0
        with self._lock:
            self._retry.pop((owner, alert.id), None)
        self._changed(owner, alert.id, sent=1, error="; ".join(errors)[:500] or None)
        return 1

    def _message(self, saved: Filter, rows: list[Any]) -> AlertMessage:
        """What is sent about new matches of a filter; beyond `SENT_ROWS` it has the address of the list."""
        kind = saved.list
        at = datetime.fromtimestamp(self._clock(), UTC)
        rows = [row | self._links(kind, row, saved.query) | _age(row, at) for row in rows]
        lines = []
        for row in rows[:MOST_LINES]:
            link = f": {row['page_url']}" if self.origin else ""
            lines.append(f"{described(kind, row)}, found {_duration(row['seconds_since_detected'])} ago{link}")
        query = _query_of_check(saved)
        address = f"{self.origin}/api/v1{self._endpoints[kind].path}{'?' if query else ''}{query}"
        if len(rows) > MOST_LINES:
            lines.append(f"and {len(rows) - MOST_LINES} more" + (f": {address}" if self.origin else ""))
        title = f"{saved.name}: {len(rows)} {'opportunity' if len(rows) == 1 else 'opportunities'}"
        more = {"total": len(rows), "url": address, "sent_at": format_time(at)}
        return AlertMessage(title, lines, opportunities=rows[:SENT_ROWS], **more)

    def _links(self, kind: str, row: Mapping[str, Any], query: str) -> dict[str, str]:
        """Addresses that look an opportunity up again, of the API and of the page, over the books of a filter."""
        view = [pair for pair in parse_qsl(query) if pair[0] in VIEW_PARAMETERS]
        path = f"{self.origin}/api/v1{self._endpoints[kind].path}/{quote(row['id'], safe=':')}"
        page = urlencode([("list", kind), ("open", row["id"]), *view])
        return {"url": f"{path}?{urlencode(view)}" if view else path, "page_url": f"{self.origin}/?{page}"}

    def _may_send(self, account: str, messages: int, size: int) -> bool:
        """Whether an account may send so much now; if so, it is counted."""
        with self._lock:
            now = self._clock()
            if account not in self._sent:
                self._sent = {who: each for who, each in self._sent.items() if each[0].take_tokens(now) < MESSAGES}
                minute = float(WINDOW_S)
                self._sent[account] = Bucket(MESSAGES / minute, MESSAGES, now), Bucket(BYTES / minute, BYTES, now)
            count, total = self._sent[account]
            if min(count.take_tokens(now), total.take_tokens(now)) <= 0.0:
                return False
            count.take_tokens(now, messages)
            total.take_tokens(now, size)
            return True

    def matching_rows(self, owner: str, name: str) -> tuple[Filter, list[Any]]:
        """A key's saved filter and its current matches, ignoring page and format of its query."""
        record = self._record(owner)
        if not record.active:
            raise invalid("the key was revoked")
        caller = record.caller
        one = usable(self._records, caller, name, self._endpoints)
        endpoint = self._endpoints[one.list]
        query = query_of(one, endpoint)
        query.limit, query.format = MOST_LIMIT, "json"
        if one.list == "ev" and "min_ev" not in vars(query):
            query.min_ev = LEAST_EV
        rows: list[Any] = []
        for offset in range(0, MOST_ROWS, MOST_LIMIT):
            query.offset = offset
            context = Context(caller, query, {}, None, self._node.boards.of(caller.tier), self._node, ())
            answer = msgspec.json.decode(endpoint.response(context).body)
            rows += answer["data"]
            if not answer["pagination"]["has_more"]:
                break
        return one, rows

    def test(self, account: str, alert: StoredAlert) -> list[str]:
        """Send a test message to all targets, with the codes of those to confirm. Returns the errors.

        Raises `Problem` 429 if the account has sent too much, or a target that is not confirmed has had too many.
        """
        self._count_tests(alert.codes)
        title, line = f"{alert.filter}: test", "This is a test of an alert."
        messages = {target: AlertMessage(title, [line], opportunities=[]) for target in alert.targets}
        for target, code in alert.codes.items():
            ask = f"If you asked for it, confirm this target with the code {code}."
            messages[target] = AlertMessage(title, [line, ask], opportunities=[], code=code)
        size = sum(message.size(target) for target, message in messages.items())
        if not self._may_send(account, len(messages), size):
            message = f"an account may send {MESSAGES} messages and {BYTES:,} bytes a minute; retry later"
            raise Problem(429, "rate_limited", message, retry_after=10)
        return self._deliver(messages)

    def _count_tests(self, targets: Iterable[str]) -> None:
        """Count a test message to each target. Raises `Problem` 429 if one has had too many; none is counted then."""
        with self._lock:
            now = self._clock()
            recent = {name: [at for at in times if now - at < TESTS_S] for name, times in self._tests.items()}
            self._tests = {name: times for name, times in recent.items() if times}
            names = {addressee(target): target for target in targets}
            for name, target in names.items():
                times = self._tests.get(name, [])
                if len(times) >= MOST_TESTS:
                    left = math.ceil(times[0] + TESTS_S - now)
                    message = (
                        f"{masked(target)} is not confirmed and gets at most {MOST_TESTS} messages an hour; confirm it "
                        f"with the code of one, or retry in {left:,} s"
                    )
                    raise Problem(429, "rate_limited", message, retry_after=left)
            for name in names:
                self._tests.setdefault(name, []).append(now)

    def _deliver(self, messages: Mapping[str, AlertMessage]) -> list[str]:
        """Send to all targets at once. Returns one error message per failed target."""

        def one(target: str) -> str:
            try:
                self.sender.check(target)
                self.sender.send(target, messages[target])
            except ValueError as error:
                return str(error)
            return ""

        return [wrong for wrong in WaitingThreads(MOST_TARGETS, "alert").map(one, messages) if wrong]

    def _put_off(self, owner: str, alert: StoredAlert) -> None:
        wait = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(alert.failures, 10))
        with self._lock:
            self._retry[owner, alert.id] = self._clock() + wait

    def _failed(self, owner: str, alert: StoredAlert, error: str) -> None:
        self._put_off(owner, alert)
        self._changed(owner, alert.id, sent=0, error=error[:500])

    def _changed(self, owner: str, name: str, *, sent: int, error: str | None) -> None:
        at = datetime.fromtimestamp(self._clock(), UTC)

        def change(now: StoredAlert) -> StoredAlert:
            failures = now.failures + 1 if error else 0
            sent_at = at if sent else now.sent_at
            return msgspec.structs.replace(now, sent=now.sent + sent, sent_at=sent_at, failures=failures, error=error)

        try:
            edit(self._records, owner, name, change)
        except Problem as problem:
            if problem.status != 404:
                raise
            self._records.forget(owner, "sent", name)  # the alert was deleted meanwhile


def edit(records: Records, owner: str, name: str, change: Callable[[StoredAlert], StoredAlert]) -> StoredAlert:
    """Change a stored alert, excluding concurrent changes."""
    with records.alone:
        alert = change(records.get(owner, "alert", name, StoredAlert))
        store(records, owner, alert)
        return alert


def store(records: Records, owner: str, alert: StoredAlert) -> None:
    records.put(owner, "alert", alert.id, alert, "active" if alert.active else None)
