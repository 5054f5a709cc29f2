#!/usr/bin/python3
"""Starts its own ranks, as NATSpeech does: mp.spawn, and a rendezvous at a port of this machine. Run as MASTER_PORT=... spawned.py."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", world_size=world, rank=rank)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    print(f"spawned {rank} of {world}: sum {total.item():.0f}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    assert "RANK" not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ, sorted(os.environ)
    mp.spawn(train, nprocs=2, args=(2, int(os.environ["MASTER_PORT"])))
