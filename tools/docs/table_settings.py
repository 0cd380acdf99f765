#!/usr/bin/env python3
"""Writes docs/table_settings.md from the rows of settings/setting.def.

usage: table_settings.py [--check]     --check writes nothing, and fails when the page is not what the rows say
"""
import re
import sys

from rules import ROOT, publish, table

PAGE = ROOT / "docs" / "table_settings.md"

HEAD = """# Settings of a table

`tools/docs/table_settings.py` writes this page from `settings/setting.def`, and the step `layers` of `tools/test.sh` fails if it is out of date.

## Options of Cassandra

The column "releases" gives the release that has the option. In keyspaces mode (3.11) the options of 5.0 are refused where `--compatibility` is
`strict`. Options other than `cdc`, `comment`, `default_time_to_live` and `gc_grace_seconds` are stored and shown, and have no effect. In keyspaces
mode `gc_grace_seconds` has none either: expired and deleted data are removed after ten days, as on Amazon Keyspaces.
"""

PROPERTIES = """## CUSTOM_PROPERTIES

A statement that gives one property of a group replaces the group. `*` is any key. "API" is the member of CreateTable, UpdateTable and GetTable; in
RestoreTable some of them end in `Override`. A property "of the server" is shown and cannot be set.
"""

SCALING = """## AUTOSCALING_SETTINGS

Below `provisioned_read_capacity_autoscaling_update` and `provisioned_write_capacity_autoscaling_update`, and there below `replica_updates.<Region>`.
A statement replaces all settings of the reads or of the writes. In the API they are below `readCapacityAutoScaling` and `writeCapacityAutoScaling`.
"""


def arguments(text):
    """The arguments of a macro, without the quotes of strings."""
    parts, depth, quoted, part = [], 0, False, ""
    for c in text + ",":
        quoted ^= c == '"'
        depth += 0 if quoted else (c in "({") - (c in ")}")
        if c == "," and not depth and not quoted:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts


def rows(macro):
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "settings" / "setting.def").read_text(encoding="utf-8"), flags=re.S)
    for m in re.finditer(rf"^{macro}\((.*?)\)$", text, re.M | re.S):
        yield arguments(m[1])


def plain(value):
    """A default or a name as statements have it."""
    value = value.replace("API_POLICY ", "scalingPolicy.targetTrackingScalingPolicyConfiguration.")
    value = value.replace("POLICY ", "scaling_policy.target_tracking_scaling_policy_configuration.").replace('"', "")
    value = re.sub(r"^MAP_OF\((.*)\)$", r"\1", value, flags=re.S)
    value = re.sub(r"\{(\w+), ([\w.]+)\}", r"\1: \2", value)
    value = value.replace("SIZE_TIERED", "SizeTieredCompactionStrategy").replace("LZ4", "LZ4Compressor")
    return {"NULL": "", "NO_MAP": "", "LAST": ""}.get(value, value)


def code(text):
    return f"`{text}`" if text else ""


def number(text):
    return f"{int(text):,}" if text.isdigit() else text


def values(kind, words, least, most):
    words = plain(words)
    if kind in ("FLAG", "CHOICE"):
        return ", ".join(code(w) for w in words.split("|"))
    if kind in ("WHOLE", "NUMBER", "INT", "REAL"):
        most = most.replace("INT32_MAX", str(2**31 - 1))
        return f"{'a whole number' if kind in ('WHOLE', 'INT') else 'a number'} from {number(least)} to {number(most)}"
    if kind == "BOOL":
        return "`true`, `false`"
    begins = f"begins with {code(words)}, " if words else ""
    return {"TEXT": "a text", "MAP": "texts"}[kind] + (f": {begins}at most {number(most)} characters" if most != "0" else "")


def page():
    out = [HEAD, table(["option", "values", "releases", "default 5.0", "default 3.11", "API"],
                       [[code(id), values(kind, "", least, most), {"BOTH": "", "ONLY_5_0": "5.0", "ONLY_3_11": "3.11"}[releases],
                         code(plain(new)), code(plain(old)) if releases != "ONLY_5_0" else "", code(plain(api))]
                        for id, kind, releases, new, old, least, most, _, _, api in rows("OPTION")])]
    out += [PROPERTIES]
    found = [[code(plain(name) + (".*" if kind == "MAP" else "")), values(kind, words, least, most), code(plain(api))]
             for _, name, kind, words, least, most, _, api in rows("PROPERTY")]
    found += [[code("replica_updates.<Region>." + plain(name)), values(kind, words, least, most), code("replicaSpecifications[]." + plain(api))]
              for _, name, kind, words, least, most, _, api in rows("REGION")]
    found += [[code(plain(name)), "of the server", code(plain(api))] for _, name, _, api in rows("STAMP")]
    found += [[code(plain(name)), "of the server", code(plain(api))] for _, name, _, _, api in rows("SHOWN")]
    out += [table(["property", "values", "API"], sorted(found)), SCALING]
    out += [table(["setting", "values", "default", "API"],
                  [[code(plain(name)), values(kind, words, least, most), code(number(plain(default))), code(plain(api))]
                   for _, name, kind, words, least, most, default, api in rows("SCALING")])]
    return "\n".join(out)


def main():
    return publish(PAGE, page(), "table_settings.py")


if __name__ == "__main__":
    sys.exit(main())
