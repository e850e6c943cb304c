"""The stream against REST while a world runs: whoever follows the merge rules holds what the lists have.

After every step the lists are asked, with each client's key and filters, before the next step is made. A heartbeat says
in a comment which updates its client's prices and opportunities are of; what the client holds then is what the lists
had at these. STREAM_STEPS and STREAM_SEED make it longer, and another one: 1,000 steps take some minutes.
"""

import json
import os
import random
import time
from typing import Any

from support.effort import less
from support.stream_running import (
    PATIENCE_S,
    Client,
    Look,
    Served,
    full_board,
    lasting,
    turned,
    wait_for,
    without_ages,
    world,
)

from oddsengine import catalog
from oddsengine_service.tiers import TIERS, books_of

STEPS = int(os.environ.get("STREAM_STEPS", less(26, 13)))
SEED = int(os.environ.get("STREAM_SEED", "5"))
LISTS = {"ev": "ev", "arb": "arbitrage", "low_hold": "low_hold", "middles": "middles"}
THRESHOLDS = ("min_ev", "min_profit")
FILTERS = ("sport", "league", "event", "sportsbook", "market", "live")
MOST = 4  # clients at once


class Listener:
    """A client, and what the lists had for it at each update since it came."""

    def __init__(self, served: Served, tier: str, channel: str, query: dict[str, Any], client: Client) -> None:
        self.served, self.tier, self.channel, self.query, self.client = served, tier, channel, query, client
        self.odds: dict[int, dict[str, Any]] = {}
        self.finds: dict[int, dict[str, dict[str, Any]]] = {}
        self.compared = {"prices": 0, "opportunities": 0, "rows": 0}
        self._checked = 0
        self._since = served.engine.number  # others may have been told of earlier updates, and nothing came since

    def ask(self, number: int) -> None:
        """Note what the lists have now."""
        filters = {name: value for name, value in self.query.items() if name in FILTERS}
        if self.channel in ("odds", "all"):
            rows = self.served.rows("/odds", self.tier, filters)
            self.odds[number] = {id_: lasting(row) for id_, row in rows.items() if row["is_active"]}
        if self.channel in ("opportunities", "all"):
            found: dict[str, dict[str, Any]] = {}
            for event, list_ in LISTS.items():
                found[event] = {}
                if list_ in TIERS[self.tier].features:
                    least = {"ev": "min_ev", "arbitrage": "min_profit"}.get(list_, "")
                    default = {"min_ev": "2", "min_profit": "0.5"}
                    more = {least: self.query.get(least, default[least])} if least else {}
                    rows = self.served.rows(f"/opportunities/{list_}", self.tier, {**filters, **more})
                    found[event] = {id_: without_ages(row) for id_, row in rows.items()}
            self.finds[number] = found

    def check(self) -> None:
        """Compare what was held at the heartbeats since the last time."""
        looks = self.client.observations[self._checked :]
        self._checked += len(looks)
        assert not self.client.faults, (self.tier, self.query, self.client.faults[:3])
        for look in looks:
            self._compare(look)

    def _compare(self, look: Look) -> None:
        if self.channel in ("odds", "all") and look.prices:  # else it was behind at that moment
            have = {id_: lasting(row) for id_, row in look.odds.items()}
            self._same(have, self.odds[look.prices], look.prices)
            self.compared["prices"] += 1
            self.compared["rows"] += len(have)
        if look.opportunities >= self._since and self.channel in ("opportunities", "all"):
            for event, rows in self.finds[look.opportunities].items():
                held = {id_: without_ages(row) for id_, row in look.finds[event].items()}
                self._same(held, rows, look.opportunities)
            self.compared["opportunities"] += 1

    def _same(self, have: dict[str, Any], want: dict[str, Any], number: int) -> None:
        if have == want:
            return
        odd = [id_ for id_ in {*have, *want} if have.get(id_) != want.get(id_)]
        parts = [
            {k: ((have.get(id_) or {}).get(k), (want.get(id_) or {}).get(k)) for k in {**(want.get(id_) or have[id_])}}
            for id_ in odd[:2]
        ]
        told = [{k: v for k, v in part.items() if v[0] != v[1]} for part in parts]
        raise AssertionError((self.tier, self.channel, self.query, number, len(have), len(want), len(odd), told))


