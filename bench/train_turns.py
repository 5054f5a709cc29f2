"""Two trainings side by side: both are started, then take turns of a few steps, so that a busy machine is busy for both.

Both sides get the same environment: one thread per rank, the same BLAS with the same kernels. Their losses must agree, else this fails.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys

# (name, shape, ranks, our mode, the peer and its mode, type, steps a turn). Peers: PyTorch; for what PyTorch cannot do on CPU, our own DDP.
CASES = [
    ("gpt plain", "gpt", 1, "plain", "torch plain", "fp32", 2),
    ("gpt plain bf16", "gpt", 1, "plain", "torch plain", "bf16", 2),
    ("gpt ddp x2", "gpt", 2, "ddp", "torch ddp", "fp32", 2),
    ("gpt zero1 x2", "gpt", 2, "zero1", "torch zero1", "fp32", 2),
    ("gpt shared x2", "gpt", 2, "shared", "torch zero1", "fp32", 2),
    ("gpt ddp bf16 x2", "gpt", 2, "ddp", "torch ddp", "bf16", 2),
    ("gpt zero2 x2", "gpt", 2, "zero2", "ours ddp", "fp32", 2),
    ("gpt zero3 x2", "gpt", 2, "zero3", "ours ddp", "fp32", 2),
    ("gpt ddp x4", "gpt", 4, "ddp", "torch ddp", "fp32", 1),
    ("gpt zero1 x4", "gpt", 4, "zero1", "torch zero1", "fp32", 1),
    ("small plain", "small", 1, "plain", "torch plain", "fp32", 200),
    ("small ddp x2", "small", 2, "ddp", "torch ddp", "fp32", 200),
    ("small zero1 x2", "small", 2, "zero1", "torch zero1", "fp32", 100),
    ("small shared x2", "small", 2, "shared", "torch zero1", "fp32", 100),
    ("small ddp x4", "small", 4, "ddp", "torch ddp", "fp32", 50),
    ("small zero1 x4", "small", 4, "zero1", "torch zero1", "fp32", 50),
]
WARM_UP = {"gpt": 2, "small": 20}
# Sums are made in another order; bf16 rounds them 65,000 times more coarsely.
# Over hundreds of steps any two orders of summation drift apart, so the first ones are compared.
COMPARED = 20
AGREE = {"fp32": 1e-4, "bf16": 5e-3}


class Side:
    """The ranks of one training."""

    def __init__(self, command, world, environment):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.ranks = []
        for rank in range(world):
            env = dict(environment, RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            self.ranks.append(subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for rank in self.ranks:
            self.answer(rank, "ready")

    def answer(self, rank, expected=None):
        line = rank.stdout.readline().strip()
        if not line or (expected and line != expected):
            raise SystemExit(f"error: {' '.join(rank.args)} said {line!r} and exited with {rank.poll()}")
        return line

    def turn(self, steps):
        """Seconds of the slowest rank, and each rank's losses."""
        for rank in self.ranks:
            rank.stdin.write(f"{steps}\n")
            rank.stdin.flush()
        answers = [[float(word) for word in self.answer(rank).split()] for rank in self.ranks]
        return max(a[0] for a in answers), [a[1:] for a in answers]

    def end(self):
        """Peak of resident memory over the ranks, MiB."""
        for rank in self.ranks:
            rank.stdin.close()
        peak = max(int(self.answer(rank)) for rank in self.ranks) / 1024
        for rank in self.ranks:
            rank.wait(timeout=60)
        return peak

    def kill(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def compare(ours, case, rounds, environment):
    name, shape, world, our_mode, (peer_is, peer_mode), kind, steps = (*case[:4], case[4].split(), *case[5:])
    program = [ours]
    if peer_is == "torch":
        program = ["/usr/bin/python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_peer.py")]
    peer = [*program, shape, peer_mode, kind]
    sides = []
    try:
        sides.append(Side([ours, shape, our_mode, kind], world, environment))
        sides.append(Side(peer, world, environment))
        seconds, worst, steps_done = ([], []), 0.0, 0
        for turn in range(rounds + 1):
            count = steps if turn else WARM_UP[shape]
            order = (0, 1) if turn % 2 else (1, 0)
            results = {}
            for side in order:
                results[side] = sides[side].turn(count)
            compared = max(0, COMPARED - steps_done)
            for mine, theirs in zip(results[0][1], results[1][1]):
                worst = max([worst] + [abs(a - b) for a, b in zip(mine[:compared], theirs[:compared])])
            steps_done += count
            if turn:
                for side in (0, 1):
                    seconds[side].append(results[side][0] / count)
        if worst > AGREE[kind]:
            raise SystemExit(f"error: {name}: losses differ by {worst:.2g}, more than {AGREE[kind]:g}: not the same training")
        peaks = [side.end() for side in sides]
    finally:
        for side in sides:
            side.kill()
    return dict(name=name, ranks=world, type=kind, peer=case[4], ours_ms=1e3 * statistics.median(seconds[0]),
                peer_ms=1e3 * statistics.median(seconds[1]),
                ratio=statistics.median(b / a for a, b in zip(*seconds)),
                ours_mib=peaks[0], peer_mib=peaks[1], memory_ratio=peaks[0] / peaks[1], losses_differ=worst)


def main():
    parser = argparse.ArgumentParser(prog="./x bench train", description="The engine beside PyTorch, taking turns.")
    parser.add_argument("ours")
    parser.add_argument("--quick", action="store_true", help="3 rounds, and no 4 ranks")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="names that contain one of these, comma-separated")
    parser.add_argument("--blas-kernels", default="", metavar="NAME",
                        help="OPENBLAS_CORETYPE of both sides; by default what OpenBLAS itself chooses")
    given = parser.parse_args()
    rounds = 3 if given.quick else given.rounds
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    if given.blas_kernels:
        environment["OPENBLAS_CORETYPE"] = given.blas_kernels
    wanted = [word for word in given.only.split(",") if word]
    rows = []
    if not given.json:
        print(f"train: one step, medians of {rounds} turns; 1 thread per rank, {os.cpu_count()} cores, "
              f"OpenBLAS kernels: {given.blas_kernels or 'its own choice'}")
        print(f"{'':18} {'ours ms':>9} {'peer ms':>9} {'speed':>7} {'ours MiB':>9} {'peer MiB':>9} {'memory':>7} "
              f"{'losses differ':>14}  peer")
    for case in CASES:
        if wanted and not any(word in case[0] for word in wanted):
            continue
        if given.quick and case[2] > 2:
            continue
        row = compare(given.ours, case, rounds, environment)
        rows.append(row)
        if not given.json:
            print("{name:18} {ours_ms:9.2f} {peer_ms:9.2f} {ratio:6.2f}x {ours_mib:9.0f} {peer_mib:9.0f} {memory_ratio:6.2f}x "
                  "{losses_differ:14.1e}  {peer}".format(**row), flush=True)
    if given.json:
        json.dump({"schema": 1, "rounds": rounds, "blas_kernels": given.blas_kernels or None, "rows": rows}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
