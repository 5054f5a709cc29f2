"""Holds phalanx_gpt.py, as it lies beside a merged model, against the engine's numbers.

merged_model.py FOLDER BATCH TIME: FOLDER/model is merged; tokens, logits and next are raw tensors of the engine.
"""
import sys

import torch

folder, shape = sys.argv[1], [int(size) for size in sys.argv[2:]]
sys.path.insert(0, folder + "/model")
import phalanx_gpt  # noqa: E402


def raw(name, dtype):
    return torch.frombuffer(bytearray(open(f"{folder}/{name}", "rb").read()), dtype=dtype)


model = phalanx_gpt.load(folder + "/model", dtype=torch.float32)
assert phalanx_gpt.__file__.startswith(folder), phalanx_gpt.__file__
assert "safetensors" not in sys.modules
stored = next(phalanx_gpt.load(folder + "/model").parameters()).dtype
assert str(stored) == "torch." + model.config["dtype"], stored
logits = model(raw("tokens", torch.int64).reshape(shape)).detach()
apart = (logits - raw("logits", torch.float32).reshape(logits.shape)).abs().max().item()
assert apart <= 1e-5, apart
continued = model.generate(torch.tensor([[1, 2, 3]]), 20, temperature=0)[0, 3:]
assert continued.tolist() == raw("next", torch.int64).tolist(), continued
assert model.generate(torch.tensor([[1, 2, 3]]), 5).shape == (1, 8)
for key, value in (("tied_head", False), ("activation", "relu"), ("version", 2), ("norm_position", "after")):
    try:
        phalanx_gpt.Gpt(dict(model.config, **{key: value}))
    except ValueError as refused:
        assert key in str(refused), refused
    else:
        raise AssertionError(f"{key}={value} was accepted")
print(f"logits differ by at most {apart:.1e}")
