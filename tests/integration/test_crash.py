"""kill -9 under mixed load: a few of the kills that tests/fault/crash.py makes, which runs as many as it is told to."""
import sys

import pytest

from tally_server import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fault"))
from crash import Load, Lost, Register, crash  # noqa: E402

KINDS = ["batches", "contested", "contested_writes", "counters", "ddl", "emptied", "flushes", "large", "lwt", "mortal", "past", "rows", "saved", "slices"]


@pytest.mark.parametrize("mode, flags", [("cassandra", ()), ("keyspaces", ("--memtables", "1", "--durability", "periodic"))], ids=["long logs", "many files"])
def test_every_acknowledged_effect_is_there_after_kills_at_random_moments(tmp_path, mode, flags):
    kinds = [kind for kind in KINDS if kind not in ("ddl", "flushes")]
    acknowledged = crash(kills=5, seed=20, folder=tmp_path, mode=mode, flags=flags, kinds=kinds)
    assert all(acknowledged[kind] for kind in kinds), acknowledged


def test_what_is_lost_is_found_out():
    """The check itself: an acknowledged value that is not there, or one that nobody wrote."""
    register = Register()
    register.tries(1, "a")
    register.acknowledged(1, "a")
    register.tries(1, "b")
    register.check("row", {1: "b"})
    register.tries(1, "c")
    register.check("row", {1: "b"})  # c was not acknowledged
    for found in ({}, {1: "a"}, {1: "d"}):
        with pytest.raises(Lost):
            register.check("row", found)
    assert [n[3:] for n in dir(Load) if n.startswith("do_")] == KINDS
