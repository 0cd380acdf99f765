"""Programs of other languages, and Python ones with libraries of their own, that tests run: made in build/ by the language's tools, and again when their sources change.

Run as a script it makes all of them: tools/test.sh does so beside the first steps, for what they download takes a while.
It is run by the Python of build/venv. Modules are compiled when they are first imported, for most never are.
"""
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
DRIVERS = BUILD / "drivers"


class ToolchainMissing(Exception):
    """This machine has not what the program is made with."""


class Npm:
    tools = ("node", "npm")

    def __init__(self, script):
        self.script = script

    def commands(self, folder):
        return [["npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefer-offline"]]

    def run(self, folder):
        return ["node", folder / self.script]


class Go:
    tools = ("go",)

    def commands(self, folder):
        return [["go", "build", "-o", "program", "."]]

    def run(self, folder):
        return [folder / "program"]


BRIEF = "-XX:TieredStopAtLevel=1"  # a JVM that runs for seconds takes half the processor time without its second compiler


def maven(*arguments):
    return ["env", f"MAVEN_OPTS={BRIEF}", "mvn", "-B", *arguments]


class Maven:
    tools = ("mvn", "java")

    def __init__(self, main, *flags, properties=()):
        self.main, self.flags, self.properties = main, flags, properties

    def commands(self, folder):
        return [maven("-q", "package", *self.flags)]

    def run(self, folder):
        return ["java", *self.properties, "-cp", f"{folder}/target/classes:{folder}/target/lib/*", self.main]


class MavenTests:
    """A project whose tests Maven runs."""
    tools = ("mvn", "java")

    def commands(self, folder):
        # runs no test, but downloads what `mvn test` needs
        return [maven("-q", "test", "-Dtest=None", "-Dsurefire.failIfNoSpecifiedTests=false")]

    def run(self, folder):
        return maven("-f", folder / "pom.xml", "test")


class Cargo:
    tools = ("cargo",)

    def __init__(self, name):
        self.name = name

    def commands(self, folder):
        return [["cargo", "build", "--locked", "--quiet"]]

    def run(self, folder):
        return [folder / "target" / "debug" / self.name]


class Python:
    """With libraries of its own, in a venv of requirements-<venv>.txt."""
    tools = ()

    def __init__(self, venv, script):
        self.venv, self.script = venv, script

    def commands(self, folder):
        return []

    def run(self, folder):
        return [venv_program(self.venv, "python"), folder / self.script]


# The Java driver waits for a busy server, but neither a second after each DDL statement nor four to close a session.
JAVA_DRIVER = [f"-Ddatastax-java-driver.{name}={value}" for name, value in {
    "basic.request.timeout": "2 minutes", "advanced.control-connection.timeout": "2 minutes",
    "advanced.connection.init-query-timeout": "2 minutes", "advanced.metadata.schema.debouncer.window": "1 millisecond",
    "advanced.netty.io-group.shutdown.quiet-period": "0", "advanced.netty.admin-group.shutdown.quiet-period": "0"}.items()]
AT_LOCAL_QUORUM = "-Ddatastax-java-driver.basic.request.consistency=LOCAL_QUORUM"


def java_driver(group, version):
    """With a keyspace of its own: several run on one server."""
    return "java", Maven("tally.DriverTest", f"-Ddriver.group={group}", f"-Ddriver.version={version}",
                         properties=[BRIEF, *JAVA_DRIVER, f"-Dkeyspace=java_{version.replace('.', '_')}"])


# name: (folder here, how it is made)
PROGRAMS = {
    "node": ("node", Npm("driver_test.js")),
    "page": ("page", Npm("node_modules/axe-core/axe.min.js")),
    "go": ("go", Go()),
    "rust": ("rust", Cargo("rust-driver-test")),
    "cpp": ("cpp", Python("cpp", "driver.py")),
    "langchain": ("langchain", Python("langchain", "stores.py")),
    # 4.13.0, which the SigV4 plugin depends on, ships a native-protocol that reads the payload before the warnings; so do all up to 4.19.0
    "java-4.19.3": java_driver("org.apache.cassandra", "4.19.3"),
    "java-4.13.0": java_driver("com.datastax.oss", "4.13.0"),
    "api-go": ("api/go", Go()),
    "api-node": ("api/node", Npm("api_test.js")),
    "api-java": ("api/java", Maven("tally.ApiTest", properties=[BRIEF])),
    "schema-tools": ("java_clients/schema", Maven("tally.SchemaTools", properties=[BRIEF, *JAVA_DRIVER, AT_LOCAL_QUORUM])),
    "dsbulk": ("java_clients/dsbulk", Maven("tally.BulkLoads", properties=[BRIEF])),
    "spring-boot": ("../../tools/package/examples/spring-boot", MavenTests()),
    "sigv4-python": ("sigv4/python", Python("cqlsh-expansion", "login.py")),
    "sigv4-go": ("sigv4/go", Go()),
    "sigv4-node": ("sigv4/node", Npm("login.js")),
    "sigv4-java": ("sigv4/java", Maven("tally.Login", properties=[BRIEF, *JAVA_DRIVER])),
}

