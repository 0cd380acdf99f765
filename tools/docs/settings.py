#!/usr/bin/env python3
"""Writes docs/settings.md from server/config.def and server/live.def: every setting of tallyd, in groups.

usage: settings.py [--check]     --check writes nothing, and fails when the page differs from the tables
"""
import re
import sys

from rules import ROOT, publish

PAGE = ROOT / "docs" / "settings.md"
ROW = re.compile(r'^(?:GROUP\("(?P<group>[^"]*)"\)|OPTION\((?P<id>\w+), "(?P<flag>[^"]*)", "(?P<argument>[^"]*)", '
                 r'"(?P<default>[^"]*)", (?P<shown>COMMON|RARE),(?P<help>(?:\s*"(?:[^"\\]|\\.)*")+)\))$', re.M)

HEAD = """# Settings of tallyd

`tools/docs/settings.py` writes this page from `server/config.def`; the step `layers` of `tools/test.sh` fails when they differ.

Each setting is a flag (`--data-dir DIR`), a variable of the environment (`TALLY_DATA_DIR`) and a key of the YAML file that `--config` names
(`data-dir`). Flags take precedence over the environment, and the environment over the file. `tallyd --help` shows the common ones,
`tallyd --help all` every one; `--print-config` prints the values in force as a YAML file, `--check-config` checks them.
`kill -HUP` changes the settings marked "live" in a running server.
"""


def page():
    source = (ROOT / "server" / "config.def").read_text(encoding="utf-8")
    live = set(re.findall(r"^LIVE\((\w+)", (ROOT / "server" / "live.def").read_text(encoding="utf-8"), re.M))
    lines = [HEAD.rstrip()]
    for m in ROW.finditer(source):
        if m["group"]:
            lines += ["", f"## {m['group']}", "", "| setting | default | meaning |", "|---|---|---|"]
            continue
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', m["help"])).replace('\\"', '"')
        name = f"`--{m['flag']} {m['argument']}`".replace("|", "\\|")
        default = f"`{m['default']}`" if m["default"] else ""
        live_mark = " (live)" if m["id"] in live else ""
        lines.append(f"| {name}{live_mark} | {default} | {text.replace('|', chr(92) + '|')} |")
    rows = sum(1 for m in ROW.finditer(source) if m["flag"])
    assert rows == len(re.findall(r"^OPTION\(", source, re.M)), "a row of config.def that this script cannot read"
    return "\n".join(lines) + "\n", rows


def main():
    text, rows = page()
    return publish(PAGE, text, "settings.py", rows)


if __name__ == "__main__":
    sys.exit(main())
