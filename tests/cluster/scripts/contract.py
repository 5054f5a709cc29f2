#!/usr/bin/python3
"""Reads the environment of a rank as the frameworks do, without them, and prints what each would make of it: rank/world, and its kind.

torch        distributed/rendezvous.py, _env_rendezvous_handler and _create_c10d_store (pytorch main of 2026; 1.13 also the restart count)
accelerate   state.py, PartialState (16cb6eb8)
lightning    fabric/plugins/environments/torchelastic.py, lightning.py; utilities/rank_zero.py (7f0c3436)
transformers training_args.py, _setup_devices, should_log, should_save, by way of accelerate
deepspeed    comm/comm.py, init_distributed; runtime/engine.py, _do_args_sanity_check (edaa72212)
"""
import os
import sys

env = os.environ


def torch():
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        assert env.get(name), f"expected {name}, but not set"
    attempt = int(env["TORCHELASTIC_RESTART_COUNT"]) if "TORCHELASTIC_RUN_ID" in env else 0
    served = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return f"{int(env['RANK'])}/{int(env['WORLD_SIZE'])} attempt {attempt} {'client' if served else 'server'}"


def accelerate():
    cpu = env.get("ACCELERATE_USE_CPU", "false").lower() in ("y", "yes", "t", "true", "on", "1")
    if int(env.get("LOCAL_RANK", -1)) == -1:
        return "NO"
    return f"{int(env['RANK'])}/{int(env['WORLD_SIZE'])} local {int(env['LOCAL_RANK'])} {'MULTI_CPU' if cpu else 'MULTI_GPU'}"


def lightning():
    """The order of detection: TorchElastic, Slurm, LSF, MPI, Lightning's own."""
    elastic = "TORCHELASTIC_RUN_ID" in env
    node = int(env.get("GROUP_RANK", 0)) if elastic else int(env.get("NODE_RANK", env.get("GROUP_RANK", 0)))
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK"):  # who prints, decided while it is imported
        if name in env:
            zero = int(env[name]) == 0
            break
    assert zero == (int(env["RANK"]) == 0)
    kind = "TorchElastic" if elastic else "Lightning"
    return f"{int(env['RANK'])}/{int(env['WORLD_SIZE'])} local {int(env['LOCAL_RANK'])} node {node} {kind}"


def transformers():
    if int(env.get("LOCAL_RANK", -1)) == -1:
        return "NOT_DISTRIBUTED"
    return f"{'saves' if int(env['RANK']) == 0 else 'waits'}, of its node {'the first' if int(env['LOCAL_RANK']) == 0 else 'another'}"


def deepspeed():
    required = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")
    if not all(name in env for name in required):
        return "asks MPI"
    for word in sys.argv[1:]:
        if word.startswith("--local_rank="):
            assert int(word.partition("=")[2]) == int(env["LOCAL_RANK"]), "argument and variable differ"
    assert int(env["CROSS_SIZE"]) > int(env["CROSS_RANK"]) and int(env["LOCAL_SIZE"]) > int(env["LOCAL_RANK"])
    return f"{int(env['RANK'])}/{int(env['WORLD_SIZE'])} local {int(env['LOCAL_RANK'])} node {env['CROSS_RANK']} of {env['CROSS_SIZE']}"


for reader in (torch, accelerate, lightning, transformers, deepspeed):
    sys.stdout.write(f"{env['RANK']} {reader.__name__}: {reader()}\n")
sys.stdout.flush()
