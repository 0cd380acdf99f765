"""Help, man pages and completion of tally and tallyd: made of the same tables as what the programs take, and installed."""
import re
import shlex
import shutil
import subprocess

import pytest

from tally_server import ROOT, TALLYD

TALLY = TALLYD.parent / "tally"
SUBCOMMANDS = [" ".join(m) .strip() for m in re.findall(r"^SUBCOMMAND(?:_OF)?\((\w+),(?: (\w+),)? \"", (ROOT / "tools" / "tally" / "subcommand.def").read_text(), re.M)]
OPTIONS = re.findall(r'^OPTION\(\w+, "([^"]+)"', (ROOT / "server" / "config.def").read_text(), re.M)
EXAMPLES = re.findall(r'^EXAMPLE\((\w+), "((?:[^"\\]|\\.)*)"', (ROOT / "tools" / "tally" / "example.def").read_text(), re.M)
INSTALLED = {"man": "share/man/man{section}/{program}.{section}", "bash": "share/bash-completion/completions/{program}",
             "zsh": "share/zsh/site-functions/_{program}", "fish": "share/fish/vendor_completions.d/{program}.fish"}

SECTIONS = {"tally": 1, "tallyd": 8}


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **options)


def flags_of(subcommand):
    """As its --help names them."""
    return set(re.findall(r"^  --([a-z0-9-]+)", run(TALLY, *subcommand.split(), "--help").stdout, re.M)) - {"help"}


def made(program):
    """The man page and completions that the build made."""
    files = {"man": f"{program}.{SECTIONS[program]}", "bash": f"{program}.bash", "zsh": f"_{program}", "fish": f"{program}.fish"}
    return {form: (TALLYD.parents[1] / "share" / name).read_text() for form, name in files.items()}


