"""What a feed sent and got is kept without secrets, and gives the same rows again."""

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exchanges_running import exchanges, led_to
from support.kalshi import EVENT, KEY_ID, order_book, private_key
from support.local_servers import new_hub
from support.smarkets import Smarkets

from oddsengine.sources.failure import Failure
from oddsengine.sources.secrets import Secrets
from oddsengine.sources.source_recording import (
    FORMAT,
    Entry,
    Head,
    Player,
    Recorder,
    Recording,
    cleaned,
    going_through,
    read,
)
from oddsengine.sources.source_settings import SmarketsSettings
from oddsengine.sources.sse_client import Stream
from oddsengine.sources.tcp_lines import connected
from oddsengine.sources.web import Web
from oddsengine.testing.local_servers import Answering, Request, accept_no_more, http, served
from oddsengine_cli import main

BOOKS = {
    f"{EVENT}-SEA": order_book([("0.5700", "100.00")], [("0.4200", "200.00")]),
    f"{EVENT}-DAL": order_book([("0.4100", "100.00")], [("0.5850", "50.00")]),
}


@contextmanager
def environment(values: dict[str, str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def smarkets(url: str) -> dict[str, str]:
    return led_to("smarkets", {"url": url, "sports": "soccer", "rate": "1000", "quotes_a_minute": "1000"})


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    status = main(["feeds", *words, "--format", "json"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, err


def test_a_recording_of_two_exchanges_gives_their_rows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, pem = private_key(tmp_path)
    with exchanges() as running:
        running.kalshi.books = BOOKS
        more = {"ID": KEY_ID, "PEM": str(pem)}
        signed = {"ODDSENGINE_FEEDS_KALSHI_KEY_ENV": "ID", "ODDSENGINE_FEEDS_KALSHI_PRIVATE_KEY_ENV": "PEM"}
        with environment(running.environ | more | signed, monkeypatch, tmp_path):
            status, checked, _ = said(capsys, "check", "--record", "kept", "--yes")
            assert (status, [one["status"] for one in checked]) == (0, ["ok", "ok"])
            assert {path.name for path in (tmp_path / "kept").iterdir()} == {"kalshi.jsonl", "polymarket.jsonl"}
            assert main(["feeds", "check", "--record", "kept"]) == 2  # nothing is overwritten
    for path in (tmp_path / "kept").iterdir():
        text = path.read_text(encoding="utf-8")
        assert KEY_ID not in text
        assert '"what":"got"' in text
    with environment({}, monkeypatch, tmp_path):
        status, replayed, err = said(capsys, "replay", "kept")
        assert (status, err) == (0, "")
        for before, after in zip(checked, replayed, strict=True):
            assert (after["quotes"], after["events"], after["status"]) == (before["quotes"], 1, "ok")
            assert len(after["rows"]) == 2
        prices = {(row["sportsbook"], row["selection"]): row["odds_decimal"] for row in replayed[0]["rows"]}
        assert prices["kalshi", "Seattle"] == pytest.approx(1 / 0.58)
        assert main(["feeds", "replay", "kept"]) == 0
    shown = capsys.readouterr().out
    assert "Seattle" in shown
    assert "polymarket" in shown


def test_answers_of_a_polled_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(Smarkets()) as url, environment(smarkets(url), monkeypatch, tmp_path):
        _, (checked,), err = said(capsys, "check", "--record", "kept", "--yes")
        assert "5 entries" in err
        assert "removed: nothing" in err
        status, (replayed,), _ = said(capsys, "replay", "kept/smarkets.jsonl")
    assert (status, replayed["quotes"], len(replayed["rows"])) == (0, checked["quotes"], checked["quotes"])
    entries = read(tmp_path / "kept" / "smarkets.jsonl").entries
    assert [entry.path for entry in entries][-1] == "/markets/m1,m2/contracts/"


def test_a_recording_that_asks_for_more_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        served(Smarkets()) as url,
        environment(led_to("smarkets", {"url": url, "sports": "soccer"}), monkeypatch, tmp_path),
    ):
        said(capsys, "check", "--record", "kept", "--yes")
    path = tmp_path / "kept" / "smarkets.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:-2], json.dumps({"end": len(lines) - 3})]), encoding="utf-8")
    status, (replayed,), _ = said(capsys, "replay", str(path))
    assert (status, replayed["status"], replayed["rows"]) == (1, "down", [])
    assert replayed["reason"] == "soccer: the recording has no further answer to GET /markets/m1,m2/contracts/"


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = {
        "format": "oddsengine recording 1",
        "feed": "s",
        "kind": "smarkets",
        "version": "1",
        "began": "2026-01-01T00:00:00Z",
    }
    entry = {"what": "http", "after": 0.0, "method": "GET", "path": "/", "status": 200}
    for lines, why in (
        ([], "is not a recording: its first line must say"),
        ([{"a": 1}], "is not a recording"),
        ([head | {"format": "oddsengine recording 9"}], "is not a recording"),
        ([head, entry], "is not whole: it ends after 1 entries"),
        ([head, entry, {"end": 2}], "is not whole: line 3 counts 2 entries before it, got 1"),
        ([head, entry, {"end": 1}, entry], "is not whole"),
        ([head, {"what": 3}, {"end": 1}], "is damaged: line 2 cannot be read"),
        ([head, entry | {"after": 1e9}, {"end": 1}], "is damaged: line 2 is of 1e+09 s after the begin"),
        ([head | {"kind": "table", "settings": {"path": "/etc/hosts"}}, {"end": 0}], "its feed reads files"),
        ([head, entry | {"text": '{"appKey": "abcd"}'}, {"end": 1}], "has a secret in it: appKey in line 2"),
        ([head, entry | {"query": [["apiKey", "abcd"]]}, {"end": 1}], "has a secret in it: apiKey in line 2"),
        ([head, {"what": "sent", "after": 1, "text": '{"token":"abcd"}'}, {"end": 1}], "has a secret in it: token"),
    ):
        path = tmp_path / "one.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        assert main(["feeds", "replay", str(path)]) == 2
        assert why in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["feeds", "replay", str(tmp_path / "empty")]) == 2
    assert "has no recordings" in capsys.readouterr().err


def test_lines_and_events_of_a_stream_are_played_as_they_came() -> None:
    async def serve(request: Request, answering: Answering) -> None:
        await answering.stream()
        for at in range(3):
            await answering.event("odds", {"at": at}, f"e{at}")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\r\n")
        writer.write(b"you said " + await reader.readline())
        await writer.drain()
        writer.close()

    async def heard(web: Web, url: str, port: int) -> list[str]:
        async with connected(f"tcp://127.0.0.1:{port}", 5.0, 1000) as lines:
            found = [(await lines.receive(5.0)).decode()]
            await lines.send(b'{"appKey":"sekret"}')
            found.append((await lines.receive(5.0)).decode())
        async with aclosing(Stream(5.0, 10_000).connect(web, url, {})) as events:
            async for event in events:
                found.append(event.data.decode() if event else "")
                if len(found) == 5:
                    break
        return found

    async def check() -> None:
        feed = SmarketsSettings(name="s", kind="smarkets", sports=("soccer",))
        recorder = Recorder("s", "smarkets", {}, "1")
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with http(serve) as url, Web(feed, Secrets(), new_hub()) as web:
            with going_through(recorder):
                first = await heard(web, f"{url}/stream", port)
        await accept_no_more(server.sockets)
        server.close()
        lines = cleaned(recorder.recording, []).lines
        assert b"sekret" not in b"".join(lines[:3])
        async with Web(feed, Secrets(), new_hub()) as web:
            with going_through(Player(recorder.recording)):
                assert await heard(web, f"{url}/stream", port) == first
                with pytest.raises(Failure, match="no further connection to /stream"):
                    await anext(Stream(5.0, 100).connect(web, f"{url}/stream", {}))
        assert first == ["hello", 'you said {"appKey":"sekret"}', *(f'{{"at": {at}}}' for at in range(3))]

    asyncio.run(check())


def test_a_secret_in_two_pieces_of_a_stream_is_removed() -> None:
    async def serve(request: Request, answering: Answering) -> None:
        await answering.stream()
        for piece in (b'data: {"apiKey":"sek', b'ret-of-all"}\n', b"\n", b"data: the end"):
            await answering.send(piece)
            await asyncio.sleep(0.05)

    async def check() -> None:
        recorder = Recorder("s", "smarkets", {}, "1")
        feed = SmarketsSettings(name="s", kind="smarkets", sports=("soccer",))
        async with http(serve) as url, Web(feed, Secrets(), new_hub()) as web:
            with going_through(recorder):
                async with web.stream(f"{url}/stream", None, {}, 5.0) as chunks:
                    heard = b"".join([chunk async for chunk in chunks])
        assert heard == b'data: {"apiKey":"sekret-of-all"}\n\ndata: the end'
        text = b"".join(cleaned(recorder.recording, []).lines)
        assert b"the end" in text
        assert not re.search(rb"sek|ret-of-all", text)

    asyncio.run(check())


@pytest.mark.parametrize("refusal", [401, 429, 503])
def test_a_refusal_is_replayed_as_what_it_was(
    refusal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange = Smarkets()
    exchange.spoil("/events/", lambda answering: answering.answer({"error": "no"}, refusal))
    with served(exchange) as url, environment(smarkets(url), monkeypatch, tmp_path):
        _, (checked,), _ = said(capsys, "check", "--record", "kept", "--yes")
        _, (replayed,), _ = said(capsys, "replay", "kept/smarkets.jsonl")
    assert [replayed[name] for name in ("status", "reason")] == [checked[name] for name in ("status", "reason")]


# ---- secrets ----

FIELDS = [
    "apiKey", "api_key", "appKey", "session", "sessionToken", "session_token", "access_token", "password", "secret",
    "signature", "Authorization", "cookie", "account_id", "accountId", "accountName", "user_id", "userName", "username",
    "memberId", "customerRef", "email", "KALSHI-ACCESS-KEY", "authToken", "id_token", "jwt", "Session-Token",
    "clientSecret", "subscriber_id", "walletAddress",
]  # fmt: skip
SECRET = st.text(st.characters(codec="utf-8", categories=["L", "N", "S"]), min_size=8, max_size=20).map(
    lambda text: "~" + text
)


def recording(*entries: Entry) -> Recording:
    return Recording(Head(FORMAT, "f", "kalshi", "1", datetime(2026, 1, 1, tzinfo=UTC)), list(entries))


def everywhere(secret: str) -> Recording:
    """A recording with a secret in every field."""
    plain = json.dumps(
        dict.fromkeys(FIELDS, secret) | {"nested": [{"apiKey": secret, "n": json.dumps({"session": secret})}]}
    )
    return recording(
        Entry("http", 0.0, "GET", "/a", [*((name, secret) for name in FIELDS), ("q", "kept")], 200, text=plain),
        Entry("http", 0.0, "GET", "/b", [], None, f"refused: apiKey={secret}&x=1"),
        Entry("sent", 0.0, connection=1, text=json.dumps({"op": "login", "key": secret, "token": secret})),
        Entry("got", 0.0, connection=1, text=f"session={secret}; account_id={secret}"),
        Entry("http", 0.0, "POST", "/login", [], 200, text=json.dumps({"token": secret, "status": "LIMITED"})),
        Entry("got", 0.0, connection=1, text=json.dumps({"account": {"n": [secret]}, "sessionToken": [secret]})),
        Entry("got", 0.0, connection=1, text=f"data: {json.dumps({'account': {'n': secret}})}\n\n"),
        Entry("http", 0.0, "GET", "/c", [], 401, f"status 401: Bearer {secret} is not valid"),
    )


@given(SECRET)
def test_no_value_of_a_private_field_is_kept(secret: str) -> None:
    found = cleaned(everywhere(secret), [])
    text = b"".join(found.lines).decode()
    assert secret not in text
    assert json.dumps(secret)[1:-1] not in text
    assert set(FIELDS) <= {*found.removed}
    assert '"kept"' in text


@given(SECRET, st.sampled_from(["path", "text", "failure", "headers", "query", "base64", "settings"]))
def test_no_known_secret_is_kept_wherever_it_is(secret: str, place: str) -> None:
    """Also as a URL, JSON or base64 has it."""
    entry = Entry("http", 0.0, "GET", "/a", status=200)
    secret += "/x"
    forms = [secret, quote(secret, safe=""), json.dumps(secret), base64.b64encode(secret.encode()).decode()]
    forms.append(secret.replace("/", r"\/"))
    value = " ".join(["a", *forms, "b"])
    given_: Recording = recording(entry)
    if place == "settings":
        given_ = Recording(msgspec.structs.replace(given_.head, settings={"url": value}), [entry])
    elif place == "headers":
        entry.headers = {"x-ratelimit-limit": value}
    elif place == "query":
        entry.query = [("q", value)]
    elif place == "base64":
        entry.base64 = b"\xff" + value.encode()
    else:
        setattr(entry, place, value)
    found = cleaned(given_, [secret])
    lines = [msgspec.json.decode(line) for line in found.lines]
    text = str([lines, base64.b64decode(lines[1].get("base64", ""))])
    assert not any(form in text for form in [*forms, secret.removesuffix("/x")])
    assert found.removed["values of the settings"] >= 3


@pytest.mark.parametrize(
    "text",
    [
        '{"key":"h2h","bookmakers":[{"key":"pinnacle"}],"token":"t1"}', '{"asset_id":"71321045679252212594626385"}',
        '{"market":"x","hash":"0xabc","side":"BUY"}', '{"user_count":3,"accounts":[],"session_count":"2"}',
        '{"account_id":""}', '{"account_id":null}',
    ],
)  # fmt: skip
def test_what_is_not_private_is_kept_as_it_came(text: str) -> None:
    found = cleaned(recording(Entry("got", 1.0, connection=1, text=text)), ["another secret"])
    assert msgspec.json.decode(found.lines[1], type=Entry).text == text
    assert not found.removed
