"""Replay: whoever comes back within two minutes and says where it was holds what the lists have.

Connections drop, filters change and prices move; now and then all is still, and every client's state is compared with
the lists. REPLAY_STEPS makes it longer and REPLAY_SEED another one; REPLAY_SECONDS goes on for that long, as
`make soak` does.
"""

import json
import os
import random
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from support.effort import less
from support.socket_running import SocketClient
from support.stream_running import (
    PATIENCE_S,
    Client,
    Served,
    full_board,
    lasting,
    moment,
    price,
    turned,
    wait_for,
    without_ages,
    world,
)

from oddsengine import catalog
from oddsengine_service.stream import resuming

STEPS = int(os.environ.get("REPLAY_STEPS", less(60, 24)))
SECONDS = float(os.environ.get("REPLAY_SECONDS", "0"))
LONG_S = 120.0  # opportunities are read less often where the machine is busy
SEED = int(os.environ.get("REPLAY_SEED", "3"))
LISTS = {"ev": "ev", "arb": "arbitrage", "low_hold": "low_hold", "middles": "middles"}
SINGULAR = {"sports": "sport", "leagues": "league", "markets": "market", "sportsbooks": "sportsbook"}


SERVED = {"heartbeat": 0.25}


class Follower:
    """A client and its successors, which go on where it stopped."""

    def __init__(self, served: Served, draw: random.Random, words: dict[str, list[str]], *, socket: bool) -> None:
        self.served, self.draw, self.words, self.socket = served, draw, words, socket
        self.filters = self._filters()
        self.drops = self.resumed = self.changes = 0
        self.client: Any = self._connect(None)

    def _filters(self) -> dict[str, Any]:
        draw = self.draw
        chosen: dict[str, Any] = {
            name: draw.sample(known, min(draw.randint(1, 4), len(known)))
            for name, known in self.words.items()
            if draw.random() < 0.3
        }
        if self.socket and draw.random() < 0.3:
            chosen |= {"min_odds": -200, "max_odds": 180}
        return chosen

    @property
    def query(self) -> dict[str, Any]:
        """The filters as the query of a request has them."""
        return {
            SINGULAR.get(name, name): ",".join(value) if isinstance(value, list) else value
            for name, value in self.filters.items()
        }

    def _connect(self, before: Any) -> Any:
        if self.socket:
            return SocketClient(self.served, "sharp", before=before, **self.query)
        headers = {"Last-Event-ID": before.last} if before is not None and before.last else {}
        live = {"live": "true"} if "live" in self.filters else {}
        return Client(
            self.served.port, "/stream", self.served.key("sharp"), headers=headers, before=before, channel="all",
            resume="true", **{**self.query, **live},
        )  # fmt: skip

    def act(self) -> None:
        """Drop, change filters, or neither."""
        if not self.client.ready.wait(PATIENCE_S):
            raise AssertionError("no snapshot came")
        chance = self.draw.random()
        if chance < 0.25:
            (self.client.drop if self.socket else self.client.reset)()
            assert self.client.ended.wait(PATIENCE_S)
            self.drops += 1
            assert not self.client.faults, self.client.faults
        elif chance < 0.35 and self.socket:
            self.filters = self._filters()
            self.client.subscribe("odds", "ev", "arbitrage", "middles", "low_hold", **self.filters)
            self.changes += 1

    def come_back(self) -> None:
        if self.client.ended.is_set():
            self.client = self._connect(self.client)
            assert self.client.ready.wait(PATIENCE_S)
            self.resumed += self.client.resumed

    def compare(self) -> int:
        """Wait until the client holds what the lists have."""
        self.come_back()
        rows = self.served.rows("/odds", "sharp", self.query)
        odds = {id_: lasting(row) for id_, row in rows.items() if row["is_active"]}
        finds = {}
        for kind, list_ in LISTS.items():
            least = {"min_ev": 2} if kind == "ev" else {"min_profit": 0.5} if kind == "arb" else {}
            found = self.served.rows(f"/opportunities/{list_}", "sharp", {**self.query, **least})
            finds[kind] = {id_: without_ages(row) for id_, row in found.items()}
        try:
            wait_for(lambda: self.prices() == odds and self.finds() == finds, LONG_S)
        except AssertionError:
            have = self.prices()
            odd = [id_ for id_ in {*have, *odds} if have.get(id_) != odds.get(id_)]
            kinds = {kind: (len(self.finds()[kind]), len(finds[kind])) for kind in finds}
            told = [(have.get(id_), odds.get(id_)) for id_ in odd[:2]]
            raise AssertionError((self.socket, self.query, len(odd), kinds, told)) from None
        assert not self.client.faults, self.client.faults
        return len(odds)

    def prices(self) -> dict[str, Any]:
        held: dict[str, Any] = self.client.held()
        return held

    def finds(self) -> dict[str, Any]:
        with self.client.lock:
            return {kind: {i: without_ages(row) for i, row in rows.items()} for kind, rows in self.client.finds.items()}


