"""Bets, filters, marks and alerts of several processes, over real servers and real HTTP."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx2
import pytest
from service.scale.test_log import link_to
from service.scale.test_scale import begun, killed_and_replaced, ready
from service.test_alerts import Hook, hooked
from service.test_bets import BET
from support.nats_running import Servers, servers, wait_for
from support.scale_running import CLIENT, Process, run

from oddsengine.live.engine import Engine
from oddsengine_service.accounts.records import NamedRecord, Records
from oddsengine_service.errors import Problem
from oddsengine_service.node import Node
from oddsengine_service.replication import RecordChange
from oddsengine_service.routes.marks import Mark
from oddsengine_service.scale import bettors
from oddsengine_service.scale.bettors import SharedRecords, adopt, follow
from oddsengine_service.scale.link import LogConnection

ALERTS = {"ODDSENGINE_ALERTS_EVERY": "0.2", "ODDSENGINE_ALERTS_PRIVATE": "true"}


def ask(process: Process, method: str, path: str, key: str = "pro", **more: Any) -> httpx2.Response:
    return CLIENT.request(method, process.base + path, headers={"X-API-Key": f"demo_{key}"}, timeout=60.0, **more)


def stored(process: Process, path: str, key: str = "pro") -> Any:
    answer = ask(process, "GET", path, key)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.mark.exhaustive
def test_what_is_stored_at_one_gateway_is_there_at_every_other(tmp_path: Path) -> None:
    with (
        hooked() as hook, servers(tmp_path / "nats") as found,
        run(tmp_path, found, steps=400, pause_s=0.1, lease_s=2.0) as shard,
    ):  # fmt: skip
        w1, w2 = (shard.add(name, "writer", 0, **ALERTS) for name in ("w1", "w2"))
        g1, g2 = begun(shard, "g1", "g2")
        ready(g1, g2)
        wait_for(lambda: w1.leads or w2.leads, "a writer leads")
        first, second = (w1, w2) if w1.leads else (w2, w1)

        answer = ask(g1, "POST", "/bets", json=BET)
        assert answer.status_code == 201, answer.text
        bet = answer.json()["data"]
        assert stored(g1, "/bets") == stored(g2, "/bets") == [bet]
        assert stored(g1, "/bets", "sharp") == stored(g2, "/bets", "sharp") == []  # another key
        assert ask(g2, "PATCH", f"/bets/{bet['id']}", "sharp", json={"result": "lost"}).status_code == 404
        assert ask(g2, "PATCH", f"/bets/{bet['id']}", json={"result": "won"}).json()["data"]["profit"] == 110.0
        assert stored(g1, "/bets")[0]["result"] == "won"
        assert ask(g1, "PUT", "/marks/a%2Fb?x=1", json={"note": "später"}).json()["meta"] == {"ignored": ["x"]}
        assert stored(g2, "/marks") == [{"hidden": False, "note": "später", "id": "a/b"}]
        refused = ask(g1, "PUT", "/filters/mine", json={"list": "ev", "query": "nonsense"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "validation_error")
        assert ask(g1, "PUT", "/filters/mine", json={"list": "ev", "query": "min_ev=0"}).status_code == 200

        made = ask(g2, "POST", "/alerts", json={"filter": "mine", "targets": [hook.url], "improve": 500}).json()["data"]
        Hook.codes.clear()
        assert ask(g1, "POST", f"/alerts/{made['id']}/test").json()["data"] == {"sent": True, "error": None}
        ask(g1, "POST", f"/alerts/{made['id']}/confirm", json={"code": Hook.codes[0]})
        wait_for(lambda: len(hook.bodies) > 1, "the writer sends")
        wait_for(lambda: stored(g1, "/alerts")[0]["sent"] > 0, "the gateways read it")
        assert "secret" not in ask(g1, "GET", "/alerts").text
        sent = stored(g1, "/alerts")[0]["sent"]

        killed_and_replaced(shard, first, second, signal.SIGKILL)
        later = ask(g2, "POST", "/bets", json={**BET, "stake": 5.0})  # waits for the other writer
        assert later.status_code == 201, later.text
        assert {row["id"] for row in stored(g1, "/bets")} == {bet["id"], later.json()["data"]["id"]}
        assert stored(g1, "/marks")[0]["id"] == "a/b"
        wait_for(lambda: stored(g2, "/alerts")[0]["sent"] > sent, "the other writer sends")
        each_once(hook)

        g1.send(signal.SIGKILL)
        assert ask(g2, "DELETE", f"/bets/{bet['id']}").status_code == 200
        assert ask(g2, "DELETE", "/marks/a%2Fb").status_code == 200
        g1.start()
        ready(g1)
        assert stored(g1, "/bets") == stored(g2, "/bets") == [later.json()["data"]]
        assert stored(g1, "/marks") == []

        second.send(signal.SIGKILL)
        gone = ask(g1, "PUT", "/marks/c", json={})
        assert (gone.status_code, gone.json()["error"]["code"]) == (503, "unavailable")
        assert stored(g1, "/bets") == [later.json()["data"]]


def each_once(hook: Hook) -> None:
    """No opportunity was sent twice, whichever writer sent it."""
    ids = [row["id"] for body in hook.bodies for row in body["opportunities"]]
    assert len(ids) == len(set(ids))


class Copies:
    """The records of a writer and of a gateway, without the rest of their processes."""

    def __init__(self, found: Servers, folder: Path) -> None:
        self.links: list[LogConnection] = []
        self.made: list[tuple[Node, SharedRecords]] = []
        self._found, self._folder = found, folder

    def add(self, name: str, *, gateway: bool) -> Node:
        link = link_to(self._found)
        shared = SharedRecords(link, link.loop.create_task)
        records = Records(self._folder / f"{name}.sqlite", shared)
        node = Node(Engine(), None, None, records=records)  # type: ignore[arg-type]
        link.call(shared.open(node), 20.0)
        link.start(shared.follow())
        if not gateway:
            link.call(shared.lead(len(self.made) + 1, None), 20.0)  # type: ignore[arg-type]
        self.links.append(link)
        self.made.append((node, shared))
        return node

    def close(self) -> None:
        for link in self.links:
            link.close()
        for node, _ in self.made:
            node.close()
            node.records.close()


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[tuple[Servers, Copies]]:
    with servers(tmp_path / "nats") as found:
        made = Copies(found, tmp_path)
        yield found, made
        made.close()


def names(node: Node) -> list[str]:
    return [mark.id for mark in node.records.all("k", "mark", Mark)]


def test_records_from_before_are_shared_and_a_change_that_hangs_is_not_lost(
    copies: tuple[Servers, Copies], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, made = copies
    alone = Records(tmp_path / "w1.sqlite")
    alone.put("k", "mark", "a", Mark(id="a"))
    alone.close()
    stale = Records(tmp_path / "g1.sqlite")
    stale.put("k", "mark", "z", Mark(id="z"))
    stale.close()
    g1, w1 = made.add("g1", gateway=True), made.add("w1", gateway=False)
    wait_for(lambda: names(g1) == ["a"], "what the writer had from before, and nothing else")
    with pytest.raises(Problem, match="cannot be changed at the moment"):
        g1.records.put("k", "mark", "b", Mark(id="b"))

    monkeypatch.setattr(bettors, "_STORE_S", 0.3)
    found[0].kill()
    for name in ("b", "c"):  # nobody knows whether the first one is stored; the second one is not tried
        with pytest.raises(Problem, match="takes no records now"):
            w1.records.put("k", "mark", name, Mark(id=name))
    assert names(w1) == ["a"]
    monkeypatch.undo()
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(w1.records.put, "k", "mark", "x", Mark(id="x"))  # refused, or stored: never neither
        wait([late], 1.0)
        found[0].start()
        stored = late.exception() is None
    expected = ["a", "b", "x"] if stored else ["a", "b"]
    wait_for(lambda: names(w1) == names(g1) == expected, "the first one everywhere")
    if stored:
        w1.records.forget("k", "mark", "x")
    w1.records.put("k", "mark", "c", Mark(id="c"))
    w1.records.forget("k", "mark", "a")
    wait_for(lambda: names(g1) == ["b", "c"], "changes go on")

    w2 = made.add("w2", gateway=False)
    assert names(w2) == ["b", "c"]
    with pytest.raises(Problem, match="takes no records now"):
        w1.records.put("k", "mark", "late", Mark(id="late"))
    w2.records.put("k", "mark", "d", Mark(id="d"))
    wait_for(lambda: names(g1) == names(w1) == ["b", "c", "d"], "the late one is nowhere")


def test_a_backup_is_restored_record_by_record_and_again_what_is_missing(copies: tuple[Servers, Copies]) -> None:
    _, made = copies
    g1, w1 = made.add("g1", gateway=True), made.add("w1", gateway=False)
    marks = [NamedRecord("mark", name, Mark(id=name)) for name in "abcde"]
    assert w1.records.put_all("k", marks[:2]) == 2
    assert w1.records.put_all("k", marks) == 3
    assert w1.records.put_all("k", marks) == 0
    with pytest.raises(Problem, match="at most 5,000 marks"):
        w1.records.put_all("k", [NamedRecord("mark", str(n), Mark(id=str(n))) for n in range(4_998)])
    wait_for(lambda: names(g1) == names(w1) == list("abcde"), "all of them everywhere")
    with pytest.raises(Problem, match="cannot be changed at the moment"):
        g1.records.put_all("k", [NamedRecord("mark", "z", Mark(id="z"))])


def test_another_stream_begins_with_what_the_writer_has(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.sqlite")
    mark = RecordChange("k", "mark", "a", b'{"id":"a"}')
    follow(records, 1, 5, mark)
    assert (records.database.place(1), records.database.place(2)) == (5, 0)
    follow(records, 1, 4, RecordChange("k", "mark", "a"))  # known already
    assert adopt(records, 2) == [mark]
    follow(records, 2, 1, RecordChange("k", "mark", "b", b'{"id":"b"}'))
    assert [one.id for one in records.all("k", "mark", Mark)] == ["a", "b"]
    follow(records, 3, 9, mark)  # another writer's
    assert [one.id for one in records.all("k", "mark", Mark)] == ["a"]
    records.close()
    again = Records(tmp_path / "records.sqlite")
    assert again.database.place(3) == 9
    again.close()
