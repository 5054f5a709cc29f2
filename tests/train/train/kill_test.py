#!/usr/bin/python3
"""A training whose ranks are killed at 200 random moments, saves included, ends as if nothing had happened. (Merges, which
take milliseconds, are killed at each of their operations on files by checkpoint_faults.)

kill_test.py PHALANX_TRAIN [KILLS]: a rank gets SIGKILL; the others must end by themselves; what claims to be a checkpoint must be
readable; then the run goes on, on as many ranks or on another number. In the end the loss of every step is that of an undisturbed
run: to the last bit where the number of ranks never changed, else within rounding.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

TRAIN = sys.argv[1]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
SEED = int(os.environ.get("PHALANX_KILL_SEED", "1"))
CONFIG = """
out: {out}
seed: 3
device: cpu
data: {{corpus: {corpus}, validation: 0, workers: 1}}
model: {{layers: 2, heads: 2, width: 32, context: 16}}
train: {{steps: 1000000, batch: 12, log_every: 1}}
parallel: {{mode: {mode}, persistent_elements: 40}}
optimizer: {{lr: 2e-4, min_lr: 2e-4, warmup: 4, schedule: constant}}
validation: {{every: 0}}
checkpoint: {{every: 7, keep: 3}}
metrics: {{mfu: off, tensorboard: off}}
sample: {{bytes: 0}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(config, world, errors, *more):
    port = free_port()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PHALANX_", "TORCHELASTIC_"))}
    ranks = []
    for rank in range(world):
        own = dict(env, OMP_NUM_THREADS="1", RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        with errors[rank].open("w") as file:
            ranks.append(subprocess.Popen([TRAIN, config, *more], env=own, stdout=subprocess.DEVNULL, stderr=file))
    return ranks


def losses(out):
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def mean_apart(ours, theirs):
    return sum(abs(ours[step] - theirs[step]) for step in ours) / len(ours)


def check_checkpoints(out):
    """Everything that has a DONE can be read in full."""
    folder = out / "checkpoints"
    if not list(folder.glob("step-*")):
        return 0
    run = subprocess.run([TRAIN, "checkpoints", str(folder), "--verify", "--json"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    return max(int(path.name.split("-")[1]) for path in folder.glob("step-*"))


def joined(errors):
    """All ranks have met: the first one says what will happen only then. Before, nobody but a launcher knows of a death."""
    return "batch:" in errors[0].read_text()


def stacks(rank, process):
    """Where the threads of a rank that hangs are."""
    try:
        debugger = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all backtrace 25"], text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return f"rank {rank}:\n{debugger.stdout[-20000:]}\n"
    except (OSError, subprocess.TimeoutExpired) as failure:
        return f"rank {rank}: no stacks: {failure}\n"


def one_kill(config, out, world, rng):
    """Starts, kills, and returns the time the other ranks took to notice."""
    errors = [out.with_name(f"{out.name}-stderr-{rank}") for rank in range(world)]
    ranks = start(config, world, errors)
    if rng.random() < 0.85:
        deadline = time.monotonic() + 30
        while not joined(errors) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.4))
    else:
        time.sleep(rng.uniform(0, 0.4))
    victim = rng.randrange(world)
    noticeable = joined(errors)
    ranks[victim].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    if not noticeable:
        for process in ranks:
            process.kill()
    for rank, process in enumerate(ranks):
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            where = "".join(stacks(other, one) for other, one in enumerate(ranks) if one.poll() is None)
            for other in ranks:
                other.kill()
            raise AssertionError(f"rank {rank} of {world} hangs after rank {victim} was killed:\n{errors[rank].read_text()}\n{where}")
        assert process.returncode != 0, "nobody can have finished"
        if noticeable and rank != victim:
            assert "error: " in errors[rank].read_text(), f"rank {rank} did not say why it ended:\n{errors[rank].read_text()}"
    return time.monotonic() - killed if noticeable else None


def in_peace(config, world, out, *more):
    errors = [out.with_name(f"{out.name}-stderr-{rank}") for rank in range(world)]
    for rank, process in enumerate(start(config, world, errors, *more)):
        assert process.wait(timeout=300) == 0, errors[rank].read_text()


def series(folder, name, mode, kills, worlds):
    rng = random.Random(f"{SEED} {name}")
    out = folder / name
    config = folder / f"{name}.yaml"
    config.write_text(CONFIG.format(out=out, corpus=folder / "corpus.txt", mode=mode))
    noticed, newest = [], 0
    for _ in range(kills):
        took = one_kill(str(config), out, rng.choice(worlds), rng)
        noticed += [took] if took is not None else []
        reached = check_checkpoints(out)
        assert reached >= newest, f"the newest checkpoint went from step {newest} to {reached}"
        newest = reached
    # The last part ends in peace, some steps behind the last checkpoint.
    last = newest + 20
    in_peace(str(config), worlds[0], out, f"train.steps={last}")

    def undisturbed(world):
        calm = folder / f"{name}-undisturbed-{world}"
        config.write_text(CONFIG.format(out=calm, corpus=folder / "corpus.txt", mode=mode))
        in_peace(str(config), world, calm, f"train.steps={last}", "checkpoint.every=0")
        return losses(calm)

    ours, theirs = losses(out), undisturbed(worlds[0])
    assert ours.keys() == theirs.keys() and len(ours) == last, (len(ours), len(theirs), last)
    apart = mean_apart(ours, theirs)
    # Rounding grows with the steps. How much of it is no fault: as much as lies between two undisturbed runs on different ranks.
    within = 0 if len(worlds) == 1 else 1e-5 + 5 * mean_apart(undisturbed(worlds[-1]), theirs)
    assert apart <= within, f"{name}: the losses are {apart} apart, more than {within}"
    assert len(noticed) > kills / 4, "the kills came before the training"
    print(f"{name}: {kills} kills, {len(noticed)} of them in training, {last} steps, losses {apart:.1e} apart (at most {within:.1e}), "
          f"the other ranks ended within {max(noticed):.1f} s", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="phalanx-kill-") as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        words = " ".join(f"word{i * i % 97}" for i in range(4000))
        (folder / "corpus.txt").write_text(words)
        quarter = KILLS // 4
        running = [pool.submit(series, folder, *one) for one in (
            ("ddp-2", "ddp", quarter, [2]), ("zero3-2", "zero3", quarter, [2]), ("zero2-3", "zero2", quarter, [3]),
            ("zero3-any", "zero3", KILLS - 3 * quarter, [1, 2, 3, 4]))]
        for one in running:
            one.result()


main()
