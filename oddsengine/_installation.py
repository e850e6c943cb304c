"""What is installed, found without importing numpy or numba: the version, and which kernels a process runs.

Uses the standard library only, and nothing of the package: `oddsengine_cli` loads this file alone.

Beside all kernels that were made together is a file of JSON, the manifest: what they were made for, from which sources,
and their names. It only describes them: each kernel has a digest of its own, which decides (`oddsengine._cache`).
"""

import json
import os
import stat
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any

__version__ = "0.3.0"

VARIABLE = "ODDSENGINE_CACHE"
PACKAGE = os.path.dirname(os.path.abspath(__file__))
PREBUILT = os.path.join(PACKAGE, "kernels")  # those that come with the package
PREBUILT_MANIFEST = "kernels.json"
# The least processor that the kernels of a package are made for, in LLVM's words, by system and machine.
_PORTABLE = {("linux", "x86_64"): "x86-64-v3", ("linux", "aarch64"): "generic", ("darwin", "arm64"): "apple-m1"}
# Flags of a processor that runs x86-64-v3.
_FLAGS = ("abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "popcnt", "sse4_2")
_PROCESSOR = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "CPU variant", "Features")
# Settings of numba that machine code depends on, with the values that change nothing.
_SETTINGS = {"NUMBA_BOUNDSCHECK": ("",), "NUMBA_DEBUGINFO": ("", "0"), "NUMBA_OPT": ("", "3")}
_OWN_SETTINGS = ("NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME")
_COMPARED = {"python": "Python", "processor": "the processor", "numba": "numba", "llvmlite": "llvmlite"}
_PIN = "`pip install 'oddsengine[kernels]'`"
_NONE = "there are no prebuilt ones in this installation"
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe is not waited for
_MANIFEST = {"made_for": dict, "sources": str, "use": str, "files": list}


# ---- this machine ----


@cache
def _cpuinfo() -> dict[str, str]:
    """Return what Linux says about the first processor."""
    found = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, colon, value = line.partition(":")
                if not colon:
                    break
                found[name.strip()] = value.strip()
    except OSError:
        pass
    return found


def platform() -> tuple[str, str]:
    """Return the system and the machine."""
    return sys.platform, os.uname().machine if hasattr(os, "uname") else ""


def least_processor() -> str:
    """Return the least processor that kernels of a package for this platform are made for; empty if none are made."""
    return _PORTABLE.get(platform(), "")


def unsupported() -> str:
    """Say why this machine does not run the kernels that come with a package; empty if it does."""
    if not least_processor():
        return "prebuilt ones are made for Linux on x86-64 and ARM, and for macOS on ARM"
    if least_processor() != "x86-64-v3":
        return ""
    flags = _cpuinfo().get("flags", "").split()
    lacking = [flag for flag in _FLAGS if flag not in flags]
    return f"the prebuilt ones need a processor with {', '.join(lacking)}" if lacking else ""


def _installed(name: str) -> str:
    """Return the version of a package; empty if there is none.

    Read from the name of its metadata: importing `importlib.metadata` takes as long as all else.
    """
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(f"{name}-") and entry.endswith(".dist-info"):
                return entry[len(name) + 1 : -len(".dist-info")]
    from importlib import metadata  # noqa: PLC0415

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _settings(names: Iterable[str]) -> str:
    given = {name: os.environ.get(name, "") for name in names}
    return " ".join(f"{name}={value}" for name, value in given.items() if value not in _SETTINGS.get(name, ("",)))


def target(*, portable: bool) -> dict[str, str]:
    """Return what kernels are made for here: what the digest of each depends on, besides its code."""
    numba, llvmlite = _installed("numba"), _installed("llvmlite")
    if portable:
        python = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        return {"python": python, "numba": numba, "llvmlite": llvmlite, "processor": least_processor()}
    processor = " ".join(_cpuinfo().get(name, "") for name in _PROCESSOR) if sys.platform == "linux" else sys.platform
    return {
        "python": sys.version, "numpy": _installed("numpy"), "numba": numba, "llvmlite": llvmlite,
        "processor": processor, "settings": _settings((*_SETTINGS, *_OWN_SETTINGS)),
    }  # fmt: skip


def sources() -> str:
    """Return a checksum of the package's code."""
    crc = 0
    for folder, folders, files in os.walk(PACKAGE):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".tsv")):  # the list of kernels
                with open(os.path.join(folder, name), "rb") as file:
                    crc = zlib.crc32(file.read(), zlib.crc32(name.encode(), crc))
    return f"{crc:08x}"


# ---- folders of kernels ----


def lasting() -> list[str]:
    """Return the folders of the cache that survive a restart of the machine."""
    given = os.environ.get(VARIABLE) or os.environ.get("NUMBA_CACHE_DIR")
    return [given] if given else [os.path.join(PACKAGE, "__pycache__"), _user_cache()]


def _user_cache() -> str:
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(parent, "oddsengine", "Cache")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/oddsengine")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "oddsengine")


