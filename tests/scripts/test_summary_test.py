#!/usr/bin/env python3
"""Proves that scripts/test_summary.py counts right and never lets a skipped test pass for a passed one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "test_summary.py"
PASSED = '<testcase name="A.Passes" status="run"><system-out>ok</system-out></testcase>'
FAILED = '<testcase name="A.Fails" status="fail"><failure message="1"/><system-out/></testcase>'
SKIPPED = """<testcase name="A.Skips" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
[ RUN      ] A.Skips
/src/a_test.cc:3: Skipped
this machine has no GPU

[  SKIPPED ] A.Skips (0 ms)
</system-out></testcase>"""
SCRIPT = """<testcase name="install" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>
skipped: pkg-config is not installed
</system-out></testcase>"""
LAST_LINE = SCRIPT.replace("skipped: pkg-config is not installed", "begins\ntest_hosts: nft is not installed")


def summary(*cases):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(cases) + "</testsuite>")
        file.flush()
        done = subprocess.run([sys.executable, SUMMARY, file.name], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


class TestSummary(unittest.TestCase):
    def test_counts_and_reasons(self):
        code, lines = summary(PASSED, PASSED, SKIPPED, SCRIPT, LAST_LINE)
        self.assertEqual(code, 0)
        self.assertEqual(lines[-1], "2 passed, 0 failed, 3 skipped")
        self.assertIn("skipped 1: this machine has no GPU", lines)
        self.assertIn("    A.Skips", lines)
        self.assertIn("skipped 1: test_hosts: nft is not installed", lines)
        self.assertIn("skipped 1: skipped: pkg-config is not installed", lines)

    def test_a_failure_fails(self):
        code, lines = summary(PASSED, FAILED)
        self.assertEqual(code, 1)
        self.assertIn("FAILED A.Fails", lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")

    def test_nothing_passed_is_a_failure(self):
        self.assertEqual(summary()[0], 1)
        self.assertEqual(summary(SKIPPED)[0], 1)


if __name__ == "__main__":
    unittest.main()
