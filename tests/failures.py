#!/usr/bin/env python3
"""Which tests failed, and the end of what each one said: `failures.py build/release/tests.xml ...`.

`./dev test` prints this last, because what one looks for in a run of half an hour should not stand in its middle.
The files are those that `ctest --output-junit` writes. A test that says much says the cause in its last lines.
"""
import pathlib
import sys
import xml.etree.ElementTree

LINES = 40


def failed(path):
    """The test cases of one file that did not pass."""
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.get("status") not in ("run", "notrun", "disabled"):
            yield case


def main(paths):
    for path in map(pathlib.Path, paths):
        for case in failed(path):
            said = (case.findtext("system-out") or "").rstrip().splitlines()
            print(f"== failed in {path.parent.name}: {case.get('name')} after {float(case.get('time', 0)):.0f} s")
            if len(said) > LINES:
                print(f"   ... {len(said) - LINES} lines before; all of them: {path}")
            print("\n".join("   " + line for line in said[-LINES:]))


if __name__ == "__main__":
    main(sys.argv[1:])
