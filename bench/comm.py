"""Collectives of the engine beside torch.distributed over Gloo: 1 KB to 256 MB, ranks of one host, and of two hosts with a link.

Both run in turns, several rounds; the table has medians, and how many times faster ours is. "plain": tensors in ordinary memory; "window":
in the memory that ranks share, as the engine's own are. Two hosts are two network namespaces with a veth pair, for which it needs root.
Usage: comm.py BUILD_FOLDER [--quick] [--json] [--ranks 2,4] [--rounds N]
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Hosts:
    """Two network namespaces with a link; without names: this host as it is."""

    def __init__(self, apart):
        self.names = [f"comm-{os.getpid()}-{i}" for i in range(2)] if apart else []
        self.address = "10.77.0.1" if apart else "127.0.0.1"
        if not apart:
            return
        for name in self.names:
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
        one, other = self.names
        self.ip("link", "add", "veth0", "netns", one, "type", "veth", "peer", "name", "veth0", "netns", other)
        for number, name in enumerate(self.names):
            self.ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "veth0")
            self.ip("-n", name, "link", "set", "veth0", "up")

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def command(self, rank, world):
        return ["ip", "netns", "exec", self.names[rank * 2 // world]] if self.names else []

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def run(hosts, world, program):
    """The lines of rank 0."""
    per_host = world // 2 if hosts.names else world
    port = free_port()
    ranks = []
    for rank in range(world):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world), OMP_NUM_THREADS="1")
        env.update(LOCAL_RANK=str(rank % per_host), LOCAL_WORLD_SIZE=str(per_host))
        env.update(MASTER_ADDR=hosts.address, MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="veth0" if hosts.names else "lo")
        output = subprocess.PIPE if rank == 0 else None
        ranks.append(subprocess.Popen(hosts.command(rank, world) + program, env=env, stdout=output, text=True))
    try:
        text = ranks[0].communicate(timeout=500)[0]
        for process in ranks:
            if process.wait(timeout=60) != 0:
                sys.exit(f"error: a rank of {' '.join(program)} ended with {process.returncode}")
    finally:
        for process in ranks:
            if process.poll() is None:
                process.kill()
    return text.splitlines()


def readable(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def compare(hosts, world, sizes, rounds, build):
    times, about = {}, ""
    listed = ",".join(map(str, sizes))
    programs = {"ours": [f"{build}/bench/comm_rank", listed], "gloo": ["/usr/bin/python3", f"{HERE}/comm_gloo.py", listed]}
    for _ in range(rounds):
        for side, program in programs.items():
            for line in run(hosts, world, program):
                if line.startswith("#"):
                    about = line[2:]
                    continue
                name, size, seconds = line.split()
                times.setdefault((side, name, int(size)), []).append(float(seconds))
    rows = []
    for kind in KINDS:
        for size in sizes:
            row = {"operation": kind, "bytes": size, "ranks": world, "hosts": 2 if hosts.names else 1}
            row["gloo"] = statistics.median(times["gloo", kind, size])
            for memory in ("plain", "window"):
                row[memory] = statistics.median(times["ours", f"{kind}/{memory}", size])
            rows.append(row)
    return about, rows


def show(title, about, rows):
    print(f"\n{title}; ours: {about}")
    columns = f"{'gloo':>13}{'plain':>13}{'window':>13}{'plain ×':>10}{'window ×':>10}"
    print(f"{'operation':<16}{'size':>10}{columns}")
    for row in rows:
        cells = "".join(f"{row[side] * 1e6:>10.1f} µs" for side in ("gloo", "plain", "window"))
        ratios = "".join(f"{row['gloo'] / row[side]:>10.2f}" for side in ("plain", "window"))
        print(f"{row['operation']:<16}{readable(row['bytes']):>10}{cells}{ratios}")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build")
    options.add_argument("--quick", action="store_true", help="three sizes, one round")
    options.add_argument("--json", action="store_true")
    options.add_argument("--ranks", default="2,4")
    options.add_argument("--rounds", type=int)
    options.add_argument("--one-host", action="store_true", help="without the link between two hosts")
    chosen = options.parse_args()
    sizes = [1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
    if chosen.quick:
        sizes = [1 << 10, 64 << 10, 16 << 20]
    rounds = chosen.rounds or (1 if chosen.quick else 3)
    everything = []
    places = [False] + ([True] if os.geteuid() == 0 and not chosen.one_host else [])
    for apart in places:
        for world in map(int, chosen.ranks.split(",")):
            hosts = Hosts(apart)
            try:
                about, rows = compare(hosts, world, sizes, rounds, os.path.abspath(chosen.build))
            finally:
                hosts.close()
            everything += rows
            title = f"{world} ranks on {'two hosts' if apart else 'one host'}, {os.cpu_count()} cores, {rounds} rounds"
            if not chosen.json:
                show(title, about, rows)
    if not places[1:] and not chosen.one_host:
        print("\nSKIP: two hosts: needs root", file=sys.stderr)
    if chosen.json:
        print(json.dumps({"schema": 1, "rows": everything}, indent=1))


main()
