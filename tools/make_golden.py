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


# Losses and gradients of 1 to 4 ranks: the batch divides by all of them.
RANKS_RUN = dict(RUN, steps=20, batch=12, clip=0.0)
# Of each parameter's gradient are kept its norm and every k-th element, at most this many: all of a gradient's parts are looked at.
KEPT = 64


def learning_rate(run, step):
    if step < run["warmup"]:
        return run["lr"] * (step + 1) / run["warmup"]
    done = (step - run["warmup"]) / (run["steps"] - run["warmup"])
    return run["min_lr"] + 0.5 * (run["lr"] - run["min_lr"]) * (1 + math.cos(math.pi * done))


def named(name):
    """As the engine calls it: blocks are not in a list there."""
    return name.replace("blocks.", "block")


class Training:
    def __init__(self, run):
        self.run = run
        self.model = Gpt(**SHAPE)
        self.model.init(run["seed"])
        groups = [dict(params=[p for p in self.model.parameters() if (p.dim() > 1) == decay],
                       weight_decay=run["weight_decay"] if decay else 0.0) for decay in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, betas=(run["beta1"], run["beta2"]), eps=run["epsilon"])

    def loss(self, tokens, targets, reduction="mean"):
        return F.cross_entropy(self.model(tokens).flatten(0, 1), targets.flatten(), reduction=reduction)

    def grads(self):
        kept = {}
        for name, value in self.model.named_parameters():
            grad = value.grad.flatten()
            every = -(-grad.numel() // KEPT)
            # Nine digits tell every fp32 number from its neighbours.
            kept[named(name)] = dict(norm=float(grad.double().norm()), every=every,
                                     values=[float(f"{x:.9g}") for x in grad[::every].tolist()])
        return kept

    def update(self, step):
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.run["clip"] or math.inf))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.run, step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def windows_of(run):
    data = torch.tensor(list(text(run["text_bytes"])))
    context = SHAPE["context"]
    count = (len(data) - 1) // context
    return (torch.stack([data[r * context:(r + 1) * context] for r in range(count)]),
            torch.stack([data[r * context + 1:(r + 1) * context + 1] for r in range(count)]))


def backward(training, step, world):
    """Every rank's share in turn, gradients averaged over the ranks: what data parallel is to compute. Returns the loss."""
    run = training.run
    tokens, targets = windows_of(run)
    per_epoch, rows = len(tokens) // run["batch"], run["batch"] // world
    total = 0.0
    for rank in range(world):
        sampler = DistributedSampler(range(len(tokens)), num_replicas=world, rank=rank, seed=run["seed"], drop_last=True)
        sampler.set_epoch(step // per_epoch)
        mine = list(sampler)[step % per_epoch * rows:][:rows]
        loss = training.loss(tokens[mine], targets[mine]) / world
        loss.backward()
        total += float(loss.detach())
    return total


def train(run, world=1):
    training = Training(run)
    losses, norms, grads = [], [], []
    for step in range(run["steps"]):
        losses.append(backward(training, step, world))
        if step in (0, run["steps"] - 1):
            grads.append(training.grads())
        norms.append(training.update(step))
    return dict(losses=losses, grad_norms=norms, first_grads=grads[0], last_grads=grads[-1])


def trained(run):
    """A model that has learned, its parameters rounded to bf16 (as the hex digits of their 16 bits), and the gradients of the last step
    at them: two runs that meet at one point differ by the gradient's own rounding only, not by that of all steps before it."""
    training = Training(run)
    for step in range(run["steps"]):
        backward(training, step, 1)
        training.update(step)
    parameters, grads = {}, {}
    for name, value in training.model.named_parameters():
        short = value.detach().to(torch.bfloat16)
        value.data.copy_(short)
        parameters[named(name)] = "".join(f"{bits & 0xffff:04x}" for bits in short.flatten().view(torch.int16).tolist())
    for world in (1, 2, 3, 4):
        training.optimizer.zero_grad(set_to_none=True)
        backward(training, run["steps"] - 1, world)
        grads[str(world)] = training.grads()
    return dict(parameters=parameters, grads=grads)


def ragged(run):
    """Sequences of different lengths: the loss is divided by the number of targets of the whole batch. Row i of step s has
    1 + (7s + 5i) % context targets; the rest is -100."""
    training = Training(run)
    tokens, targets = windows_of(run)
    losses, counts, grads = [], [], []
    for step in range(run["steps"]):
        rows = [(step * run["batch"] + i) % len(tokens) for i in range(run["batch"])]
        wanted = targets[rows].clone()
        for i in range(run["batch"]):
            wanted[i, 1 + (7 * step + 5 * i) % SHAPE["context"]:] = -100
        count = int((wanted != -100).sum())
        loss = training.loss(tokens[rows], wanted, reduction="sum") / count
        loss.backward()
        if step in (0, run["steps"] - 1):
            grads.append(training.grads())
        losses.append(float(loss.detach()))
        counts.append(count)
        training.update(step)
    return dict(losses=losses, targets=counts, first_grads=grads[0], last_grads=grads[-1])


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
PLAIN = train(RUN)
print(json.dumps(dict(made_with=f"torch {torch.__version__}", shape=SHAPE, run=RUN, losses=PLAIN["losses"],
                      grad_norms=PLAIN["grad_norms"], sampler=sampler_vectors(), ranks_run=RANKS_RUN,
                      ranks={str(world): train(RANKS_RUN, world) for world in (1, 2, 3, 4)}, trained=trained(RANKS_RUN),
                      ragged=ragged(RANKS_RUN)),
                 separators=(",\n", ": ")))
