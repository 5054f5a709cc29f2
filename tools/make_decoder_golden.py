#!/usr/bin/python3
"""Golden numbers for the decoders of src/engine/tuning, by plain PyTorch and from the published descriptions alone.

Prints JSON for tests/train/tuning/decoders.json: for each family its config.json, and of a batch the loss, logits and the norms of all
gradients. Heads and positions are loops here, so that nothing of the engine's shapes is repeated. Weights are sines of their place, so that
no file has to hold them: parameter number p in the order of names, element k, is sin(1.3 k + p).

Usage: tools/make_decoder_golden.py > tests/train/tuning/decoders.json
       tools/make_decoder_golden.py training > tests/train/finetune/training.json   (eight steps of a fine-tuning, LoRA and full)
"""
import json
import math
import sys

import torch

BASE = {"vocab_size": 19, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 4, "rms_norm_eps": 1e-6, "rope_theta": 100.0, "max_position_embeddings": 64}
FAMILIES = {
    "llama": {"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                      "high_freq_factor": 4.0, "original_max_position_embeddings": 16}},
    "llama-bias": {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "rope_scaling": {"type": "linear", "factor": 2.0}},
    "mistral": {"model_type": "mistral", "sliding_window": 5},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True},
}
TOKENS = [[1, 7, 3, 18, 4, 11, 2, 9, 9, 0, 5, 16, 6], [1, 2, 3, 5, 8, 13, 2, 15, 17, 12, 10, 14, 0]]
LABELS = [[-100] * 4 + TOKENS[0][4:], [-100] * 2 + TOKENS[1][2:7] + [-100] * 6]


def names_and_shapes(c):
    hidden, inner, dim = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    qkv_bias = c["model_type"] == "qwen2" or c.get("attention_bias", False)
    out = {"model.embed_tokens.weight": [c["vocab_size"], hidden], "model.norm.weight": [hidden]}
    if not c.get("tie_word_embeddings", False):
        out["lm_head.weight"] = [c["vocab_size"], hidden]
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        out[at + "input_layernorm.weight"] = out[at + "post_attention_layernorm.weight"] = [hidden]
        for name, rows, columns, bias in (("self_attn.q_proj", q, hidden, qkv_bias), ("self_attn.k_proj", kv, hidden, qkv_bias),
                                          ("self_attn.v_proj", kv, hidden, qkv_bias),
                                          ("self_attn.o_proj", hidden, q, c.get("attention_bias", False)),
                                          ("mlp.gate_proj", inner, hidden, c.get("mlp_bias", False)),
                                          ("mlp.up_proj", inner, hidden, c.get("mlp_bias", False)),
                                          ("mlp.down_proj", hidden, inner, c.get("mlp_bias", False))):
            out[at + name + ".weight"] = [rows, columns]
            if bias:
                out[at + name + ".bias"] = [rows]
        if c["model_type"] == "qwen3":
            out[at + "self_attn.q_norm.weight"] = out[at + "self_attn.k_norm.weight"] = [dim]
    return dict(sorted(out.items()))


def make_weights(c):
    weights = {}
    for place, (name, shape) in enumerate(names_and_shapes(c).items()):
        count = math.prod(shape)
        value = torch.tensor([math.sin(1.3 * k + place) for k in range(count)], dtype=torch.float64)
        value = 1 + 0.2 * value if "norm" in name else 0.4 * value
        weights[name] = value.reshape(shape).requires_grad_()
    return weights


