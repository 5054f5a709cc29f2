#!/usr/bin/python3
"""Golden numbers for the decoders of src/engine/tuning, by plain PyTorch and from the published descriptions alone.

Prints JSON for tests/train/tuning/decoders.json: for each family its config.json, and of a batch the loss, logits and the norms of all
gradients. Heads and positions are loops here, so that nothing of the engine's shapes is repeated. Weights are sines of their place, so that
no file has to hold them: parameter number p in the order of names, element k, is sin(1.3 k + p).

Usage: tools/make_decoder_golden.py > tests/train/tuning/decoders.json
       tools/make_decoder_golden.py training > tests/train/finetune/training.json   (eight steps of a fine-tuning, LoRA and full)
       tools/make_decoder_golden.py preferences > tests/train/tuning/preferences.json   (five steps of stage dpo with each loss)
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
    "gemma": {"model_type": "gemma", "tie_word_embeddings": True},
    "gemma2": {"model_type": "gemma2", "tie_word_embeddings": True, "sliding_window": 4, "query_pre_attn_scalar": 6,
               "attn_logit_softcapping": 1.5, "final_logit_softcapping": 0.7},
    "gemma3": {"model_type": "gemma3_text", "tie_word_embeddings": True, "sliding_window": 4, "sliding_window_pattern": 2,
               "query_pre_attn_scalar": 6, "rope_local_base_freq": 30.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "phi3": {"model_type": "phi3", "sliding_window": 6, "head_dim": 4, "partial_rotary_factor": 0.5,
             "original_max_position_embeddings": 8,
             "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.7]}},
    "dynamic": {"model_type": "llama", "max_position_embeddings": 8, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
}
BRANCH_NORMS = ("gemma2", "gemma3_text")
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
        if c["model_type"] in BRANCH_NORMS:
            out[at + "pre_feedforward_layernorm.weight"] = out[at + "post_feedforward_layernorm.weight"] = [hidden]
        if c["model_type"] == "phi3":
            out |= {at + "self_attn.qkv_proj.weight": [q + 2 * kv, hidden], at + "self_attn.o_proj.weight": [hidden, q],
                    at + "mlp.gate_up_proj.weight": [2 * inner, hidden], at + "mlp.down_proj.weight": [hidden, inner]}
            continue
        for name, rows, columns, bias in (("self_attn.q_proj", q, hidden, qkv_bias), ("self_attn.k_proj", kv, hidden, qkv_bias),
                                          ("self_attn.v_proj", kv, hidden, qkv_bias),
                                          ("self_attn.o_proj", hidden, q, c.get("attention_bias", False)),
                                          ("mlp.gate_proj", inner, hidden, c.get("mlp_bias", False)),
                                          ("mlp.up_proj", inner, hidden, c.get("mlp_bias", False)),
                                          ("mlp.down_proj", hidden, inner, c.get("mlp_bias", False))):
            out[at + name + ".weight"] = [rows, columns]
            if bias:
                out[at + name + ".bias"] = [rows]
        if c["model_type"] in ("qwen3", "gemma3_text"):
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


def frequencies(c, window, length):
    """Of the pairs of a head that turn, and what cosines and sines are multiplied with."""
    dim, out, scale = int(c["head_dim"] * c.get("partial_rotary_factor", 1)), [], 1.0
    scaling = c.get("rope_scaling") or {}
    kind, theta = scaling.get("rope_type", scaling.get("type", "default")), c["rope_theta"]
    if c["model_type"] == "gemma3_text" and window:
        kind, theta = "default", c["rope_local_base_freq"]
    if kind == "dynamic" and length > c["max_position_embeddings"]:
        theta *= (scaling["factor"] * length / c["max_position_embeddings"] - (scaling["factor"] - 1)) ** (dim / (dim - 2))
    for pair in range(dim // 2):
        f = theta ** (-2 * pair / dim)
        if kind == "longrope":
            f /= scaling["long_factor" if length > c["original_max_position_embeddings"] else "short_factor"][pair]
            extended = c["max_position_embeddings"] / c["original_max_position_embeddings"]
            scale = math.sqrt(1 + math.log(extended) / math.log(c["original_max_position_embeddings"]))
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
    return out, scale


def norm(c, x, weight):
    scale = 1 + weight if c["model_type"].startswith("gemma") else weight
    return x / torch.sqrt((x * x).mean() + c["rms_norm_eps"]) * scale


def turn(x, position, turns):
    """Each pair (x_j, x_{j + half}) turned by position · f_j; columns behind them stay."""
    freqs, scale = turns
    half = len(freqs)
    angles = torch.tensor([position * f for f in freqs], dtype=torch.float64)
    first, second, cos, sin = x[:half], x[half:2 * half], angles.cos() * scale, angles.sin() * scale
    return torch.cat([first * cos - second * sin, second * cos + first * sin, x[2 * half:]])


def window_of(c, layer):
    if c["model_type"] in ("mistral", "phi3"):
        return c.get("sliding_window") or 0
    if c["model_type"] == "gemma2":
        return c["sliding_window"] if layer % 2 == 0 else 0
    if c["model_type"] == "gemma3_text":
        return c["sliding_window"] if (layer + 1) % c["sliding_window_pattern"] else 0
    if c.get("use_sliding_window") and layer >= c["max_window_layers"]:
        return c["sliding_window"]
    return 0


def linear(w, name, x):
    y = w[name + ".weight"] @ x
    return y + w[name + ".bias"] if name + ".bias" in w else y


def cap(x, size):
    return size * torch.tanh(x / size) if size else x


def attend(c, w, at, xs, window):
    dim, heads, shared = c["head_dim"], c["num_attention_heads"], c["num_attention_heads"] // c["num_key_value_heads"]
    turns, out = frequencies(c, window, len(xs)), []
    if c["model_type"] == "phi3":
        whole = [linear(w, f"{at}qkv_proj", x).split([heads * dim] + [heads // shared * dim] * 2) for x in xs]
        parts = {kind: [one[i] for one in whole] for i, kind in enumerate("qkv")}
    else:
        parts = {kind: [linear(w, f"{at}{kind}_proj", x) for x in xs] for kind in "qkv"}
    scale = c["query_pre_attn_scalar"] if c["model_type"] in BRANCH_NORMS else dim

    def head_of(kind, position, head):
        x = parts[kind][position][head * dim:(head + 1) * dim]
        if kind == "v":
            return x
        if c["model_type"] in ("qwen3", "gemma3_text"):
            x = norm(c, x, w[f"{at}{kind}_norm.weight"])
        return turn(x, position, turns)

    for i in range(len(xs)):
        seen = [j for j in range(i + 1) if not window or j > i - window]
        row = []
        for head in range(heads):
            query = head_of("q", i, head)
            scores = torch.stack([query @ head_of("k", j, head // shared) for j in seen]) / math.sqrt(scale)
            shares = torch.softmax(cap(scores, c.get("attn_logit_softcapping")), 0)
            row.append(sum(share * head_of("v", j, head // shared) for share, j in zip(shares, seen)))
        out.append(linear(w, at + "o_proj", torch.cat(row)))
    return out


def logits_of(c, w, tokens):
    gemma, branch_norms = c["model_type"].startswith("gemma"), c["model_type"] in BRANCH_NORMS
    xs = [w["model.embed_tokens.weight"][token] * (math.sqrt(c["hidden_size"]) if gemma else 1) for token in tokens]
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."

        def normed(name, values):
            return [norm(c, x, w[f"{at}{name}_layernorm.weight"]) for x in values]

        def mlp(x):
            if c["model_type"] == "phi3":
                gate, up = linear(w, at + "mlp.gate_up_proj", x).chunk(2)
            else:
                gate, up = linear(w, at + "mlp.gate_proj", x), linear(w, at + "mlp.up_proj", x)
            bent = gate / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate ** 3)))
            return linear(w, at + "mlp.down_proj", (bent if gemma else torch.nn.functional.silu(gate)) * up)

        seen = attend(c, w, at + "self_attn.", normed("input", xs), window_of(c, layer))
        xs = [x + y for x, y in zip(xs, normed("post_attention", seen) if branch_norms else seen)]
        bent = [mlp(x) for x in normed("pre_feedforward" if branch_norms else "post_attention", xs)]
        xs = [x + y for x, y in zip(xs, normed("post_feedforward", bent) if branch_norms else bent)]
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return torch.stack([cap(head @ norm(c, x, w["model.norm.weight"]), c.get("final_logit_softcapping")) for x in xs])


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
SAVED = ["embed_tokens", "lm_head", "norm"]


def rows_to_learn():
    """Nine rows of 5 to 13 tokens, whose first two are not learned."""
    rows = [[1] + [(3 + 5 * row + 7 * i + i * i) % 19 for i in range(4 + row)] for row in range(9)]
    return [{"input_ids": ids, "labels": [-100, -100] + ids[2:]} for ids in rows]


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
    out = {**weights, **{name: value for name, value in adapter.items() if ".lora_" not in name}}
    for name, value in adapter.items():
        if name.endswith("lora_A.weight"):
            module = name[:-len(".lora_A.weight")]
            product = adapter[module + ".lora_B.weight"] @ value
            out[module + ".weight"] = weights[module + ".weight"] + ADAPTER["lora_alpha"] / ADAPTER["r"] * product
    return out


def batches_of_steps(count, recipe):
    """Micro-batches of each step, in the order of HF's Trainer: epoch e is randperm(seed + e)."""
    size, accumulate, epoch, steps = recipe["per_device_train_batch_size"], recipe["gradient_accumulation_steps"], 0, []
    while len(steps) < recipe["max_steps"]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(recipe["seed"] + epoch)).tolist()
        batches = [order[at:at + size] for at in range(0, count, size)]
        steps += [batches[at:at + accumulate] for at in range(0, len(batches), accumulate)]
        epoch += 1
    return steps[:recipe["max_steps"]]


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


