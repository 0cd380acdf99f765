#!/usr/bin/env python3
"""Replays protocol scripts (*.cqlr): bytes in, frames out. No dependencies.

usage: replay.py path/of/tallyd [script.cqlr ...]     starts tallyd on a scratch folder
       replay.py --address HOST:PORT [script.cqlr ...] talks to a running server

A script is a list of cases; each case has a connection of its own, and after it the server must still answer. Lines:

  case TITLE                         begins a case on a new connection
  startup v4 [KEY=VALUE ...]         STARTUP, expects READY; on v5 segments are used from here on
  send OPCODE [v4] [stream=N] [flags=N] [length=N] [PART ...]   an envelope; length=N lies about its length
  raw HEX                            bytes as they are, outside of segments
  segment [PART ...] [bad-header] [bad-payload] [split]         a v5 segment of raw parts; split: not self-contained
  slowly N                           from here on everything is sent in pieces of N bytes
  expect OPCODE [v4] [stream=N] [flags=N] [code=HEX] [text="..."] [has="..."] [kind=N]
                                     events are kept apart: the server pushes them when it likes
  expect closed                      the server ends the connection
  again N LINE                       repeats a send or expect line N times

A PART is byte:N short:N int:N long:N hex:HEX fill:N (N bytes), string:"..." (2-byte length), text:"..." (4-byte length), chars:"...".
"""
import os, re, shlex, signal, socket, struct, subprocess, sys, tempfile, zlib

OPCODES = {'ERROR': 0, 'STARTUP': 1, 'READY': 2, 'AUTHENTICATE': 3, 'OPTIONS': 5, 'SUPPORTED': 6, 'QUERY': 7, 'RESULT': 8, 'PREPARE': 9,
           'EXECUTE': 10, 'REGISTER': 11, 'EVENT': 12, 'BATCH': 13, 'AUTH_CHALLENGE': 14, 'AUTH_RESPONSE': 15, 'AUTH_SUCCESS': 16}
NAMES = {code: name for name, code in OPCODES.items()}
SEGMENT_MAX = (1 << 17) - 1


class Mismatch(Exception):
    pass


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc


def segment(payload, self_contained=True, bad_header=False, bad_payload=False):
    head = (len(payload) | self_contained << 17).to_bytes(3, 'little')
    head += (crc24(head) ^ bad_header).to_bytes(3, 'little')
    return head + payload + (zlib.crc32(b'\xfa\x2d\x55\xca' + payload) ^ bad_payload).to_bytes(4, 'little')


def string(text):
    return struct.pack('>H', len(text.encode())) + text.encode()


def part(word):
    kind, _, value = word.partition(':')
    if kind in ('byte', 'short', 'int', 'long'):
        n = {'byte': 1, 'short': 2, 'int': 4, 'long': 8}[kind]
        return (int(value, 0) % (1 << 8 * n)).to_bytes(n, 'big')
    makers = {'hex': bytes.fromhex, 'fill': lambda v: b'x' * int(v), 'string': string, 'chars': str.encode,
              'text': lambda v: struct.pack('>i', len(v.encode())) + v.encode()}
    if kind not in makers:
        raise SyntaxError(f'unknown part {word}')
    return makers[kind](value)


def lengthened(data, at, n):
    """A length of an LZ4 sequence whose four bits are n, and where it ends: 15 adds a byte, and 255 a further one."""
    more = n == 15
    while more:
        n, more, at = n + data[at], data[at] == 255, at + 1
    return n, at


def copied(out, distance, n):
    for _ in range(n):
        out.append(out[-distance])


def lz4(data):
    """A body of v3 or v4: its length, and one LZ4 block."""
    out, at = bytearray(), 4
    while at < len(data):
        token, at = data[at], at + 1
        n, at = lengthened(data, at, token >> 4)
        out, at = out + data[at:at + n], at + n
        if at < len(data):
            distance, at = int.from_bytes(data[at:at + 2], 'little'), at + 2
            n, at = lengthened(data, at, token & 15)
            copied(out, distance, n + 4)
    return bytes(out)


def snappy(data):
    out, at = bytearray(), next(i for i, byte in enumerate(data) if byte < 128) + 1
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            more = max(0, (tag >> 2) - 59)
            n, at = (int.from_bytes(data[at:at + more], 'little') if more else tag >> 2) + 1, at + more
            out, at = out + data[at:at + n], at + n
        elif tag & 3 == 1:
            copied(out, (tag >> 5) << 8 | data[at], (tag >> 2 & 7) + 4)
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            copied(out, int.from_bytes(data[at:at + width], 'little'), (tag >> 2) + 1)
            at += width
    return bytes(out)


DECOMPRESS = {'lz4': lz4, 'snappy': snappy}


