#!/usr/bin/python3
"""ZeRO-3 builds and trains a model whose full state is larger than the memory a rank may have, which is set by a cgroup.

memory_limit_test.py PHALANX_TRAIN. The same limit kills a rank that keeps the whole state: so the limit is real. Needs root and the
memory controller of cgroups (v1 or v2); exits with 77 and the reason where it cannot have them.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

TRAIN = sys.argv[1]
MIB = 1 << 20
WORLD = 4
LIMIT = 700 * MIB  # a save in the background copies parameters and states, so a rank needs room for 28 bytes times its share
# 16 blocks of width 512: 50.6 M parameters, 16 bytes of state for each in fp32 with AdamW: 772 MiB.
CONFIG = """
out: {out}
device: cpu
data: {{corpus: {corpus}, validation: 0}}
model: {{layers: 16, heads: 8, width: 512, context: 32}}
train: {{steps: 4, batch: 4, log_every: 1}}
parallel: {{mode: {mode}, share_parameters: off, bucket_mb: 4, persistent_elements: 3000}}
checkpoint: {{every: 0}}
validation: {{every: 0}}
metrics: {{mfu: off, tensorboard: off}}
sample: {{bytes: 0}}
"""


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def controller():
    """The folder of our own in the memory controller's tree, and the file that limits it."""
    name = f"phalanx-memory-{os.getpid()}"
    if os.geteuid() != 0:
        skip("needs root, to make cgroups")
    v1, v2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
    if (v1 / "memory.limit_in_bytes").exists():
        return v1 / name, "memory.limit_in_bytes", "memory.max_usage_in_bytes"
    if (v2 / "cgroup.controllers").exists() and "memory" in (v2 / "cgroup.subtree_control").read_text().split():
        return v2 / name, "memory.max", "memory.peak"
    skip("no memory controller of cgroups under /sys/fs/cgroup")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(folder, mode, world):
    """Each rank in a cgroup of its own. Returns exit codes, peaks in bytes, stderr of rank 0."""
    base, limit_file, peak_file = controller()
    config = folder / f"{mode}.yaml"
    config.write_text(CONFIG.format(out=folder / mode, corpus=folder / "corpus.txt", mode=mode))
    groups, ranks, port = [], [], free_port()
    try:
        for rank in range(world):
            group = base.with_name(f"{base.name}-{mode}-{rank}")
            group.mkdir()
            groups.append(group)
            (group / limit_file).write_text(str(LIMIT))
            env = {k: v for k, v in os.environ.items() if not k.startswith(("PHALANX_", "TORCHELASTIC_"))}
            env.update(OMP_NUM_THREADS="1", RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            ranks.append(subprocess.Popen([TRAIN, str(config)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                          preexec_fn=lambda group=group: (group / "cgroup.procs").write_text(str(os.getpid()))))
        talk = [rank.communicate(timeout=240)[0] for rank in ranks]
        peaks = [int((group / peak_file).read_text()) if (group / peak_file).exists() else 0 for group in groups]
        return [rank.returncode for rank in ranks], peaks, talk
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        for group in groups:
            group.rmdir()


def main():
    with tempfile.TemporaryDirectory(prefix="phalanx-limit-") as name:
        folder = pathlib.Path(name)
        (folder / "corpus.txt").write_text(" ".join(f"word{i * i % 97}" for i in range(2000)))
        codes, _, talk = train(folder, "ddp", WORLD)
        assert -9 in codes, f"the whole state fits into {LIMIT // MIB} MiB, so this test shows nothing: {codes}\n{talk[0]}"
        codes, peaks, talk = train(folder, "zero3", WORLD)
        assert codes == [0] * WORLD, f"{codes}\n{talk[0]}\n{talk[1]}"
        parameters = float(re.search(r"model: ([\d.]+) M parameters", talk[0]).group(1))
        state = parameters * 16e6
        assert state > LIMIT, (state, LIMIT)
        print(f"{parameters} M parameters, full state {state / MIB:.0f} MiB, limit of a rank {LIMIT // MIB} MiB: ddp was killed, "
              f"zero3 trained with at most {max(peaks) / MIB:.0f} MiB")


main()
