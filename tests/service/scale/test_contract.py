"""The published contract once more, asked of a gateway: it answers as the single node does."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from service.contract import test_conformance as contract_tests
from support.contract import READ
from support.effort import ALL, some
from support.nats_running import Servers, servers, wait_for
from support.service_running import PATIENCE_S, TIER_IDS, Running

from oddsengine_service.scale.roles import Member
from oddsengine_service.stream import resuming


def member_of(running: Running) -> Member:
    replication = running.node.replication
    assert isinstance(replication, Member)
    return replication


class Gateway(Running):
    """A gateway, in a thread of this process."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        super().__init__(folder, settings=settings)
        self.member = member_of(self)
        self.service._run = lambda _: None
        self.played.set()


class Behind(Running):
    """A writer with the world of the other tests, whose clients ask a gateway."""

    def __init__(self, folder: Path, found: Servers) -> None:
        scale = {"ODDSENGINE_SCALE_SERVERS": ",".join(found.urls), "ODDSENGINE_SCALE_LOG_BYTES": str(64 << 20)}
        super().__init__(folder / "writer", settings={**scale, "ODDSENGINE_SCALE_ROLE": "writer"})
        self.member = member_of(self)
        self.gateway_settings = {**scale, "ODDSENGINE_SCALE_ROLE": "gateway"}
        self.gateway = Gateway(folder / "gateway", self.gateway_settings)

    def start(self) -> "Behind":
        self.gateway.start()
        super().start()
        self.node.write(self.node.step, (), self.node.engine.now).result(PATIENCE_S)  # splits go with it
        self.clock, self.origin = self.gateway.clock, self.gateway.origin
        self.sync()
        wait_for(lambda: self.gateway.node.ready, "the gateway is ready")
        return self

    def stop(self) -> None:
        super().stop()
        self.gateway.stop()

    def sync(self) -> None:
        """Wait until the gateway has what the writer made."""
        wait_for(lambda: self.gateway.node.engine.number == self.node.engine.number, "all steps")
        if self.node.past is not None:
            self.node.past.settle()
        wait_for(lambda: self.member.closings.first() is None, "closing lines in the log")
        last = self.member.link.call(self.member.past.bounds(), 20.0)
        past = self.gateway.node.past
        assert past is not None
        wait_for(lambda: past.closings.database.place(last.created_at) >= last.last, "closing lines at the gateway")

    def client(self, tier: str | None = "enterprise", **more: Any) -> Any:
        made = super().client(tier, **more)
        made.event_hooks["request"].append(lambda _: self.sync())
        return made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("gateway")
    with servers(folder / "nats") as found:
        behind = Behind(folder, found)
        try:
            yield behind.start()
        finally:
            behind.stop()


bodies, ids = contract_tests.bodies, contract_tests.ids
for name in (
    "test_prices_are_whole_wherever_they_stand",
    "test_pages_are_50_and_at_most_200",
    "test_what_is_posted_is_never_stored", "test_no_answer_names_a_book_above_the_tier",
    *(("test_a_free_key_sees_everything_a_minute_late", "test_a_free_key_does_not_see_what_is_new") if ALL else ()),
):  # fmt: skip
    globals()[name] = getattr(contract_tests, name)
OF_EACH = {read[2]: read for read in READ}  # one for each kind of what is answered
every_field = contract_tests.test_every_field_of_the_contract


@pytest.mark.parametrize("tier", some(TIER_IDS, 1))
@pytest.mark.parametrize("read", READ if ALL else OF_EACH.values(), ids=lambda each: each[0])
def test_every_field_of_the_contract(service: Behind, ids: dict[str, str], tier: str, read: tuple[str, ...]) -> None:
    """In `make test` some: the single node is asked for all, and the handlers are the same."""
    every_field(service, ids, tier, *read)


