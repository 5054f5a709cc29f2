#!/usr/bin/python3
"""LoRA with ZeRO-3 on four ranks, inside a cgroup whose limit kills the same run without ZeRO.

memory_limit_test.py PHALANX_TRAIN [--1b]. A bf16 model is tuned with fp32 products, so that every rank of the plain run widens all of it
(with bf16: true the ranks of a host share the pages of the file). Small shapes by default; with --1b those of Llama-3.2-1B, which needs
16 GiB of memory, 3 GB of disk and many minutes. Needs root and the memory controller of cgroups (v1 or v2); exits with 77 and the reason
where it lacks them.
"""
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

TRAIN = os.path.abspath(sys.argv[1])
FULL = "--1b" in sys.argv[2:]
MIB = 1 << 20
WORLD = 4
LLAMA_1B = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 64, "vocab_size": 128256}
SMALL = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2,
         "head_dim": 64, "vocab_size": 4096}
SHAPES, LIMIT = (LLAMA_1B, 13_500 * MIB) if FULL else (SMALL, 660 * MIB)
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
          "max_position_embeddings": 131072, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1,
          **SHAPES}


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def controller():
    """A folder of our own in the memory controller's tree, the file that limits it, and the one with its peak."""
    name = f"phalanx-finetune-{os.getpid()}"
    if os.geteuid() != 0:
        skip("needs root, to make cgroups")
    v1, v2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
    if (v1 / "memory.limit_in_bytes").exists():
        return v1 / name, "memory.limit_in_bytes", "memory.max_usage_in_bytes"
    if (v2 / "cgroup.controllers").exists() and "memory" in (v2 / "cgroup.subtree_control").read_text().split():
        return v2 / name, "memory.max", "memory.peak"
    skip("no memory controller of cgroups under /sys/fs/cgroup")


def parameters():
    hidden, inner, vocabulary = (SHAPES[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    queries, keys = (SHAPES[key] * SHAPES["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
    out = {"model.embed_tokens.weight": [vocabulary, hidden], "model.norm.weight": [hidden]}
    for layer in range(SHAPES["num_hidden_layers"]):
        for name, shape in {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "self_attn.q_proj": [queries, hidden],
                            "self_attn.k_proj": [keys, hidden], "self_attn.v_proj": [keys, hidden], "self_attn.o_proj": [hidden, queries],
                            "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner]}.items():
            out[f"model.layers.{layer}.{name}.weight"] = shape
    return out


def write_model(folder):
    """Random weights of magnitude 1/128 to 1/32 in bf16: a block of a million, over and over. Returns their number."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    count = 1_000_003  # a prime, so that rows differ
    signs = int.from_bytes(random.Random(1).randbytes(2 * count), "little")
    kept, exponent = (int.from_bytes(pair * count, "little") for pair in (b"\xff\x80", b"\x00\x3c"))
    block = ((signs & kept) | exponent).to_bytes(2 * count, "little")
    header, place = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in parameters().items():
        size = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in parameters().items():
            left = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
            if len(shape) == 1:
                file.write(b"\x80\x3f" * shape[0])  # 1.0
                continue
            while left:
                left -= file.write(block[:left])
    return place // 2


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(folder, *more):
    """Four ranks in one cgroup. Returns their exit codes, each rank's peak, the cgroup's, and what rank 0 said."""
    group, limit_file, peak_file = controller()
    group.mkdir()
    ranks, port = [], free_port()
    try:
        (group / limit_file).write_text(str(LIMIT))
        for rank in range(WORLD):
            env = {k: v for k, v in os.environ.items() if not k.startswith(("PHALANX_", "TORCHELASTIC_"))}
            env.update(OMP_NUM_THREADS="1", RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(WORLD),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), PHALANX_LANG="en")
            with open(folder / f"said-{rank}", "w") as said:
                ranks.append(subprocess.Popen([TRAIN, "recipe.yaml", *more], cwd=folder, env=env, stdout=said, stderr=said,
                                              preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid()))))
        codes, peaks, deadline = [None] * WORLD, [0] * WORLD, time.monotonic() + (2400 if FULL else 200)
        while None in codes and time.monotonic() < deadline:
            for i, rank in enumerate(ranks):
                if codes[i] is not None:
                    continue
                pid, status, usage = os.wait4(rank.pid, os.WNOHANG)
                if pid:
                    codes[i] = rank.returncode = os.waitstatus_to_exitcode(status)
                    peaks[i] = usage.ru_maxrss * 1024
            time.sleep(0.05)
        peak = int((group / peak_file).read_text()) if (group / peak_file).exists() else 0
        return codes, peaks, peak, (folder / "said-0").read_text()
    finally:
        for rank in ranks:
            if rank.returncode is None:
                rank.kill()
                rank.wait()
        group.rmdir()


def main():
    controller()
    free = int(re.search(r"MemAvailable: +(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
    if free < 1.2 * LIMIT:
        skip(f"needs {1.2 * LIMIT / MIB:.0f} MiB of free memory, and {free / MIB:.0f} MiB are free")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-limit-"))
    try:
        count = write_model(folder / "model")
        rows = [{"input_ids": [(7 * i + 13 * j) % SHAPES["vocab_size"] for j in range(24)]} for i in range(8)]
        (folder / "rows.jsonl").write_text("".join(json.dumps({**row, "labels": row["input_ids"]}) + "\n" for row in rows))
        (folder / "ds_z3_config.json").write_text(json.dumps({"train_batch_size": "auto", "bf16": {"enabled": "auto"},
                                                              "zero_optimization": {"stage": 3, "overlap_comm": False}}))
        recipe = {"model_name_or_path": "model", "stage": "sft", "do_train": True, "finetuning_type": "lora", "lora_rank": 8,
                  "tokenized_path": "rows.jsonl", "output_dir": "out", "logging_steps": 1, "save_strategy": "no", "max_steps": 1,
                  "per_device_train_batch_size": 1, "learning_rate": 1e-3}
        (folder / "recipe.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in recipe.items()))
        codes, plain, plain_peak, said = train(folder)
        assert -9 in codes, f"the plain run fits into {LIMIT // MIB} MiB, so this test shows nothing: {codes}\n{said}"
        began = time.monotonic()
        codes, peaks, peak, said = train(folder, "deepspeed=ds_z3_config.json", "overwrite_output_dir=true")
        assert codes == [0] * WORLD, f"{codes}\n{said}"
        assert "ZeRO: zero3 over 4 ranks" in said, said
        state = json.loads((folder / "out" / "trainer_state.json").read_text())
        losses = [entry["loss"] for entry in state["log_history"] if "loss" in entry]
        assert losses and all(abs(loss - math.log(SHAPES["vocab_size"])) < 1 for loss in losses), losses
        assert (folder / "out" / "adapter_model.safetensors").exists()

        def mib(values):
            return ", ".join(f"{value / MIB:.0f}" for value in values)
        print(f"{count / 1e6:.1f} M parameters, {count * 2 / MIB:.0f} MiB of bf16; limit of four ranks together {LIMIT // MIB} MiB\n"
              f"ddp: killed, peaks of the ranks until then {mib(plain)} MiB, of all {plain_peak / MIB:.0f} MiB\n"
              f"zero3: a step in {time.monotonic() - began:.0f} s, peaks of the ranks {mib(peaks)} MiB, of all {peak / MIB:.0f} MiB; "
              f"losses {losses}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
