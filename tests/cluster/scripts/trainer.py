"""A small data-parallel training on gloo that goes wrong as it is told: FAULT=name on rank FAULT_RANK at step FAULT_STEP.

Every rank writes /tmp/steps once three steps are done; the one that goes wrong writes the monotonic time of that moment, in ns, to
/tmp/struck.
"""
import ctypes
import mmap
import os
import signal
import sys
import threading
import time

import loading

import torch
import torch.distributed as dist

loading.done()
FAULT = os.environ.get("FAULT", "")
RANK = int(os.environ["RANK"])
MINE = RANK == int(os.environ.get("FAULT_RANK", "1"))
STEP = int(os.environ.get("FAULT_STEP", "5"))


def note(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def loader_worker_killed():
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, i):
            if i == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return torch.zeros(4)

    for _ in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
        pass


def loader_without_shared_memory():
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, i):
            return torch.zeros(1 << 18)

    for _ in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1):
        pass


def bus_error():
    path = "/tmp/mapped"
    with open(path, "wb") as f:
        f.truncate(8192)
    with open(path, "r+b") as f:
        memory = mmap.mmap(f.fileno(), 8192)
        f.truncate(0)
        memory[4096] = 1


def too_much_memory():
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20)))


def loader_that_hangs():
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, i):
            time.sleep(3600)

    for _ in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
        pass


def lock_taken_twice():
    lock = threading.Lock()
    with lock:
        with lock:
            pass


def swallowed():
    try:
        raise ValueError("a batch of another shape")
    except ValueError:
        pass
    sys.exit(0)


def checkpoint(folder):
    torch.save({"weights": torch.zeros(1 << 21)}, os.path.join(folder, "step.pt"))


def opposite_groups():
    groups = [dist.new_group(), dist.new_group()]
    for group in groups if RANK == 0 else reversed(groups):
        dist.barrier(group)


def hangs_in_a_lock_file():
    import fcntl
    mine = open("/tmp/lock", "w")
    if os.fork() == 0:  # somebody else's program has it
        theirs = open("/tmp/lock", "w")
        fcntl.flock(theirs, fcntl.LOCK_EX)
        note("/tmp/locked", "1")
        time.sleep(3600)
    while not os.path.exists("/tmp/locked"):
        time.sleep(0.01)
    fcntl.flock(mine, fcntl.LOCK_EX)


def stopped_while_saving():
    with open("/tmp/step.pt", "wb") as f:
        torch.save({"weights": torch.zeros(1 << 20)}, f)
        os.kill(os.getpid(), signal.SIGSTOP)


def evaluate(dies):
    with torch.no_grad():
        for i in range(3):
            torch.nn.Linear(64, 64)(torch.randn(8, 64))
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("a label that is no class")


# Before the first step, and without a line of output: on both ranks.
BEFORE_STEPS = {
    "barrier-against-broadcast": lambda: dist.barrier() if MINE else dist.broadcast(torch.ones(8), 1),
    "opposite-groups": opposite_groups,
    "receive-from-each-other": lambda: dist.recv(torch.ones(8), 1 - RANK),
    "gather-against-reduce": lambda: (
        dist.all_gather([torch.ones(8), torch.ones(8)], torch.ones(8)) if MINE else dist.reduce(torch.ones(8), 1)
    ),
    "store-key-that-nobody-sets": lambda: dist.distributed_c10d._get_default_store().wait(["data-is-ready"]),
}

FAULTS = {
    "exception": lambda: (_ for _ in ()).throw(ValueError("bad batch at step %d" % STEP)),
    "exit-code": lambda: os._exit(3),
    "sys-exit-message": lambda: sys.exit("no data left"),
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "bus-error": bus_error,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "hung-up": lambda: os.kill(os.getpid(), signal.SIGHUP),
    "out-of-memory": too_much_memory,
    "left-early": lambda: sys.exit(0),
    "swallowed": swallowed,
    "loader-killed": loader_worker_killed,
    "no-shared-memory": loader_without_shared_memory,
    "disk-full": lambda: checkpoint("/run"),
    "read-only": lambda: checkpoint("/proc"),
    "missing-checkpoint": lambda: torch.load("/tmp/nowhere/step.pt"),
    "missing-module": lambda: __import__("flash_attn"),
    "wrong-shape": lambda: torch.zeros(2, 3) @ torch.zeros(2, 3),
    "assertion": lambda: (_ for _ in ()).throw(AssertionError("loss is nan")),
    "recursion": lambda: (lambda f: f(f))(lambda f: f(f)),
    "too-many-files": lambda: [open("/dev/null") for _ in range(1 << 20)],
    "first-iteration": lambda: dist.broadcast(torch.ones(8), 0),
    "never-entered": lambda: time.sleep(3600),
    "lock-taken-twice": lock_taken_twice,
    "loader-hangs": loader_that_hangs,
    "other-collective": lambda: dist.barrier(),
    "lock-file-while-loading": hangs_in_a_lock_file,
    "stopped-while-saving": stopped_while_saving,
    "killed-while-evaluating": lambda: evaluate(True),
    "exception-while-evaluating": lambda: evaluate(False),
    "gloo-aborts": lambda: (_ for _ in ()).throw(RuntimeError("Expected all tensors to be on the same device")),
}


def strike():
    note("/tmp/struck", str(time.monotonic_ns()))
    FAULTS[FAULT]()


def main():
    if FAULT == "before-init" and MINE:
        note("/tmp/struck", str(time.monotonic_ns()))
        raise ModuleNotFoundError("No module named 'flash_attn'")
    if FAULT == "out-of-memory" and MINE:  # as a scheduler would: before the training, and seen by the agent in time
        with open(os.environ["FAULT_CGROUP"] + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    if FAULT in BEFORE_STEPS:
        dist.barrier()
        note("/tmp/struck", str(time.monotonic_ns()))
        BEFORE_STEPS[FAULT]()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(int(os.environ.get("STEPS", "1000000"))):
        if MINE and step == STEP and (FAULT in FAULTS or FAULT == "one-batch-fewer"):
            if FAULT == "one-batch-fewer":
                note("/tmp/struck", str(time.monotonic_ns()))
                break
            strike()
        optimizer.zero_grad()
        if MINE and FAULT == "first-iteration" and step == 0:
            strike()
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        if step == 3:
            note("/tmp/steps", "3")
        if step % 50 == 0 and RANK == 0:
            print("step", step, flush=True)
        time.sleep(0.01)
    dist.barrier()


main()