def test_a_gateway_has_the_closing_lines_of_its_writer(service: Behind, ids: dict[str, str]) -> None:
    with service.client() as client:
        found = client.get(f"/odds/closing?event_id={ids['closed']}").json()["data"]
    lines = {(book, each["selection_type"], each["odds_decimal"]) for book, of in found["books"].items() for each in of}
    books = ("draftkings", "fanduel", "pinnacle", "sbobet")
    assert lines == {(book, side, odds) for book in books for side, odds in (("home", 1.9), ("away", 2.0))}


@pytest.mark.exhaustive
def test_one_process_of_a_shard_leads(service: Behind) -> None:
    rules = yaml.safe_load((Path(__file__).parents[3] / "deploy" / "alerts.yaml").read_text())["groups"][0]["rules"]
    (rule,) = [rule for rule in rules if rule["alert"] == "NoWriter"]
    assert rule["expr"] == "sum by (shard) (oddsengine_log_leads) != 1", "there may be several shards"
    found = [family for member in (service.member, service.gateway.member) for family in member.collect()]
    leads = [sample for family in found if family.name == "oddsengine_log_leads" for sample in family.samples]
    assert [(sample.labels["shard"], sample.value) for sample in leads] == [("main", True), ("main", False)]


def test_a_gateway_says_that_it_is_ready_once_it_is(service: Behind) -> None:
    lines = [json.loads(line) for line in service.gateway.log_text().splitlines()]
    ready = [line for line in lines if line["event"] == "ready"]
    assert ["step" in line for line in ready] == [True], "after it has read the log, and not before"


def test_a_stream_of_prices_goes_on_at_another_gateway(service: Behind, tmp_path: Path) -> None:
    def read(base: str, last: str) -> tuple[bool, str]:
        """Whether a stream is resumed, and the id of its first update."""
        url, resumed = f"{base}/stream/odds?resume=true&last_event_id={last}", False
        with httpx2.stream("GET", url, headers={"X-API-Key": "demo_enterprise"}, timeout=PATIENCE_S) as answer:
            for line in answer.iter_lines():
                resumed |= '"resumed":true' in line
                if line.startswith("id: evt_") and line != "id: evt_0":
                    return resumed, line[4:]
        raise AssertionError("the stream ended")

    other = Gateway(tmp_path / "other", service.gateway_settings)
    service.sync()
    resumed, last = read(service.gateway.base, "")
    assert not resumed
    service.advance()
    try:
        other.start()
        wait_for(lambda: other.node.ready, "a gateway that nobody read from")
        wait_for(lambda: other.node.engine.number == service.node.engine.number, "all steps")
        assert read(other.base, last)[0]
    finally:
        other.stop()


def test_ids_of_a_stream_that_resumes_never_go_back(service: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of games too; and a gateway that is behind what a client has does not show it older prices."""
    base = f"{service.gateway.base}/stream/all?resume=true"
    names, ids = set(), [0]
    with httpx2.stream("GET", base, headers={"X-API-Key": "demo_enterprise"}, timeout=PATIENCE_S) as answer:
        for line in answer.iter_lines():
            if line == "event: snapshot:complete":
                service.advance()
            elif line.startswith("event: "):
                names.add(line[7:])
            elif line.startswith("id: evt_") and line != "id: evt_0":
                number, _, subscription = line[8:].partition(".")
                ids.append(int(number))
            if {"gamestate:update", "odds:update"} <= names and ids[-1]:
                break
    assert ids == sorted(ids)
    monkeypatch.setattr(resuming, "REACH_S", 0.2)
    stream = service.gateway.service.api.hub
    assert stream is not None
    global_seq = stream.subscribers.delivery.global_seq(service.node.engine.number) + 1
    ahead = f"{base}&last_event_id=evt_{global_seq}.{subscription}"
    with service.gateway.client("enterprise") as client:
        refused = client.get(ahead)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
    monkeypatch.setattr(resuming, "REACH_S", PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:

        def first_line() -> str:
            with httpx2.stream("GET", ahead, headers={"X-API-Key": "demo_enterprise"}, timeout=PATIENCE_S) as answer:
                return next(line for line in answer.iter_lines() if line.startswith("data: "))

        waiting = pool.submit(first_line)
        service.advance()
        assert '"resumed":true' in waiting.result(PATIENCE_S)
