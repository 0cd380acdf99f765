"""The programs of the package, and the console scripts that run them."""
import os
import sys
from typing import NoReturn

BIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree", "bin")


def path(name: str) -> str:
    return os.path.join(BIN, name)


def run(name: str) -> NoReturn:
    """Replaces this process, so that signals and the exit status are the program's own."""
    os.execv(path(name), [name, *sys.argv[1:]])


def tallyd() -> NoReturn:
    run("tallyd")


def tally() -> NoReturn:
    run("tally")