# Environments whose programs tests run as their packages install them.
VENVS = ("awscli", "keyspaces-mcp")


@contextlib.contextmanager
def made_once(folder, stamp):
    """Yields whether what is in the folder is still to be made; nobody else makes it at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / "made-of"
        fresh = mark.exists() and mark.read_text() == stamp
        yield not fresh
        mark.write_text(stamp)


def run(*command, cwd=None):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def sources_of(folder):
    """What the toolchains may leave there is none."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and not {"node_modules", "target"} & set(p.relative_to(folder).parts))


def program(name):
    """The command that runs it; ToolchainMissing: it cannot be made here."""
    source, how = HERE / PROGRAMS[name][0], PROGRAMS[name][1]
    missing = [t for t in how.tools if shutil.which(t) is None]
    if missing:
        raise ToolchainMissing(f"no {', '.join(missing)} on this machine")
    folder = DRIVERS / name
    commands = [[str(c) for c in command] for command in how.commands(folder)]
    stamp = hashlib.sha256(repr((commands, [(str(p.relative_to(source)), p.read_bytes()) for p in sources_of(source)])).encode()).hexdigest()
    with made_once(folder, stamp) as to_make:
        if to_make:
            for p in sources_of(source):  # made in build/, so that what the toolchains leave beside them stays out of the tree
                target = folder / p.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(p, target)
            for command in commands:
                run(*command, cwd=folder)
    return how.run(folder)


def venv_program(name, program_name):
    """The path of a program (or of python) in the venv of that name."""
    venv, requirements = BUILD / f"venv-{name}", HERE / f"requirements-{name}.txt"
    with made_once(venv, requirements.read_text()) as to_make:
        if to_make:
            shutil.rmtree(venv, ignore_errors=True)
            run(sys.executable, "-m", "venv", "--without-pip", venv)  # the pip of build/venv installs into all of them
            run(sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "-q", "--no-compile", "--disable-pip-version-check", "-r", requirements)
    return venv / "bin" / program_name


@contextlib.contextmanager
def one_installs():
    """Debian's tools refuse to run beside each other."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "packages.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def chromium():
    """The path of a browser; Debian's is installed when there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if not any(map(shutil.which, names)):
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        with one_installs():
            run(*as_root, "apt-get", "update", "-qq")
            run(*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core")
    return next(filter(None, map(shutil.which, names)))


def ceph():
    """What tests/rados/cluster.py needs; Debian's packages are installed when they are missing."""
    with one_installs():
        run(sys.executable, HERE.parent / "rados" / "cluster.py", "install")


class Conversation:
    """A program that is running: it answers in JSON, a line at a time. Without an answer for two minutes it is killed."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"})
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        patience = threading.Timer(120, self.process.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        assert line, f"{self.process.args[0]} ended with {self.process.wait()}: {self.said_of_errors()}"
        return json.loads(line)

    def said_of_errors(self):
        self.reader.join(timeout=300)
        return "".join(self.errors)[-3000:]

    def end(self):
        """It has nothing more to say, and ends well."""
        rest, _ = self.process.communicate(timeout=300)
        assert (self.process.returncode, rest) == (0, ""), rest + self.said_of_errors()


def main():
    os.nice(10)
    things = {"chromium": chromium, "ceph": ceph, **{name: functools.partial(venv_program, name, "python") for name in VENVS},
              **{name: functools.partial(program, name) for name in PROGRAMS}}
    for name, make in things.items():
        try:
            make()
            print("made", name, flush=True)
        except (ToolchainMissing, RuntimeError, subprocess.TimeoutExpired) as e:  # the test of it tries again, and says so
            print("not made:", name, e, flush=True)


if __name__ == "__main__":
    main()