def test_clients_that_drop_and_resume_hold_what_the_lists_have(served: Served) -> None:
    draw = random.Random(SEED)
    batches = world(SEED, events=3, live=0.5, pace=5.0, hazards=True).run(1e9)

    def step() -> None:
        batch = next(batches)
        more = full_board("every kind") if draw.random() < 0.7 else []
        quotes = [{**row, "is_active": draw.random() > 0.03} for row in [*turned(batch.quotes, draw), *more]]
        served.step(quotes, batch.now, complete=batch.complete, events=batch.events)

    for _ in range(3):
        step()
    table = served.engine.table()
    words = {
        "sports": table["sport"].drop_nulls().unique().sort().to_list(),
        "leagues": table["league"].drop_nulls().unique().sort().to_list(),
        "markets": ["main", "props", "total", "moneyline"],
        "sportsbooks": sorted(catalog.book(name).id for name in table["sportsbook"].unique().to_list()),
    }
    followers = [Follower(served, draw, words, socket=n % 2 == 0) for n in range(4)]
    until, tick, compared = time.monotonic() + SECONDS, 0, 0
    while tick < STEPS or time.monotonic() < until:
        tick += 1
        for follower in followers:
            if follower.client.ended.is_set():
                if draw.random() < 0.4:
                    follower.come_back()
            else:
                follower.act()
        step()
        if tick % 15 == 0:
            compared += sum(follower.compare() for follower in followers)
    for follower in followers:
        follower.client.close()
    totals = {name: sum(getattr(each, name) for each in followers) for name in ("drops", "resumed", "changes")}
    print(json.dumps({"seed": SEED, "steps": tick, "rows": compared, **totals}))
    assert totals["resumed"] > totals["drops"] // 2 > 3
    assert totals["changes"]
    assert compared > 100


def test_what_was_missed_is_all_that_comes(served: Served) -> None:
    now = moment()
    rows = [price("gap", book, side, 1.9) for book in ("betmgm", "fanduel") for side in ("Home", "Away")]
    served.step(rows, now)
    client = SocketClient(served, "sharp", channels="odds", event_id="gap")
    assert client.ready.wait(PATIENCE_S)
    client.drop()
    assert client.ended.wait(PATIENCE_S)
    served.step([{**rows[0], "odds_decimal": 2.2}], now + timedelta(seconds=1))
    served.step([{**rows[1], "is_active": False}], now + timedelta(seconds=2))
    served.step([], now + timedelta(seconds=3), complete=[("fanduel", "gap")])
    back = SocketClient(served, "sharp", before=client, channels="odds", event_id="gap")
    assert back.ready.wait(PATIENCE_S)
    assert back.resumed
    assert back.samples["snapshot:complete"]["resumed"] is True
    assert "initial" not in back.names
    listed = served.rows("/odds", "sharp", {"event": "gap"})
    wait_for(lambda: back.held() == {id_: lasting(row) for id_, row in listed.items() if row["is_active"]})
    assert len(back.odds) == 2
    back.close()


class Rising(SocketClient):
    """Notes prices that fall, on a board where they only rise."""

    def _read(self, said: dict[str, Any]) -> None:
        before = {id_: row["odds_decimal"] for id_, row in self.odds.items()}
        super()._read(said)
        for id_, row in self.odds.items():
            if row["odds_decimal"] < before.get(id_, 0.0):
                self.faults.append(f"{row['odds_decimal']} after {before[id_]} in {said['type']} {said['global_seq']}")


