#!/usr/bin/python3
"""A data-parallel training on gloo that behaves as it is told, and ends well: BEHAVIOUR=name, for about SECONDS seconds.

Healthy ones do what real trainings do and what looks like a hang or a straggler from outside: one rank works while others wait, all
are silent, nothing is printed. Slow ones (slow-...) have one rank that is late in every step. Rank 0 prints step lines unless the
behaviour says otherwise.
"""
import os
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

NAME = os.environ["BEHAVIOUR"]
SECONDS = float(os.environ.get("SECONDS", "12"))
RANK = int(os.environ["RANK"])
ODD = int(os.environ.get("ODD_RANK", "1"))
torch.set_num_threads(1)


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))


def busy(seconds):  # of the wall's time
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def write_slowly(seconds):
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile() as f:
        while time.monotonic() < end:
            f.write(b"x" * (1 << 18))
            f.flush()
            os.fsync(f.fileno())
            time.sleep(0.02)


def child_works(seconds):
    subprocess.run([sys.executable, "-c", f"import time; time.sleep({seconds})"], check=True)


class Slow(torch.utils.data.Dataset):
    def __init__(self, delay, first=0.0, last=0.0, size=64):
        self.delay, self.first, self.last, self.size = delay, first, last, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        time.sleep(self.first if i == 0 else self.last if i == self.size - 1 else self.delay)
        return torch.ones(8)


if NAME == "late-start" and RANK == ODD:  # another import, a slow file system
    time.sleep(SECONDS)
if NAME == "silent-import":
    time.sleep(SECONDS)
dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
model = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
counter = 0


def step(says=True, pause=0.05, work=0.0):
    global counter
    if work:
        burn(work)
    optimizer.zero_grad()
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    counter += 1
    if says and RANK == 0:
        print(f"step {counter} loss {1 / counter:.4f}", flush=True)
    time.sleep(pause)


def steps(n=20, **more):
    for _ in range(n):
        step(**more)


def for_long(what, seconds=None):
    # All ranks leave together: rank 0's clock decides.
    end = time.monotonic() + (seconds or SECONDS)
    while True:
        what()
        go_on = torch.tensor([1.0 if time.monotonic() < end else 0.0])
        dist.broadcast(go_on, 0)
        if go_on.item() == 0:
            return


def one_rank(rank, what):
    steps()
    if RANK == rank:
        what(SECONDS)
    dist.barrier()
    steps()


def everybody(what):
    steps()
    what(SECONDS)
    dist.barrier()
    steps()


def waits_at_the_store():
    steps()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 0:
        time.sleep(SECONDS)
        store.set("ready", "1")
    store.wait(["ready"])
    steps()


def loader(delay, first=0.0, last=0.0, workers=0):
    data = torch.utils.data.DataLoader(Slow(delay, first, last), batch_size=4, num_workers=workers)
    for batch in data:
        step(pause=0)


def accumulation():
    def round():
        with model.no_sync():
            for _ in range(40):
                model(torch.randn(8, 64)).square().mean().backward()
                time.sleep(0.05)
        step()
    for_long(round)


def jitter():
    import random
    dice = random.Random(RANK)
    for_long(lambda: step(pause=dice.uniform(0.0, 0.1)))


def alternating():  # the late rank is another one each time
    for_long(lambda: step(pause=0.2 if counter % 2 == RANK % 2 else 0.0))


def bar():
    def one():
        step(says=False)
        if RANK == 0:
            sys.stderr.write(f"\r{counter % 100:3d}%|#####     | {counter}/100 [00:01<00:09, 9.9it/s]")
            sys.stderr.flush()
    for_long(one)


def background(what):
    thread = threading.Thread(target=what, args=(SECONDS,))
    thread.start()
    for_long(step)
    thread.join()


def uneven_ends():
    steps()
    dist.barrier()
    if RANK == ODD:
        time.sleep(SECONDS)


