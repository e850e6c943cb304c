"""Backup and restore of what a key stores, over a real socket."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from service.test_bets import BET, placed
from support.service_running import Running, running

from oddsengine_service.accounts.keys import KeyStore, KeyTerms
from oddsengine_service.bettors.alerts import StoredAlert

HOOK = "https://hooks.example.com/secret-path"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("backup"), events=2) as server:
        yield server


@pytest.fixture
def new(server: Running) -> Iterator[Any]:
    """Makes clients, each with a key of its own."""
    clients: list[httpx2.Client] = []

    def make() -> httpx2.Client:
        assert isinstance(server.node.keys, KeyStore)
        key = server.node.keys.create("bettor", KeyTerms("pro")).key
        clients.append(server.client(None, headers={"X-API-Key": key}))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def filled(server: Running, client: httpx2.Client) -> str:
    """A key with two bets, a mark, a filter and an alert, whose target is confirmed. Returns its id."""
    placed(client, stake=10.0, note="first")
    bet = placed(client, stake=20.0)
    assert client.patch(f"/bets/{bet['id']}", json={"result": "won"}).status_code == 200
    assert client.put("/marks/a%2Fb", json={"hidden": True, "note": "später"}).status_code == 200
    assert client.put("/filters/mine", json={"list": "ev", "query": "min_ev=3"}).status_code == 200
    owner = str(client.get("/account").json()["data"]["key_id"])
    alert = StoredAlert(filter="mine", id="alert1", targets=[HOOK], improve=2.0, sent=7)
    server.node.records.put(owner, "alert", "alert1", alert, "active")
    return owner


def saved(client: httpx2.Client) -> Any:
    answer = client.get("/account/backup")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def without_time(document: Any) -> Any:
    return {name: value for name, value in document.items() if name != "made_at"}


def restored(client: httpx2.Client, document: Any) -> Any:
    answer = client.post("/account/restore", json=document)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_what_is_restored_is_what_was_there_and_repeating_changes_nothing(server: Running, new: Any) -> None:
    client = new()
    owner = filled(server, client)
    document = saved(client)
    assert {name: len(document[name]) for name in ("bets", "marks", "filters", "alerts")} == {
        "bets": 2, "marks": 1, "filters": 1, "alerts": 1,
    }  # fmt: skip
    assert document["alerts"][0]["targets"] == ["https://hooks.example.com/..."]
    assert "secret-path" not in json.dumps(document)
    assert restored(client, document) == {
        "bets": 2, "marks": 1, "filters": 1, "alerts": 1, "changed": 0, "missing_targets": [],
    }  # fmt: skip

    for bet in document["bets"]:
        client.delete(f"/bets/{bet['id']}")
    client.delete("/marks/a%2Fb")
    client.put("/filters/mine", json={"list": "ev", "query": "min_ev=9"})
    other = placed(client, stake=99.0)
    assert restored(client, document)["changed"] == 4
    again = saved(client)
    assert [bet for bet in again["bets"] if bet["id"] != other["id"]] == document["bets"]
    assert [again[name] for name in ("marks", "filters", "alerts")] == [
        document[name] for name in ("marks", "filters", "alerts")
    ]
    stored = server.node.records.get(owner, "alert", "alert1", StoredAlert)
    assert (stored.targets, stored.sent, stored.codes) == ([HOOK], 7, {}), "still confirmed"
    assert restored(client, document)["changed"] == 0


def test_another_key_gets_all_but_the_secrets(server: Running, new: Any) -> None:
    one, other = new(), new()
    filled(server, one)
    document = saved(one)
    assert restored(other, document) == {
        "bets": 2, "marks": 1, "filters": 1, "alerts": 1, "changed": 5,
        "missing_targets": ["https://hooks.example.com/..."],
    }  # fmt: skip
    again = saved(other)
    assert again["alerts"] == [{**document["alerts"][0], "targets": []}]
    assert without_time({**again, "alerts": []}) == without_time({**document, "alerts": []})


def test_a_part_of_a_backup_and_a_compressed_one(new: Any) -> None:
    client = new()
    bet = placed(client)
    document = json.dumps({"format": 1, "bets": [bet | {"stake": 7.0}]}).encode()
    answer = client.post("/account/restore", content=gzip.compress(document), headers={"content-encoding": "gzip"})
    assert answer.json()["data"]["changed"] == 1
    (row,) = client.get("/bets").json()["data"]
    assert row == bet | {"stake": 7.0}
    many = [bet | {"id": f"b{n}", "note": "x" * 900} for n in range(1_500)]
    assert len(json.dumps({"bets": many})) > 2 << 20, "more than other bodies may have"
    assert restored(client, {"bets": many})["changed"] == 1_500
    assert client.get("/bets?limit=1").json()["meta"]["total"] == 1_501


def bad(document: Any, where: str, at: int, **fields: Any) -> Any:
    changed = json.loads(json.dumps(document))
    changed[where][at].update(fields)
    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: bad(d, "bets", 1, odds_decimal=0.5), "bets[1].odds_decimal must be"),
        (lambda d: bad(d, "bets", 1, id=""), "nothing was restored: bets[1]: id must be 1 to 200 printable characters"),
        (lambda d: {**d, "bets": d["bets"] + d["bets"][:1]}, "nothing was restored: bets[2]: "),
        (lambda d: bad(d, "filters", 0, query="x=1"), "nothing was restored: filters[0]: query must have parameters"),
        (lambda d: bad(d, "filters", 0, name=".."), "nothing was restored: filters[0]: its name must be"),
        (lambda d: bad(d, "alerts", 0, filter="none"), "alerts[0]: filter must be one of the document or of the key"),
        (lambda d: bad(d, "alerts", 0, time_zone="Mars"), "nothing was restored: alerts[0]: time_zone must be a name"),
        (lambda d: bad(d, "alerts", 0, targets=["ftp://x"]), "nothing was restored: alerts[0]: "),
        (lambda d: bad(d, "marks", 0, note=3), "marks[0].note must be"),
        (lambda d: bad(d, "bets", 0, placed_at="9999-12-31T23:59:59Z"), "bets[0]: placed_at must not be in the future"),
        (lambda d: bad(d, "bets", 0, placed_at="0001-01-01T00:00:00+14:00"), "bets[0]: placed_at must not be in"),
        (lambda d: bad(d, "bets", 0, closing_probability=7), "bets[0].closing_probability must be"),
        (lambda d: bad(d, "bets", 0, closing_odds=-5), "bets[0].closing_odds must be"),
        (lambda d: bad(d, "bets", 0, home_score=10**400), "bets[0].home_score must be"),
        (lambda d: bad(d, "bets", 0, no_close="x" * 5001), "bets[0].no_close must be"),
        (lambda d: {**d, "format": 2}, "format must be"),
        (lambda d: {**d, "bet": []}, "bet"),
        (lambda d: {**d, "marks": [{"id": f"m{n}"} for n in range(5_001)]}, "at most 5,000 marks"),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_bad_document_changes_nothing_and_says_what_is_wrong(
    server: Running, new: Any, change: Any, message: str
) -> None:
    client = new()
    filled(server, client)
    document = saved(client)
    for bet in document["bets"]:
        bet["stake"] = 1.0
    answer = client.post("/account/restore", json=change(document))
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
    assert {bet["stake"] for bet in saved(client)["bets"]} == {10.0, 20.0}


def test_times_without_an_offset_are_utc(new: Any) -> None:
    client = new()
    bet = placed(client)
    restored(client, {"bets": [bet | {"id": "old", "placed_at": "2026-01-02T03:04:05"}]})
    assert [row["placed_at"] for row in client.get("/bets").json()["data"]][1] == "2026-01-02T03:04:05Z"


def test_a_rotated_key_keeps_both_secrets_for_a_while(server: Running, new: Any) -> None:
    client = new()
    placed(client, **{"note": BET["selection"]})
    key = client.get("/account").json()["data"]["key_id"]
    made = client.post(f"/account/keys/{key}/rotate?grace_seconds=3600").json()["data"]
    assert made["old_key"]["revoked"] is False
    assert made["old_key"]["expires_at"] == made["old_secret_until"] > made["updated_at"]
    with server.client(None, headers={"X-API-Key": made["key"]}) as renewed:
        assert saved(renewed)["bets"] == saved(client)["bets"] != []
        assert renewed.post(f"/account/keys/{key}/rotate?grace_seconds=9999999").status_code == 400
        for method, path in (
            ("POST", "/account/keys"), ("POST", f"/account/keys/{key}/rotate"), ("DELETE", f"/account/keys/{key}"),
            ("POST", "/bets"), ("POST", "/account/restore"), ("POST", "/alerts"), ("PUT", "/marks/x"),
            ("DELETE", "/filters/x"),
        ):  # fmt: skip
            refused = client.request(method, path, json={})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "secret_replaced")
        assert client.post("/odds/batch", json={"event_ids": ["x"]}).status_code == 200, "it reads"
        (row,) = (each for each in renewed.get("/account/keys").json()["data"] if each["id"] == key)
        assert row["old_secret_until"] == made["old_secret_until"]
        last = renewed.post(f"/account/keys/{key}/rotate").json()["data"]
        assert last["old_key"]["revoked"] is True
        assert renewed.get("/bets").status_code == client.get("/bets").status_code == 401
