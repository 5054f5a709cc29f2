#!/usr/bin/python3
"""PyTorch's side of `./x bench finetune`: the step of bench/finetune_speed.cc as transformers' Trainer and PEFT make it, in eager mode.

SHAPE MODE LENGTHS as arguments. Each line "N" on standard input asks for N steps and is answered with their seconds and losses; the end of
the input is answered with the peak of resident memory. The modules follow transformers' modeling_qwen2.py and peft's lora/layer.py,
operation by operation: padded batches with a mask of four dimensions, repeat_kv, softmax in fp32, logits of all positions in fp32, a LoRA
layer's two products added to its base's.
"""
import math
import os
import sys
import time

import torch
import torch.nn.functional as F

# Qwen2.5-0.5B at an eighth of its width and vocabulary.
SHAPES = {"qwen": dict(vocabulary=18992, hidden=112, intermediate=608, layers=24, heads=14, kv_heads=2)}
BATCH, RANK, ALPHA = 4, 8, 16


def sines(shape, place):
    """Weights that both sides make alike: parameter number `place`, in the order of this file's names."""
    count = math.prod(shape)
    values = torch.sin(torch.arange(count, dtype=torch.float64) * 1.3 + place).view(shape)
    return (values * 0.02 if len(shape) > 1 else values * 0.02 + 1).float()


class Linear(torch.nn.Module):
    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(outputs, inputs))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(outputs))
        self.lora = False

    def add_lora(self):
        self.lora_A = torch.nn.Parameter(torch.empty(RANK, self.weight.shape[1]))
        self.lora_B = torch.nn.Parameter(torch.empty(self.weight.shape[0], RANK))
        self.lora = True

    def forward(self, x):
        result = F.linear(x, self.weight, getattr(self, "bias", None))
        if self.lora:
            result = result + F.linear(F.linear(x, self.lora_A), self.lora_B) * (ALPHA / RANK)
        return result


class RmsNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(kind)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Attention(torch.nn.Module):
    def __init__(self, hidden, heads, kv_heads, **_):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, hidden // heads
        self.q_proj = Linear(hidden, hidden, True)
        self.k_proj = Linear(hidden, kv_heads * self.dim, True)
        self.v_proj = Linear(hidden, kv_heads * self.dim, True)
        self.o_proj = Linear(hidden, hidden, False)

    def repeat(self, x):
        batch, heads, length, dim = x.shape
        x = x[:, :, None].expand(batch, heads, self.heads // self.kv_heads, length, dim)
        return x.reshape(batch, self.heads, length, dim)

    def forward(self, x, mask, cos, sin):
        batch, length, _ = x.shape
        query = self.q_proj(x).view(batch, length, self.heads, self.dim).transpose(1, 2)
        key = self.k_proj(x).view(batch, length, self.kv_heads, self.dim).transpose(1, 2)
        value = self.v_proj(x).view(batch, length, self.kv_heads, self.dim).transpose(1, 2)
        query, key = query * cos + rotate_half(query) * sin, key * cos + rotate_half(key) * sin
        key, value = self.repeat(key), self.repeat(value)
        scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(self.dim) + mask
        probabilities = F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        return self.o_proj(torch.matmul(probabilities, value).transpose(1, 2).reshape(batch, length, -1))


class Mlp(torch.nn.Module):
    def __init__(self, hidden, intermediate, **_):
        super().__init__()
        self.gate_proj = Linear(hidden, intermediate, False)
        self.up_proj = Linear(hidden, intermediate, False)
        self.down_proj = Linear(intermediate, hidden, False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self, **shape):
        super().__init__()
        self.input_layernorm = RmsNorm(shape["hidden"])
        self.self_attn = Attention(**shape)
        self.post_attention_layernorm = RmsNorm(shape["hidden"])
        self.mlp = Mlp(**shape)

    def forward(self, x, mask, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), mask, cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(torch.nn.Module):
    def __init__(self, **shape):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(shape["vocabulary"], shape["hidden"])
        self.layers = torch.nn.ModuleList(Layer(**shape) for _ in range(shape["layers"]))
        self.norm = RmsNorm(shape["hidden"])
        dim = shape["hidden"] // shape["heads"]
        self.register_buffer("frequencies", 1.0 / (1e6 ** (torch.arange(0, dim, 2).float() / dim)), persistent=False)

    def forward(self, ids, attention, labels):
        length = ids.shape[1]
        least = torch.finfo(torch.float32).min
        mask = torch.full((length, length), least).triu(1)[None, None].expand(ids.shape[0], 1, -1, -1).clone()
        mask = mask.masked_fill((mask == 0) & (attention[:, None, None, :] == 0), least)
        angles = torch.outer(torch.arange(length).float(), self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, mask, cos, sin)
        logits = F.linear(self.norm(x), self.embed_tokens.weight).float()
        shifted = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), shifted.view(-1), ignore_index=-100, reduction="mean")


def make_rows(lengths, shape):
    """The token ids and labels of every row; the rule is written down in finetune_speed.cc too."""
    rows, place = [], 0
    for prompt, answer in lengths:
        ids = [10 + (place + i * 7919) % (shape["vocabulary"] - 10) for i in range(prompt + answer)]
        place += 104729
        rows.append((ids, [-100] * prompt + ids[prompt:]))
    return rows


def read_lengths(name):
    with open(name) as file:
        return [tuple(int(word) for word in line.split()) for line in file if line.strip() and not line.startswith("#")]


def collate(rows):
    """As DataCollatorForSeq2Seq with pad_to_multiple_of=8."""
    longest = -(-max(len(ids) for ids, _ in rows) // 8) * 8
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in rows])
    return ids, mask, labels


def main(shape_name, mode, lengths):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    shape = SHAPES[shape_name]
    model = Model(**shape)
    if mode == "lora":
        for layer in model.layers:
            for module in layer.modules():
                if isinstance(module, Linear):
                    module.add_lora()
    with torch.no_grad():
        for place, (name, value) in enumerate(sorted(model.named_parameters())):
            value.copy_(sines(value.shape, place))
            value.requires_grad_(mode == "full" or "lora" in name)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    rows = make_rows(read_lengths(lengths), shape)
    model.train()

    def batches():
        """Of epoch after epoch, as Trainer's sampler orders them."""
        epoch = 0
        while True:
            order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(42 + epoch)).tolist()
            yield from (order[i : i + BATCH] for i in range(0, len(order), BATCH))
            epoch += 1

    source = batches()

    def step():
        loss = model(*collate([rows[row] for row in next(source)]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        losses = [step() for _ in range(int(line))]
        print(f"{time.perf_counter() - begin:.6f}", *(f"{loss:.6f}" for loss in losses), flush=True)
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM:")).split()[1], flush=True)


main(*sys.argv[1:4])
