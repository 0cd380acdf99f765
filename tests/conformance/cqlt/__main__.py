"""cqlt: records what Apache Cassandra answers to the cases of tests/conformance, and replays them on Tally.

  cqlt record [--host H --port P] [FILE ...]     rewrites the outcomes in place; starts Cassandra itself without --port
  cqlt replay [--host H --port P | --server tallyd] [--mode keyspaces|cassandra] [FILE ...]
"""
import argparse
import contextlib
import difflib
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "integration")]

from casefile import BadCase, CaseFile                # noqa: E402
from ddl_words import is_service_form                 # noqa: E402
from render import same_answer                        # noqa: E402
from runner import Target, run_all                    # noqa: E402
from tally_server import Server                       # noqa: E402

ORACLE = HERE.parent / "cassandra.sh"


def arguments():
    p = argparse.ArgumentParser(prog="cqlt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="command", required=True)
    for name in ("record", "replay"):
        s = sub.add_parser(name)
        s.add_argument("--host", default="127.0.0.1")
        s.add_argument("--port", type=int)
        s.add_argument("--jobs", type=int, default=4)
        s.add_argument("--case", help="only cases whose name contains this")
        s.add_argument("files", nargs="*", type=pathlib.Path)
        if name == "replay":
            s.add_argument("--server", type=pathlib.Path, help="start this tallyd on a scratch folder")
            s.add_argument("--mode", choices=("keyspaces", "cassandra"), default="keyspaces")
            s.add_argument("--flags", type=shlex.split, default=[], help="more flags of that server, as one text")
    return p.parse_args()


@contextlib.contextmanager
def oracle(args):
    if args.port:
        yield args.host, args.port
        return
    out = subprocess.run([ORACLE, "start"], check=True, stdout=subprocess.PIPE, text=True).stdout
    try:
        yield "127.0.0.1", int(out.split()[-1])
    finally:
        subprocess.run([ORACLE, "stop"], check=True)


@contextlib.contextmanager
def tally(args):
    if args.port:
        yield args.host, args.port
        return
    with tempfile.TemporaryDirectory(prefix="tally-conformance-") as folder:
        flags = ("--mode", args.mode, "--ddl-delay", "none", "--protocol", "5")  # cases of v5 run in both modes
        server = Server(folder, *flags, *args.flags, binary=args.server).start()
        try:
            yield server.host, server.port
        finally:
            if server.alive():
                server.stop()
            else:
                print(f"tallyd died; the end of its log:\n{server.log_tail()}")


def record(args, files):
    failed = count = 0
    with oracle(args) as (host, port):
        for _, case, run, error in run_all(Target(host, port), files, args.jobs, wanted(args)):
            for statement, lines in run.results:
                statement.outcome = lines
            count += len(run.results)
            if error:
                failed += 1
                print(f"{case.name}: not recorded: {error}", file=sys.stderr)
    for f in files:
        f.write()
    print(f"{count} statements recorded, {failed} cases failed")
    return 1 if failed or not count else 0


def wanted(args):
    mode = getattr(args, "mode", None)
    return lambda case: (not args.case or args.case in case.name) and (mode is None or mode in case.modes)


def explain(path, case, statement, expected, got):
    print(f"{path.name}:{statement.line}: {case.name}")
    for line in statement.head:
        print("    " + line)
    for line in list(difflib.unified_diff(expected, got, "expected", "got", lineterm="", n=99))[3:]:
        print("  " + line)
    print()


def alike(expected, got):
    return len(expected) == len(got) and all(same_answer(a, b) for a, b in zip(expected, got))


def replay(args, files):
    passed = failed = reworded = 0
    start = time.monotonic()
    with tally(args) as (host, port):
        target = Target(host, port, asynchronous=args.mode == "keyspaces")
        for f, case, run, error in run_all(target, files, args.jobs, wanted(args)):
            for statement, got in run.results:
                expected = statement.expected(args.mode)
                if alike(expected, got) or (args.mode == "keyspaces" and is_service_form(expected, got)):
                    passed += 1
                    reworded += got != expected
                else:
                    failed += 1
                    explain(f.path, case, statement, expected, got)
            missing = len(case.statements()) - len(run.results)
            if error:
                failed += max(missing, 1)
                print(f"{f.path.name}:{case.line}: {case.name}: {missing} statements without an answer: {error}\n")
    print(f"syntax errors in other words than Cassandra's: {reworded}")
    print(f"conformance, {args.mode} mode, {time.monotonic() - start:.1f} s: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    args = arguments()
    paths = args.files or sorted((HERE.parent / "cases").glob("*.cqlt"))
    if args.command == "replay" and not (args.port or args.server):
        sys.exit("cqlt replay: give --port of a running server or --server with the path of tallyd")
    try:
        files = [CaseFile(p) for p in paths]
    except (BadCase, OSError) as e:
        sys.exit(str(e))
    return record(args, files) if args.command == "record" else replay(args, files)


if __name__ == "__main__":
    sys.exit(main())