class Crowd:
    """Clients that come and go."""

    def __init__(self, served: Served, draw: random.Random) -> None:
        self.served, self.draw = served, draw
        table = served.engine.table()
        self.words = {
            "sport": table["sport"].drop_nulls().unique().sort().to_list(),
            "league": table["league"].drop_nulls().unique().sort().to_list(),
            "event": table["event_id"].unique().sort().to_list(),
            "market": ["main", "props", "total", "moneyline", *table["market_type"].unique().sort().to_list()],
            "sportsbook": sorted(catalog.book(name).id for name in table["sportsbook"].unique().to_list()),
        }
        self.books = [draw.sample(self.words["sportsbook"], 4) for _ in range(2)]  # few, for each is a view
        self.here: list[Listener] = []
        self.seen: list[Listener] = []

    def come(
        self, number: int, before: Listener | None = None, chosen: tuple[str, str, dict[str, Any]] | None = None
    ) -> None:
        """Somebody new, or somebody again."""
        draw = self.draw
        if before is not None:
            tier, channel, query = before.tier, before.channel, before.query
        elif chosen is not None:
            tier, channel, query = chosen
        else:
            tier = draw.choice(["hobby", "pro", "sharp", "enterprise"])
            channel, query = draw.choice(["odds", "odds", "opportunities", "opportunities", "all"]), self._query(tier)
        headers = {"Last-Event-ID": f"evt_{before.client.ids[-1]}"} if before is not None and before.client.ids else {}
        path = draw.choice([f"/stream/{channel}", "/stream"])
        asked = {**query, "channel": channel} if path == "/stream" else query
        client = Client(self.served.port, path, self.served.key(tier), headers=headers, **asked)
        listener = Listener(self.served, tier, channel, query, client)
        listener.ask(number)
        self.here.append(listener)
        self.seen.append(listener)

    def _query(self, tier: str) -> dict[str, Any]:
        draw, query = self.draw, dict[str, Any]()
        own = books_of(tier)
        for name, known in self.words.items():
            if name == "sportsbook":
                some = [word for word in draw.choice(self.books) if own is None or word in own]
            else:
                some = draw.sample(known, min(draw.randint(1, 5), len(known)))
            if draw.random() < 0.35 and some:
                query[name] = ",".join(some)
        if draw.random() < 0.5:
            query["live"] = draw.choice(["true", "false"])
        for name in THRESHOLDS:
            if draw.random() < 0.5:
                query[name] = str(draw.choice([-1.5, 0.25, 1.0, 4.0]))
        return query

    def go(self) -> Listener:
        """Somebody leaves: properly, or without a word."""
        leaving = self.draw.choice(self.here[1:])
        self.here.remove(leaving)
        leaving.check()
        self.draw.choice([leaving.client.close, leaving.client.reset])()
        return leaving

    def look(self) -> None:
        for listener in self.here:
            listener.check()


SERVED = {"heartbeat": 0.25}


def test_clients_hold_at_every_heartbeat_what_the_lists_have(served: Served) -> None:
    draw = random.Random(SEED)
    batches = world(SEED, events=3, live=0.5, pace=5.0, hazards=True).run(1e9)

    def step() -> int:
        batch = next(batches)
        more = full_board("every kind") if draw.random() < 0.7 else []  # one opportunity of each, now and then
        quotes = [*turned(batch.quotes, draw), *more]
        return int(served.step(quotes, batch.now, complete=batch.complete, events=batch.events).number)

    for _ in range(3):
        number = step()
    crowd = Crowd(served, draw)
    crowd.come(number, chosen=("enterprise", "all", {"min_ev": "0.25"}))

    def every_kind_comes_and_goes() -> int:
        """Whatever the pace of reads: all have seen one opportunity of each kind before it expires."""
        now = next(batches).now
        number = int(served.step(full_board("every kind"), now).number)
        for listener in crowd.here:
            listener.ask(number)
        wait_for(lambda: crowd.here[0].client.observations[-1].opportunities >= number)
        gone = [(book, "every kind") for book in ("pinnacle", "draftkings", "fanduel")]
        number = int(served.step([], now, complete=gone).number)
        for listener in crowd.here:
            listener.ask(number)
        return number

    for tick in range(STEPS):
        if tick % 12 == 11 and len(crowd.here) > 1:
            left = crowd.go()
            if tick % 24 == 11:
                crowd.come(number, left)
        elif len(crowd.here) < MOST and draw.random() < 0.4:
            crowd.come(number)
        number = step()
        for listener in crowd.here:
            listener.ask(number)
        crowd.look()
        if draw.random() < 0.05:  # nothing moves for a while
            time.sleep(0.3)
    number = every_kind_comes_and_goes()
    for listener in crowd.here:  # and when all is still everybody is told so
        beats = listener.client.beats
        assert listener.client.ready.wait(PATIENCE_S)
        wait_for(lambda x=listener, n=beats: x.client.beats > n + 1 or x.client.ended.is_set())  # type: ignore[misc]
        wait_for(lambda x=listener: not x.finds or x.client.observations[-1].opportunities == number)  # type: ignore[misc]
        listener.check()
        if listener.odds:
            assert lasting_prices(listener.client.observations[-1]) == listener.odds[number]
        assert listener.client.ids == sorted(set(listener.client.ids))
        listener.client.close()
    totals = {name: sum(x.compared[name] for x in crowd.seen) for name in ("prices", "opportunities", "rows")}
    print(json.dumps({"seed": SEED, "steps": number, "clients": len(crowd.seen), **totals}))
    assert totals["prices"] > 20
    assert totals["opportunities"] > 10
    names = {name for listener in crowd.seen for name in listener.client.names}
    assert {"odds:update", "odds:removed", "heartbeat"} <= names
    assert {f"{kind}:{what}" for kind in LISTS for what in ("detected", "expired")} <= names
    assert any(x.client.samples.get("connected", {}).get("reconnected") for x in crowd.seen)


def lasting_prices(look: Look) -> dict[str, Any]:
    return {id_: lasting(row) for id_, row in look.odds.items()}
