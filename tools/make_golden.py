#!/usr/bin/python3
"""Numbers from PyTorch that tests/train holds the engine against: tools/make_golden.py > tests/train/train/golden.json

The model, its initialisation, the data order, the schedule, clipping and AdamW are written here a second time, in plain
PyTorch, so that the C++ has something independent to agree with. Needs python3-torch; takes seconds.
"""
import json
import math

import torch
import torch.nn.functional as F
from torch.utils.data.distributed import DistributedSampler

SHAPE = dict(vocabulary=256, context=16, layers=2, heads=2, width=32)
RUN = dict(seed=7, steps=12, batch=8, lr=3e-3, min_lr=3e-4, warmup=4, weight_decay=0.1, beta1=0.9, beta2=0.95,
           epsilon=1e-8, clip=0.5, text_bytes=16 * 40 + 1)


def text(size):
    """The same formula as in tests/train/train/golden_test.cc: something between noise and repetition."""
    return bytes(97 + (i * i // 3 + i // 7 + (i % 5) * 3) % 26 for i in range(size))


class Linear(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(outputs, inputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Attention(torch.nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)
        self.mask = torch.full((context, context), -math.inf).triu(1)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q / math.sqrt(width // self.heads)) @ k.transpose(-2, -1) + self.mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width))


class Block(torch.nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = Linear(width, 4 * width)
        self.down = Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.position = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def init(self, seed):
        generator = torch.Generator().manual_seed(seed)
        residual = 0.02 / math.sqrt(2 * len(self.blocks))
        with torch.no_grad():
            for name, value in self.named_parameters():
                if value.dim() > 1:
                    ends_branch = name.endswith(("attention.out.weight", "down.weight"))
                    value.normal_(0, residual if ends_branch else 0.02, generator=generator)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embed.weight)


def learning_rate(step):
    if step < RUN["warmup"]:
        return RUN["lr"] * (step + 1) / RUN["warmup"]
    done = (step - RUN["warmup"]) / (RUN["steps"] - RUN["warmup"])
    return RUN["min_lr"] + 0.5 * (RUN["lr"] - RUN["min_lr"]) * (1 + math.cos(math.pi * done))


def train():
    model = Gpt(**SHAPE)
    model.init(RUN["seed"])
    groups = [dict(params=[p for p in model.parameters() if (p.dim() > 1) == decay],
                   weight_decay=RUN["weight_decay"] if decay else 0.0) for decay in (True, False)]
    optimizer = torch.optim.AdamW(groups, betas=(RUN["beta1"], RUN["beta2"]), eps=RUN["epsilon"])
    data = torch.tensor(list(text(RUN["text_bytes"])))
    context = SHAPE["context"]
    windows = (len(data) - 1) // context
    sampler = DistributedSampler(range(windows), num_replicas=1, rank=0, seed=RUN["seed"], drop_last=True)
    per_epoch = windows // RUN["batch"]
    losses, norms = [], []
    for step in range(RUN["steps"]):
        sampler.set_epoch(step // per_epoch)
        first = step % per_epoch * RUN["batch"]
        rows = list(sampler)[first:first + RUN["batch"]]
        tokens = torch.stack([data[r * context:(r + 1) * context] for r in rows])
        targets = torch.stack([data[r * context + 1:(r + 1) * context + 1] for r in rows])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), RUN["clip"])))
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, norms


def sampler_vectors():
    cases = [(10, 4, True, 0, 0, False), (10, 4, False, 0, 0, False), (10, 4, False, 0, 0, True), (3, 8, False, 0, 0, False),
             (3, 8, False, 0, 0, True), (10, 2, True, 0, 0, False), (11, 3, True, 5, 2, True), (1, 5, True, 9, 1, False),
             (100, 7, True, 2**33, 3, False), (64, 8, True, 1234, 100, True)]
    vectors = []
    for samples, world, shuffle, seed, epoch, drop_last in cases:
        ranks = []
        for rank in range(world):
            sampler = DistributedSampler(range(samples), num_replicas=world, rank=rank, shuffle=shuffle, seed=seed,
                                         drop_last=drop_last)
            sampler.set_epoch(epoch)
            ranks.append(list(sampler))
        vectors.append(dict(samples=samples, world=world, shuffle=shuffle, seed=seed, epoch=epoch, drop_last=drop_last,
                            ranks=ranks))
    return vectors


torch.set_num_threads(1)
LOSSES, NORMS = train()
print(json.dumps(dict(made_with=f"torch {torch.__version__}", shape=SHAPE, run=RUN, losses=LOSSES, grad_norms=NORMS,
                      sampler=sampler_vectors()), indent=1))