def adamw(trained, means, step, clip, rate, beta2, decay):
    """A step of torch.optim.AdamW; biases and norms do not decay."""
    with torch.no_grad():
        for name, value in trained.items():
            mean, square = means.setdefault(name, (torch.zeros_like(value), torch.zeros_like(value)))
            gradient = value.grad * clip
            if "norm" not in name and not name.endswith("bias"):
                value.mul_(1 - rate * decay)
            mean.mul_(0.9).add_(gradient, alpha=0.1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            root = (square / (1 - beta2 ** (step + 1))).sqrt().add_(1e-8)
            value.addcdiv_(mean / (1 - 0.9 ** (step + 1)), root, value=-rate)
            value.grad = None


def saved_modules(weights):
    """What PEFT trains beside an adapter with modules_to_save: a copy of each, so that a tied head is tied no longer."""
    all_weights = {"lm_head.weight": weights["model.embed_tokens.weight"], **weights}
    return {name: value.detach().clone().requires_grad_() for name, value in all_weights.items()
            if name.split(".")[-2].endswith(tuple(SAVED))}


def golden_training(lora, saved=False):
    c, rows = TRAINED, rows_to_learn()
    weights, steps, means = make_weights(c), [], {}
    trained = {**(make_adapter(c) if lora else weights), **(saved_modules(weights) if saved else {})}
    for step, batches in enumerate(batches_of_steps(len(rows), RECIPE)):
        loss = loss_of_step(c, with_adapter(weights, trained) if lora else weights, rows, batches)
        loss.backward()
        size = math.sqrt(sum((value.grad ** 2).sum().item() for value in trained.values()))
        clip, rate = min(1.0, RECIPE["max_grad_norm"] / (size + 1e-6)), rate_of(step)
        steps.append({"loss": round(loss.item(), 9), "grad_norm": round(size, 9), "learning_rate": rate, "rows": batches})
        adamw(trained, means, step, clip, rate, RECIPE["adam_beta2"], RECIPE["weight_decay"])
    sums = {name: [round(value.sum().item(), 7), round(value.norm().item(), 7)] for name, value in trained.items()}
    return {"steps": steps, "sum_and_norm_after": sums}


PREFERENCES = ("sigmoid", "hinge", "ipo", "orpo", "simpo")
PREFERENCE_RECIPE = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "learning_rate": 0.01, "adam_beta2": 0.999,
                     "max_grad_norm": 1.0, "max_steps": 5, "lr_scheduler_type": "constant", "seed": 3, "pref_beta": 0.3, "pref_ftx": 0.2,
                     "dpo_label_smoothing": 0.1, "simpo_gamma": 0.4}