class Connection:
    def __init__(self, address):
        self.sock = socket.create_connection(address, timeout=5)
        self.version, self.framed, self.piece = 4, False, 0
        self.raw, self.plain = b'', b''
        self.compression = None  # what STARTUP asked for
        self.kept = []  # envelopes that came while one of the other kind was expected

    def send(self, data):
        step = self.piece or max(len(data), 1)
        try:
            for at in range(0, len(data), step):
                self.sock.sendall(data[at:at + step])
        except OSError:
            pass  # the server may have closed already, which the next expect finds out

    def send_envelope(self, data):
        if not self.framed:
            self.send(data)
            return
        whole = len(data) <= SEGMENT_MAX
        for at in range(0, len(data), SEGMENT_MAX):
            self.send(segment(data[at:at + SEGMENT_MAX], whole))

    def more(self):
        try:
            data = self.sock.recv(1 << 16)
        except socket.timeout:
            raise Mismatch('no answer within 5 seconds') from None
        except OSError:
            data = b''
        self.raw += data
        return bool(data)

    def unframe(self):
        """Moves whole segments of raw to plain."""
        while self.framed and len(self.raw) >= 6:
            head = int.from_bytes(self.raw[:3], 'little')
            if crc24(self.raw[:3]) != int.from_bytes(self.raw[3:6], 'little'):
                raise Mismatch('bad header checksum from the server')
            n = head & SEGMENT_MAX
            if len(self.raw) < 6 + n + 4:
                return
            payload, crc = self.raw[6:6 + n], int.from_bytes(self.raw[6 + n:10 + n], 'little')
            if zlib.crc32(b'\xfa\x2d\x55\xca' + payload) != crc:
                raise Mismatch('bad payload checksum from the server')
            self.plain, self.raw = self.plain + payload, self.raw[10 + n:]
        if not self.framed:
            self.plain, self.raw = self.plain + self.raw, b''

    def receive(self):
        """One envelope, or None: closed."""
        while True:
            self.unframe()
            if len(self.plain) >= 9:
                version, flags, stream, opcode, n = struct.unpack('>BBhBI', self.plain[:9])
                if len(self.plain) >= 9 + n:
                    body, self.plain = self.plain[9:9 + n], self.plain[9 + n:]
                    body = DECOMPRESS[self.compression](body) if flags & 1 else body
                    return version & 0x7f, flags, stream, opcode, body
            if not self.more():
                return None

    def receive_kind(self, event):
        """The next event, or the next answer."""
        for envelope in self.kept:
            if (envelope[3] == OPCODES['EVENT']) == event:
                self.kept.remove(envelope)
                return envelope
        while (envelope := self.receive()) is not None:
            if (envelope[3] == OPCODES['EVENT']) == event:
                return envelope
            self.kept.append(envelope)
        return None

    def close(self):
        self.sock.close()


def describe(envelope):
    if envelope is None:
        return 'closed'
    version, flags, stream, opcode, body = envelope
    text = f'{NAMES.get(opcode, opcode)} v{version} stream={stream}'
    if opcode == 0:
        text += f' code={struct.unpack(">I", body[:4])[0]:04x} text={body[6:6 + struct.unpack(">H", body[4:6])[0]].decode()!r}'
    return text


def message(flags, body):
    """Strips what the flags put in front."""
    if flags & 2:
        body = body[16:]
    if flags & 8:
        n, body = struct.unpack('>H', body[:2])[0], body[2:]
        for _ in range(n):
            body = body[2 + struct.unpack('>H', body[:2])[0]:]
    if flags & 4:
        n, body = struct.unpack('>H', body[:2])[0], body[2:]
        for _ in range(n):
            body = body[2 + struct.unpack('>H', body[:2])[0]:]
            body = body[4 + struct.unpack('>I', body[:4])[0]:]
    return body


def check(envelope, want):
    """The words of an expect line against what came."""
    if want[0] == 'closed':
        if envelope is not None:
            raise Mismatch('expected the end of the connection')
        return
    if envelope is None:
        raise Mismatch(f'expected {want[0]}, the connection ended')
    version, flags, stream, opcode, body = envelope
    body = message(flags, body)
    if NAMES.get(opcode) != want[0]:
        raise Mismatch(f'expected {want[0]}')
    for word in want[1:]:
        key, _, value = word.partition('=')
        if re.fullmatch(r'v\d', word):
            good = version == int(word[1:])
        elif key == 'stream':
            good = stream == int(value)
        elif key == 'flags':
            good = flags == int(value, 0)
        elif key == 'code':
            good = opcode == 0 and struct.unpack('>I', body[:4])[0] == int(value, 16)
        elif key == 'text':
            good = opcode == 0 and body[6:6 + struct.unpack('>H', body[4:6])[0]].decode() == value
        elif key == 'kind':
            good = struct.unpack('>I', body[:4])[0] == int(value)
        elif key == 'has':
            good = value.encode() in body
        else:
            raise SyntaxError(f'unknown word {word}')
        if not good:
            raise Mismatch(f'expected {word}')


