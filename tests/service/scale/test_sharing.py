"""Keys, limits and stream slots that several processes share, over a real server."""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from service.scale.test_log import link_to
from support.nats_running import Servers, servers, wait_for

from oddsengine_cli import main
from oddsengine_service.accounts.database import StoreError
from oddsengine_service.accounts.keys import KeysError, KeyStore, KeyTerms
from oddsengine_service.accounts.limits import Limits, Usage, UsageCounts
from oddsengine_service.scale.link import LogConnection
from oddsengine_service.scale.sharing import SharedCounts, SharedKeys, SharedUsage


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("nats")) as found:
        yield found


class Signed:
    """An operator, an account with JetStream and a user of NATS, each with keys, as `nsc` makes them."""

    def __init__(self, folder: Path) -> None:
        nkeys = pytest.importorskip("nkeys")
        kinds = nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER
        operator, system, account, user = (nkeys.from_seed(nkeys.encode_seed(os.urandom(32), kind)) for kind in kinds)

        def token(of: Any, by: Any, kind: str, **more: Any) -> str:
            name = of.public_key.decode()
            claims = {
                "jti": name, "iat": int(time.time()), "iss": by.public_key.decode(), "name": kind, "sub": name,
                "nats": {"type": kind, "version": 2, **more},
            }  # fmt: skip
            head = {"typ": "JWT", "alg": "ed25519-nkey"}
            text = b".".join(map(_base64, (json.dumps(head).encode(), json.dumps(claims).encode())))
            return f"{text.decode()}.{_base64(by.sign(text)).decode()}"

        unlimited = {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1,
            "leaf": -1,
        }  # fmt: skip
        storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        preload = (
            f"{one.public_key.decode()}: {token(one, operator, 'account', limits=limits)}"
            for one, limits in ((system, unlimited), (account, unlimited | storage))
        )
        limits = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}
        self.config = (
            f"operator: {token(operator, operator, 'operator')}\nresolver: MEMORY\n"
            f"system_account: {system.public_key.decode()}\nresolver_preload: {{ {', '.join(preload)} }}\n"
        )
        self.file = folder / "user.creds"
        self.file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token(user, account, 'user', **limits)}\n"
            "------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
        )


def _base64(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text).rstrip(b"=")


def settings_with_credentials(folder: Path, *urls: str) -> Path:
    path = folder / "oddsengine.toml"
    path.write_text(
        f'[data]\nfolder = "{folder / "data"}"\n[scale]\nservers = {json.dumps(urls)}\nrole = "gateway"\n'
        'credentials_env = "NATS_CREDENTIALS"\n'
    )
    return path


def test_servers_that_want_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signed = Signed(tmp_path)
    monkeypatch.setenv("NATS_CREDENTIALS", str(signed.file))
    with servers(tmp_path, config=signed.config) as found:
        config = settings_with_credentials(tmp_path, *found.urls)
        assert main(["keys", "create", "--account", "acme", "--tier", "pro", "--config", str(config)]) == 0
        assert main(["keys", "list", "--config", str(config)]) == 0
    assert capsys.readouterr().out.count("acme") == 1


