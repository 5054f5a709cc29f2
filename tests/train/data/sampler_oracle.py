"""Answers "samples world rank shuffle seed drop_last epoch" lines with PyTorch's DistributedSampler."""
import sys

from torch.utils.data.distributed import DistributedSampler

for line in sys.stdin:
    samples, world, rank, shuffle, seed, drop_last, epoch = map(int, line.split())
    sampler = DistributedSampler(range(samples), num_replicas=world, rank=rank, shuffle=bool(shuffle), seed=seed,
                                 drop_last=bool(drop_last))
    sampler.set_epoch(epoch)
    print("".join(f"{index} " for index in sampler))
