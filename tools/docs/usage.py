#!/usr/bin/env python3
"""usage.py PROGRAM DIR: writes a program's man page, and its completion for bash, zsh and fish, into DIR.

The build runs it on tally and tallyd. All is made of what PROGRAM --help=json prints (base/usage.h): the program, then one object a command.
"""
import json
import pathlib
import re
import subprocess
import sys


def read(path):
    done = subprocess.run([path, "--help=json"], capture_output=True, text=True, check=True)
    program, *commands = [json.loads(line) for line in done.stdout.splitlines()]
    return program, commands


def choices(flag):
    """The words of an argument like a|b|c, unlike NAME or KS.TABLE=MODE."""
    words = flag.get("argument", "").split("|")
    return words if len(words) > 1 and not re.search("[A-Z]", flag["argument"]) else []


def is_path(flag):
    return flag.get("argument") in ("FILE", "DIR")


def next_words(commands, command):
    """The words that may follow those of a command: "size" after "capacity", when there is a command "capacity size"."""
    before = f"{command} " if command else ""
    rest = [c["command"].removeprefix(before) for c in commands if c["command"].startswith(before) and c["command"] != command]
    return [w for w in rest if w and " " not in w]


# ---- the manual

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def man(program, commands):
    name, named = program["program"], [c for c in commands if c["command"]]
    yield f'.TH {name} {program["section"]} "" "Tally {program["version"]}" "Tally"'
    yield from (".SH NAME", f"{name} \\- {roff(program['what'])}", ".SH SYNOPSIS")
    if not named:
        yield from (f".B {name}", "[\\-\\-flag value]...")
    for i, c in enumerate(named):
        yield from [".br"] * bool(i) + [f".B {name} {c['command']}", roff(c["arguments"])]
    if "notes" in program:
        yield from (".SH DESCRIPTION", roff(program["notes"]))
    if named:
        yield ".SH COMMANDS"
    for c in commands:
        yield from [f".SS {name} {c['command']}", roff(c["what"])] if c["command"] else [".SH OPTIONS"]
        for f in c["flags"]:
            if "group" in f:
                yield f".SS {roff(f['group'])}"
            argument = f" \\fI{roff(f['argument'])}\\fR" if "argument" in f else ""
            yield from (".TP", f".B \\-\\-{roff(f['name'])}{argument}", roff(f["help"]))
            if f.get("default"):
                yield f"Default: {roff(f['default'])}"
        for i, e in enumerate(c["examples"]):
            yield from [".PP", "Examples:"] * (not i) + [".PP", roff(e["what"]), ".PP", ".RS", ".nf", roff(e["line"]), ".fi", ".RE"]
    yield ".SH EXIT STATUS"
    for e in program["exits"]:
        yield from (".TP", f".B {e['code']}", roff(e["what"]))


# ---- bash: a case of all commands, which sets the words that may follow

BASH_BEGIN = """\
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= values= paths= word i
    [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}
    [ "$current" = = ] && current=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == -* ]] && break
        command="${command:+$command }$word"
    done
    case $command in"""
BASH_END = """\
    esac
    if [ -n "$paths" ]; then COMPREPLY=($(compgen -f -- "$current")); else COMPREPLY=($(compgen -W "$words $values" -- "$current")); fi
}"""


def bash(program, commands):
    name = program["program"]
    yield from (f"# Completion of {name} for bash.", f"_{name}() {{", BASH_BEGIN)
    if commands[0]["command"]:
        yield f"    '') words=\"{' '.join([*next_words(commands, ''), '--help', '--version'])}\" ;;"
    for c in commands:
        follow = next_words(commands, c["command"]) if c["command"] else []
        yield f"    '{c['command']}')"
        yield f"        words=\"{' '.join([*follow, *('--' + f['name'] for f in c['flags']), '--help'])}\""
        yield "        case $before in"
        for f in c["flags"]:
            if "argument" in f:
                then = "paths=1" if is_path(f) else f"words= values=\"{' '.join(choices(f))}\""
                yield f"        --{f['name']}) {then} ;;"
        yield "        esac ;;"
    yield from (BASH_END, f"complete -o filenames -F _{name} {name}")


# ---- zsh

ZSH_BEGIN = """\
    local command= next= i
    for ((i = 2; i < CURRENT; i++)); do
        [[ $words[i] == -* ]] && break
        command="${command:+$command }$words[i]"
    done
    case $command in"""


def zsh_text(text):
    """Text for the '[...]' of a specification."""
    return re.sub(r"[\[\]:\\]", r"\\\g<0>", text).replace("'", "'\\''")


def zsh_flag(f):
    text = f"--{f['name']}{'=' if 'argument' in f else ''}[{zsh_text(f['help'])}]"
    if "argument" in f:
        words = choices(f)
        text += f":{'value' if words else zsh_text(f['argument'])}:" + ("_files" if is_path(f) else f"({' '.join(words)})" if words else "")
    return f"            '{text}' \\"


def zsh(program, commands):
    name = program["program"]
    yield from (f"#compdef {name}", f"# Completion of {name} for zsh.", f"_{name}() {{", ZSH_BEGIN)
    if commands[0]["command"]:
        yield f"    '') compadd -- {' '.join([*next_words(commands, ''), '--help', '--version'])} ;;"
    for c in commands:
        yield f"    '{c['command']}')"
        if c["command"]:
            yield f"        next=\"{' '.join(next_words(commands, c['command']))}\""
            yield "        [[ -n $next && $words[CURRENT] != -* ]] && compadd -- ${=next}"
        yield "        _arguments '*:: :' \\"
        yield from map(zsh_flag, c["flags"])
        yield "            '--help[what it does]' ;;"
    yield from ("    esac", "}", f'_{name} "$@"')


# ---- fish: a line for each flag

def fish_text(text):
    return "'" + re.sub(r"['\\]", r"\\\g<0>", text) + "'"


def fish_seen(command):
    return "'" + "; and ".join(f"__fish_seen_subcommand_from {w}" for w in command.split()) + "'"


def fish(program, commands):
    name = program["program"]
    yield from (f"# Completion of {name} for fish.", f"complete -c {name} -f")
    for c in commands:
        if c["command"]:
            first, _, word = c["command"].rpartition(" ")
            yield f"complete -c {name} -n {fish_seen(first) if first else chr(39) + '__fish_use_subcommand' + chr(39)} -a {word} -d {fish_text(c['what'])}"
    for c in commands:
        for f in c["flags"]:
            when = f"-n {fish_seen(c['command'])} " if c["command"] else ""
            how = "" if "argument" not in f else "-r -F " if is_path(f) else "-x "
            words = f"-a {fish_text(' '.join(choices(f)))} " if choices(f) else ""
            yield f"complete -c {name} {when}-l {f['name']} {how}{words}-d {fish_text(f['help'])}"


def main(path, folder):
    program, commands = read(path)
    name = program["program"]
    for file, form in ((f"{name}.{program['section']}", man), (f"{name}.bash", bash), (f"_{name}", zsh), (f"{name}.fish", fish)):
        (pathlib.Path(folder) / file).write_text("".join(f"{line}\n" for line in form(program, commands)))


if __name__ == "__main__":
    main(*sys.argv[1:])
