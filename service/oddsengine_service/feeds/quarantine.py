"""Payloads that failed to parse, saved to a folder of limited size.

Each is two files of one name: `.payload`, the bytes without secrets, and `.reason`. The oldest are deleted first. The
name ends with a hash of the contents, so a repeated payload is saved once.
"""

import hashlib
import re
from datetime import datetime
from pathlib import Path

from oddsengine.sources.secrets import Secrets

_SHARE = 4  # a payload may take one part in this many of the folder


class PayloadQuarantine:
    """The folder, created on first use."""

    def __init__(self, folder: Path, files: int, size: int, secrets: Secrets) -> None:
        self.folder = folder
        self._files, self._size, self._secrets = files, size, secrets
        self._count = 0

    def keep(self, source: str, body: bytes, reason: str, now: datetime) -> Path | None:
        """Save a payload; None if it does not fit."""
        body = self._secrets.clean_bytes(body)
        tag = hashlib.blake2b(body, digest_size=8).hexdigest()
        most = self._size // _SHARE
        if len(body) > most:
            reason += f"; cut after {most} of {len(body)} bytes"
            body = body[:most]
        if not self._files or not most:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.glob(f"*-{tag}.payload"):
            return path
        self._count += 1
        name = f"{now:%Y%m%dT%H%M%S%f}-{self._count:06d}-{re.sub('[^a-z0-9_]', '_', source)}-{tag}"
        path = self.folder / f"{name}.payload"
        path.write_bytes(body)
        path.with_suffix(".reason").write_text(self._secrets.clean(reason) + "\n", encoding="utf-8")
        self._prune()
        return path

    def _prune(self) -> None:
        newest_first = sorted(self.folder.glob("*.payload"), reverse=True)
        total = 0
        for at, path in enumerate(newest_first):
            reason = path.with_suffix(".reason")
            total += path.stat().st_size + (reason.stat().st_size if reason.exists() else 0)
            if at >= self._files or total > self._size:
                path.unlink(missing_ok=True)
                reason.unlink(missing_ok=True)
