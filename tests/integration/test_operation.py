"""What an operator does: looks at the settings, runs the server under systemd, installs it."""
import os
import socket
import subprocess

from tally_server import ROOT, TALLYD, Server


def run(*flags, **env):
    return subprocess.run([str(TALLYD), *map(str, flags)], capture_output=True, text=True, timeout=30, env={**os.environ, **env})


def test_settings_are_checked_without_a_start(tmp_path):
    folder = tmp_path / "data"
    sound = run("--check-config", "--data-dir", folder, "--port", "0")
    assert (sound.returncode, sound.stdout) == (0, "tallyd: the settings are sound\n")
    bad = run("--check-config", "--data-dir", folder, "--port", "99999")
    assert bad.returncode == 2 and "--port must be a number from 0 to 65535, not '99999'" in bad.stderr
    assert not folder.exists()


def test_printed_settings_read_back_the_same(tmp_path):
    first = run("--print-config", "--cluster-name", "it's: #1", "--mode", "cassandra", TALLY_RACK="r 7")
    assert first.returncode == 0 and "cluster-name: 'it''s: #1'" in first.stdout and "rack: 'r 7'" in first.stdout
    file = tmp_path / "tally.yaml"
    file.write_text(first.stdout)
    assert run("--print-config", "--config", file).stdout == first.stdout
    file.write_text(first.stdout.replace("cluster-name", "cluster-nam"))
    unknown = run("--print-config", "--config", file)
    assert unknown.returncode == 2 and "cluster-nam" in unknown.stderr


def test_systemd_is_told_when_the_server_is_ready_and_when_it_stops(tmp_path, monkeypatch):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        s = Server(tmp_path).start()
        assert listener.recv(100) == b"READY=1"
        s.stop()
        assert listener.recv(100) == b"STOPPING=1"


def test_it_installs_what_it_needs(tmp_path):
    preset = TALLYD.parents[1]
    subprocess.run(["cmake", "--install", str(preset), "--prefix", str(tmp_path / "usr")], check=True, capture_output=True, timeout=60)
    version = subprocess.run([tmp_path / "usr/bin/tallyd", "--version"], capture_output=True, text=True, timeout=30).stdout
    assert version == run("--version").stdout and version.startswith("tallyd 0.")
    assert (tmp_path / "usr/bin/tally").exists()
    unit = (tmp_path / "usr/lib/systemd/system/tallyd.service").read_text()
    assert "Type=notify" in unit and "DynamicUser=yes" in unit
    for name in ("README.md", "LICENSE", "docs/metering.md"):
        assert list((tmp_path / "usr").rglob(name)), name
    assert ROOT.joinpath("LICENSE").read_text().lstrip().startswith("Apache License")
