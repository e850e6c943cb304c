"""The WebSocket over real sockets, with the library `websockets` as the client."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.socket_running import SocketClient, told
from support.stream_running import Served, full_board, lasting, moment, price, wait_for
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from oddsengine_service.http.request import BASE
from oddsengine_service.stream import resuming
from oddsengine_service.ws import session
from oddsengine_service.ws.wire import MOST_OPPORTUNITIES, MOST_ROWS, Messages, chunks


def listen(served: Served, tier: str = "sharp", **query: Any) -> SocketClient:
    client = SocketClient(served, tier, **query)
    assert client.ready.wait(20)
    assert client.rounds, (client.samples.get("error"), client.faults, client.code)
    return client


def listed(served: Served, **query: Any) -> dict[str, Any]:
    return {id_: lasting(row) for id_, row in served.rows("/odds", "sharp", query).items()}


def refused(served: Served, query: str, headers: dict[str, str] | None = None) -> tuple[dict[str, Any], int | None]:
    """What a client is told that is closed at once."""
    with connect(f"ws://127.0.0.1:{served.port}{BASE}/ws{query}", additional_headers=headers) as client:
        said = json.loads(client.recv(timeout=20))
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=20)
        return said, client.close_code


@example([MOST_ROWS // 2 - 1, MOST_ROWS // 2], 5)  # they just fit
@example([MOST_ROWS // 2, MOST_ROWS // 2], 5)  # one byte too many
@example([MOST_ROWS, MOST_ROWS // 2 - 1, MOST_ROWS // 2], 5)  # and so do these after others
@given(
    st.lists(st.sampled_from([0, 1, 9, MOST_ROWS // 3, MOST_ROWS // 2 - 1, MOST_ROWS]), max_size=9), st.integers(1, 5)
)
def test_messages_have_as_many_rows_as_fit(sizes: list[int], most: int) -> None:
    """Rows are separated by one byte."""
    parts = [(part.start, part.stop) for part in chunks(sizes, most)]
    assert [at for part in parts for at in range(*part)] == list(range(len(sizes)))
    for start, stop in parts:
        assert 0 < stop - start <= most
        assert stop == start + 1 or sum(sizes[start:stop]) + stop - start - 1 <= MOST_ROWS
        longer = sum(sizes[start : stop + 1]) + stop - start
        assert stop == len(sizes) or stop - start == most or longer > MOST_ROWS


@pytest.mark.parametrize("digits", range(1, 8))
@pytest.mark.parametrize("wrap", [str, lambda id_: msgspec.Raw(msgspec.json.encode({"id": id_}))])
def test_a_message_of_ids_or_rows_is_as_full_as_it_may_be(wrap: Callable[[str], Any], digits: int) -> None:
    each = [wrap("7" * digits)] * (2 * MOST_ROWS // (digits + 3))
    parts = Messages().id_parts(each)
    assert [at for part in parts for at in range(part.start, part.stop)] == list(range(len(each)))
    for part in parts[:-1]:
        assert len(msgspec.json.encode(each[part])) - len("[]") <= MOST_ROWS
        assert len(msgspec.json.encode(each[part.start : part.stop + 1])) - len("[]") > MOST_ROWS


def test_opportunities_beyond_one_message_come_in_numbered_parts() -> None:
    rows = [msgspec.Raw(b'{"id":"%d"}' % at) for at in range(2 * MOST_OPPORTUNITIES + 1)]
    parts = [json.loads(b"{" + part) for part in Messages().opened("ev", rows)]
    assert [(part["chunk"], part["totalChunks"]) for part in parts] == [(1, 3), (2, 3), (3, 3)]
    found = [row["id"] for part in parts for name, value in part.items() if isinstance(value, list) for row in value]
    assert found == [str(at) for at in range(len(rows))]
    complete = json.loads(b"{" + Messages().complete(["a"], 7, resumed=True))
    assert {**complete, "timestamp": ""} == {
        "type": "snapshot:complete", "timestamp": "", "books": ["a"], "total": 7, "resumed": True, "progressive": False
    }  # fmt: skip


def test_messages_get_their_numbers_from_the_connection() -> None:
    """Frames stay as they are, and take no number of the streams' sequence."""
    sequence, frames = itertools.count(5), (b"a", b"b")
    assert Messages().numbered(frames, sequence, 7) == [b"a", b"b"]
    assert next(sequence) == 5


