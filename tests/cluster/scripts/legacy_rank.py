#!/usr/bin/python3
"""A script of torch.distributed.launch's first years: the local rank is an argument, which is to be the one of the environment."""
import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, required=True)
parser.add_argument("--scale", type=float, default=1)
arguments = parser.parse_args()
assert arguments.local_rank == int(os.environ["LOCAL_RANK"]), (arguments.local_rank, os.environ["LOCAL_RANK"])

dist.init_process_group("gloo", init_method="env://")
total = torch.tensor([dist.get_rank() + arguments.scale])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} local {arguments.local_rank}: sum {total.item():.0f}\n", end="", flush=True)
dist.destroy_process_group()
