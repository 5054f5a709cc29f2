#!/usr/bin/python3
"""A GAN as multi-card scripts of speech models train it: three modules in DistributedDataParallel, a DistributedSampler with set_epoch,
rank 0 saves module.state_dict(). Rank 0 then trains the same on one process, each step on what all ranks had, and compares the weights.
Usage: gan.py FILE"""
import copy
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS, BATCH = 2, 4


def modules():
    torch.manual_seed(7)
    linear = torch.nn.Linear
    return [torch.nn.Sequential(linear(4, 8), torch.nn.Tanh(), linear(8, 6)), torch.nn.Linear(6, 1), torch.nn.Linear(6, 1)]


def optimizers(nets):
    critics = [*nets[1].parameters(), *nets[2].parameters()]
    return torch.optim.SGD(nets[0].parameters(), lr=0.05), torch.optim.SGD(critics, lr=0.05)


def step(nets, optimizer, noise, real):
    generator, critic, spectral = nets
    generator_optimizer, critic_optimizer = optimizer
    critic_optimizer.zero_grad()
    fake = generator(noise).detach()
    loss = sum(((net(real) - 1) ** 2).mean() + (net(fake) ** 2).mean() for net in (critic, spectral))
    loss.backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    fake = generator(noise)
    sum(((net(fake) - 1) ** 2).mean() for net in (critic, spectral)).backward()
    generator_optimizer.step()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
data = TensorDataset(torch.randn(24, 4), torch.randn(24, 6), torch.arange(24))

bare = modules()
# The critics run several times before one backward: their buffers must not be broadcast in between.
nets = [DistributedDataParallel(net, broadcast_buffers=False) for net in copy.deepcopy(bare)]
optimizer = optimizers(nets)
sampler = DistributedSampler(data, shuffle=True, seed=3)
seen = []
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    for noise, real, index in DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True):
        step(nets, optimizer, noise, real)
        seen.append(index.tolist())

gathered = [None] * world
dist.all_gather_object(gathered, seen)
if rank == 0:
    torch.save([net.module.state_dict() for net in nets], sys.argv[1])
    optimizer = optimizers(bare)
    for at in range(len(seen)):
        union = [i for one in gathered for i in one[at]]
        step(bare, optimizer, data.tensors[0][union], data.tensors[1][union])
    saved = torch.load(sys.argv[1])
    equal = all(torch.allclose(saved[n][key], value, atol=1e-5) for n, net in enumerate(bare) for key, value in net.state_dict().items())
    each = len(seen) // EPOCHS
    orders = [sorted(i for one in gathered for batch in one[e * each:(e + 1) * each] for i in batch) for e in range(EPOCHS)]
    shuffled = [one[:each] for one in gathered] != [one[each:] for one in gathered]
    print(f"gan: equal {equal}, every item once {all(order == list(range(24)) for order in orders)}, new order {shuffled}", flush=True)
dist.destroy_process_group()