def test_messages_of_one_connection_come_in_their_order(served: Served) -> None:
    now = moment()
    served.step(full_board("order"), now)
    client = listen(served, event_id="order")
    assert client.names[:2] == ["connected", "subscribed"]
    assert client.names[2:6] == ["opportunities_snapshot"] * 4
    assert set(client.names[6:-1]) == {"initial"}
    assert client.names[-1] == "snapshot:complete"
    connected = client.samples["connected"]
    assert connected["tier"] == "sharp"
    assert connected["books"] == {"max": -1, "allowed": None}
    assert connected["features"] == dict.fromkeys(("ev", "arbitrage", "middles", "low_hold"), True)
    assert connected["channels"] is None
    assert client.samples["subscribed"]["eventIds"] == ["order"]
    assert client.samples["subscribed"]["min_ev"] == 2.0
    complete = client.samples["snapshot:complete"]
    assert (complete["books"], complete["resumed"]) == (["draftkings", "fanduel", "pinnacle"], False)
    assert client.held() == {
        id_: lasting(row) for id_, row in served.rows("/odds", "sharp", {"event": "order"}).items()
    }
    assert all(client.finds[kind] for kind in ("ev", "arb", "low_hold", "middles"))

    later = [price("order", "fanduel", "Home", 1.87), price("order", "betmgm", "Home", 1.9)]
    served.step(later, now + timedelta(seconds=1))
    told(client, "odds:update")
    wait_for(lambda: len(client.held()) == 15)
    told(client, "heartbeat")
    assert client.global_seq > connected["global_seq"] - 1
    served.step([], now + timedelta(seconds=2), complete=[("fanduel", "order")])
    told(client, "odds:removed")
    client.say("ping")
    told(client, "pong")
    assert not client.faults, client.faults
    client.close()


def test_a_suspended_price_is_locked_and_comes_back(served: Served) -> None:
    now = moment()
    row = price("lock", "betmgm", "Home", 1.9)
    served.step([row, price("lock", "betmgm", "Away", 1.95)], now)
    client = listen(served, channels="odds", event_id="lock")
    served.step([{**row, "is_active": False}], now + timedelta(seconds=1))
    locked = told(client, "odds:locked")
    assert [each["is_active"] for each in locked["data"]] == [False]
    assert client.names.index("odds:update") < client.names.index("odds:locked")
    assert len(client.held()) == 1
    assert len(client.odds) == 2
    served.step([row], now + timedelta(seconds=2))
    wait_for(lambda: len(client.held()) == 2)
    served.step([{**row, "is_active": False}], now + timedelta(seconds=3))
    told(client, "odds:locked", 2)
    served.step([], now + timedelta(seconds=4), complete=[("betmgm", "lock")])
    wait_for(lambda: not client.odds)
    assert not client.faults, client.faults
    client.close()


def test_subscribing_anew_changes_what_is_sent(served: Served) -> None:
    now = moment()
    served.step([*full_board("first"), *full_board("second")], now)
    client = listen(served, channels="odds", event_id="first")
    client.subscribe("odds", "ev", eventIds=["second"], min_ev=1)
    assert client.samples["subscribed"]["channels"] == ["ev", "odds"]
    assert client.samples["subscribed"]["min_ev"] == 1
    assert {row["event_id"] for row in client.odds.values()} == {"second"}
    assert client.finds["ev"]
    served.step(
        [price("first", "fanduel", "Home", 1.6), price("second", "fanduel", "Home", 1.7)], now + timedelta(seconds=1)
    )
    told(client, "odds:update")
    assert {row["event_id"] for row in client.odds.values()} == {"second"}
    for n in range(4):  # each is begun before the one before it is answered
        client.say("subscribe", channels=["odds"], filters={"eventIds": [["first", "second"][n % 2]]})
    wait_for(lambda: client.names.count("subscribed") == 6)
    wait_for(lambda: {row["event_id"] for row in client.odds.values()} == {"second"})
    client.subscribe("odds", eventIds=["second"], sportsbooks=["pinnacle"], min_odds=-150, max_odds=150)
    rows = served.rows(
        "/odds", "sharp", {"event": "second", "sportsbook": "pinnacle", "min_odds": -150, "max_odds": 150}
    )
    assert client.held() == {id_: lasting(row) for id_, row in rows.items()}
    assert rows
    assert not client.faults, client.faults
    client.close()


