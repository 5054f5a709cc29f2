#!/usr/bin/python3
"""A plain torch.distributed script that knows no launcher: an all-reduce, then DDP of a small model on data that depends on the rank."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print(f"rank {rank} of {world}: sum {total.item():.0f}\n", end="", flush=True)

torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(100 + rank)
inputs = torch.randn(32, 8)
targets = inputs.sum(dim=1, keepdim=True)
for step in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    # One write per line: torchrun's workers share one pipe.
    print(f"rank {rank} step {step} loss {loss.item():.6f}\n", end="", flush=True)
dist.destroy_process_group()
