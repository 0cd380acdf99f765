"""cqlsh in a terminal, typed at as a person would."""
import os
import re
import signal

import pexpect

COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
PROMPT = r"cqlsh(:\w+)?> "
MORE = "---MORE---"


class Shell:
    def __init__(self, program, server, home, *arguments):
        env = {**os.environ, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8", "PAGER": "cat", "AWS_EC2_METADATA_DISABLED": "true"}
        env.pop("PYTHONPATH", None)
        self.child = pexpect.spawn(str(program), [server.host, str(server.port), "--connect-timeout=300", "--request-timeout=300", *arguments],
                                   env=env, cwd=str(home), encoding="utf-8", timeout=300, dimensions=(50, 250))
        self.greeting = self.read()

    def read(self, until=PROMPT):
        """What is printed until the prompt comes back."""
        self.child.expect(until)
        return COLOURS.sub("", self.child.before)

    def do(self, line, until=PROMPT):
        """Types a line and returns what it prints."""
        self.child.sendline(line)
        out = self.read(until)
        return out.split("\n", 1)[1] if line in out.split("\n", 1)[0] and "\n" in out else out

    def complete(self, text, *words, tabs=1):
        """Types a text and TAB, and waits until the words are shown; then gives the line up."""
        self.child.send(text + "\t" * tabs)
        shown = ""
        while not all(word in COLOURS.sub("", shown) for word in words):
            shown += self.child.read_nonblocking(4096, timeout=300)
        self.child.send("\x15")  # Control-U takes the line away; a Control-C may be lost in the completion
        self.child.sendline("SHOW HOST")  # the list of words may have been followed by a prompt, too
        self.child.expect("Connected to")
        self.read()

    def leave(self):
        self.child.sendline("EXIT")
        self.child.expect(pexpect.EOF)
        self.child.wait()
        self.child.close()
        return self.child.exitstatus

    def close(self):
        """Ends it, in whatever state it is, and waits for its end: pexpect itself waits a tenth of a second after each signal."""
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
            self.child.wait()
        self.child.close()
