"""Ask a node on this machine for its health: exit status 0 if it answers that it is up, else 1 and the reason.

    python -m oddsengine_service.healthcheck [FOLDER]

FOLDER is the node's data folder (default: `ODDSENGINE_DATA_FOLDER`). A node that listens writes the address into its
lock there (`lock.note_address`), so the check needs no settings. It imports the standard library only, because
containers run it every few seconds: the settings import the engine, which takes a second of processor time.
"""

import http.client
import os
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

FILE = "node.lock"
_TIMEOUT = 3.0  # seconds without an answer
_MOST = 2000  # characters of the answer that are printed


def health(folder: Path) -> tuple[bool, str]:
    """Ask the node of a data folder. Returns whether it is up, and its answer or what went wrong."""
    file = folder / FILE
    try:
        _, url, *_ = [*file.read_text(encoding="utf-8", errors="replace").splitlines(), "", ""]
    except OSError as error:
        return False, f"{file} cannot be read: {error.strerror or error}"
    if not url:
        return False, f"{file}: no node listens yet"
    try:
        parts = urlsplit(url)
        if not parts.hostname or not parts.port:
            return False, f"{file}: must have a URL with host and port in its second line, got {url!r}"
        connection = http.client.HTTPConnection(_reachable(parts.hostname), parts.port, timeout=_TIMEOUT)
        connection.request("GET", parts.path)
        with connection.getresponse() as response:
            body = response.read().decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return False, f"{url}: {error or type(error).__name__}"
    return response.status == http.HTTPStatus.OK, f"{url}: {response.status}: {body[:_MOST]}"


def _reachable(host: str) -> str:
    """An address that a node listens on, given the one it is bound to."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return {4: "127.0.0.1", 6: "::1"}[address.version] if address.is_unspecified else host


def main(arguments: Sequence[str]) -> int:
    folder = arguments[0] if arguments else os.environ.get("ODDSENGINE_DATA_FOLDER", "")
    if not folder:
        print("healthcheck: give the data folder of a node, or set ODDSENGINE_DATA_FOLDER")
        return 1
    up, text = health(Path(folder))
    print(text)
    return 0 if up else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
