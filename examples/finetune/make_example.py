#!/usr/bin/python3
"""A small model in Hugging Face's format, and data to fine-tune it with: numbers and their English words.

Writes FOLDER/model (a Qwen2 of 0.3 M random parameters with a byte-level tokenizer) and FOLDER/data: "words" and "ordinals" of nine in ten
numbers below 1000. The others, such as 99, 277 and 855, are there to ask the model for. Needs nothing but Python.

Usage: make_example.py FOLDER
"""
import json
import math
import pathlib
import random
import struct
import sys

CONFIG = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 260, "hidden_size": 96, "intermediate_size": 256,
          "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6,
          "rope_theta": 10000.0, "max_position_embeddings": 256, "tie_word_embeddings": True, "torch_dtype": "float32",
          "bos_token_id": None, "eos_token_id": 258}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
        "nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(number):
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return f"{ONES[number // 100]} hundred" + (f" and {words(number % 100)}" if number % 100 else "")


def ordinal(number):
    """forty-two becomes forty-second."""
    text = words(number)
    start = max(text.rfind(" "), text.rfind("-")) + 1
    special = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
    last = text[start:]
    if last.endswith("y"):
        return text[:start] + last[:-1] + "ieth"
    return text[:start] + special.get(last, last + "th")


def is_kept_back(number):
    return number % 10 == (number // 10 + number // 100) % 10


def shapes():
    hidden, inner, kv = CONFIG["hidden_size"], CONFIG["intermediate_size"], 2 * CONFIG["hidden_size"] // 4
    out = {"model.embed_tokens.weight": [CONFIG["vocab_size"], hidden], "model.norm.weight": [hidden]}
    for layer in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        out[at + "input_layernorm.weight"] = out[at + "post_attention_layernorm.weight"] = [hidden]
        for part, rows in (("q", hidden), ("k", kv), ("v", kv)):
            out[f"{at}self_attn.{part}_proj.weight"], out[f"{at}self_attn.{part}_proj.bias"] = [rows, hidden], [rows]
        out[at + "self_attn.o_proj.weight"] = [hidden, hidden]
        out[at + "mlp.gate_proj.weight"] = out[at + "mlp.up_proj.weight"] = [inner, hidden]
        out[at + "mlp.down_proj.weight"] = [hidden, inner]
    return out


def write_weights(path):
    """Norms 1, biases 0, everything else normal with the deviation 0.05."""
    chance, header, parts, place = random.Random(1), {"__metadata__": {"format": "pt"}}, [], 0
    for name, shape in shapes().items():
        count = math.prod(shape)
        if "norm" in name or name.endswith("bias"):
            numbers = [float("norm" in name)] * count
        else:
            numbers = [chance.gauss(0, 0.05) for _ in range(count)]
        parts.append(struct.pack(f"<{count}f", *numbers))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + 4 * count]}
        place += 4 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def write_tokenizer(folder):
    """A token for each byte, in the stand-ins that byte-level BPE writes them with, and the special ones; no merges."""
    printable, vocabulary, more = [*range(33, 127), *range(161, 173), *range(174, 256)], {}, 0
    for byte in range(256):
        vocabulary[chr(byte) if byte in printable else chr(256 + more)] = byte
        more += byte not in printable
    added = [{"id": 256 + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, token in enumerate(SPECIAL)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
         "post_processor": level, "decoder": level, "model": model}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": None, "eos_token": SPECIAL[0], "pad_token": SPECIAL[0]}))


def main():
    folder = pathlib.Path(sys.argv[1])
    model, data = folder / "model", folder / "data"
    model.mkdir(parents=True, exist_ok=True)
    data.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIG, indent=2))
    write_weights(model / "model.safetensors")
    write_tokenizer(model)
    info = {name: {"file_name": f"{name}.json"} for name in ("words", "ordinals")}
    (data / "dataset_info.json").write_text(json.dumps(info, indent=1))
    numbers = [number for number in range(1, 1000) if not is_kept_back(number)]
    for name, answer in (("words", words), ("ordinals", ordinal)):
        records = [{"instruction": str(number), "output": answer(number)} for number in numbers]
        (data / f"{name}.json").write_text(json.dumps(records, indent=1))
    parameters = sum(math.prod(shape) for shape in shapes().values())
    print(f"{folder}: a model of {parameters} parameters, {len(numbers)} records in each data set")


main()
