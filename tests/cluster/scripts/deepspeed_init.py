#!/usr/bin/python3
"""DeepSpeed's own start on CPUs: which rank it believes to be, and a sum over all."""
import sys

import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False)
total = torch.ones(())
torch.distributed.all_reduce(total)
sys.stdout.write(f"deepspeed {torch.distributed.get_rank()}/{torch.distributed.get_world_size()}: sum {total.item():.0f}\n")
sys.stdout.flush()
