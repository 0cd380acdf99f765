#!/usr/bin/env python3
"""Writes docs/metrics.md from the tables of metrics: every family of /metrics.

usage: metrics.py [--check]     --check writes nothing, and fails when the page differs from the tables
"""
import re
import sys

from rules import ROOT, publish, rows, table

PAGE = ROOT / "docs" / "metrics.md"

HEAD = """# Metrics

`tools/docs/metrics.py` writes this page from the tables in the code; the step `layers` of `tools/test.sh` fails when they differ.

`http://127.0.0.1:9180/metrics` has all families in Prometheus' text format; `/metrics?per=table` adds the labels in parentheses.
Scrape one of them, not both. `tools/package/dashboard.json` is a dashboard for Grafana and `tools/package/alerts.yaml` has alert rules; both use
`?per=table` ([operation.md](operation.md#metrics-and-alerts)). Counters start from 0 with the server, except those of AWS's
namespace, which continue from the ledger's file.
"""

SERVER = "## The server\n\n"
CONNECTIONS = "## Connections and requests\n\n"
ENGINE = "## The engine\n\n"
STORE = """## A remote store

Only with `--store rados`.

"""
AWS = """## Amazon Keyspaces' metrics

What CloudWatch shows in the namespace `AWS/Cassandra`
([Amazon Keyspaces metrics and dimensions](https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html)), as
`system_metering.metrics` has it. Gauges of tables are shown with `?per=table` only.

"""


def kind_of(name):
    return "counter" if name.endswith("_total") else "gauge"


def prometheus(name, end):
    """ConsumedReadCapacityUnits -> aws_cassandra_consumed_read_capacity_units_total, as put_name (server/metering_metrics.c) does."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return f"aws_cassandra_{words.lower()}{end}"


def labels_of(labels):
    """`operation` (`keyspace`, `table_name`): those in brackets are in parentheses on the page."""
    always, _, each = labels.partition("[")
    named = [", ".join(f"`{x}`" for x in part.strip("] ").split()) for part in (always, each)]
    return named[0] + (" " if all(named) else "") + (f"({named[1]})" if named[1] else "")


def lines(found):
    return table(["family", "type", "labels", "meaning"],
                 [[f"`{name}`", kind, labels_of(labels), help_text.rstrip(".")] for name, kind, labels, help_text in found])


def families():
    """(section, its families as (name, type, labels, meaning))"""
    own = [(name, kind, labels, text) for _, name, kind, labels, text in rows(ROOT / "server/family.def", "FAMILY")]
    yield SERVER, own
    yield CONNECTIONS, [(name, kind, "", text) for _, name, kind, _, text in rows(ROOT / "native_protocol/metric.def", "METRIC")]
    yield ENGINE, [(name, kind_of(name), "", text) for _, name, _, text in rows(ROOT / "engine/stat.def", "STAT")]
    yield STORE, [(name, kind_of(name), "", text) for _, name, text in rows(ROOT / "engine/store_stat.def", "STORE_STAT")]
    per_table = "[keyspace table_name]"
    ledger = ROOT / "metering/ledger"
    aws = [(prometheus(name, "_total"), "counter", per_table, f"{name} ({unit}): {what}") for _, _, name, unit, what in rows(ledger / "figure.def", "FIGURE") if name]
    aws += [(prometheus(name, "_total"), "counter", f"operation {per_table}", f"{name} ({unit}): {what}")
            for _, _, name, unit, what in rows(ledger / "operation_figure.def", "OPERATION_FIGURE") if name]
    aws += [(prometheus(name, ""), "gauge", per_table if each == "true" else "", f"{name} ({unit}): {what}")
            for _, name, unit, each, what in rows(ROOT / "server/gauge.def", "GAUGE")]
    yield AWS, aws


def page():
    return "\n".join([HEAD] + [section + lines(found) for section, found in families()])


def main():
    return publish(PAGE, page(), "metrics.py")


if __name__ == "__main__":
    sys.exit(main())