@cache
def _trusted() -> frozenset[int]:
    """Return the users whose files are trusted."""
    mine = {os.geteuid()} if hasattr(os, "geteuid") else set()
    return frozenset({0, os.stat(PACKAGE).st_uid, *mine})


@cache
def _own_group(user: int, group: int) -> bool:
    """Whether a group is that of one user alone, as many systems make one for each: both have the same name."""
    try:
        import grp  # noqa: PLC0415  not on Windows
        import pwd  # noqa: PLC0415

        return grp.getgrgid(group).gr_name == pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return False


def content(file: str | os.PathLike[str]) -> bytes:
    """Read a file; empty if it is missing or no plain file, owned by another user, or writable by others."""
    try:
        with open(os.open(file, os.O_RDONLY | _AT_ONCE), "rb") as source:
            status = os.fstat(source.fileno())
            mode, owner = status.st_mode, status.st_uid
            others = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _own_group(owner, status.st_gid))
            return source.read() if stat.S_ISREG(mode) and owner in _trusted() and not others else b""
    except OSError:
        return b""


# ---- manifests ----


def manifest_of(made_for: dict[str, str]) -> str:
    """Return the name of the manifest of kernels; a folder may have those of several machines."""
    if made_for["processor"] == least_processor():
        return PREBUILT_MANIFEST
    return f"kernels-{zlib.crc32(json.dumps(made_for).encode()):08x}.json"


def describe(made_for: dict[str, str], files: Iterable[str], use: str = "all") -> bytes:
    """Return the manifest of kernels: all, or those of one use."""
    manifest = {"made_for": made_for, "sources": sources(), "use": use, "files": sorted(files)}
    return json.dumps(manifest, indent=1).encode()


def read_manifest(folder: str, name: str) -> dict[str, Any]:
    """Return a manifest; empty if there is none, or none that is trusted."""
    try:
        found = json.loads(content(os.path.join(folder, name)))
    except (ValueError, RecursionError):
        return {}
    fits = isinstance(found, dict) and all(isinstance(found.get(key), kind) for key, kind in _MANIFEST.items())
    return (
        found if fits and all(isinstance(text, str) for text in (*found["made_for"].values(), *found["files"])) else {}
    )


def interpreted() -> bool:
    """Whether numba compiles nothing, and kernels run as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0")


def up_to_date(folder: str, made_for: dict[str, str]) -> bool:
    """Whether a folder has all kernels, made for this and from the code as it is."""
    manifest = read_manifest(folder, manifest_of(made_for))
    return manifest.get("made_for") == made_for and not _outdated(folder, manifest)


def _outdated(folder: str, manifest: dict[str, Any]) -> str:
    """Say why some kernels may have to be compiled again; empty if all are there, made from the code as it is."""
    try:
        if set(manifest["files"]) - set(os.listdir(folder)):
            return "incomplete"
        if manifest["sources"] != sources():
            return "made from other sources"
    except OSError as error:
        return f"{error.filename} cannot be read"
    return "" if manifest["use"] == "all" else f"only those of a {manifest['use']}"


def misfit(folder: str = PREBUILT) -> str:
    """Say why the kernels that come with the package are not used; empty if they are."""
    manifest = read_manifest(folder, PREBUILT_MANIFEST)
    if not manifest:
        return unsupported() or _NONE
    made_for, here = manifest["made_for"], target(portable=True)
    for name, text in _COMPARED.items():
        if made_for.get(name) != here[name]:
            theirs, ours = made_for.get(name), here[name] or "(none)"
            reason = f"the prebuilt ones are for {text} {theirs}, and this is {text} {ours}"
            return f"{reason}; {_PIN} installs theirs" if name in ("numba", "llvmlite") else reason
    settings = _settings(_SETTINGS)
    return unsupported() or (f"the prebuilt ones are not for {settings}" if settings else "")


def why_compiled() -> str:
    """Say why the compiler is not spared; empty if kernels that fit come with this installation."""
    if reason := misfit():
        return reason
    outdated = _outdated(PREBUILT, read_manifest(PREBUILT, PREBUILT_MANIFEST))
    return f"the prebuilt ones are {outdated}" if outdated else ""


def kernels() -> str:
    """Say which kernels a process runs."""
    if interpreted():
        return "plain Python (NUMBA_DISABLE_JIT is set)"
    reason, here = misfit(), target(portable=False)
    own = {folder: read_manifest(folder, manifest_of(here)) for folder in lasting()}
    made = [(at, its, f"for this machine ({at})") for at, its in own.items() if its.get("made_for") == here][:1]
    if not reason:
        manifest = read_manifest(PREBUILT, PREBUILT_MANIFEST)
        its = manifest["made_for"]
        versions = f"Python {its['python']}, numba {its['numba']}, llvmlite {its['llvmlite']}, {its['processor']}"
        made.append((PREBUILT, manifest, f"prebuilt ({versions})"))
    if not made:
        return f"compiled on first use ({reason})"
    parts = []
    for folder, manifest, text in made:
        outdated = _outdated(folder, manifest)
        parts.append(f"{text}, {outdated}" if outdated else text)
        if not outdated:
            break
    else:
        parts.append("compiled on first use")
    return ", else ".join(parts)