def test_nobody_who_resumes_is_shown_a_price_and_then_an_older_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the machine is: streams may take as long as they need to get to where the board is."""
    monkeypatch.setattr(resuming, "REACH_S", PATIENCE_S)
    start, going = moment(), True
    names = [(book, side) for book in ("betmgm", "fanduel", "caesars") for side in ("Home", "Away")]
    steps = 0

    def rise() -> None:
        nonlocal steps
        while going and steps < 20_000:
            steps += 1
            odds = [price("rising", book, side, 1.5 + steps / 10_000) for book, side in names]
            served.step(odds, start + timedelta(milliseconds=steps))
            time.sleep(0.0 if steps % 100 else 1.0)  # streams are behind the board, and get to where it is

    thread = threading.Thread(target=rise)
    thread.start()
    others = [SocketClient(served, "sharp", channels="odds", min_odds=str(-1_000 - at)) for at in range(24)]
    client = Rising(served, "sharp", channels="odds", event_id="rising", resume="true")
    resumed = 0
    try:
        for _ in range(less(60, 20)):
            assert client.ready.wait(PATIENCE_S)
            time.sleep(0.03)
            client.drop()
            assert client.ended.wait(PATIENCE_S)
            assert not client.faults, client.faults
            client = Rising(served, "sharp", channels="odds", event_id="rising", before=client)
            assert client.ready.wait(PATIENCE_S)
            resumed += client.resumed
    finally:
        going = False
        thread.join()
        for each in (client, *others):
            each.close()
    assert not client.faults, client.faults
    assert resumed > less(30, 10)


@pytest.mark.parametrize("since", ["0", "9007199254740992", "1700000000000", None])
def test_what_cannot_be_resumed_is_a_snapshot(served: Served, since: str | None) -> None:
    served.step([price("whole", "betmgm", "Home", 1.9), price("whole", "betmgm", "Away", 1.9)], moment())
    client = SocketClient(served, "sharp", channels="odds", event_id="whole", resume="true", from_seq=since)
    assert client.ready.wait(PATIENCE_S)
    assert not client.resumed
    assert client.samples["snapshot:complete"]["resumed"] is False
    assert len(client.held()) == 2
    client.close()


@pytest.mark.parametrize(
    "other",
    [{"market": "moneyline"}, {"live": "false"}, {"state": "nj"}, {"sportsbook": "betmgm"}],
)
def test_a_client_with_other_filters_gets_a_fresh_snapshot(served: Served, other: dict[str, Any]) -> None:
    served.step([price("other", "betmgm", "Home", 1.9), price("other", "betmgm", "Away", 2.1)], moment())
    first = Client(served.port, "/stream/odds", served.key("sharp"), event="other", resume="true")
    assert first.ready.wait(PATIENCE_S)
    wait_for(lambda: first.last not in ("", "evt_0"))
    first.close()
    again = Client(
        served.port, "/stream/odds", served.key("sharp"), event="other", before=first, resume="true",
        headers={"Last-Event-ID": first.last}, **other,
    )  # fmt: skip
    assert again.ready.wait(PATIENCE_S)
    assert again.samples["connected"]["reconnected"] is True
    assert again.samples["connected"]["resumed"] is False
    assert set(again.odds) == set(served.rows("/odds", "sharp", {"event": "other", **other}))
    again.close()


@pytest.mark.parametrize(
    ("other", "tier"),
    [({"market": "moneyline"}, "sharp"), ({"state": "nj"}, "sharp"), ({"sportsbook": "betmgm"}, "sharp"),
     ({"channels": "odds,ev"}, "sharp"), ({}, "enterprise")],
)  # fmt: skip
def test_a_socket_with_other_filters_gets_a_fresh_snapshot(served: Served, other: dict[str, Any], tier: str) -> None:
    rows = [price("others", book, side, 1.9) for book in ("betmgm", "fanduel") for side in ("Home", "Away")]
    served.step(rows, moment())
    first = SocketClient(served, "sharp", channels="odds", event_id="others")
    assert first.ready.wait(PATIENCE_S)
    first.close()
    query = {"channels": "odds", "event_id": "others"} | other
    again = SocketClient(served, tier, before=first, **query)
    assert again.ready.wait(PATIENCE_S)
    assert not again.resumed
    assert set(again.odds) == set(served.rows("/odds", "sharp", {"event": "others"} | other))
    again.close()
    query |= {"subscription": again.samples["subscribed"]["subscription"]}
    anywhere = SocketClient(served, tier, before=again, **query)
    assert anywhere.ready.wait(PATIENCE_S)
    assert anywhere.resumed
    anywhere.close()
    wrong = SocketClient(served, tier, before=anywhere, **query | {"subscription": "other"})
    assert wrong.ready.wait(PATIENCE_S)
    assert not wrong.resumed
    wrong.close()


def test_a_socket_that_changed_its_filters_resumes_the_new_ones(served: Served) -> None:
    served.step([price(name, "betmgm", "Home", 1.9) for name in ("changed", "unchanged")], moment())
    client = SocketClient(served, "sharp", channels="odds", event_id="unchanged")
    assert client.ready.wait(PATIENCE_S)
    client.subscribe("odds", eventIds=["changed"])
    client.drop()
    assert client.ended.wait(PATIENCE_S)
    back = SocketClient(served, "sharp", before=client, channels="odds", event_id="changed")
    assert back.ready.wait(PATIENCE_S)
    assert back.resumed
    assert len(back.held()) == 1
    back.close()


def test_a_stream_that_does_not_ask_gets_its_fresh_snapshot(served: Served) -> None:
    served.step([price("fresh", "betmgm", "Home", 1.9), price("fresh", "betmgm", "Away", 1.9)], moment())
    first = Client(served.port, "/stream/odds", served.key("sharp"), event="fresh", resume="true")
    assert first.ready.wait(PATIENCE_S)
    assert first.samples["connected"]["resumed"] is False
    wait_for(lambda: first.last != "evt_0")
    first.close()
    asked: dict[str, Any] = {"resume": "true"}
    for query, resumed in (({}, None), (asked, True)):
        again = Client(
            served.port, "/stream/odds", served.key("sharp"), event="fresh", before=first,
            headers={"Last-Event-ID": first.last}, **query,
        )  # fmt: skip
        assert again.ready.wait(PATIENCE_S)
        assert again.samples["connected"]["reconnected"] is True
        assert again.samples["connected"].get("resumed") is resumed
        assert ("snapshot" in again.names) or again.odds
        assert len(again.odds) == 2
        again.close()