def test_prices_come_and_leave_by_their_bounds(served: Served) -> None:
    now = moment()
    row = price("bounds", "betmgm", "Home", 1.9)
    served.step([row, price("bounds", "betmgm", "Away", 1.95)], now)
    client = listen(served, channels="odds", event_id="bounds", min_odds=-120, max_odds=110)
    assert len(client.odds) == 2
    served.step([{**row, "odds_decimal": 2.4}], now + timedelta(seconds=1))
    told(client, "odds:removed")
    assert len(client.odds) == 1
    served.step([{**row, "odds_decimal": 2.0}], now + timedelta(seconds=2))
    wait_for(lambda: len(client.held()) == 2)
    assert not client.faults, client.faults
    client.close()


def _at(book: str, **more: Any) -> dict[str, Any]:
    """A subscription over a set of books of its own."""
    return {"channels": "ev", "sportsbook": f"pinnacle,{book}", **more}


@pytest.mark.parametrize(("limit", "message"), [("SHARE", "different sets of books"), ("MOST_ROWS", "opportunities")])
def test_a_subscription_beyond_a_limit_is_refused_and_the_old_one_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch, limit: str, message: str
) -> None:
    now = moment()
    event = f"beyond-{limit}"
    served.step(full_board(event), now)
    wait_for(lambda: served.hub is None or not served.hub.opportunities.watches.open)
    monkeypatch.setattr(f"oddsengine_service.stream.watches.{limit}", 1)
    client = listen(served, **_at("draftkings", min_ev=-50))
    other = listen(served, **_at("draftkings", min_ev=-50))  # keeps the set when the first gives it up
    client.say("subscribe", channels=["ev", "odds"], filters={"sportsbooks": ["pinnacle", "fanduel"], "min_ev": -50})
    refusal = told(client, "error")
    assert refusal["code"] == "too_many_streams"
    assert message in refusal["message"]
    assert client.names.count("subscribed") == 1
    served.step([price(event, "draftkings", "Home", 2.14)], now + timedelta(seconds=1))
    for each in (client, other):
        assert "draftkings" in {row["sportsbook"] for row in told(each, "ev:detected")["data"]}
    client.subscribe("odds", eventIds=[event])  # no set of books is needed for prices
    assert client.held() == listed(served, event=event)
    late = SocketClient(served, **_at("fanduel", min_ev=-50))
    assert late.ended.wait(20)
    assert (late.samples["error"]["code"], late.code) == ("too_many_streams", 4029)
    for each in (client, other):
        assert not each.faults, each.faults
        each.close()


