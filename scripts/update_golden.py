#!/usr/bin/env python3
"""Rewrites tests/golden/plans from what the algorithms plan now, and says what changed.

The only way these files change: the tests compare with them and never write. Review the difference before you commit it.
Usage: scripts/update_golden.py [build folder, default build/release]
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "plans"


def main() -> int:
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "release"
    subprocess.run(["cmake", "--build", str(build), "--target", "plans_test"], check=True)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    before = {path.name: path.read_bytes() for path in GOLDEN.glob("*.txt")}
    for path in GOLDEN.glob("*.txt"):
        path.unlink()
    subprocess.run(
        [str(build / "tests" / "plans_test"), "--gtest_filter=*GoldenPlans.*", "--gtest_brief=1"],
        env={**os.environ, "UPDATE_GOLDEN": "1"},
        check=True,
    )
    after = {path.name: path.read_bytes() for path in GOLDEN.glob("*.txt")}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            print("new    " if name not in before else "removed" if name not in after else "changed", name)
    print(f"{len(after)} golden plans in {GOLDEN.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
