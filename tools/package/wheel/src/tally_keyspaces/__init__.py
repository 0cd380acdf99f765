"""Tally, a local server that behaves like Amazon Keyspaces, for tests."""
from .client import charge, wait_active
from .server import Server, StartError

__all__ = ["Server", "StartError", "charge", "wait_active"]