@pytest.mark.parametrize("limit", ["SHARE", "MOST_WATCHES", "MOST_ROWS"])
def test_the_only_subscriber_of_a_set_may_replace_it_at_the_limit(
    served: Served, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    served.step(full_board(f"replaced-{limit}"), moment())
    wait_for(lambda: served.hub is None or not served.hub.opportunities.watches.open)
    monkeypatch.setattr(f"oddsengine_service.stream.watches.{limit}", 1)
    client = listen(served, **_at("draftkings", min_ev=-50))
    for book in ("fanduel", "draftkings", "betmgm"):
        client.subscribe("ev", sportsbooks=["pinnacle", book], min_ev=-50)
        assert client.samples["subscribed"]["sportsbooks"] == ["pinnacle", book]
    assert "error" not in client.names
    assert not client.faults, client.faults
    client.close()


def test_sets_that_are_given_up_and_kept_by_others_count(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes over a set while it is being replaced leaves no room for its replacement."""
    served.step(full_board("kept"), moment())
    wait_for(lambda: served.hub is None or not served.hub.opportunities.watches.open)
    monkeypatch.setattr("oddsengine_service.stream.watches.SHARE", 1)
    client = listen(served, **_at("draftkings", min_ev=-50))
    make, joined = served.hub.opportunities._make, threading.Event()

    def late(making: Any) -> None:
        joined.wait(20)
        make(making)

    monkeypatch.setattr(served.hub.opportunities, "_make", late)
    client.say("subscribe", channels=["ev"], filters={"sportsbooks": ["pinnacle", "fanduel"], "min_ev": -50})
    wait_for(lambda: served.hub.opportunities.watches.pending)
    other = listen(served, **_at("draftkings", min_ev=-50))
    joined.set()
    assert told(client, "error")["code"] == "too_many_streams"
    wait_for(lambda: len(served.hub.opportunities.watches.open) == 1)
    for each in (client, other):
        assert not each.faults, each.faults
        each.close()


def test_every_subscribe_is_answered_in_its_order(served: Served) -> None:
    """Also if the sets of books of earlier ones take longer."""
    served.step(full_board("order"), moment())
    client = listen(served, channels="odds", event_id="order")
    for n in range(6):
        client.say(
            "subscribe", channels=[["ev"], ["odds"]][n % 2],
            filters={"sportsbooks": ["pinnacle", ["draftkings", "fanduel", "betmgm"][n // 2]], "min_ev": n},
        )  # fmt: skip
    wait_for(lambda: len(client.answers) == 7)
    assert [answer["min_ev"] for answer in client.answers[1:]] == list(range(6))
    # A heartbeat may come after it.
    wait_for(lambda: [name for name in client.names if name != "heartbeat"][-1] == "snapshot:complete")
    assert not client.faults, client.faults
    client.close()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("no json", "invalid_message"),
        ("[]", "invalid_message"),
        ("{}", "invalid_message"),
        ('{"type": 1}', "invalid_message"),
        ('{"type": "subscribe"}', "missing_channels"),
        ('{"type": "subscribe", "channels": []}', "missing_channels"),
        ('{"type": "subscribe", "channels": ["news"]}', "validation_error"),
        ('{"type": "subscribe", "channels": [""]}', "validation_error"),
        ('{"type": "subscribe", "channels": ["ev,odds"]}', "validation_error"),
        ('{"type": "subscribe", "channels": ["odds"], "filters": {"min_odds": "x"}}', "invalid_message"),
        ('{"type": "subscribe", "channels": ["odds"], "filters": {"state": "zz"}}', "validation_error"),
        ('{"type": "unsubscribe"}', "unknown_message_type"),
        ('{"type": "auth", "token": "x"}', "already_authenticated"),
        (b"\x00", "invalid_message"),
    ],
)
def test_what_cannot_be_understood_is_answered_with_an_error(served: Served, said: str | bytes, code: str) -> None:
    client = listen(served, channels="odds", event_id="nowhere")
    client.socket.send(said)
    assert told(client, "error")["code"] == code
    client.say("ping")
    told(client, "pong")
    client.close()


def test_fields_without_a_meaning_are_listed(served: Served) -> None:
    """A misspelled filter would otherwise send the whole board without a word."""
    client = listen(served, channels="odds", event_id="nowhere", colour="red")
    assert client.answers[0]["meta"]["ignored"] == ["colour"]
    client.socket.send(json.dumps({
        "type": "subscribe", "channels": ["odds"], "colour": 1, "filters": {"event_id": ["nowhere"], "eventIds": ["x"]},
    }))  # fmt: skip
    wait_for(lambda: len(client.answers) == 2)
    assert client.answers[1]["meta"]["ignored"] == ["colour", "filters.event_id"]
    client.say("subscribe", channels=["odds"])
    wait_for(lambda: len(client.answers) == 3)
    assert "ignored" not in client.answers[2].get("meta", {})
    client.close()


@pytest.mark.parametrize("value", ["1e999", "-1e999", '{"a": [1e999]}', '"\\ud800"', "[" * 5000])
@pytest.mark.parametrize("field", ['"colour": {}', '"filters": {{"colour": {}}}'])
def test_a_field_without_a_meaning_may_have_any_value(served: Served, field: str, value: str) -> None:
    """It is ignored, or what JSON does not allow is an error; in either case the connection stays open."""
    client = listen(served, channels="odds", event_id="nowhere")
    client.socket.send(f'{{"type": "subscribe", "channels": ["odds"], {field.format(value)}}}')
    wait_for(lambda: len(client.answers) == 2 or "error" in client.names)
    if len(client.answers) == 2:
        assert client.answers[1]["meta"]["ignored"] in (["colour"], ["filters.colour"])
    else:
        assert told(client, "error")["code"] == "invalid_message"
    client.say("ping")
    told(client, "pong")
    client.close()


def test_a_channel_above_the_tier_is_refused_and_the_old_ones_go_on(served: Served) -> None:
    client = listen(served, "hobby", channels="odds,arbitrage")
    assert client.samples["connected"]["books"]["max"] == 5
    assert client.samples["connected"]["features"]["ev"] is False
    client.say("subscribe", channels=["ev"])
    assert told(client, "error")["code"] == "tier_restricted"
    client.say("subscribe", channels=["odds"], filters={"sportsbooks": ["pinnacle"]})
    assert told(client, "error", 2)["code"] == "tier_restricted"
    client.say("ping")
    told(client, "pong")
    client.close()


def test_who_may_not_connect_is_told_why(served: Served) -> None:
    assert refused(served, "")[0]["code"] == "invalid_api_key"
    said, code = refused(served, "?api_key=nobody")
    assert (said["type"], said["seq"], said["code"], code) == ("error", 1, "invalid_api_key", 4001)
    assert refused(served, "", {"X-API-Key": served.key("free")})[1] == 4003
    said, code = refused(served, "", {"Authorization": f"Bearer {served.key('bare')}"})
    assert (said["code"], code) == ("tier_restricted", 4003)
    said, code = refused(served, f"?api_key={served.key('hobby')}&channels=ev")
    assert (said["code"], code) == ("tier_restricted", 4003)
    assert refused(served, f"?api_key={served.key('sharp')}&channels=x")[1] == 1008


def test_a_socket_that_waits_for_an_update_has_a_slot(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait would otherwise be without a limit."""
    monkeypatch.setattr(resuming, "REACH_S", 3.0)
    first = listen(served, "pro", channels="odds", event_id="none")
    ahead, subscription = told(first, "connected")["global_seq"] + 7, first.answers[0]["subscription"]
    query = f"?api_key={served.key('pro')}&channels=odds&event_id=none&resume=true"
    query += f"&from_seq={ahead}&subscription={subscription}"
    first.close()
    wait_for(lambda: not served.node.limits.streams("account-pro"))
    with ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(refused, served, query) for _ in range(10)]
        wait_for(lambda: served.node.limits.streams("account-pro") == 10)
        assert refused(served, query)[0]["code"] == "too_many_streams"
        assert {each.result(20)[0]["code"] for each in waiting} == {"not_ready"}
    wait_for(lambda: not served.node.limits.streams("account-pro"))


def test_streams_of_both_kinds_share_one_limit(served: Served) -> None:
    clients = [listen(served, "pro", channels="odds", event_id="none") for _ in range(10)]
    said, code = refused(served, f"?api_key={served.key('pro')}")
    assert (said["code"], code) == ("too_many_streams", 4029)
    answer = served.rest.get("/stream", headers={"X-API-Key": served.key("pro")})
    assert answer.json()["error"]["code"] == "too_many_streams"
    for client in clients:
        client.close()
    wait_for(lambda: not served.node.limits.streams("account-pro"))


def test_a_page_of_another_origin_may_not_connect(served: Served) -> None:
    address = f"ws://127.0.0.1:{served.port}{BASE}/ws?api_key={served.key('sharp')}"
    with pytest.raises(InvalidStatus) as caught:
        connect(address, origin=Origin("https://evil.example"))
    assert caught.value.response.status_code == 403
    assert caught.value.response.headers["X-Request-Id"]
    assert json.loads(caught.value.response.body or b"")["error"]["code"] == "origin_not_allowed"
    for origin in ("https://odds.example.com", f"http://127.0.0.1:{served.port}"):
        with connect(address, origin=Origin(origin)) as client:
            assert json.loads(client.recv(timeout=20))["type"] == "connected"


def test_too_many_messages_close_the_connection(served: Served) -> None:
    client = listen(served, channels="odds", event_id="none")
    for _ in range(session.BURST + 20):
        try:
            client.say("ping")
        except ConnectionClosed:
            break
    assert client.ended.wait(20)
    assert client.code == 4029
    assert client.samples["error"]["code"] == "rate_limited"


def test_a_message_that_is_too_large_closes_the_connection(served: Served) -> None:
    client = listen(served, channels="odds", event_id="none")
    client.say("subscribe", channels=["odds"], filters={"eventIds": ["x" * 40_000]})
    assert client.ended.wait(20)
    assert client.code == 1009


def test_a_key_that_is_revoked_closes_its_connections(served: Served) -> None:
    made = served.keys.create("account-leaving", served.made["sharp"].record.terms)
    served.made["leaving"] = made
    client = listen(served, "leaving", channels="odds", event_id="none")
    served.keys.revoke(made.record.id)
    assert client.ended.wait(20)
    assert client.code == 4001
    assert client.samples["error"]["code"] == "invalid_api_key"


def test_a_plain_request_is_told_to_upgrade(served: Served) -> None:
    answer = served.rest.get("/ws", headers={"X-API-Key": served.key("sharp")})
    assert answer.status_code == 426
    assert answer.json()["error"]["code"] == "upgrade_required"


def test_connections_are_given_back(served: Served) -> None:
    before = served.app.connections._total
    clients = [listen(served, channels="odds", event_id="none") for _ in range(3)]
    assert served.app.connections._total == before + 3
    clients[0].close()
    clients[1].drop()
    clients[2].socket.socket.close()
    wait_for(lambda: served.app.connections._total <= before)


def test_the_path_without_the_base_is_the_same(served: Served) -> None:
    client = SocketClient(served, path="/ws", channels="odds", event_id="none")
    assert client.ready.wait(20)
    assert client.names == ["connected", "subscribed", "snapshot:complete"]
    assert not any(not group.filter.kinds for group in served.hub.opportunities.groups.values())
    client.close()


def test_a_reader_that_stops_is_cut_off_and_costs_others_nothing(tmp_path: Path) -> None:
    served = Served(tmp_path, stalled=1.0, send_buffer=8192)
    now = moment()
    served.step([price("busy", book, side, 1.9) for book in ("betmgm", "fanduel") for side in ("Home", "Away")], now)
    address = f"/api/v1/ws?channels=odds&api_key={served.key('sharp')}"
    line = socket.create_connection(("127.0.0.1", served.port))
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = ["Host: x", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]  # fmt: skip
    line.sendall(f"GET {address} HTTP/1.1\r\n{chr(13) + chr(10)}".replace("\r\n\r\n", "\r\n").encode())
    line.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    client = listen(served, channels="odds", event_id="busy")
    until = time.monotonic() + 60
    n = 0
    while not served.hub.subscribers.checks.cuts:
        assert time.monotonic() < until
        n += 1
        rows = [price("busy", book, "Home", 1.5 + n % 97 / 100) for book in ("betmgm", "fanduel")]
        rows += [price(f"more {k} {n % 5}", "fanduel", "Home", 1.5 + n % 89 / 100) for k in range(200)]
        served.step(rows, now + timedelta(seconds=n))
    wait_for(lambda: client.held() == listed(served, event="busy"))
    assert not client.faults, client.faults
    client.close()
    line.close()
    served.stop()
