"""One rank of bench/comm.py: the same collectives by torch.distributed over Gloo, as PyTorch programs call them on CPUs.

What Gloo lacks is done as its users do it: reduce_scatter is an all_reduce of which a rank keeps its piece.
Usage: comm_gloo.py SIZE[,SIZE...]
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist


def measure(name, size, call):
    call()
    begin = time.perf_counter()
    call()
    once = torch.tensor([time.perf_counter() - begin], dtype=torch.double)
    dist.all_reduce(once, op=dist.ReduceOp.MAX)
    together = 10 if size <= 64 << 10 else 1
    times = []
    for _ in range(min(max(int(0.06 / once.item() / together), 3), 200)):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(together):
            call()
        times.append((time.perf_counter() - begin) / together)
    if dist.get_rank() == 0:
        print(f"{name} {size} {statistics.median(times):.9f}")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    for size in map(int, sys.argv[1].split(",")):
        piece = max(size // 4 // world, 1)
        large, small = torch.ones(piece * world), torch.ones(piece)
        pieces = list(large.split(piece))

        def reduce_scatter():
            dist.all_reduce(large)
            small.copy_(pieces[rank])

        measure("all_reduce", size, lambda: dist.all_reduce(large))
        large.fill_(1)
        measure("reduce_scatter", size, reduce_scatter)
        measure("all_gather", size, lambda: dist.all_gather(pieces, small))
        measure("broadcast", size, lambda: dist.broadcast(large, 0))
    dist.barrier()


main()
