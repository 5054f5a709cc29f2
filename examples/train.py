"""Plain PyTorch: data-parallel training of a small network. Knows nothing of the program that starts it."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--fail-rank", type=int, default=-1, help="this rank raises an error half-way: see what is said")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"training on {world} ranks with {dist.get_backend()}", flush=True)

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1)).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = torch.Generator().manual_seed(rank)
    progress = tqdm(range(1, arguments.steps + 1), desc="training")
    for step in progress:
        inputs = torch.randn(256, 32, generator=data).to(device)
        loss = (model(inputs) - inputs[:, :4].sum(1, keepdim=True).tanh()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if rank == arguments.fail_rank and step == arguments.steps // 2:
            raise ValueError(f"loss is nan at step {step}")
        optimizer.step()
        progress.set_postfix(loss=f"{loss.item():.4f}")

    total = torch.tensor([loss.item()], device=device)
    dist.all_reduce(total)
    print(f"mean loss of the last step: {total.item() / world:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
