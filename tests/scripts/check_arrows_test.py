#!/usr/bin/env python3
"""Proves that scripts/check_arrows.py accepts right includes and rejects each kind of wrong one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_arrows.py"


def check(files):
    """Exit code and output of the check on a tree of {name: [included names]}, every target being there."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, includes in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f'#include "{include}"\n' for include in includes))
        for includes in list(files.values()):
            for include in includes:
                path = root / ("include/" + include if include.startswith("weft/") else include)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


RIGHT = [
    ("topology/graph.h", "base/result.h"),
    ("transport/memory.h", "device/memory.h"),
    ("transport/factory.cc", "transport/shm/shm_transport.h"),
    ("transport/shm/shm_transport.cc", "transport/transport.h"),
    ("collectives/plan/plan.h", "collectives/contract.h"),
    ("collectives/plan/plan.cc", "topology/graph.h"),
    ("collectives/algorithms/ring.cc", "collectives/plan/builder.h"),
    ("collectives/select/select.cc", "collectives/algorithms/algorithm.h"),
    ("collectives/engine/engine.cc", "transport/transport.h"),
    ("collectives/engine/engine.cc", "device/device.h"),
    ("collectives/communicator.cc", "collectives/engine/engine.h"),
    ("collectives/communicator.cc", "bootstrap/session.h"),
    ("collectives/c_abi/c_abi.cc", "weft/weft.h"),
    ("tools/plan.cc", "collectives/plan/plan.h"),
    ("examples/sum.c", "weft/weft.h"),
    ("tests/transport/shm_test.cc", "transport/shm/ring.h"),
    ("transport/shm/ring_bench.cc", "transport/tcp/tcp_transport.h"),
]

WRONG = [
    ("base/log.cc", "topology/graph.h"),
    ("topology/graph.h", "device/device.h"),
    ("bootstrap/session.cc", "transport/transport.h"),
    ("transport/transport.h", "device/device.h"),
    ("transport/transport.h", "topology/graph.h"),
    ("transport/transport.h", "transport/shm/ring.h"),
    ("transport/tcp/tcp_transport.cc", "transport/shm/ring.h"),
    ("transport/shm/shm.cc", "transport/sim/sim.h"),
    ("collectives/plan/plan.h", "transport/transport.h"),
    ("collectives/plan/plan.h", "device/device.h"),
    ("collectives/plan/plan.h", "collectives/algorithms/algorithm.h"),
    ("collectives/algorithms/ring.cc", "collectives/engine/engine.h"),
    ("collectives/algorithms/ring.cc", "transport/transport.h"),
    ("collectives/select/select.cc", "collectives/communicator.h"),
    ("collectives/engine/engine.cc", "collectives/algorithms/algorithm.h"),
    ("collectives/engine/engine.cc", "transport/shm/ring.h"),
    ("collectives/engine/engine.cc", "bootstrap/session.h"),
    ("tools/run.cc", "transport/tcp/tcp_transport.h"),
    ("tools/run.cc", "collectives/engine/engine.h"),
    ("examples/sum.cc", "base/result.h"),
    ("device/device.cc", "tests/fakes/fake_device.h"),
    ("collectives/communicator.cc", "tools/run.h"),
]


class CheckArrows(unittest.TestCase):
    def test_right_arrows_are_accepted(self):
        for source, target in RIGHT:
            with self.subTest(source=source, target=target):
                code, output = check({source: [target]})
                self.assertEqual(code, 0, output)

    def test_wrong_arrows_are_rejected_with_file_and_line(self):
        for source, target in WRONG:
            with self.subTest(source=source, target=target):
                code, output = check({source: ["base/ids.h" if source[:4] != "exam" else "weft/weft.h", target]})
                self.assertEqual(code, 1, output)
                self.assertIn(f"{source}:2: includes {target}", output)

    def test_a_circle_is_rejected(self):
        code, output = check({"base/a.h": ["base/b.h"], "base/b.h": ["base/c.h"], "base/c.h": ["base/a.h"]})
        self.assertEqual(code, 1, output)
        self.assertIn("circle: base/a.h -> base/b.h -> base/c.h -> base/a.h", output)

    def test_a_file_that_includes_itself_is_rejected(self):
        self.assertEqual(check({"base/a.h": ["base/a.h"]})[0], 1)

    def test_two_ways_to_one_file_are_no_circle(self):
        code, output = check({"base/a.h": ["base/b.h", "base/c.h"], "base/b.h": ["base/c.h"]})
        self.assertEqual(code, 0, output)

    def test_a_missing_file_of_the_house_is_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "base" / "a.h"
            path.parent.mkdir()
            path.write_text('#include "base/gone.h"\n')
            done = subprocess.run([sys.executable, CHECK, "--root", folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("base/a.h:1: includes base/gone.h, which does not exist", done.stdout)

    def test_a_tree_without_sources_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, CHECK, "--root", folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
