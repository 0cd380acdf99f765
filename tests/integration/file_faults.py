"""A server whose files fail when a test says so, and what a power cut would leave of them (tests/fault/faulty_files.c)."""
import bisect
import errno
import mmap
import os
import struct
import subprocess

from tally_server import PRESET, ROOT, TALLYD, Server, let_pass

CALLS = ("write", "sync", "open", "rename", "read")


def build_library(folder):
    path = folder / "faulty_files.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(path), str(ROOT / "tests" / "fault" / "faulty_files.c"), "-ldl"], check=True)
    return path


class FaultyServer(Server):
    """start(faulty=False) starts it on ordinary files."""

    def __init__(self, folder, library, *flags):
        super().__init__(folder, *flags)
        self.state = self.folder / "faults"
        (self.state / "grave").mkdir(parents=True)
        (self.state / "control").write_bytes(bytes(32 * len(CALLS)))
        with open(self.state / "control", "r+b") as f:
            self.control = mmap.mmap(f.fileno(), 32 * len(CALLS))
        wrapper = self.folder / "tallyd"
        # the runtime of AddressSanitizer must be the first of all libraries
        first = f"{subprocess.run(['cc', '-print-file-name=libasan.so'], check=True, capture_output=True, text=True).stdout.strip()} " if PRESET == "asan" else ""
        wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD="{first}{library}" FAULTY_FILES_FOLDER="{self.folder / "data"}" FAULTY_FILES_STATE="{self.state}" exec "{TALLYD}" "$@"\n')
        wrapper.chmod(0o755)
        self.wrapper = wrapper

    def start(self, faulty=True):
        self.binary = self.wrapper if faulty else TALLYD
        return super().start()

    def _begin(self):
        """A process that another thread has begun holds the wrapper open for writing until it runs a program of its own."""
        for _ in range(100):
            try:
                return super()._begin()
            except OSError as e:
                if e.errno != errno.ETXTBSY:
                    raise
                let_pass(0.02)
        raise AssertionError(f"{self.wrapper} is busy for ever")

    def _slot(self, call):
        return 32 * CALLS.index(call)

    def calls(self, call):
        return struct.unpack_from("=q", self.control, self._slot(call))[0]

    def fail(self, call, nth, times, error):
        """The n-th call from now fails, and those behind it, so many in all."""
        at = self._slot(call)
        struct.pack_into("=q", self.control, at + 8, 0)
        struct.pack_into("=qq", self.control, at + 16, times, error)
        struct.pack_into("=q", self.control, at + 8, self.calls(call) + nth)

    def heal(self):
        for call in CALLS:
            struct.pack_into("=q", self.control, self._slot(call) + 8, 0)

    def failed(self, call):
        """How many have failed of those that were to."""
        at = self._slot(call)
        seen, first, times, _ = struct.unpack_from("=qqqq", self.control, at)
        return max(0, min(seen - first + 1, times)) if first else 0


class Disk:
    """What a power cut leaves at any moment of a run that began with an empty folder: names that their folder was synced with, and of each file what was synced.
    With luck (a random.Random) some of the rest has reached the disk, too, in any order."""

    def __init__(self, server):
        self.folder, self.state = server.folder / "data", server.state
        lines = (self.state / "journal").read_text().splitlines()
        self.records = [line.split(" ") for line in lines]
        self.times = [int(r[0]) for r in self.records]
        self.content = {}
        for root in (self.folder, self.state / "grave"):
            for folder, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(folder, name)
                    self.content.setdefault(os.lstat(path).st_ino, path)

    def moment(self, index):
        """Of the record, in seconds of the monotonic clock."""
        return self.times[index] / 1e6

    def first_after(self, moment):
        return bisect.bisect_left(self.times, moment * 1e6)

    def build(self, index, to, luck=None):
        """The folder as the power cut behind the record leaves it. Returns how many sectors are missing in front of others of their file that are there."""
        tree = Tree()
        for _, what, inode, *rest in self.records[:index + 1]:
            tree.follow(what, inode, rest)
        names = tree.now if luck and luck.random() < 0.5 else tree.durable  # a file system brings names to the disk in order
        return self._write(tree, names, ".", to, luck)

    def _write(self, tree, names, folder, to, luck):
        os.makedirs(to, mode=0o700, exist_ok=True)
        holes = 0
        for name, node in names[folder].items():
            path = os.path.join(to, name)
            if node in tree.durable:
                holes += self._write(tree, names, node, path, luck)
                continue
            size, source = tree.synced.get(node, 0), self.content.get(int(node))
            written = max(size, tree.written.get(node, 0)) if luck else size
            content = bytearray()
            if source and written:
                with open(source, "rb") as f:
                    content = bytearray(f.read(written))
            holes += tear(content, size, luck) if luck else 0
            with open(path, "wb") as out:
                out.write(content)
        return holes


def tear(content, synced, luck):
    """Some sectors of what was not synced are as they were before, zeros; or the end is missing. Returns how many of them are holes."""
    sector, kept, at, gone, holes = luck.choice((512, 4096)), luck.choice((0.2, 0.5, 0.9)), synced, 0, 0
    if luck.random() < 0.25:
        del content[luck.randint(min(synced, len(content)), len(content)):]
    while at < len(content):
        end = min(len(content), (at // sector + 1) * sector)
        if luck.random() < kept:
            holes += gone
            gone = 0
        else:
            content[at:end] = bytes(end - at)
            gone += 1
        at = end
    return holes


class Tree:
    """Folders by a number of their own, for the inode of one that is gone may be given anew; files by their inodes, which the grave keeps."""

    def __init__(self):
        self.now, self.durable = {".": {}}, {".": {}}  # folder: {name: file or folder}
        self.synced, self.written = {}, {}  # sizes
        self.folders = {}  # inode: number

    def _place(self, path):
        """The folder that a path stands in, and its name there."""
        *above, name = path.split("/")
        folder = "."
        for part in above:
            folder = self.now[folder][part]
        return self.now[folder], name

    def _folder(self, path):
        folder = "."
        for part in path.split("/") if path != "." else []:
            folder = self.now[folder][part]
        return folder

    def follow(self, what, inode, rest):
        if what == "M":
            number = f"folder {len(self.durable)}"
            self.folders[inode] = number
            self.now[number], self.durable[number] = {}, {}
            folder, name = self._place(rest[0])
            folder[name] = number
        elif what == "C":
            self.folders.pop(inode, None)
            folder, name = self._place(rest[0])
            folder[name] = inode
        elif what == "S":
            self.synced[inode] = max(int(rest[0]), self.synced.get(inode, 0))
            if rest[-1] != "(deleted)":  # it may have been made where the library does not look
                folder, name = self._place(rest[1])
                folder[name] = inode
        elif what == "W":
            self.written[inode] = max(int(rest[0]), self.written.get(inode, 0))
        elif what == "T":
            self.synced[inode] = min(int(rest[0]), self.synced.get(inode, 0))
            self.written[inode] = int(rest[0])
        elif what == "R":
            folder, name = self._place(rest[0])
            folder.pop(name, None)
            folder, name = self._place(rest[1])
            folder[name] = self.folders.get(inode, inode)
        elif what == "U":
            folder, name = self._place(rest[0])
            folder.pop(name, None)
        elif what == "D":
            folder = self._folder(rest[0])
            self.durable[folder] = dict(self.now[folder])

