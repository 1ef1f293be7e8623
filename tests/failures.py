#!/usr/bin/env python3
"""Prints the failed tests, and the end of the output of each: `failures.py build/release/tests.xml ...`.

`./dev test` prints this last, so that failures in a run of many minutes are easy to find. With `--count`, it prints
three numbers for one file: passed, failed, skipped. `ctest --output-junit` writes the files. The cause of a failure is
usually in the last lines of the output. A test case may be a whole suite of GoogleTest: then its tests are counted one
by one.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

LINES = 40


def cases(path):
    return xml.etree.ElementTree.parse(path).iter("testcase")


def is_failed(case):
    return case.get("status") not in ("run", "notrun", "disabled")


def count(path):
    """Of all tests of one file, those of a suite one by one: passed, failed, skipped."""
    passed = failed = skipped = 0
    for case in cases(path):
        said = case.findtext("system-out") or ""
        number = lambda text: int(match[1]) if (match := re.search(text, said)) else 0
        tests = number(r"\[=+\] Running (\d+) test") or 1
        if is_failed(case):
            bad = number(r"\[  FAILED  \] (\d+) test") or 1
            failed += bad
            passed += number(r"\[  PASSED  \] (\d+) test")
        elif case.get("status") == "run":
            idle = number(r"\[  SKIPPED \] (\d+) test")
            skipped += idle
            passed += tests - idle
        else:
            skipped += 1
    return passed, failed, skipped


def main(paths):
    if paths[:1] == ["--count"]:
        print(*count(paths[1]))
        return
    for path in map(pathlib.Path, paths):
        for case in filter(is_failed, cases(path)):
            said = (case.findtext("system-out") or "").rstrip().splitlines()
            print(f"== failed in {path.parent.name}: {case.get('name')} after {float(case.get('time', 0)):.0f} s")
            if len(said) > LINES:
                print(f"   ... {len(said) - LINES} earlier lines, see {path}")
            print("\n".join("   " + line for line in said[-LINES:]))


if __name__ == "__main__":
    main(sys.argv[1:])
