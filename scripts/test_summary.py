#!/usr/bin/env python3
"""Reads the JUnit file of ctest: prints skipped tests with their reason and, last, "N passed, N failed, N skipped".

Exit code 1 if a test failed or if there was none.
"""

import collections
import re
import sys
import xml.etree.ElementTree


def reason_of(case):
    """The text that a skipped test gave: GTEST_SKIP() << "reason", or the last line that a script printed."""
    output = case.findtext("system-out") or ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for i, line in enumerate(lines):
        if re.search(r": Skipped$", line) and i + 1 < len(lines) and not lines[i + 1].startswith("["):
            return lines[i + 1]
    for line in reversed(lines):
        if line.lower().startswith("skip"):
            return line
    skipped = case.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    if lines and message.startswith("SKIP_RETURN_CODE"):
        return lines[-1]  # A script says why before it leaves.
    return message or "no reason was given"


def main():
    cases = list(xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"))
    passed, failed, skipped = [], [], collections.defaultdict(list)
    for case in cases:
        status = case.get("status")
        if case.find("failure") is not None or status == "fail":
            failed.append(case.get("name"))
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            skipped[reason_of(case)].append(case.get("name"))
        else:
            passed.append(case.get("name"))

    for reason, names in sorted(skipped.items()):
        print(f"skipped {len(names)}: {reason}")
        for name in names:
            print(f"    {name}")
    for name in failed:
        print(f"FAILED {name}")
    num_skipped = sum(len(names) for names in skipped.values())
    print(f"{len(passed)} passed, {len(failed)} failed, {num_skipped} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
