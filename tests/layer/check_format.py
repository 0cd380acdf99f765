#!/usr/bin/env python3
"""Whether C is laid out as .clang-format says: blanks between words and signs, and how far statements are indented. Where lines end and what is aligned in columns is the author's.

    check_format.py [--fix] [FILE...]     all sources of the tree when none is named

Needs clang-format (tests/layer/requirements.txt). Prints what is laid out otherwise, and "N passed, N failed" (files)."""
import difflib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import clang_format
from check_layers import ROOT, sources

CLANG_FORMAT = os.path.join(os.path.dirname(clang_format.__file__), "data", "bin", "clang-format")
BLANKS = re.compile(r"(?:[ \t\n]|\\\n)+")  # the backslash at the end of a macro's line, too
STATEMENT_BEFORE = set(";{}:/")  # what is in front of a line that begins a statement, a label or a comment: other lines go on with the one above


def gaps(text):
    """What the text is without blanks, and its blanks by how many other characters are in front of them."""
    found, signs, at, n = {}, [], 0, 0
    for m in BLANKS.finditer(text):
        signs.append(text[at:m.start()])
        n += m.start() - at
        found[n] = m.group()
        at = m.end()
    return "".join(signs) + text[at:], found


def laid_out(mine, theirs, before):
    """Blanks that both or one of them have."""
    ends = "\n" in mine
    if ends != ("\n" in theirs):
        return mine
    if ends:
        return mine[:mine.rindex("\n")] + theirs[theirs.rindex("\n"):] if before in STATEMENT_BEFORE else mine
    return mine if bool(mine) == bool(theirs) else theirs


def formatted(text, by_formatter):
    (signs, mine), (same, theirs) = gaps(text), gaps(by_formatter)
    assert signs == same, "clang-format has changed more than blanks"
    out, at = [], 0
    for n in sorted(mine.keys() | theirs.keys()):
        out += [signs[at:n], laid_out(mine.get(n, ""), theirs.get(n, ""), signs[n - 1] if n else ";")]
        at = n
    return "".join(out) + signs[at:]


def look_at(path, fix):
    """What is to change in a file, as lines of a diff."""
    whole = os.path.join(ROOT, path)
    with open(whole, encoding="utf-8") as f:
        text = f.read()
    by_formatter = subprocess.run([CLANG_FORMAT, f"--assume-filename={whole}"], input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    wanted = text if by_formatter == text else formatted(text, by_formatter)
    if fix and wanted != text:
        with open(whole, "w", encoding="utf-8") as f:
            f.write(wanted)
    return list(difflib.unified_diff(text.splitlines(), wanted.splitlines(), path, path, lineterm="", n=0)) if wanted != text else []


def main():
    fix = "--fix" in sys.argv
    paths = [a for a in sys.argv[1:] if a != "--fix"] or [p for p in sources() if p.endswith((".c", ".h"))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda p: look_at(p, fix), paths))
    for diff in filter(None, found):
        print("\n".join(diff))
    failed = sum(bool(d) for d in found)
    print(f"{failed} files changed" if fix else f"{len(found) - failed} passed, {failed} failed")
    return 1 if not fix and (failed or not found) else 0


if __name__ == "__main__":
    sys.exit(main())
