"""A GPT trained by phalanx-train, as a plain PyTorch module. `phalanx-train merge` writes this file beside the merged model.

    import torch, phalanx_gpt
    model = phalanx_gpt.load("model")                       # the folder written by `phalanx-train merge`
    logits = model(torch.tensor([list(b"To be, or not")]))  # [batch, time, vocabulary]

Needs PyTorch only: config.json says how the model is computed, and the tensors are read from the safetensors files by read_file().
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

# What this file can compute. A config.json that says anything else is refused: it belongs to another program or a newer version.
KNOWN = {
    "format": "phalanx-model",
    "version": 1,
    "model_type": "phalanx_gpt",
    "norm": "layer_norm",
    "norm_position": "before",  # x + attention(norm1(x)), then x + down(gelu(up(norm2(x)))), and a last norm before the head
    "activation": "gelu",
    "activation_formula": "x * 0.5 * (1 + erf(x / sqrt(2)))",  # exact, not the approximation with tanh
    "position_embedding": "learned",  # one row per position, added to the token's embedding
    "attention": "causal",  # softmax(query * key / sqrt(width / heads)); position i sees 0..i
    "qkv_layout": "query, key, value",  # thirds of the rows of qkv, within each third the heads one after the other
    "linear_layout": "[out, in]",
    "tied_head": True,  # logits = x * transpose(embed.weight), without a bias
}
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        query, key, value = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (query / math.sqrt(width // self.heads)) @ key.transpose(-2, -1)
        later = torch.ones(time, time, dtype=torch.bool, device=x.device).triu(1)
        seen = scores.masked_fill(later, -math.inf).softmax(-1) @ value
        return self.out(seen.transpose(1, 2).reshape(batch, time, width))


class Block(torch.nn.Module):
    def __init__(self, width, heads, hidden, epsilon, dropout):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(width, epsilon)
        self.attention = Attention(width, heads)
        self.norm2 = torch.nn.LayerNorm(width, epsilon)
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)
        self.dropout = dropout

    def forward(self, x):
        x = x + F.dropout(self.attention(self.norm1(x)), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class Gpt(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        for key, value in KNOWN.items():
            if config.get(key) != value:
                raise ValueError(f"config.json: {key} is {config.get(key)!r}; this phalanx_gpt.py computes {value!r} only")
        self.config = config
        width = config["width"]
        self.embed = torch.nn.Embedding(config["vocabulary"], width)
        self.position = torch.nn.Embedding(config["context"], width)
        for i in range(config["layers"]):
            self.add_module(f"block{i}", Block(width, config["heads"], config["hidden"], config["norm_epsilon"], config["dropout"]))
        self.norm = torch.nn.LayerNorm(width, config["norm_epsilon"])

    def forward(self, tokens):  # [batch, time <= context] int64 -> logits [batch, time, vocabulary]
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        x = F.dropout(x, self.config["dropout"], self.training)
        for i in range(self.config["layers"]):
            x = getattr(self, f"block{i}")(x)
        return F.linear(self.norm(x), self.embed.weight)

    @torch.no_grad()
    def generate(self, tokens, count, temperature=0.8, top_k=40):
        """Appends `count` tokens to each row of `tokens`. temperature 0 takes the most likely token."""
        for _ in range(count):
            logits = self(tokens[:, -self.config["context"]:])[:, -1].float()
            if temperature == 0:
                chosen = logits.argmax(-1, keepdim=True)
            else:
                values, ids = logits.topk(min(top_k, logits.shape[-1]))
                chosen = ids.gather(-1, torch.multinomial((values / temperature).softmax(-1), 1))
            tokens = torch.cat([tokens, chosen], 1)
        return tokens


def read_file(path):
    """The tensors of one safetensors file: eight bytes with the length of a JSON header, the header, the tensors' bytes."""
    tensors = {}
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.tell()
        header.pop("__metadata__", None)
        for name, info in header.items():
            begin, end = info["data_offsets"]
            data = bytearray(end - begin)
            file.seek(start + begin)
            if file.readinto(data) != len(data):
                raise ValueError(f"{path}: {name} is cut off")
            dtype = DTYPES[info["dtype"]]
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            tensors[name] = flat.reshape(info["shape"])
    return tensors


def load(folder, dtype=None):
    """The model in a folder of `phalanx-train merge`, ready for inference; dtype: converts it (torch.float32), None: as stored."""
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    files, index = ["model.safetensors"], os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index) as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
    tensors = {}
    for name in files:
        tensors.update(read_file(os.path.join(folder, name)))
    model = Gpt(config).to(dtype or getattr(torch, config["dtype"]))
    model.load_state_dict(tensors)
    return model.eval()