def test_a_credentials_file_that_is_missing_is_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("nkeys")
    config = settings_with_credentials(tmp_path, "nats://127.0.0.1:1")
    monkeypatch.setenv("NATS_CREDENTIALS", str(tmp_path / "none.creds"))
    for command in (["serve"], ["keys", "list"]):
        assert main([*command, "--config", str(config)]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.endswith(
            "oddsengine.toml: scale.credentials_env must name the variable that holds the path of a credentials "
            f"file, got '{tmp_path / 'none.creds'}': no such file or directory"
        )


@contextmanager
def stores(found: Servers, folder: Path, n: int, pepper: str = "pepper") -> Iterator[list[KeyStore]]:
    """Key stores of some processes, each with a database of its own."""
    made: list[tuple[LogConnection, KeyStore]] = []
    try:
        for at in range(n):
            shared = SharedKeys(link := link_to(found))
            store = KeyStore(folder / f"keys{at}.sqlite", found[0].folder / pepper, replication=shared)
            made.append((link, store))
            link.call(shared.open(store), 10.0)
            link.start(shared.watch())
        yield [store for _, store in made]
    finally:
        for link, store in made:
            link.close()
            store.close()


def test_keys_are_everywhere_and_revoked_everywhere_within_a_second(one: Servers, tmp_path: Path) -> None:
    with stores(one, tmp_path, 3) as (first, *others):
        made = first.create("acme", KeyTerms("pro"))
        for store in others:
            wait_for(lambda store=store: store.find(made.key) is not None, "the key", 10.0)  # type: ignore[misc]
        first.revoke(made.record.id)
        for store in [first, *others]:
            wait_for(lambda store=store: store.find(made.key) is None, "the revocation", 10.0)  # type: ignore[misc]
        rotated = others[0].create("acme", KeyTerms("hobby"))
        again = others[0].rotate(rotated.record.id)
        wait_for(lambda: first.find(again.key) is not None and first.find(rotated.key) is None, "the rotation", 10.0)


def test_of_two_changes_of_one_key_one_is_refused(one: Servers, tmp_path: Path) -> None:
    with stores(one, tmp_path, 4) as all_of_them:
        made = all_of_them[0].create("race", KeyTerms("pro"))
        for store in all_of_them:
            wait_for(lambda store=store: store.find(made.key) is not None, "the key", 10.0)  # type: ignore[misc]
        start, won = threading.Barrier(len(all_of_them)), list[str]()

        def rotate(store: KeyStore) -> None:
            start.wait()
            with suppress(StoreError):
                won.append(store.rotate(made.record.id).key)

        threads = [threading.Thread(target=rotate, args=(store,)) for store in all_of_them]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
        assert won

        def valid() -> list[list[str]]:
            return [[key for key in won if store.find(key)] for store in all_of_them]

        wait_for(lambda: all(found == valid()[0] and len(found) == 1 for found in valid()), "one key, everywhere", 10.0)


def test_another_pepper_is_refused(one: Servers, tmp_path: Path) -> None:
    with pytest.raises(KeysError, match="pepper"), stores(one, tmp_path, 1, "other"):
        pass


@pytest.mark.parametrize("rate", [300, 6000])
def test_a_limit_is_one_over_all_processes(one: Servers, rate: int) -> None:
    links = [link_to(one, ODDSENGINE_SCALE_SHARD=f"rate{rate}") for _ in range(3)]
    try:
        limits = []
        for at, link in enumerate(links):
            shared = SharedCounts(link, f"process{at}")
            limits.append(Limits(clock=lambda: 1_700_000_000.0, replication=shared))
            link.start(shared.share(limits[-1]))
        for own in limits:
            own.open("probe", 9)
        wait_for(lambda: all(own.streams("probe") == 3 for own in limits), "each has heard the others", 10.0)
        allowed = [0, 0, 0]

        def far_too_many(at: int, account: str) -> None:
            pause = threading.Event()
            for n in range(rate):
                allowed[at] += limits[at].count_request(account, rate).allowed
                if n % (rate // 300) == 0:  # 1,000 to 20,000 requests a second
                    pause.wait(0.001)

        for attempt in range(3):  # counts that wait for a busy processor arrive late
            allowed[:] = 0, 0, 0
            threads = [threading.Thread(target=far_too_many, args=(at, f"acme{attempt}")) for at in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60.0)
            if sum(allowed) <= rate * 1.02 + 3:
                break
        assert rate <= sum(allowed) <= rate * 1.02 + 3
    finally:
        for link in links:
            link.close()


def test_stream_slots_of_a_process_that_is_gone_are_free_again(one: Servers) -> None:
    links = [link_to(one, ODDSENGINE_SCALE_SHARD="slots") for _ in range(2)]
    try:
        counts = [SharedCounts(link, f"process{at}") for at, link in enumerate(links)]
        first, second = (Limits(replication=each) for each in counts)
        for link, each, own in zip(links, counts, (first, second), strict=True):
            link.start(each.share(own))
        assert first.open("acme", 1)
        wait_for(lambda: second.streams("acme") == 1, "the slot is taken", 10.0)
        assert not second.open("acme", 1)
        links[0].close()
        wait_for(lambda: second.open("acme", 1), "the slot is free", 30.0)
    finally:
        for link in links:
            link.close()


NOON = 1_784_116_800.0  # Wednesday, 15 July 2026


@contextmanager
def counters(found: Servers, folder: Path, *names: str) -> Iterator[list[Usage]]:
    """Usage of some processes, each with a file of its own."""
    made: list[tuple[LogConnection, Usage]] = []
    try:
        for name in names:
            shared = SharedUsage(link := link_to(found), f"{name} {len(made)}")
            usage = Usage(folder / f"{name}.sqlite", 60.0, lambda: NOON, replication=shared)
            made.append((link, usage))
            link.call(shared.open(usage), 30.0)
            link.start(shared.follow())
        yield [usage for _, usage in made]
    finally:
        for link, usage in made:
            usage.flush()
            link.close()
            usage.close()


def flushed(usage: Usage) -> None:
    """Write what was counted, as soon as a server takes it."""

    def written() -> bool:
        usage.flush()
        return not usage.failure

    wait_for(written, "the server takes it")


@pytest.mark.exhaustive
def test_usage_is_counted_over_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the server is down, by a process that starts later, and after the server's disk was wiped."""
    monkeypatch.setattr("oddsengine_service.scale.sharing._IDLE_S", 1.0)
    account = "a.b@example.com"
    with servers(tmp_path / "nats") as found:
        with counters(found, tmp_path, "one", "two") as both:
            for at, usage in enumerate(both):
                for _ in range(3 + at):
                    usage.add(account, NOON)
                usage.add(account, NOON - 86_400.0 * 6)
                flushed(usage)
            for usage in both:
                wait_for(lambda usage=usage: usage.used(account) == UsageCounts(7, 7, 9), "the sum")  # type: ignore[misc]
            found[0].kill()
            both[0].add(account, NOON)
            both[0].flush()
            assert both[0].failure
            assert both[0].used(account).today == 8
            found[0].start()
            flushed(both[0])
            wait_for(lambda: both[1].used(account).today == 8, "what was counted meanwhile")
        with counters(found, tmp_path, "three") as (late,):
            wait_for(lambda: late.used(account) == UsageCounts(8, 8, 10), "the sum of others")
        found[0].kill()
        found[0].wipe()
        found[0].start()
        with counters(found, tmp_path, "one", "two") as both:
            both[1].add(account, NOON)
            flushed(both[1])
            for usage in both:
                wait_for(lambda usage=usage: usage.used(account) == UsageCounts(9, 9, 11), "the sum goes on")  # type: ignore[misc]


@pytest.mark.exhaustive
def test_usage_is_followed_after_the_server_lost_the_consumer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client then asks for another one, which it cannot for one that starts by time; we do."""
    monkeypatch.setattr("oddsengine_service.scale.sharing._IDLE_S", 24.0)
    with servers(tmp_path / "nats") as found, counters(found, tmp_path, "one") as (usage,):
        link = link_to(found)
        try:
            manager = link.client.jsm()
            wait_for(lambda: len(link.call(manager.consumers_info("usage"))) == 1, "a consumer")
            (consumer,) = link.call(manager.consumers_info("usage"))
            link.call(manager.delete_consumer("usage", consumer.name))
            time.sleep(22.0)  # until the client has noticed
            with counters(found, tmp_path, "two") as (other,):
                other.add("a", NOON)
                flushed(other)
                wait_for(lambda: usage.used("a").today == 1, "what the other counted")
        finally:
            link.close()


def test_export_and_import(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "old"))
    assert main(["keys", "create", "--account", "acme", "--tier", "pro"]) == 0
    key = capsys.readouterr().out.split()[0]
    assert main(["keys", "export", str(tmp_path / "keys.jsonl")]) == 0
    assert key not in (tmp_path / "keys.jsonl").read_text()
    (tmp_path / "new").mkdir()
    (tmp_path / "old" / "keys.pepper").rename(tmp_path / "new" / "keys.pepper")
    monkeypatch.setenv("ODDSENGINE_DATA_FOLDER", str(tmp_path / "new"))
    assert main(["keys", "import", str(tmp_path / "keys.jsonl")]) == 0
    store = KeyStore(tmp_path / "new" / "keys.sqlite", tmp_path / "new" / "keys.pepper")
    try:
        assert store.find(key) is not None
    finally:
        store.close()


def test_without_the_section_no_client_is_imported() -> None:
    code = (
        "import sys; import oddsengine_service.server, oddsengine_service.mcp.endpoint, oddsengine.commands.cli;"
        "print([name for name in sys.modules if name.split('.')[0] in ('nats', 'deltalake')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
