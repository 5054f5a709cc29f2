#!/usr/bin/python3
"""One rank of PyTorch's side of bench/train.sh: what train_speed.cc does, as one writes it in Python for speed.

SHAPE MODE TYPE as arguments; RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT in the environment. Each line "N" on standard input asks for N
steps and is answered with their seconds and losses; the end of the input is answered with the peak of resident memory.
"""
import math
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

SHAPES = {
    "gpt": dict(vocabulary=8192, context=256, layers=6, heads=6, width=384, batch=8),
    "small": dict(vocabulary=256, context=32, layers=2, heads=4, width=64, batch=4),
}


class Attention(torch.nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.register_buffer("mask", torch.full((context, context), -math.inf).triu(1), persistent=False)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = self.qkv(x).view(batch, time_, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q * self.scale, k.transpose(-2, -1)).add_(self.mask[:time_, :time_])
        return self.out(torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(batch, time_, width))


class Block(torch.nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width, **_):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.position = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        generator = torch.Generator().manual_seed(1)
        residual = 0.02 / math.sqrt(2 * layers)
        with torch.no_grad():
            for name, value in self.named_parameters():
                if value.dim() > 1:
                    ends_branch = name.endswith(("attention.out.weight", "down.weight"))
                    value.normal_(0, residual if ends_branch else 0.02, generator=generator)
                else:
                    value.fill_(1 if name.endswith("weight") else 0)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main(shape_name, mode, kind):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    shape = SHAPES[shape_name]
    model = Gpt(**shape)
    groups = [dict(params=[p for p in model.parameters() if (p.dim() > 1) == decay], weight_decay=0.1 if decay else 0.0)
              for decay in (True, False)]
    settings = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, foreach=True)
    compute = model
    if mode != "plain":
        dist.init_process_group("gloo")
        compute = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if mode == "zero1":
        optimizer = ZeroRedundancyOptimizer(groups[0]["params"], optimizer_class=torch.optim.AdamW, weight_decay=0.1, **settings)
        optimizer.add_param_group(groups[1])
    else:
        optimizer = torch.optim.AdamW(groups, **settings)

    def step(number):
        generator = torch.Generator().manual_seed(1000 + number * world + rank)
        text = torch.randint(shape["vocabulary"], (shape["batch"], shape["context"] + 1), generator=generator)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "bf16"):
            loss = compute(text[:, :-1], text[:, 1:])
        loss.backward()
        optimizer.step()
        return loss.item()

    print("ready", flush=True)
    done = 0
    for line in sys.stdin:
        begin, losses = time.perf_counter(), []
        for _ in range(int(line)):
            losses.append(step(done))
            done += 1
        print(f"{time.perf_counter() - begin:.6f}", *(f"{loss:.6f}" for loss in losses), flush=True)
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM:")).split()[1], flush=True)
    if mode != "plain":
        dist.barrier()
        os._exit(0)  # the peers' sockets may be gone already; there is nothing to save


main(*sys.argv[1:4])
