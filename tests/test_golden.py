"""Recorded worlds replay to the updates that were recorded of them."""

from collections import Counter
from typing import Any

import pytest
from support import golden


@pytest.mark.parametrize("name", golden.WORLDS)
def test_a_recorded_world_replays_to_its_updates(name: str) -> None:
    expected = golden.expected(name)
    steps = 0
    for was, now in zip(expected, golden.replayed(name), strict=True):
        assert now == was, f"step {was['number']}: {difference(was, now)}"
        steps += 1
    assert steps > 40


def test_the_worlds_hold_what_they_are_for() -> None:
    """Every kind of opportunity in every view, every guard that a step can meet; else the tapes show nothing."""
    kinds: Counter[tuple[str, str]] = Counter()
    crowd: Counter[int] = Counter()  # steps in which each changed
    aside: set[str] = set()
    for name in golden.WORLDS:
        for step in golden.expected(name):
            aside |= set(step["aside"])
            crowd.update(at for at, said in enumerate(step["crowd"]) if said)
            for view, change in step["views"].items():
                kinds.update((view, each["kind"]) for each in change["detected"])
    assert kinds.keys() >= {(str(at), kind) for at in (0, 1, 3, 4, 5) for kind in golden.KINDS}
    assert min(kinds.values()) >= 10
    assert min(crowd.values()) >= 40
    assert len(crowd) == len(golden.CROWD) == 30
    assert aside >= golden.GUARDS_MET


def difference(was: dict[str, Any], now: dict[str, Any]) -> str:
    """Where two steps differ, for whoever reads the failure."""
    out = [f"{part}: {was[part]} -> {now[part]}" for part in ("rows", "aside") if was[part] != now[part]]
    for view in was["views"].keys() | now["views"].keys():
        a, b = (each["views"].get(view, {"detected": [], "expired": []}) for each in (was, now))
        before, after = ({each["id"]: each for each in one["detected"]} for one in (a, b))
        out += [f"view {view}, {i}: {before.get(i)} -> {after.get(i)}" for i in sorted(before.keys() | after.keys())
                if before.get(i) != after.get(i)]  # fmt: skip
        if a["expired"] != b["expired"]:
            out.append(f"view {view} expired: {sorted(set(a['expired']) ^ set(b['expired']))}")
    both = enumerate(zip(was["crowd"], now["crowd"], strict=True))
    out += [f"view {at} of the crowd: {before!r} -> {after!r}" for at, (before, after) in both if before != after]
    return "\n".join(out[:12])
