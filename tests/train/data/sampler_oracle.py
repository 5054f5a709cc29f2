"""Answers "samples world rank shuffle seed drop_last epoch rows drop_batch" lines with PyTorch's DistributedSampler, and behind a
bar with the batches of its BatchSampler."""
import sys

from torch.utils.data import BatchSampler
from torch.utils.data.distributed import DistributedSampler

for line in sys.stdin:
    samples, world, rank, shuffle, seed, drop_last, epoch, rows, drop_batch = map(int, line.split())
    sampler = DistributedSampler(range(samples), num_replicas=world, rank=rank, shuffle=bool(shuffle), seed=seed,
                                 drop_last=bool(drop_last))
    sampler.set_epoch(epoch)
    batches = BatchSampler(sampler, rows, bool(drop_batch))
    print("".join(f"{index} " for index in sampler) + "|" + ";".join(" ".join(map(str, batch)) for batch in batches),
          len(sampler), len(batches))
