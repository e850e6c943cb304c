"""Garbage collection of a process that serves a node."""

import gc
from pathlib import Path

from support.forking import ran
from support.service_running import running

CODE = """
import gc, weakref
from oddsengine_service.monitoring.memory import collect_rarely

class Node:
    pass

collect_rarely()
earlier = Node()
earlier.itself, left = earlier, weakref.ref(earlier)
gc.freeze()
del earlier
collect_rarely()
print(left() is None, gc.get_freeze_count() > 1000, gc.get_threshold()[0])
"""


def test_what_an_earlier_node_has_left_is_freed() -> None:
    assert ran(CODE).stdout == "True True 50000\n"


def test_a_node_in_a_process_of_somebody_else_leaves_its_objects_alone(tmp_path: Path) -> None:
    before = gc.get_freeze_count()
    with running(tmp_path, events=2):
        assert gc.get_freeze_count() <= before
