"""The page of a benchmark run, from the JSON file that pytest-benchmark writes: `make bench` makes both.

    python benchmarks/report.py build/bench.json > build/bench.md

Compare ratios, not times: a group has its baseline in the same run, and the machine is part of the page. Benchmarks of
a file without groups measure different things.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """A time in its unit, three digits."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if seconds >= scale), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def page(run: Mapping[str, Any]) -> str:
    """Write a run as Markdown: the machine, then a table per group, fastest first, and per file without groups."""
    machine, commit = run["machine_info"], run["commit_info"]
    cpu = machine.get("cpu", {})
    state = " with uncommitted changes" if commit.get("dirty") else ""
    facts = (
        f"{cpu.get('brand_raw', machine.get('processor', 'unknown processor'))}, {cpu.get('count', '?')} cores",
        f"{machine['system']} {machine['machine']}, Python {machine['python_version']}",
        f"commit {(commit.get('id') or 'unknown')[:12]}{state}, {run['datetime'][:16].replace('T', ' ')} UTC",
    )
    return "\n".join(["# Benchmarks", "", *(f"- {fact}" for fact in facts), *_tables(run["benchmarks"]), ""])


def _tables(benchmarks: list[dict[str, Any]]) -> Iterator[str]:
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for each in benchmarks:
        file = Path(each["fullname"].partition("::")[0]).stem
        groups.setdefault((each["group"] or file, each["group"] is not None), []).append(each)
    for (group, is_comparison), members in groups.items():
        yield from ("", f"## {group}", "", "| benchmark | median | minimum | rounds | times the fastest | more |")
        yield "| --- | --- | --- | --- | --- | --- |"
        if is_comparison:
            members.sort(key=lambda each: each["stats"]["median"])
        fastest = members[0]["stats"]["median"]
        for each in members:
            stats = each["stats"]
            more = ", ".join(f"{name} {value}" for name, value in each["extra_info"].items())
            ratio = f"{stats['median'] / fastest:.3g}" if is_comparison else ""
            yield (
                f"| {each['name'].removeprefix('test_')} | {duration(stats['median'])} | {duration(stats['min'])} | "
                f"{stats['rounds']:,} | {ratio} | {more} |"
            )


if __name__ == "__main__":
    print(page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