HEALTHY = {
    "even": lambda: for_long(step),
    "even-silent": lambda: for_long(lambda: step(says=False)),
    "long-steps": lambda: for_long(lambda: step(pause=3.0)),
    "compilation-in-first-step": lambda: (busy(SECONDS), steps()),
    "compilation-on-one-rank": lambda: (busy(SECONDS) if RANK == ODD else None, steps()),
    "compilation-in-children": lambda: (child_works(SECONDS), steps()),
    "save-by-rank-0": lambda: one_rank(0, write_slowly),
    "save-by-rank-0-asleep": lambda: one_rank(0, time.sleep),
    "save-by-rank-1": lambda: one_rank(ODD, write_slowly),
    "save-by-all": lambda: everybody(write_slowly),
    "evaluation-by-rank-0": lambda: one_rank(0, busy),
    "evaluation-by-rank-1": lambda: one_rank(ODD, busy),
    "evaluation-by-all": lambda: everybody(busy),
    "evaluation-in-a-child": lambda: one_rank(0, child_works),
    "download-by-rank-0": lambda: one_rank(0, lambda s: child_works(s)),
    "waits-at-the-store": waits_at_the_store,
    "slow-loader-at-the-end": lambda: (loader(0.02, last=SECONDS), steps()),
    "slow-loader-at-the-start": lambda: (loader(0.02, first=SECONDS), steps()),
    "loader-workers": lambda: for_long(lambda: loader(0.01, workers=2)),
    "loader-workers-start-late": lambda: (loader(0.01, first=SECONDS, workers=2), steps()),
    "even-loaders": lambda: for_long(lambda: loader(0.05)),
    "gradient-accumulation": accumulation,
    "pauses-between-epochs": lambda: (steps(), time.sleep(SECONDS), steps()),
    "pauses-of-one-rank": lambda: one_rank(ODD, time.sleep),
    "jitter": jitter,
    "alternating": alternating,
    "a-little-more-work": lambda: for_long(lambda: step(pause=0.11 if RANK == ODD else 0.1)),
    "progress-bar": bar,
    "silent-import": lambda: steps(),
    "late-start": lambda: steps(),
    "save-in-a-thread": lambda: background(write_slowly),
    "log-thread": lambda: background(lambda s: [time.sleep(0.1) for _ in range(int(s * 10))]),
    "uneven-ends": uneven_ends,
    "last-save": lambda: (steps(), write_slowly(SECONDS) if RANK == 0 else None),
    "many-small-collectives": lambda: for_long(lambda: [dist.all_reduce(torch.ones(4)) for _ in range(50)] and step(pause=0.2)),
    "large-collectives": lambda: for_long(lambda: (dist.all_reduce(torch.ones(1 << 20)), step(pause=0.3))),
    "barrier-every-step": lambda: for_long(lambda: (dist.barrier(), step())),
    "broadcasts-of-rank-0": lambda: for_long(lambda: (dist.broadcast(torch.ones(1 << 16), 0), step())),
    "garbage-collection": lambda: for_long(lambda: (__import__("gc").collect(), step())),
    "steps-get-longer": lambda: for_long(lambda: step(pause=0.02 + counter * 0.002)),
}
SLOW = {
    "slow-rank": lambda: for_long(lambda: step(pause=0.0, work=0.15 if RANK == ODD else 0.02)),
    "slow-loader": lambda: for_long(lambda: loader(0.05 if RANK == ODD else 0.005)),
    "slow-network": lambda: for_long(lambda: (dist.all_reduce(torch.ones(20_000)), step(pause=0.02))),
    "slow-quota": lambda: for_long(lambda: (dist.all_reduce(torch.ones(20_000)), step(pause=0.02, work=0.08 if RANK == ODD else 0.01))),
}

print(f"rank {RANK} pid {os.getpid()}", flush=True)
{**HEALTHY, **SLOW}[NAME]()
dist.destroy_process_group()  # without it, torch sometimes aborts a process that ends while threads of its own still run
