"""Reads refusals.txt: what it holds is explained at its head."""
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("refusals.txt")


# Rules whose cases need more than a statement: tests of test_refusals.py, by rule.
ELSEWHERE = {
    "range-delete": "test_a_range_deletion_of_more_than_a_thousand_rows",
    "keyspaces-quota": "test_keyspaces_and_tables_are_256",
    "tables-quota": "test_keyspaces_and_tables_are_256",
    "concurrent-ddl": "test_fifty_changes_of_the_schema_at_once",
    "concurrent-restores": "test_four_restores_at_once",
    "capacity-mode-switch": "test_provisioned_to_on_demand_once_in_24_hours",
    "capacity-decreases": "test_decreases_of_capacity_in_a_day",
    "types-quota": "test_quotas_of_user_types_are_settings",
    "type-depth": "test_quotas_of_user_types_are_settings",
    "region-timestamps": "test_a_region_is_added_to_tables_with_client_side_timestamps",
    "region-removal": "test_no_region_is_taken_out_of_a_keyspace",
    "account-capacity": "test_all_tables_together_are_provisioned_with_80_000_units",
}


@dataclass
class Case:
    rule: str
    line: int
    table: str = ""
    given: list = field(default_factory=list)
    level: str = "LOCAL_QUORUM"
    prepare: bool = False
    refused: str = ""
    code: int = 0
    words: str = ""
    after: list = field(default_factory=list)

    def __str__(self):
        return f"{self.rule}:{self.line}"


def now_us(seconds):
    """A write time so many seconds from now."""
    return int((time.time() + seconds) * 1000000)


def expand(text):
    """What stands between « and » is an expression of Python, and is replaced by its value."""
    return re.sub("«(.*?)»", lambda m: str(eval(m[1])), text)  # pylint: disable=eval-used


def take(case, word, rest):
    if word == "table":
        case.table = expand(rest)
    elif word == "given":
        case.given.append(expand(rest))
    elif word == "at":
        case.level = rest
    elif word == "prepare":
        case.prepare = True
    elif word == "refused":
        case.refused = expand(rest)
    elif word == "says":
        code, case.words = expand(rest).split(" ", 1)
        case.code = int(code, 16)
    elif word == "after":
        case.after.append(expand(rest).split(" -> "))
    else:
        raise ValueError(f"{FILE.name}:{case.line}: what is {word}?")


def cases():
    found = []
    for number, line in enumerate(FILE.read_text(encoding="utf-8").splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "rule":
            found.append(Case(rest, number))
        else:
            take(found[-1], word, rest)
    return found


def rules_rows():
    """(name, what is refused, words) of the rules of keyspaces/refusal.def."""
    text = (ROOT / "keyspaces" / "refusal.def").read_text(encoding="utf-8")
    string = r'"((?:[^"\\]|\\.)*)"'
    found = re.findall(rf"^REFUSAL\(\w+, {string},\s*((?:{string}\s*)+),\s*{string}", text, re.M)
    return [(row[0], row[1], row[-1].replace('\\"', '"')) for row in found]


def rules():
    """Names of the rules."""
    return [row[0] for row in rules_rows()]
