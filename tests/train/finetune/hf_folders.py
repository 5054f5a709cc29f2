"""Model folders of Hugging Face's kind without its libraries: safetensors, a byte-level tokenizer, weights that are sines."""
import json
import math
import pathlib
import struct

TYPES = {"F32": ("f", 4), "BF16": ("H", 2)}


def read_safetensors(path):
    """{name: (shape, numbers)} and the metadata. BF16 is widened."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata, out = header.pop("__metadata__", {}), {}
    for name, info in header.items():
        code, size = TYPES[info["dtype"]]
        begin, end = (8 + length + at for at in info["data_offsets"])
        numbers = struct.unpack(f"<{(end - begin) // size}{code}", data[begin:end])
        if info["dtype"] == "BF16":
            numbers = struct.unpack(f"<{len(numbers)}f", b"".join(struct.pack("<I", n << 16) for n in numbers))
        out[name] = (info["shape"], numbers)
    return out, metadata


def write_safetensors(path, tensors):
    """tensors: {name: (shape, numbers)}, fp32."""
    header, place, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for name, (shape, numbers) in tensors.items():
        parts.append(struct.pack(f"<{len(numbers)}f", *numbers))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + len(parts[-1])]}
        place += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def sines(shape, place, norm=False, scale=0.4, step=1.3):
    count = math.prod(shape)
    values = [math.sin(step * k + place) for k in range(count)]
    return shape, [1 + 0.2 * v if norm else scale * v for v in values]


def write_model(folder, config, shapes):
    """The weights of tools/make_decoder_golden.py: parameter p in the order of the names is sin(1.3 k + p)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: sines(shape, place, "norm" in name) for place, (name, shape) in enumerate(sorted(shapes.items()))}
    write_safetensors(folder / "model.safetensors", tensors)


def stand_ins():
    """The printable character that stands for each byte, as GPT-2's byte-level BPE has them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, more = {}, 0
    for byte in range(256):
        out[byte] = chr(byte) if byte in printable else chr(256 + more)
        more += byte not in printable
    return out


def write_tokenizer(folder, special):
    """256 bytes and the special tokens behind them; no merges."""
    folder = pathlib.Path(folder)
    vocabulary = {character: byte for byte, character in stand_ins().items()}
    added = [{"id": 256 + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, token in enumerate(special)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
                 "post_processor": level, "decoder": level,
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                           "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": None, "eos_token": special[0], "pad_token": None}))
