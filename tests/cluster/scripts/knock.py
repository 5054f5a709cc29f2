#!/usr/bin/env python3
# knock.py UID -- another user of a host at the ports of UID's processes there: connects to every TCP port that a process of UID listens
# on, as soon as it appears, and says what PyTorch's clients, phalanx's mesh test and nobody would say. Prints "knocking" once, "heard
# ..." for every byte that was answered, and on SIGTERM how many ports and connections there were.
import signal
import socket
import struct
import sys

uid, ended, ports, tries = int(sys.argv[1]), False, set(), 0


def end(*_):
    global ended
    ended = True


def text(value):
    return struct.pack("<Q", len(value)) + value


kKey = b"/default_pg/0//cuda//0/nccl_unique_id"
kHello = struct.pack("<BI", 0, 0x3C85F7CE)
kSayings = [
    kHello + b"\1" + text(kKey) + text(b"forged") + struct.pack("<BI", 13, 7),
    kHello + b"\3" + text(kKey),
    kHello + struct.pack("<B", 17),
    b"PHLX" + b"0123456789abcdef",
    b"PHLXMESH" + b"0123456789abcdef",
    b"GET / HTTP/1.0\r\n\r\n",
]


def listeners():
    for path, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        for line in open(path).read().splitlines()[1:]:
            words = line.split()
            if words[3] != "0A" or int(words[7]) != uid:
                continue
            address, port = words[1].split(":")
            raw = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
            yield family, socket.inet_ntop(family, raw), int(port, 16)


signal.signal(signal.SIGTERM, end)
print("knocking", flush=True)
while not ended:
    for family, address, port in listeners():
        for number, saying in enumerate(kSayings):
            if (address, port, number) in ports:
                continue
            ports.add((address, port, number))
            peer = socket.socket(family)
            peer.settimeout(2)
            try:
                peer.connect((address, port))
                tries += 1
                peer.sendall(saying)
                heard = peer.recv(1000)
                if heard:
                    print("heard", port, number, heard, flush=True)
            except socket.timeout:
                print("heard nothing and stayed connected", port, number, flush=True)
            except OSError:
                pass
            peer.close()
print(len({port for _, port, _ in ports}), "ports,", tries, "connections", flush=True)