def frequencies(c):
    dim, out = c["head_dim"], []
    scaling = c.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    for pair in range(dim // 2):
        f = c["rope_theta"] ** (-2 * pair / dim)
        if kind == "linear":
            f /= scaling["factor"]
        if kind == "llama3":
            wave, length = 2 * math.pi / f, scaling["original_max_position_embeddings"]
            low, high = length / scaling["low_freq_factor"], length / scaling["high_freq_factor"]
            if wave > low:
                f /= scaling["factor"]
            elif wave >= high:
                mix = (length / wave - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"])
                f = (1 - mix) * f / scaling["factor"] + mix * f
        out.append(f)
    return out


def norm(x, weight, epsilon):
    return x / torch.sqrt((x * x).mean() + epsilon) * weight


def turn(x, position, freqs):
    """Each pair (x_j, x_{j + half}) turned by position · f_j."""
    half = len(freqs)
    angles = torch.tensor([position * f for f in freqs], dtype=torch.float64)
    first, second = x[:half], x[half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()])


def window_of(c, layer):
    if c["model_type"] == "mistral":
        return c.get("sliding_window") or 0
    if c.get("use_sliding_window") and layer >= c["max_window_layers"]:
        return c["sliding_window"]
    return 0


def linear(w, name, x):
    y = w[name + ".weight"] @ x
    return y + w[name + ".bias"] if name + ".bias" in w else y


def attend(c, w, at, xs, window):
    dim, heads, shared = c["head_dim"], c["num_attention_heads"], c["num_attention_heads"] // c["num_key_value_heads"]
    freqs, out = frequencies(c), []
    parts = {kind: [linear(w, f"{at}{kind}_proj", x) for x in xs] for kind in "qkv"}

    def head_of(kind, position, head):
        x = parts[kind][position][head * dim:(head + 1) * dim]
        if kind == "v":
            return x
        if c["model_type"] == "qwen3":
            x = norm(x, w[f"{at}{kind}_norm.weight"], c["rms_norm_eps"])
        return turn(x, position, freqs)

    for i in range(len(xs)):
        seen = [j for j in range(i + 1) if not window or j > i - window]
        row = []
        for head in range(heads):
            query = head_of("q", i, head)
            scores = torch.stack([query @ head_of("k", j, head // shared) for j in seen]) / math.sqrt(dim)
            shares = torch.softmax(scores, 0)
            row.append(sum(share * head_of("v", j, head // shared) for share, j in zip(shares, seen)))
        out.append(linear(w, at + "o_proj", torch.cat(row)))
    return out


def logits_of(c, w, tokens):
    xs = [w["model.embed_tokens.weight"][token] for token in tokens]
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        normed = [norm(x, w[at + "input_layernorm.weight"], c["rms_norm_eps"]) for x in xs]
        xs = [x + y for x, y in zip(xs, attend(c, w, at + "self_attn.", normed, window_of(c, layer)))]
        normed = [norm(x, w[at + "post_attention_layernorm.weight"], c["rms_norm_eps"]) for x in xs]
        gated = [torch.nn.functional.silu(linear(w, at + "mlp.gate_proj", x)) * linear(w, at + "mlp.up_proj", x) for x in normed]
        xs = [x + linear(w, at + "mlp.down_proj", y) for x, y in zip(xs, gated)]
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return torch.stack([head @ norm(x, w["model.norm.weight"], c["rms_norm_eps"]) for x in xs])


def golden(config):
    weights = make_weights(config)
    total, count, rows = 0, 0, []
    for tokens, labels in zip(TOKENS, LABELS):
        logits = logits_of(config, weights, tokens)
        rows.append(logits)
        for i, label in enumerate(labels[1:]):
            if label != -100:
                total, count = total - torch.log_softmax(logits[i], 0)[label], count + 1
    loss = total / count
    loss.backward()
    return {"config": config, "loss": round(loss.item(), 9), "targets": count,
            "logits": [[round(x, 7) for x in row[-1].tolist()] for row in rows],
            "gradient_norms": {name: round(value.grad.norm().item(), 9) for name, value in weights.items()}}


TRAINED = {**BASE, "model_type": "qwen2", "tie_word_embeddings": True}
RECIPE = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "learning_rate": 0.02, "weight_decay": 0.1,
          "adam_beta2": 0.99, "max_grad_norm": 1.5, "max_steps": 8, "lr_scheduler_type": "cosine", "warmup_ratio": 0.2, "seed": 7}
ADAPTER = {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "v_proj", "down_proj"]}


def rows_to_learn():
    """Nine rows of 5 to 13 tokens, whose first two are not learned."""
    rows = []
    for row in range(9):
        ids = [1] + [(3 + 5 * row + 7 * i + i * i) % 19 for i in range(4 + row)]
        rows.append({"input_ids": ids, "labels": [-100, -100] + ids[2:]})
    return rows


def make_adapter(c):
    """A is sin(0.7 k + p) / 3, p by the order of the names; B is 0."""
    shapes, parts = names_and_shapes(c), {}
    modules = [name[:-len(".weight")] for name in shapes
               if name.endswith(".weight") and name.split(".")[-2] in ADAPTER["target_modules"]]
    for place, module in enumerate(sorted(modules)):
        rows, columns = shapes[module + ".weight"]
        first = torch.tensor([math.sin(0.7 * k + place) / 3 for k in range(ADAPTER["r"] * columns)], dtype=torch.float64)
        parts[module + ".lora_A.weight"] = first.reshape(ADAPTER["r"], columns).requires_grad_()
        parts[module + ".lora_B.weight"] = torch.zeros(rows, ADAPTER["r"], dtype=torch.float64).requires_grad_()
    return parts


def with_adapter(weights, adapter):
    out = dict(weights)
    for name, value in adapter.items():
        if name.endswith("lora_A.weight"):
            module = name[:-len(".lora_A.weight")]
            product = adapter[module + ".lora_B.weight"] @ value
            out[module + ".weight"] = weights[module + ".weight"] + ADAPTER["lora_alpha"] / ADAPTER["r"] * product
    return out


def batches_of_steps(count):
    """Micro-batches of each step, in the order of HF's Trainer: epoch e is randperm(seed + e)."""
    size, accumulate, epoch, steps = RECIPE["per_device_train_batch_size"], RECIPE["gradient_accumulation_steps"], 0, []
    while len(steps) < RECIPE["max_steps"]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(RECIPE["seed"] + epoch)).tolist()
        batches = [order[at:at + size] for at in range(0, count, size)]
        steps += [batches[at:at + accumulate] for at in range(0, len(batches), accumulate)]
        epoch += 1
    return steps[:RECIPE["max_steps"]]


def rate_of(step):
    warmup = math.ceil(RECIPE["warmup_ratio"] * RECIPE["max_steps"])
    if step < warmup:
        return RECIPE["learning_rate"] * (step / warmup)
    return RECIPE["learning_rate"] * 0.5 * (1 + math.cos(math.pi * ((step - warmup) / (RECIPE["max_steps"] - warmup))))


def loss_of_step(c, weights, rows, batches):
    total, count = 0, 0
    for row in [row for batch in batches for row in batch]:
        logits = logits_of(c, weights, rows[row]["input_ids"])
        for i, label in enumerate(rows[row]["labels"][1:]):
            if label != -100:
                total, count = total - torch.log_softmax(logits[i], 0)[label], count + 1
    return total / count


def golden_training(lora):
    c, rows = TRAINED, rows_to_learn()
    weights = make_weights(c)
    trained = make_adapter(c) if lora else weights
    means = {name: (torch.zeros_like(value), torch.zeros_like(value)) for name, value in trained.items()}
    steps = []
    for step, batches in enumerate(batches_of_steps(len(rows))):
        for value in trained.values():
            value.grad = None
        loss = loss_of_step(c, with_adapter(weights, trained) if lora else weights, rows, batches)
        loss.backward()
        size = math.sqrt(sum((value.grad ** 2).sum().item() for value in trained.values()))
        clip, rate = min(1.0, RECIPE["max_grad_norm"] / (size + 1e-6)), rate_of(step)
        steps.append({"loss": round(loss.item(), 9), "grad_norm": round(size, 9), "learning_rate": rate, "rows": batches})
        with torch.no_grad():
            for name, value in trained.items():
                mean, square = means[name]
                gradient = value.grad * clip
                if "norm" not in name and not name.endswith("bias"):
                    value.mul_(1 - rate * RECIPE["weight_decay"])
                mean.mul_(0.9).add_(gradient, alpha=0.1)
                square.mul_(RECIPE["adam_beta2"]).addcmul_(gradient, gradient, value=1 - RECIPE["adam_beta2"])
                root = (square / (1 - RECIPE["adam_beta2"] ** (step + 1))).sqrt().add_(1e-8)
                value.addcdiv_(mean / (1 - 0.9 ** (step + 1)), root, value=-rate)
    sums = {name: [round(value.sum().item(), 7), round(value.norm().item(), 7)] for name, value in trained.items()}
    return {"steps": steps, "sum_and_norm_after": sums}


def print_training():
    print(json.dumps({"config": TRAINED, "recipe": RECIPE, "adapter": ADAPTER, "rows": rows_to_learn(), "shapes": names_and_shapes(TRAINED),
                      "lora": golden_training(True), "full": golden_training(False)}, indent=1))


def print_decoders():
    print(json.dumps({"tokens": TOKENS, "labels": LABELS, "families": {name: golden({**BASE, **own}) for name, own in FAMILIES.items()}},
                     indent=1))


if __name__ == "__main__":
    print_training() if sys.argv[1:] == ["training"] else print_decoders()
