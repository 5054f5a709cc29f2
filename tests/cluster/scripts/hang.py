#!/usr/bin/python3
"""A data-parallel loop that knows no launcher and runs for ever, until one rank leaves it.
hang.py FAULT RANK STEP [PATH]: at that step that rank does
  none     nothing: the fault comes from outside
  sleep    sleeps, in validate()
  lock     takes a lock twice
  worker   waits for its loader's process, which hangs
  loader   waits for a worker of PyTorch's DataLoader, which hangs in __getitem__
  vfork    starts a program that never gets to its exec
  barrier  comes with another collective than the others
  read     opens PATH
  exit     leaves with code 0 while its children keep its connections open
  first    never comes to the first step: it meets the others in the barriers of two groups, in opposite order
  save     saves for PATH seconds before the first step, asleep, while the others wait in a barrier
  burn     computes much more than the others in every step from then on
Every rank prints "rank R pid P" once it is in the loop."""
import multiprocessing
import os
import sys
import threading
import time
import loading
import torch
import torch.distributed as dist
import torch.utils.data
loading.done()
fault, odd, at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
size = int(os.environ.get("HANG_ELEMENTS", "20000"))
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
gradient = torch.ones(size)


def validate():
    time.sleep(3600)


def next_batch():
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=time.sleep, args=(3600,), daemon=True).start()
    return ours.recv()


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, item):
        if item == 3:
            time.sleep(3600)
        return item


def load():
    for _ in torch.utils.data.DataLoader(Items(), num_workers=2):
        pass


def log_metrics():
    lock = threading.Lock()
    with lock:
        with lock:
            pass


def start_tool():
    import ctypes
    libc = ctypes.CDLL(None)
    # vfork() from Python would share this very stack; clone(CLONE_VFORK) with a stack of its own waits in the same place of the kernel.
    stack = ctypes.create_string_buffer(1 << 16)
    body = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: time.sleep(3600) or 0)
    top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16))
    libc.clone(body, top, 0x4000 | 17, None)


def burn():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass


def leave():
    if fault == "sleep":
        validate()
    elif fault == "lock":
        log_metrics()
    elif fault == "worker":
        next_batch()
    elif fault == "loader":
        load()
    elif fault == "vfork":
        start_tool()
    elif fault == "barrier":
        dist.barrier()
    elif fault == "read":
        open(sys.argv[4]).read()
    elif fault == "exit":
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)


if fault == "first":
    groups = [dist.new_group(), dist.new_group()]
    for group in groups if rank == odd else reversed(groups):
        dist.barrier(group)
if fault == "save":
    if rank == odd:
        time.sleep(float(sys.argv[4]))
    dist.barrier()
step = 0
while True:
    if rank == odd and step == at:
        leave()
    if rank == odd and step >= at and fault == "burn":
        burn()
    dist.all_reduce(gradient)
    gradient /= dist.get_world_size()
    time.sleep(0.05)
    step += 1
    if step == 1:
        print(f"rank {rank} pid {os.getpid()}", flush=True)
    if rank == 0:
        print(f"step {step} loss {1 / step:.4f}", flush=True)
