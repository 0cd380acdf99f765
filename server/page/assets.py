#!/usr/bin/env python3
"""Writes files as C arrays: one ASSET("/name", "content type", bytes, length) for each.

usage: assets.py OUT FILE...
"""
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".csv": "text/csv; charset=utf-8"}


def main(out, *files):
    rows, arrays = [], []
    for i, path in enumerate(files):
        with open(path, "rb") as f:
            content = f.read()
        name = os.path.basename(path)
        lines = [",".join(map(str, content[k:k + 64])) for k in range(0, len(content), 64)]
        arrays.append(f"static const unsigned char asset_{i}[] = {{\n" + ",\n".join(lines) + "};\n")
        address = "/" if name == "index.html" else "/" + name
        rows.append(f'    {{"{address}", "{TYPES[os.path.splitext(name)[1]]}", asset_{i}, sizeof(asset_{i})}},\n')
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(arrays) + "static const struct asset assets[] = {\n" + "".join(rows) + "};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
