"""The connection to the NATS servers, in a thread with its own event loop.

Both the thread that steps and the loop that serves requests may be busy for a while; leases and acknowledgements must
not wait for them.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError

from oddsengine_service.settings import Scale, Settings, SettingsError, secret

TROUBLE = (NatsError, OSError)  # no connection, or no reply in time
PING_S = 1.0  # after two without a reply, the client connects to another server
_WAIT_S = 0.5  # between two attempts to connect


def _credentials(settings: Settings, environ: Mapping[str, str]) -> str:
    """The path of the credentials file; empty without one. Raises `SettingsError` if it cannot be used."""
    path = secret(settings, "scale.credentials_env", environ)
    if not path:
        return ""
    if find_spec("nkeys") is None:  # the NATS client imports it when it connects
        raise SettingsError(
            f"{settings.file}: scale.credentials_env needs the package nkeys; run pip install 'oddsengine[scale]'"
        )
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{settings.file}: scale.credentials_env must name the variable that holds the path of a credentials "
            f"file, got {path!r}: {(error.strerror or str(error)).lower()}"
        ) from None
    return path


class LogConnection:
    """One connection, maintained as long as the process runs."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], report: Callable[[str, str], None]) -> None:
        assert settings.scale is not None
        self.scale: Scale = settings.scale
        self._credentials = _credentials(settings, environ)
        self._report = report
        self.lost_at: float | None = 0.0  # loop time at which the connection was lost; None while connected
        self.client = Client()
        self._closing = threading.Event()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="scale", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    # ---- from other threads ----

    def start(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, Any], timeout: float = 5.0) -> Any:
        """Run a coroutine on the link's loop and wait for its result."""
        running = self.start(work)
        try:
            return running.result(timeout)
        except TimeoutError:
            running.cancel()
            raise

    @property
    def disconnected_s(self) -> float:
        """Seconds since the connection was lost; 0 while connected."""
        return 0.0 if self.lost_at is None else max(0.0, self.loop.time() - self.lost_at)

    @property
    def closing(self) -> bool:
        """Whether the connection is being closed for good."""
        return self._closing.is_set()

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self.start(self._end())
        self._thread.join(10.0)
        if not self._thread.is_alive():
            self.loop.close()

    # ---- on the loop ----

    async def connect(self) -> None:
        """Connect; retries until a server responds."""
        self.lost_at = self.loop.time()
        options: dict[str, Any] = {"user_credentials": self._credentials} if self._credentials else {}
        reported = ""
        while not self._closing.is_set():
            try:
                self.client = await nats.connect(
                    list(self.scale.servers), name=f"oddsengine {self.scale.role}", ping_interval=PING_S,
                    max_outstanding_pings=2, reconnect_time_wait=0.1, max_reconnect_attempts=-1, connect_timeout=2,
                    disconnected_cb=self._disconnected, reconnected_cb=self._back, error_cb=self._failed, **options,
                )  # fmt: skip
            except TROUBLE as error:
                if str(error) != reported:
                    reported = str(error)
                    self._report("log not reached", reported or type(error).__name__)
                await asyncio.sleep(_WAIT_S)
            else:
                self.lost_at = None
                return

    async def _end(self) -> None:
        with suppress(*TROUBLE):
            async with asyncio.timeout(3.0):
                await self.client.close()
        if (transport := getattr(self.client, "_transport", None)) is not None:  # of a server that does not respond
            transport.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=2.0)
        await self.loop.shutdown_asyncgens()
        await asyncio.sleep(0.01)  # transports close in the next iterations of the loop
        self.loop.call_soon(self.loop.stop)

    async def _disconnected(self) -> None:
        if self.lost_at is None:
            self.lost_at = self.loop.time()
            self._report("log connection lost", "")

    async def _back(self) -> None:
        self.lost_at = None
        self._report("log connection restored", str(self.client.connected_url and self.client.connected_url.netloc))

    async def _failed(self, error: Exception) -> None:
        if not isinstance(error, OSError | TimeoutError):
            self._report("log client", f"{type(error).__name__}: {error}")
