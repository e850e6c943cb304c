"""Alerts, sent to a real server of this machine."""

import contextlib
import itertools
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_string
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfoNotFoundError

import httpx2
import msgspec
import pytest
from support.forking import PIPE, python
from support.service_running import PATIENCE_S, Running, running, until

from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.bettors import alerts as rules
from oddsengine_service.bettors.alerts import Sent, quiet, unsent
from oddsengine_service.bettors.targets import AlertMessage, Sender, checked, masked
from oddsengine_service.errors import Problem
from oddsengine_service.routing import ENDPOINTS
from oddsengine_service.wire.saved_filters import Filter


class Hook:
    """A webhook that keeps what it is sent, and answers as it is told."""

    codes: ClassVar[list[str]] = []  # of test messages to any hook

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self.status, hook = 200, self
        self.before: Callable[[], Any] = lambda: None

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                hook.before()
                if hook.status == 200 and "code" in json.loads(body):
                    hook.codes.append(json.loads(body)["code"])
                elif hook.status == 200:
                    hook.bodies.append(json.loads(body))
                    hook.paths.append(self.path)
                self.send_response(hook.status)
                if hook.status == 302:
                    self.send_header("location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_address[1]}/hook/secret-token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextlib.contextmanager
def hooked() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hooked() as hook:
        yield hook


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    checks_itself = {"ODDSENGINE_ALERTS_EVERY": "3600"}  # else it would also check while a test does, or before
    with running(tmp_path_factory.mktemp("alerts"), events=4, settings=checks_itself) as server:
        yield server


@contextlib.contextmanager
def client_of(server: Running, account: str) -> Iterator[httpx2.Client]:
    assert isinstance(server.node.keys, KeyStore)
    made = server.node.keys.create(account, KeyTerms("pro"))
    with server.client(None, headers={"X-API-Key": made.key}) as client:
        client.put("/filters/mine", json={"list": "ev", "query": "min_ev=0"})
        yield client


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    with client_of(server, "bettor") as client:
        yield client


@pytest.fixture
def alone(server: Running) -> Iterator[httpx2.Client]:
    """A client of an account of its own: those of the others may still have something to send again."""
    with client_of(server, "alone") as client:
        yield client


@pytest.fixture
def alerts(server: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[rules.Alerts]:
    """Alerts of the server with the operator's permission for this machine, and all the time they need."""
    monkeypatch.setattr(rules, "SHARE_S", PATIENCE_S)
    assert server.service.alerts is not None
    server.service.alerts.sender.webhooks.private = True
    server.service.alerts._clock = server.clock
    yield server.service.alerts
    server.service.alerts.sender.webhooks.private = False


def client_of_another_key(client: httpx2.Client) -> httpx2.Client:
    """A client with another key of the same account."""
    key = client.post("/account/keys", json={"name": "other"}).json()["data"]["key"]
    return httpx2.Client(base_url=client.base_url, headers={"X-API-Key": key}, timeout=PATIENCE_S)


def made(client: httpx2.Client, **other: Any) -> dict[str, Any]:
    """An alert whose targets are confirmed hooks."""
    answer = client.post("/alerts", json={"filter": "mine", **other})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["data"]
    if found["unconfirmed"]:
        Hook.codes.clear()
        assert client.post(f"/alerts/{found['id']}/test").json()["data"] == {"sent": True, "error": None}
        for code in Hook.codes:
            answer = client.post(f"/alerts/{found['id']}/confirm", json={"code": code})
            assert answer.status_code == 200, answer.text
            found = answer.json()["data"]
    assert found["unconfirmed"] == []
    return found


def test_each_opportunity_is_sent_once(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    alert = made(client, targets=[hook.url], improve=500.0)
    assert alert["targets"] == ["http://localhost/..."]
    assert "secret" not in client.get("/alerts").text
    total = client.get("/opportunities/ev?min_ev=0&limit=1").json()["meta"]["total"]
    assert alerts.check() == 1
    (body,) = hook.bodies
    assert body["total"] == min(total, 1000)
    assert len(body["opportunities"]) == min(total, 20)
    assert body["url"] == "/api/v1/opportunities/ev?min_ev=0"
    assert body["title"].startswith(f"mine: {min(total, 1000)} opportunit")
    assert re.search(r"^\d+\.\d\d % .+ at \w+ \(", body["text"])
    assert alerts.check() == 0
    server.advance(3)
    first = {row["id"] for row in body["opportunities"]}
    alerts.check()
    for later in hook.bodies[1:]:
        assert not first & {row["id"] for row in later["opportunities"]}
    kept = client.get("/alerts").json()["data"][0]
    assert (kept["sent"], kept["failures"], kept["error"]) == (len(hook.bodies), 0, None)
    client.delete(f"/alerts/{alert['id']}")


def test_nothing_but_a_test_goes_to_a_target_before_it_is_confirmed(
    client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    with hooked() as other:
        made(client, targets=[other.url], improve=500.0)
        alert = client.post("/alerts", json={"filter": "mine", "targets": [other.url, hook.url]}).json()["data"]
        assert alert["unconfirmed"] == ["http://localhost/..."]  # the other one is, in another alert
        assert f"POST /alerts/{alert['id']}/test" in alert["error"]
        assert alerts.check() == 2
        assert (len(other.bodies), hook.bodies) == (2, [])
        path = f"/alerts/{alert['id']}/confirm"
        Hook.codes.clear()
        assert client.post(f"/alerts/{alert['id']}/test").json()["data"] == {"sent": True, "error": None}
        (code,) = Hook.codes
        assert "code" not in other.bodies[-1]
        wrong = client.post(path, json={"code": f"{int(code, 16) ^ 1:08x}"})
        assert wrong.status_code == 400
        assert "test message" in wrong.json()["error"]["message"]
        foreign = client.post(path, json={"code": "é"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (400, "validation_error")
        changed = client.patch(f"/alerts/{alert['id']}", json={"targets": alert["targets"], "improve": 400})
        assert changed.json()["data"]["unconfirmed"] == ["http://localhost/..."]
        with client_of_another_key(client) as stranger:
            assert stranger.post(path, json={"code": code}).status_code == 404
        right = client.post(path, json={"code": f" {code.upper()}\n"}).json()["data"]
        assert (right["unconfirmed"], right["error"]) == ([], None)
        assert client.post(path, json={"code": code}).status_code == 400
        assert code not in client.get("/alerts").text
        again = client.post("/alerts", json={"filter": "mine", "targets": [hook.url]}).json()["data"]
        assert again["unconfirmed"] == []
        assert alerts.check() == 1
        assert len(hook.bodies) == 1


def test_targets_without_a_code_are_confirmed(server: Running, client: httpx2.Client, hook: Hook) -> None:
    owner = client.get("/account").json()["data"]["key_id"]
    old = rules.NewAlert(filter="mine", targets=[hook.url], improve=1.0)
    stored = msgspec.to_builtins(old) | {"id": "old"}
    server.node.records.put(owner, "alert", "old", msgspec.defstruct("Old", list(stored))(**stored), "active")
    (alert,) = client.get("/alerts").json()["data"]
    assert (alert["unconfirmed"], alert["error"]) == ([], None)


def test_slow_targets_delay_only_their_own_account(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    """Neither alerts nor tests of other accounts wait for them, and no request."""
    assert isinstance(server.node.keys, KeyStore)
    over, begun = threading.Event(), threading.Event()
    with contextlib.ExitStack() as stack:
        slow = stack.enter_context(hooked())
        theirs = [
            stack.enter_context(
                server.client(None, headers={"X-API-Key": server.node.keys.create(f"slow{n}", KeyTerms("pro")).key})
            )
            for n in range(4)
        ]
        for n, each in enumerate(theirs):
            each.put("/filters/mine", json={"list": "ev", "query": "min_ev=0"})
            made(each, targets=[f"{slow.url}/{n}"], improve=500.0)

        def wait() -> None:
            begun.set()
            over.wait(PATIENCE_S)

        slow.before = wait
        stack.callback(over.set)
        alerts.begin()
        assert begun.wait(PATIENCE_S)
        made(client, targets=[hook.url], improve=500.0)

        def told() -> bool:
            alerts.begin()  # skips accounts whose last check still runs
            return bool(hook.bodies)

        until(told, "a message beside slow ones")
        for each in theirs:  # two tests of each account wait for it
            (alert,) = each.get("/alerts").json()["data"]
            for _ in range(2):
                thread = threading.Thread(target=each.post, args=(f"/alerts/{alert['id']}/test",))
                thread.start()
                stack.callback(thread.join)
        stack.callback(over.set)
        running = server.service.api.outgoing._running
        until(lambda: sum(running.values()) == 8, "eight tests")
        refused = theirs[0].post(f"/alerts/{theirs[0].get('/alerts').json()['data'][0]['id']}/test")
        assert refused.status_code == 429
        assert "retry in a few seconds" in refused.json()["error"]["message"]
        assert client.get("/opportunities/ev?min_ev=0.123").status_code == 200
        (mine,) = client.get("/alerts").json()["data"]
        assert client.post(f"/alerts/{mine['id']}/test").json()["data"] == {"sent": True, "error": None}
    until(lambda: not any(each.running() for each in alerts._running.values()))


def test_accounts_put_alerts_off_while_checks_begin(alerts: rules.Alerts) -> None:
    over, alert = threading.Event(), rules.StoredAlert(filter="mine", id="a")

    def work() -> None:
        for number in count():
            if over.is_set():
                break
            alerts._put_off(f"owner{number}", alert)

    threads = [threading.Thread(target=work) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for _ in range(5):
            for number in range(20_000):
                alerts._put_off(f"other{number}", alert)
            alerts.begin()
    finally:
        over.set()
        sys.setswitchinterval(before)
        for each in threads:
            each.join()


# Ends while a target has not answered.
ENDS = """
import sys
from pathlib import Path
from support.service_running import running
from oddsengine_service.bettors import targets
from oddsengine_service.bettors.alerts import StoredAlert, store
from oddsengine_service.accounts.keys import KeyTerms
from oddsengine_service.wire.saved_filters import Filter
targets.TIMEOUT_S = 600.0
with running(Path(sys.argv[1]), events=4) as server:
    owner = server.node.keys.create("bettor", KeyTerms("pro")).record.id
    server.node.records.put(owner, "filter", "mine", Filter(list="ev", query="min_ev=0", name="mine"))
    store(server.node.records, owner, StoredAlert(filter="mine", id="a", targets=[sys.argv[2]]))
    server.service.alerts.sender.webhooks.private = True
    server.service.alerts.begin()
    input()
"""


def test_a_process_ends_without_its_targets(tmp_path: Path, hook: Hook) -> None:
    over, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait()

    hook.before = wait
    try:
        with python(ENDS, str(tmp_path), hook.url, cwd=Path(__file__).parents[1], stdin=PIPE) as process:
            assert begun.wait(PATIENCE_S)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.close()
            try:
                assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
    finally:
        over.set()


def test_an_account_sends_so_much_a_minute(
    server: Running, alone: httpx2.Client, alerts: rules.Alerts, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beyond it is sent later, together."""
    monkeypatch.setattr(rules, "MESSAGES", 4)
    monkeypatch.setattr(alerts, "_sent", {})
    now = server.clock()
    monkeypatch.setattr(alerts, "_clock", lambda: now)
    for _ in range(4):
        made(alone, targets=[hook.url], improve=500.0)  # the test is a message
    alerts.check()  # also those of other tests, whose hooks are gone
    assert len(hook.bodies) == 3
    tests = alone.post(f"/alerts/{alone.get('/alerts').json()['data'][0]['id']}/test")
    assert tests.status_code == 429
    alerts.check()
    assert len(hook.bodies) == 3
    now += 30.0
    alerts.check()
    assert len(hook.bodies) == 4
    monkeypatch.setattr(rules, "BYTES", 10)
    monkeypatch.setattr(alerts, "_sent", {})
    for _ in range(2):
        made(alone, targets=[hook.url], improve=500.0)
    alerts.check()
    assert len(hook.bodies) == 5


def test_a_text_has_the_address_of_the_rest_if_the_node_has_one(
    client: httpx2.Client, alerts: rules.Alerts, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/opportunities/arbitrage?min_profit=-99"
    client.put("/filters/all", json={"list": "arbitrage", "query": "min_profit=-99"})
    for origin in ("", "https://odds.example.com"):
        monkeypatch.setattr(alerts, "origin", origin)
        made(client, filter="all", targets=[hook.url], improve=500.0)
        assert alerts.check() == 1
        body = hook.bodies[-1]
        more = f"and {body['total'] - rules.MOST_LINES} more"
        assert body["text"].splitlines()[-1] == (f"{more}: {origin}{path}" if origin else more)
        assert body["url"] == origin + path


def test_a_message_says_how_old_it_is_and_looks_each_opportunity_up_again(
    client: httpx2.Client, alerts: rules.Alerts, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "min_ev=0&sort=ev&devig_book=pinnacle"
    for origin in ("", str(client.base_url).partition("/api")[0]):
        monkeypatch.setattr(alerts, "origin", origin)
        name = "linked" if origin else "plain"
        client.put(f"/filters/{name}", json={"list": "ev", "query": query})
        made(client, filter=name, targets=[hook.url], improve=500.0)
        assert alerts.check() == 1
        body = hook.bodies[-1]
        sent_at = datetime.fromisoformat(body["sent_at"])
        assert sent_at == pytest.approx(datetime.fromtimestamp(alerts._clock(), UTC), abs=timedelta(seconds=1))
        for row, line in zip(body["opportunities"], body["text"].splitlines(), strict=False):
            age = (sent_at - datetime.fromisoformat(row["detected_at"])).total_seconds()
            assert row["seconds_since_detected"] == pytest.approx(age, abs=0.1)
            assert row["url"] == f"{origin}/api/v1/opportunities/ev/{row['id']}?devig_book=pinnacle"
            assert row["page_url"] == f"{origin}/?list=ev&open={row['id']}&devig_book=pinnacle"
            if not line.startswith("and "):
                assert re.search(r"\), found \d+ (s|min|h) ago(: |$)", line)
                assert line.endswith(f": {row['page_url']}") == bool(origin)
            today = client.get(row["url"] if origin else row["url"].removeprefix("/api/v1")).json()["data"]
            sent = {name: row[name] for name in today}
            assert today == sent
    assert body["opportunities"]
    lookup = next(each for each in ENDPOINTS if each.path == "/opportunities/ev/{id}")
    assert set(rules.VIEW_PARAMETERS) == set(lookup.query.declared)


def test_alerts_of_a_filter_without_a_minimum_begin_at_one_percent(
    client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    def values(query: str) -> list[float]:
        client.put(f"/filters/{query}", json={"list": "ev", "query": query}).raise_for_status()
        made(client, filter=query, targets=[hook.url], improve=500.0)
        assert alerts.check() == 1
        asked = client.get(hook.bodies[-1]["url"].removeprefix("/api/v1")).json()["meta"]["total"]
        assert asked == hook.bodies[-1]["total"]
        return [row["ev_percentage"] for row in hook.bodies[-1]["opportunities"]]

    assert min(values("sort=ev")) >= 1.0
    assert hook.bodies[-1]["url"] == "/api/v1/opportunities/ev?sort=ev&min_ev=1"
    assert 0.0 <= min(values("min_ev=0&sort=ev")) < 1.0
    assert client.get("/opportunities/ev?sort=ev&limit=1").json()["data"][0]["ev_percentage"] < 1.0


def test_a_target_that_is_not_confirmed_gets_three_messages_an_hour(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    """Whoever asks, and however its address is spelled; a test that is refused sends to none of an alert's targets."""
    with hooked() as other, client_of_another_key(client) as second:
        second.put("/filters/mine", json={"list": "ev", "query": "min_ev=0"})
        one = client.post("/alerts", json={"filter": "mine", "targets": [hook.url]}).json()["data"]
        Hook.codes.clear()
        spelled = [hook.url.replace("localhost", "LOCALHOST") + "?x=1", other.url]
        two = second.post("/alerts", json={"filter": "mine", "targets": spelled}).json()["data"]
        sent = [client.post(f"/alerts/{one['id']}/test").status_code for _ in range(2)]
        sent += [second.post(f"/alerts/{two['id']}/test").status_code for _ in range(2)]
        assert (sent, len(Hook.codes)) == ([200, 200, 200, 429], 4), "three to one target, one to the other"
        refused = client.post(f"/alerts/{one['id']}/test")
        wanted = "http://localhost/... is not confirmed and gets at most 3 messages an hour; confirm it with the code"
        assert refused.json()["error"]["message"].startswith(wanted)
        assert 3000 < int(refused.headers["retry-after"]) <= 3600
        client.post(f"/alerts/{one['id']}/confirm", json={"code": Hook.codes[0]}).raise_for_status()
        assert client.post(f"/alerts/{one['id']}/test").status_code == 200, "confirmed"
        alerts._clock = lambda: server.clock() + 3600.0
        assert second.post(f"/alerts/{two['id']}/test").status_code == 200, "an hour later"


def test_failures_are_shown_and_tried_again_later(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    made(client, targets=[hook.url])
    for status in (500, 302):
        hook.status = status
        assert [alerts.check(), alerts.check()] == [0, 0]  # the second one waits
        kept = client.get("/alerts").json()["data"][0]  # and a minute passes
        assert kept["error"] == f"http://localhost/... answered {status}"
    assert kept["failures"] == 2
    hook.status = 200
    assert alerts.check() == 1
    kept = client.get("/alerts").json()["data"][0]
    assert (kept["failures"], kept["error"], kept["sent"]) == (0, None, 1)
    test = client.post(f"/alerts/{kept['id']}/test").json()["data"]
    assert test == {"sent": True, "error": None}
    assert hook.bodies[-1]["title"] == "mine: test"
    client.patch(f"/alerts/{kept['id']}", json={"active": False})
    server.advance(5)
    assert alerts.check() == 0


def test_a_masked_target_sent_back_stays_what_it_is(client: httpx2.Client, alerts: rules.Alerts, hook: Hook) -> None:
    alert = made(client, targets=[hook.url])
    changed = client.patch(f"/alerts/{alert['id']}", json={"targets": alert["targets"], "improve": 2})
    assert changed.status_code == 200, changed.text
    assert client.post(f"/alerts/{alert['id']}/test").json()["data"]["sent"] is True


def test_two_webhooks_of_one_host_sent_back_masked_stay_two(client: httpx2.Client, alerts: rules.Alerts) -> None:
    with hooked() as one, hooked() as other:
        alert = made(client, targets=[one.url, other.url])
        assert alert["targets"] == ["http://localhost/..."] * 2
        client.patch(f"/alerts/{alert['id']}", json={"targets": alert["targets"]})
        client.post(f"/alerts/{alert['id']}/test")
        assert [len(one.bodies), len(other.bodies)] == [1, 1]
        answer = client.patch(f"/alerts/{alert['id']}", json={"targets": [*alert["targets"], "http://localhost/..."]})
        assert answer.status_code == 400
        assert "masked" in answer.json()["error"]["message"]


def test_a_message_goes_once_where_it_arrives(server: Running, client: httpx2.Client, alerts: rules.Alerts) -> None:
    with hooked() as one, hooked() as other:
        made(client, targets=[one.url, other.url], improve=500.0)
        other.status = 500
        assert alerts.check() == 1
        kept = client.get("/alerts").json()["data"][0]
        assert (kept["sent"], kept["error"]) == (1, "http://localhost/... answered 500")
        alerts._clock = lambda: server.clock() + 3600.0
        alerts.check()
        assert len(one.bodies) == 1


def test_an_alert_that_breaks_holds_up_no_other(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    made(client, targets=[hook.url], improve=500.0)
    records = server.node.records
    assert isinstance(server.node.keys, KeyStore)
    owner = server.node.keys.create("another", KeyTerms("pro")).record.id
    broken = rules.Alert(
        filter="f", id="b", targets=[hook.url], quiet_from="00:00", quiet_to="01:00", time_zone="Mars"
    )  # fmt: skip
    records.put(owner, "alert", "b", broken, "active")
    try:
        with pytest.raises(ZoneInfoNotFoundError):
            alerts.check()
        assert len(hook.bodies) == 1
        alerts.check()  # it is put off
    finally:
        records.forget(owner, "alert", "b")


def test_a_damaged_filter_is_named_by_its_alert(server: Running, alerts: rules.Alerts) -> None:
    records = server.node.records
    assert isinstance(server.node.keys, KeyStore)
    owner = server.node.keys.create("another", KeyTerms("pro")).record.id
    records.put(owner, "alert", "b", rules.Alert(filter="f", id="b", targets=["https://example.com"]), "active")
    records.put(owner, "filter", "f", Filter(list="unknown", name="f"))
    try:
        alerts.check()
        error = records.get(owner, "alert", "b", rules.StoredAlert).error
        assert error == "filter 'f': filter 'f' is damaged; restore it from a backup, or delete it"
        assert "damaged records" in server.node.failures
    finally:
        records.drop({owner})
    assert "damaged records" not in server.node.failures


@pytest.mark.parametrize("page", ["format=csv", "offset=1000", "limit=1&offset=1"])
def test_what_fits_a_filter_is_sent_whatever_page_it_shows(
    client: httpx2.Client, alerts: rules.Alerts, hook: Hook, page: str
) -> None:
    query = f"{page}&min_profit=-99"
    client.put("/filters/sure", json={"list": "arbitrage", "query": query}).raise_for_status()
    made(client, filter="sure", targets=[hook.url])
    alerts.check()
    assert hook.bodies[0]["opportunities"]
    assert hook.bodies[0]["url"] == "/api/v1/opportunities/arbitrage?min_profit=-99"


def test_alerts_of_an_account_take_turns_within_its_share(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(server.node.keys, KeyStore)
    other = server.node.keys.create("somebody", KeyTerms("pro"))
    spent = dict[str, int]()

    def share(account: str, job: Callable[[], Any], _: float) -> Any:
        """Two queries a look for each account."""
        spent[account] = spent.get(account, 0) + 1
        if spent[account] > 2:
            raise rules.ShareError
        return job()

    monkeypatch.setattr(alerts, "_share", share)
    with contextlib.ExitStack() as held:
        hooks = [held.enter_context(hooked()) for _ in range(4)]
        theirs = held.enter_context(server.client(None, headers={"X-API-Key": other.key}))
        theirs.put("/filters/mine", json={"list": "ev", "query": "min_ev=0"})
        for hook, who in zip(hooks, (client, client, client, theirs), strict=True):
            made(who, targets=[hook.url], improve=500.0)
        alerts.check()
        assert sorted(len(hook.bodies) for hook in hooks[:3]) == [0, 1, 1]
        assert len(hooks[3].bodies) == 1
        spent.clear()
        alerts.check()
        assert [len(hook.bodies) for hook in hooks] == [1, 1, 1, 1]


def test_queries_of_alerts_run_in_the_accounts_share_of_the_answer_threads(alerts: rules.Alerts) -> None:
    over, running = threading.Event(), threading.Semaphore(0)

    def long() -> None:
        running.release()
        over.wait(60.0)

    both = [threading.Thread(target=alerts._share, args=("busy", long, 60.0)) for _ in range(2)]
    for thread in both:
        thread.start()
    for _ in both:
        assert running.acquire(timeout=60.0)
    try:
        with pytest.raises(rules.ShareError):
            alerts._share("busy", lambda: None, 0.2)
        assert alerts._share("idle", lambda: threading.current_thread().name, 60.0).startswith("answer")
    finally:
        over.set()
        for thread in both:
            thread.join()


def test_what_cannot_be_recorded_is_not_sent(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    made(client, targets=[hook.url])
    records = server.node.records
    base = records.database.connection
    (pages,) = base.execute("PRAGMA page_count").fetchone()
    (owner,) = base.execute("SELECT owner FROM records WHERE kind = 'alert' ORDER BY at DESC").fetchone()
    base.execute(f"PRAGMA max_page_count = {pages}")  # the disk is full
    try:
        # So are the pages that a mark and what was sent would be on: they are between these rows.
        for size, kind in itertools.product((1000, 100, 10, 0), ("marj", "marl", "sens", "senu")):
            for i in range(300):
                with contextlib.suppress(Problem), records.database.transaction():
                    row = owner, kind, f"{1000 - size if kind in ('marj', 'sens') else size:04}-{i:03}", b"x" * size
                    base.execute("INSERT INTO records VALUES (?, ?, ?, ?, NULL, 0)", row)
        assert client.put("/marks/one", json={"note": "x" * 1000}).status_code == 507
        with pytest.raises(Problem, match="disk is full") as full:
            alerts.check()
        assert "sqlite" not in full.value.message
        assert hook.bodies == []
    finally:
        base.execute("PRAGMA max_page_count = 1073741823")


def test_an_alert_that_is_deleted_while_it_is_sent_stays_deleted(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    alert = made(client, targets=[hook.url])
    hook.before = lambda: client.delete(f"/alerts/{alert['id']}").raise_for_status()
    alerts.check()
    assert len(hook.bodies) == 1
    assert client.get("/alerts").json()["data"] == []
    assert not server.node.records.database.connection.execute(
        "SELECT name FROM records WHERE kind = 'sent' AND name = ?", (alert["id"],)
    ).fetchall()


def test_alerts_are_of_one_key_and_its_rights(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    alert = made(client, targets=[hook.url])
    with server.client("pro") as other:
        assert other.get("/alerts").json()["data"] == []
        for method, path in (("DELETE", ""), ("POST", "/test")):
            assert other.request(method, f"/alerts/{alert['id']}{path}").status_code == 404
    assert isinstance(server.node.keys, KeyStore)
    server.node.keys.retier(client.get("/account").json()["data"]["key_id"], tier="hobby")
    assert alerts.check() == 0
    assert "tier has no ev" in client.get("/alerts").json()["data"][0]["error"]
    assert hook.bodies == []


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("https://127.0.0.1/x", "private network"), ("https://localhost/x", "private network"),
        ("https://[::1]/x", "private network"), ("https://[::ffff:10.0.0.1]/x", "private network"),
        ("https://169.254.169.254/latest", "private network"), ("https://0x7f000001/", "private network"),
        ("https://[64:ff9b::7f00:1]/", "private network"), ("http://example.com/", "https://"),
        ("https://user@example.com/", "without a user"), ("file:///etc/passwd", "must begin with"),
        ("json://127.0.0.1/", "must begin with"), ("https://", "https://HOST"), ("https://x:99999/", "valid address"),
        ("mailto:me@example.com", "no mail server"), ("tgram://x", "valid tgram"),
        ("https://[::7f00:1]/", "private network"), ("https://[fec0::1]/", "private network"),
        ("https://[::ffff:0:7f00:1]/", "private network"), ("https://:word@example.com/", "without a user"),
        ("https://example.com\\@127.0.0.1/", "valid address"), ("https://1.1.1.1/\x7f", "one address"),
        ("https://1.1.1.1/ https://127.0.0.1/", "one address"),
        ("discord://123/abc json://127.0.0.1/", "one address"),
        ("discord://123/abc,json://127.0.0.1/", "valid discord"), ("https://1.1.1.1:0/", "valid address"),
        ("tgram://123456789:abcdefg_hijklmnop/1\tjson://127.0.0.1/", "one address"),
        ("https://xn--/", "cannot be found"), ("https://192.0.0.8/", "private network"),
        ("https://192.0.0.200/", "private network"), ("https://198.19.0.1/", "private network"),
        ("https://100.64.0.1/", "private network"), ("https://[2001:db8::1]/", "private network"),
        ("https://[3fff::1]/", "private network"), ("https://239.1.2.3/", "private network"),
        ("https://255.255.255.255/", "private network"),
    ],
)  # fmt: skip
def test_addresses_are_checked(client: httpx2.Client, target: str, why: str) -> None:
    pytest.importorskip("apprise")
    answer = client.post("/alerts", json={"filter": "mine", "targets": [target]})
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "wrong", [{"filter": "none"}, {"quiet_from": "22:00"}, {"quiet_from": "25:00", "quiet_to": "07:00"},
              {"time_zone": "Moon"}, {"improve": 0.09}, {"targets": ["https://1.1.1.1/"] * 6}, {"target": "https://1.1.1.1/"}],
)  # fmt: skip
def test_what_is_no_alert_is_refused(client: httpx2.Client, wrong: dict[str, Any]) -> None:
    assert client.post("/alerts", json={"filter": "mine", **wrong}).status_code in (400, 404)


def test_an_alert_can_be_changed_after_its_filter_was_deleted(client: httpx2.Client) -> None:
    client.put("/filters/gone", json={"list": "ev"})
    alert = client.post("/alerts", json={"filter": "gone"}).json()["data"]
    client.delete("/filters/gone")
    changed = client.patch(f"/alerts/{alert['id']}", json={"active": False})
    assert (changed.status_code, changed.json()["data"]["active"]) == (200, False)
    unknown = client.patch(f"/alerts/{alert['id']}", json={"filter": "mine"})
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (
        400, "unknown field 'filter' in the request body; allowed: targets, improve, quiet_from, quiet_to, time_zone, "
        "sound, active",
    )  # fmt: skip


def test_an_alert_says_that_its_filter_is_gone(client: httpx2.Client, alerts: rules.Alerts, hook: Hook) -> None:
    client.put("/filters/gone", json={"list": "ev"})
    for targets in ([], [hook.url]):
        made(client, filter="gone", targets=targets)
    client.delete("/filters/gone")
    errors = [alert["error"] for alert in client.get("/alerts").json()["data"]]
    assert errors == ["filter 'gone': there is no filter 'gone'"] * 2
    assert alerts.check() == 0
    client.put("/filters/gone", json={"list": "ev", "query": "min_ev=900"})
    alerts._retry.clear()
    alerts.check()
    assert [(alert["error"], alert["failures"]) for alert in client.get("/alerts").json()["data"]] == [(None, 0)] * 2


def test_a_stored_filter_that_its_list_would_ignore_in_part_sends_nothing(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:
    for targets in ([], [hook.url]):
        made(client, targets=targets)
    owner = client.get("/account").json()["data"]["key_id"]
    server.node.records.put(owner, "filter", "mine", Filter(name="mine", list="ev", query="min_edge=900"))
    assert alerts.check() == 0
    assert hook.bodies == []
    for alert in client.get("/alerts").json()["data"]:
        assert alert["error"] == "filter 'mine': query must have parameters of /opportunities/ev only, got 'min_edge'"


def test_a_name_that_changes_its_mind_is_connected_where_it_was_checked(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:  # a name server that answers differently each time
        asked.append(host)
        ip = "127.0.0.1" if len(asked) > 1 else "93.184.216.34"
        return [(2, 1, 6, "", (ip, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert checked("rebind.example", 443, private=False) == "93.184.216.34"
    with pytest.raises(ValueError, match="private network"):
        Sender().send(f"https://rebind.example:{hook.server.server_address[1]}/", AlertMessage("t", []))
    assert hook.bodies == []
    assert set(asked) == {"rebind.example"}


@pytest.mark.parametrize("address", ["192.0.1.1", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"])
def test_other_addresses_are_public(address: str) -> None:
    assert checked(address, 443, private=False) == address


def test_secrets_are_masked() -> None:
    assert masked("https://hooks.example.com:8443/T0/B0?x=1") == "https://hooks.example.com/..."
    assert masked("tgram://123:abc/456") == "tgram:///..."
    assert masked("mailto:someone@example.com") == "mailto:s...@example.com"


class Trickle:
    """A server that sends a header now and then, and never all of them."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.over = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self.listener.accept()[0] as one, contextlib.suppress(OSError):
            one.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self.over.wait(0.05):
                one.sendall(b"x: y\r\n")


def test_a_server_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oddsengine_service.bettors.targets.TIMEOUT_S", 0.5)
    server = Trickle()
    with pytest.raises(ValueError, match=r"http://127.0.0.1/\.\.\. cannot be reached: TimeoutError"):
        Sender(private=True).send(f"http://127.0.0.1:{server.listener.getsockname()[1]}/secret", AlertMessage("t", []))
    server.over.set()
    server.listener.close()


def test_mail_goes_through_the_operators_server_only() -> None:
    pytest.importorskip("apprise")
    sender = Sender(mail="mailtos://user:word@smtp.example.com?from=odds@example.com")
    sender.check("mailto:me@example.com")
    for wrong in (
        "mailto:me@example.com?smtp=127.0.0.1",
        "mailto:a@b,c@d",
        "tgram://1:a/2?proxy=x",
        "MAILTO://user:word@mail.example.com:25",
    ):
        with pytest.raises(ValueError, match="not a valid"):
            sender.check(wrong)


class Smtp:
    """A mail server."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.refuses = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                with self.listener.accept()[0] as one, one.makefile("rwb") as lines:
                    self._session(lines)

    def _session(self, lines: Any) -> None:
        def say(text: str) -> None:
            lines.write(text.encode() + b"\r\n")
            lines.flush()

        say("220 here")
        while word := lines.readline().split(b" ")[0].strip().upper():
            if word == b"DATA":
                say("354 go on")
                message = b""
                while (line := lines.readline()) not in (b".\r\n", b""):
                    message += line
                self.messages.append(message.decode())
            say("550 no" if self.refuses else "221 bye" if word == b"QUIT" else "250 localhost")


def test_mail_arrives() -> None:
    pytest.importorskip("apprise")
    server = Smtp()
    sender = Sender(mail=f"mailto://127.0.0.1:{server.port}?from=odds@example.com&mode=insecure")
    sender.check("mailto:me@example.com")
    sender.send("mailto:me@example.com", AlertMessage("mine: 1 opportunity", ["2.10 % Celtics +110 at fanduel"]))
    (mail,) = (message_from_string(each) for each in server.messages)
    assert mail["Subject"] == "mine: 1 opportunity"
    assert "me@example.com" in mail["To"]
    assert "odds@example.com" in mail["From"]
    assert "2.10 % Celtics +110 at fanduel" in server.messages[0]
    server.refuses = True
    with pytest.raises(ValueError, match=r"mailto:m\.\.\.@example.com did not accept the message"):
        sender.send("mailto:me@example.com", AlertMessage("t", ["x"]))


@pytest.mark.parametrize(
    ("target", "path", "word"),
    [
        ("discord://123456789/abcdefgh", "/123456789/abcdefgh", "discord"),
        ("tgram://123456789:abcdefg_hijklmnop/12315544/", "123456789:abcdefg_hijklmnop/sendMessage", "tgram"),
    ],
)
def test_services_are_sent_to(target: str, path: str, word: str, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries' own requests, to a server of this machine."""
    apprise = pytest.importorskip("apprise")
    service = type(apprise.Apprise.instantiate(target))
    monkeypatch.setattr(service, "notify_url", hook.url + ("/bot" if word == "tgram" else ""))
    sender = Sender()
    sender.check(target)
    sender.send(target, AlertMessage("mine: 1 opportunity", ["2.10 % Celtics <b> +110"]))
    (body,) = hook.bodies
    assert hook.paths[0].endswith(path)
    assert "2.10 % Celtics" in json.dumps(body)
    assert "mine: 1 opportunity" in json.dumps(body)
    hook.status = 401
    with pytest.raises(ValueError, match=rf"^{word}:///\.\.\. did not accept the message$"):
        sender.send(target, AlertMessage("t", ["x"]))


def test_news_are_what_is_new_or_better() -> None:
    sent, row = Sent(), {"id": "a", "ev_percentage": 2.0}
    assert unsent("ev", [row], sent, 1.0, 0.0) == [row]
    better, best = {**row, "ev_percentage": 2.9}, {**row, "ev_percentage": 3.0}
    assert unsent("ev", [better], sent, 1.0, 1.0) == []
    assert unsent("ev", [best], sent, 1.0, 2.0) == [best]
    assert unsent("ev", [row], sent, 1.0, 3.0) == []
    assert unsent("ev", [], sent, 1.0, 7 * 3600.0) == []
    assert sent.values == {}
    cheap = {"id": "b", "hold_percentage": -1.0}
    assert unsent("low_hold", [{**cheap, "hold_percentage": 1.0}], sent, 1.0, 0.0)
    assert unsent("low_hold", [cheap], sent, 1.0, 0.0) == [cheap]


def test_quiet_hours_are_of_a_time_zone() -> None:
    night = rules.NewAlert(filter="a", quiet_from="23:00", quiet_to="07:00", time_zone="America/New_York")
    assert quiet(night, datetime(2026, 1, 1, 11, 59, tzinfo=UTC))  # 06:59
    assert not quiet(night, datetime(2026, 1, 1, 12, 0, tzinfo=UTC))
    assert not quiet(rules.NewAlert(filter="a"), datetime(2026, 1, 1, tzinfo=UTC))


def test_nothing_is_sent_in_quiet_hours(
    server: Running, client: httpx2.Client, alerts: rules.Alerts, hook: Hook
) -> None:  # fmt: skip
    now = datetime.fromtimestamp(server.clock(), UTC)
    begin, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (-1, 1))
    made(client, targets=[hook.url], quiet_from=begin, quiet_to=end)
    assert alerts.check() == 0
    assert hook.bodies == []