def completed(program, *words):
    """What bash offers for the last of the words."""
    script = made(program)["bash"]
    line = " ".join(shlex.quote(w) for w in (program, *words))
    ask = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _{program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = run("bash", "-c", ask)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return set(done.stdout.split())


def test_every_subcommand_has_help_with_examples_that_use_its_flags():
    overview = run(TALLY, "--help").stdout
    for s in SUBCOMMANDS:
        text = run(TALLY, *s.split(), "--help")
        assert text.returncode == 0 and f"usage: tally {s} " in text.stdout, s
        assert s == "cql" or "json" in flags_of(s), s  # what cql prints is what cqlsh prints
        assert re.search(rf"^  {s} +\w", overview, re.M), s
        examples = [line for name, line in EXAMPLES if name.replace("_", " ") == s]
        assert examples, f"{s} has no example"
        for line in examples:
            line = line.replace('\\"', '"')
            assert line in text.stdout and line.startswith(f"tally {s} ")
            assert {m for m in re.findall(r" --([a-z0-9-]+)", line)} <= flags_of(s), line


def test_the_man_page_and_each_completion_name_every_subcommand_and_flag():
    pages = made("tally")
    for s in SUBCOMMANDS:
        for flag in flags_of(s):
            assert "\\-\\-" + flag.replace("-", "\\-") in pages["man"].split(f".SS tally {s}\n")[1].split(".SS ")[0], (s, flag)
            assert f"--{flag} " in pages["bash"].split(f"'{s}')")[1].split("case")[0].replace('"', " "), (s, flag)
            assert f"'--{flag}" in pages["zsh"].split(f"'{s}')")[1].split(";;")[0], (s, flag)
            condition = "; and ".join(f"__fish_seen_subcommand_from {w}" for w in s.split())
            assert f"-n '{condition}' -l {flag} " in pages["fish"], (s, flag)
    pages = made("tallyd")
    for flag in OPTIONS:
        assert "\\-\\-" + flag.replace("-", "\\-") in pages["man"] and f"--{flag}) " in pages["bash"], flag
        assert f"'--{flag}=[" in pages["zsh"] and f"complete -c tallyd -l {flag} " in pages["fish"], flag


def test_the_servers_help_shows_common_settings_and_help_all_every_one_in_groups():
    def shown(*arguments):
        return re.findall(r"^  --([a-z0-9-]+)", run(TALLYD, *arguments).stdout, re.M)

    own = ["check-config", "print-config", "version", "help"]
    source = (ROOT / "server" / "config.def").read_text()
    common = re.findall(r'^OPTION\(\w+, "([^"]+)".*?, COMMON,', source, re.M)
    assert shown("--help") == shown("-h") == common + own and 8 <= len(common) <= 14
    assert shown("--help", "all") == shown("--help=all") == OPTIONS + own
    assert f"lists the other {len(OPTIONS) - len(common)}" in run(TALLYD, "--help").stdout
    every = run(TALLYD, "--help", "all").stdout
    groups = re.findall(r'^GROUP\("(.*)"\)$', source, re.M)
    assert [every.index(f"\n{g}:\n") for g in groups] == sorted(every.index(f"\n{g}:\n") for g in groups) and len(groups) > 5
    assert all(f".SS {g}\n" in made("tallyd")["man"] for g in groups)


def test_bash_completes_subcommands_flags_and_values(tmp_path):
    assert {s.split()[0] for s in SUBCOMMANDS} <= completed("tally", "")
    assert completed("tally", "ex") == {"explain"}
    for s in SUBCOMMANDS:
        assert completed("tally", *s.split(), "--") == {f"--{f}" for f in flags_of(s)} | {"--help"}, s
        if " " in s:
            assert s.split()[1] in completed("tally", s.split()[0], "")
    assert completed("tally", "explain", "--size-model", "") == {"documented-2022", "current"}
    assert completed("tally", "explain", "--json", "--size-model", "=", "cur") == {"current"}
    assert completed("tallyd", "--limits", "s") == {"shadow"}
    (tmp_path / "app.cql").touch()
    assert completed("tally", "check", "--file", f"{tmp_path}/a") == {f"{tmp_path}/app.cql"}
    assert {f"--{o}" for o in OPTIONS} | {"--check-config"} <= completed("tallyd", "--")


def test_man_pages_and_completions_are_installed(tmp_path):
    subprocess.run(["cmake", "--install", str(TALLYD.parents[1]), "--prefix", str(tmp_path)], check=True, capture_output=True, timeout=300)
    for program, section in SECTIONS.items():
        for form, path in INSTALLED.items():
            file = tmp_path / path.format(program=program, section=section)
            assert file.read_text() == made(program)[form], file
        page = tmp_path / INSTALLED["man"].format(program=program, section=section)
        assert page.read_text().startswith(f".TH {program} {section} ")
        if shutil.which("groff"):
            formatted = run("groff", "-man", "-ww", "-Tutf8", page)
            assert formatted.returncode == 0 and not formatted.stderr and program in formatted.stdout
        for shell in ("zsh", "fish"):
            if shutil.which(shell):
                assert run(shell, "-n", tmp_path / INSTALLED[shell].format(program=program)).returncode == 0


def test_the_version_names_the_commit():
    """The one that is checked out, and the same in both programs; sources without a history name none."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    commit = asked.stdout.strip() if asked.returncode == 0 else "no commit"
    version = re.search(r"^project\(tally VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    for program in (TALLY, TALLYD):
        assert re.fullmatch(rf"{program.name} {re.escape(version)} \({commit}\), RocksDB \d+\.\d+\.\d+\n", run(program, "--version").stdout)


@pytest.mark.parametrize("arguments, code", [
    (["--help"], 0), (["--version"], 0), ([], 2), (["nosuch"], 2), (["explain"], 2), (["explain", "--nosuch"], 2), (["explain", "--statement", "SELEC"], 1),
    (["check", "--file", "nowhere.cql"], 2), (["gate", "--file", "nowhere.cql"], 2), (["restore", "--from", "nowhere", "--list"], 1),
])
def test_exit_codes(arguments, code, tmp_path):
    done = run(TALLY, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    if arguments and not arguments[0].startswith("-") and code:
        asked = run(TALLY, *arguments, "--json", cwd=tmp_path)
        assert asked.returncode == code