def pairs_to_learn():
    """Five prompts of three tokens with two answers each, of different lengths."""
    pairs = []
    for row in range(5):
        prompt, answers = [1, 2 + row, 7], [[(4 + row * 3 + i * 5 + kind * 7) % 19 for i in range(3 + (row + kind) % 3)] for kind in (0, 1)]
        pairs.append([{"input_ids": prompt + answer, "labels": [-100] * 3 + answer} for answer in answers])
    return pairs


def log_probabilities(c, weights, row, mean):
    logits, labels = logits_of(c, weights, row["input_ids"]), row["labels"]
    parts = [torch.log_softmax(logits[i], 0)[label] for i, label in enumerate(labels[1:]) if label != -100]
    return sum(parts) / (len(parts) if mean else 1), sum(parts) / len(parts)


def pair_loss(kind, policy, reference, chosen_mean):
    """Of one pair: log p of both answers under the policy and under the reference."""
    r, log_sigmoid = PREFERENCE_RECIPE, torch.nn.functional.logsigmoid
    beta, (chosen, rejected), (chosen0, rejected0) = r["pref_beta"], policy, reference
    margin = (chosen - rejected) - (chosen0 - rejected0)
    if kind == "hinge":
        loss = torch.relu(1 - beta * margin)
    elif kind == "ipo":
        loss = (margin - 1 / (2 * beta)) ** 2
    elif kind == "orpo":
        odds = (chosen - rejected) - (torch.log1p(-chosen.exp()) - torch.log1p(-rejected.exp()))
        loss = -chosen - beta * log_sigmoid(odds)
    elif kind == "simpo":
        loss = -log_sigmoid(beta * (chosen - rejected) - r["simpo_gamma"])
    else:
        loss = -(1 - r["dpo_label_smoothing"]) * log_sigmoid(beta * margin) - r["dpo_label_smoothing"] * log_sigmoid(-beta * margin)
    return loss - r["pref_ftx"] * chosen_mean, beta * (chosen - chosen0), beta * (rejected - rejected0)


