"""Packages with plugins, as an installer leaves them: modules, and the metadata of their distribution."""

from collections.abc import Mapping
from pathlib import Path

from oddsengine.plugins import GROUPS


def install(
    folder: Path, name: str, modules: Mapping[str, str], version: str = "1.0", **groups: Mapping[str, str]
) -> Path:  # fmt: skip
    """Write a distribution into a folder; `groups` are entry points by the last name of their group."""
    entries = []
    for group, names in groups.items():
        (full,) = (each for each in GROUPS if each.endswith(f".{group}"))
        entries += [f"[{full}]", *(f"{key} = {value}" for key, value in names.items())]
    folder.mkdir(exist_ok=True, parents=True)
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("\n".join(entries) + "\n")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    return folder
