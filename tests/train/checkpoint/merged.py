#!/usr/bin/python3
"""Reads a merged model as other programs do and compares it, bit for bit, with raw tensors.

merged.py FOLDER EXPECTED [FOLDER EXPECTED ...]: EXPECTED is JSON {name: {"dtype": "float32", "shape": [..], "hex": "…"}}.
"""
import json
import os
import struct
import sys

import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I64": torch.int64, "BOOL": torch.bool}


def load_file(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    body, end, tensors = bytearray(data[8 + length :]), 0, {}
    for name, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = info["data_offsets"]
        assert begin == end, "a hole"
        end = stop
        dtype = DTYPES[info["dtype"]]
        flat = torch.frombuffer(body[begin:stop], dtype=dtype) if stop > begin else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(info["shape"])
    assert end == len(body)
    return tensors


def load_folder(folder):
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        assert os.listdir(folder) == ["model.safetensors"], os.listdir(folder)
        return load_file(os.path.join(folder, "model.safetensors"))
    index = json.load(open(index))
    files = sorted(set(index["weight_map"].values()))
    assert files == ["model-%05d-of-%05d.safetensors" % (i + 1, len(files)) for i in range(len(files))]
    assert sorted(os.listdir(folder)) == files + ["model.safetensors.index.json"]
    tensors = {}
    for file in files:
        part = load_file(os.path.join(folder, file))
        assert all(index["weight_map"][name] == file for name in part)
        tensors.update(part)
    assert sorted(tensors) == sorted(index["weight_map"])
    assert index["metadata"]["total_size"] == sum(t.numel() * t.element_size() for t in tensors.values())
    return tensors


def compare(folder, expected_file):
    tensors, expected = load_folder(folder), json.load(open(expected_file))
    assert sorted(tensors) == sorted(expected), sorted(tensors)
    for name, want in expected.items():
        have = tensors[name]
        assert str(have.dtype) == "torch." + want["dtype"], (name, have.dtype)
        assert list(have.shape) == want["shape"], (name, have.shape)
        raw = have.contiguous().reshape(-1).view(torch.uint8) if have.numel() else torch.empty(0, dtype=torch.uint8)
        assert bytes(raw.tolist()).hex() == want["hex"], name
    print("equal:", len(tensors), "tensors")


for folder, expected_file in zip(sys.argv[1::2], sys.argv[2::2]):
    compare(folder, expected_file)