def golden_preference(kind):
    c, pairs, mean = TRAINED, pairs_to_learn(), kind in ("ipo", "orpo", "simpo")
    weights, trained = make_weights(c), make_adapter(c)
    moments, steps = {}, []
    with torch.no_grad():
        before = [[log_probabilities(c, weights, row, mean)[0] * (kind not in ("orpo", "simpo")) for row in pair] for pair in pairs]
    for step, batches in enumerate(batches_of_steps(len(pairs), PREFERENCE_RECIPE)):
        adapted, total, rewards = with_adapter(weights, trained), 0, [0, 0]
        for batch in batches:
            for place in batch:
                logs = [log_probabilities(c, adapted, row, mean) for row in pairs[place]]
                loss, *gained = pair_loss(kind, [log for log, _ in logs], before[place], logs[0][1])
                share = len(batch) * len(batches)
                total = total + loss / share
                rewards = [reward + gain.item() / share for reward, gain in zip(rewards, gained)]
        total.backward()
        size = math.sqrt(sum((value.grad ** 2).sum().item() for value in trained.values()))
        clip = min(1.0, PREFERENCE_RECIPE["max_grad_norm"] / (size + 1e-6))
        steps.append({"loss": round(total.item(), 9), "grad_norm": round(size, 9), "rewards": [round(reward, 9) for reward in rewards]})
        adamw(trained, moments, step, clip, PREFERENCE_RECIPE["learning_rate"], 0.999, 0)
    return steps


def print_preferences():
    print(json.dumps({"config": TRAINED, "recipe": PREFERENCE_RECIPE, "adapter": ADAPTER, "pairs": pairs_to_learn(),
                      "steps": {kind: golden_preference(kind) for kind in PREFERENCES}}, indent=1))


def print_training():
    print(json.dumps({"config": TRAINED, "recipe": RECIPE, "adapter": ADAPTER, "rows": rows_to_learn(), "shapes": names_and_shapes(TRAINED),
                      "saved": SAVED, "lora": golden_training(True), "full": golden_training(False),
                      "lora_and_saved": golden_training(True, True)}, indent=1))


def print_decoders():
    print(json.dumps({"tokens": TOKENS, "labels": LABELS, "families": {name: golden({**BASE, **own}) for name, own in FAMILIES.items()}},
                     indent=1))


if __name__ == "__main__":
    {"training": print_training, "preferences": print_preferences}.get("".join(sys.argv[1:]), print_decoders)()
