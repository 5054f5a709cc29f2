#!/usr/bin/env python3
"""An ssh whose other side turns hostile: for PHALANX_SSH. What the agent on h1 says is passed on frame by frame; once the path in $HOSTILE
exists, frames with hostile values go in between, and a Hello claims two billion GPUs. Other hosts are reached by ssh itself."""
import os
import select
import struct
import subprocess
import sys

MAGIC = b"\0PHALANX-1\n"
HELLO, STARTED, EXITED, PONG, FINISHED, TROUBLE, PROBED, LISTENING, DIALED, SAMPLED = 64, 68, 71, 73, 74, 75, 76, 77, 78, 91


def frame(kind, payload):
    return struct.pack("<IB", len(payload), kind) + payload


def text(data):
    return struct.pack("<I", len(data)) + data


OK = b"\1\0" + text(b"") * 3 + struct.pack("<I", 0)
# The first ones keep to the bounds and are lies; the last ones do not and cut the host off.
LIES = [
    frame(PONG, struct.pack("<Qq", 1, 1 << 59)),
    frame(STARTED, OK + struct.pack("<II", 0, 1)),
    frame(EXITED, struct.pack("<IIqB", 0, 9, -1, 0) + text(b"") * 3),
    frame(TROUBLE, text(b"\x1b]0;PWNED\x07\x1b[2J")),
    frame(PROBED, OK + text(b'{"gpus":{"devices":[{"index":-7}]},"clock":{"wall_ns":-1,"mono_ns":9223372036854775807}}')),
    frame(SAMPLED, struct.pack("<Q", 1) + OK + text(b"[" * 5000)),
    frame(LISTENING, struct.pack("<I", 0xFFFFFFFF)),
    frame(DIALED, struct.pack("<II", 0, 0x7FFFFFFF)),
    frame(EXITED, struct.pack("<IIqB", 0xFFFFFFFF, 0xFFFFFFFF, -(1 << 63), 255) + text(b"") * 3),
    struct.pack("<IB", 0xFFFFFFFF, EXITED),
]


def claims_many_gpus(payload):
    at = 0
    for _ in range(3):  # build, hostname, user
        at += 4 + struct.unpack_from("<I", payload, at)[0]
    return payload[: at + 8] + struct.pack("<I", 0x7FFFFFFF) + payload[at + 12 :]


def main():
    arguments = ["ssh"] + sys.argv[1:]
    if "h1" not in arguments or arguments[-1] == "h1":  # another host, or a question to a kept connection
        os.execvp("ssh", arguments)
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    source, out = child.stdout.fileno(), 1
    held, framed, lies = b"", False, list(LIES)
    while True:
        readable, _, _ = select.select([source], [], [], 0.1)
        if readable:
            chunk = os.read(source, 1 << 16)
            if not chunk:
                sys.exit(child.wait())
            held += chunk
        if not framed and MAGIC in held:
            end = held.index(MAGIC) + len(MAGIC)
            os.write(out, held[:end])
            held, framed = held[end:], True
        if not framed:
            os.write(out, held)
            held = b""
            continue
        hostile = os.path.exists(os.environ["HOSTILE"])
        while len(held) >= 5 and len(held) >= 5 + struct.unpack_from("<I", held)[0]:
            length, kind = struct.unpack_from("<IB", held)
            payload, held = held[5 : 5 + length], held[5 + length :]
            if hostile and kind == HELLO:
                payload = claims_many_gpus(payload)
            os.write(out, frame(kind, payload))
        if hostile and lies:
            os.write(out, lies.pop(0))


main()