class Script:
    def __init__(self, path, address):
        self.path, self.address, self.conn, self.steps = path, address, None, 0

    def envelope(self, words):
        version, stream, flags, length, body = self.conn.version, 1, 0, None, b''
        opcode = OPCODES[words[0]] if words[0] in OPCODES else int(words[0], 0)
        for word in words[1:]:
            if re.fullmatch(r'v\d+', word):
                version = int(word[1:])
            elif word.startswith('stream='):
                stream = int(word[7:])
            elif word.startswith('flags='):
                flags = int(word[6:], 0)
            elif word.startswith('length='):
                length = int(word[7:], 0) % (1 << 32)
            else:
                body += part(word)
        return struct.pack('>BBhBI', version, flags, stream, opcode, len(body) if length is None else length) + body

    def do_startup(self, words):
        version = int(words[0][1:])
        options = {'CQL_VERSION': '3.0.0', **dict(w.split('=', 1) for w in words[1:])}
        body = struct.pack('>H', len(options)) + b''.join(string(k) + string(v) for k, v in options.items())
        self.conn.version, self.conn.compression = version, options.get('COMPRESSION')
        self.conn.send(struct.pack('>BBhBI', version, 0, 0, 1, len(body)) + body)
        self.do_expect(['READY', f'v{version}'])
        self.conn.framed = version >= 5

    def do_send(self, words):
        self.conn.send_envelope(self.envelope(words))

    def do_raw(self, words):
        self.conn.send(bytes.fromhex(''.join(words)))

    def do_segment(self, words):
        flags = {'bad-header', 'bad-payload', 'split'}
        payload = b''.join(part(w) for w in words if w not in flags)
        self.conn.send(segment(payload, 'split' not in words, 'bad-header' in words, 'bad-payload' in words))

    def do_slowly(self, words):
        self.conn.piece = int(words[0])
        self.conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_expect(self, words):
        got = self.conn.receive_kind(words[0] == 'EVENT')
        try:
            check(got, words)
        except Mismatch as e:
            raise Mismatch(f'{e}; got {describe(got)}') from None

    def do_again(self, words):
        for _ in range(int(words[0])):
            getattr(self, 'do_' + words[1])(words[2:])

    def alive(self):
        self.conn.close()
        self.conn = Connection(self.address)
        self.do_send(['OPTIONS', 'v4', 'stream=77'])
        self.do_expect(['SUPPORTED', 'stream=77'])
        self.conn.close()
        self.conn = None

    def run_case(self, title, lines):
        number = lines[0][0]
        try:
            self.conn = Connection(self.address)
            for number, words in lines[1:]:
                getattr(self, 'do_' + words[0])(words[1:])
                self.steps += 1
            self.alive()
        except (Mismatch, OSError) as e:
            print(f'FAILED {os.path.basename(self.path)}:{number} ({title}): {e}')
            return False
        finally:
            if self.conn:
                self.conn.close()
                self.conn = None
        return True

    def run(self):
        """Runs every case; how many there were and how many failed."""
        cases = []
        with open(self.path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                words = shlex.split(line, comments=True)
                if words and words[0] == 'case':
                    cases.append((' '.join(words[1:]), []))
                if words:
                    cases[-1][1].append((number, words))
        return len(cases), sum(not self.run_case(*case) for case in cases)


def start(tallyd, folder):
    """Starts tallyd on a free port; the process and its address."""
    with open(os.path.join(folder, 'log'), 'w', encoding='utf-8') as log:
        process = subprocess.Popen([tallyd, '--data-dir', os.path.join(folder, 'data'), '--port', '0', '--admin-port', '0', '--api-port', '0',
                                    '--mode', 'cassandra'], stdout=subprocess.PIPE, stderr=log, text=True)
    line = process.stdout.readline()
    ready = re.search(r'cql=([^ ]+):(\d+)', line)
    if not ready:
        process.kill()
        sys.exit(f'tallyd did not become ready: {line!r}')
    return process, (ready[1], int(ready[2]))


def main(argv):
    here = os.path.dirname(os.path.abspath(__file__))
    if len(argv) < 2 or (argv[1] == '--address' and len(argv) < 3):
        sys.exit(__doc__)
    process, folder = None, tempfile.TemporaryDirectory()
    if argv[1] == '--address':
        host, _, port = argv[2].rpartition(':')
        address, scripts = (host, int(port)), argv[3:]
    else:
        process, address = start(argv[1], folder.name)
        scripts = argv[2:]
    scripts = scripts or sorted(os.path.join(here, name) for name in os.listdir(here) if name.endswith('.cqlr'))
    cases = failed = steps = 0
    for path in scripts:
        script = Script(path, address)
        ran, bad = script.run()
        cases, failed, steps = cases + ran, failed + bad, steps + script.steps
    if process:
        process.send_signal(signal.SIGTERM)
        if process.wait(timeout=20) != 0:
            print(f'FAILED tallyd ended with {process.returncode}')
            failed += 1
        if failed:
            with open(os.path.join(folder.name, 'log'), encoding='utf-8') as log:
                print(log.read())
    folder.cleanup()
    print(f'replay: {len(scripts)} scripts, {steps} steps, {cases - failed} passed, {failed} failed')
    return 1 if failed or not steps else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
