#!/usr/bin/env python3
"""Checks the links between pages: the file and the heading that each names exist.

usage: links.py --check [FOLDER]    checks the pages of the tree, or of a folder that pages were installed into
       links.py --install FOLDER    replaces links to files that were not installed there with their text
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def without_code(text):
    """The text with blanks in place of code, which may look like links."""
    return CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if "](" in m[0] else m[0], text)


def anchors(path):
    """The anchors that GitHub gives the headings of a page."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S), re.M):
        slug = re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-")
        n = counts[slug] = counts.get(slug, -1) + 1
        found.add(f"{slug}-{n}" if n else slug)
    return found


def wrong(page):
    """Yields each link of a page to something that does not exist."""
    for m in LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
        file, _, anchor = m[2].partition("#")
        target = page.parent / file if file else page
        if ELSEWHERE.match(m[2]):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield m[2]


def pages(folder):
    if folder != ROOT:
        return sorted(folder.rglob("*.md"))
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in sorted(listed.stdout.split())]


def check(folder):
    passed = failed = 0
    for page in pages(folder):
        dead = list(wrong(page))
        for link in dead:
            print(f"{page.relative_to(folder)}: nothing is at {link}")
        passed, failed = passed + (not dead), failed + bool(dead)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def install(folder):
    for page in pages(folder):
        text = page.read_text(encoding="utf-8")
        dead = set(wrong(page))
        page.write_text(LINK.sub(lambda m, dead=dead: m[1] if m[2] in dead else m[0], text), encoding="utf-8")
    return 0


def main(arguments):
    what, folder = arguments[0], Path(arguments[1]).resolve() if len(arguments) > 1 else ROOT
    if what == "--install" and folder != ROOT:
        return install(folder)
    return check(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
