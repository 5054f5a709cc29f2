"""phalanx-train on a GPU: the losses of every mode against those of the CPU, two ranks over NCCL, a run that changes the device, and
fine-tuning.

Usage: gpu_test.py PATH-OF-phalanx-train; 77: there is no GPU, or the program was built without CUDA.

Two ranks share one GPU: NCCL refuses that on one host, so each rank is told to be a host of its own (NCCL_HOSTID).
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "finetune"))
from hf_folders import write_model  # noqa: E402

TRAIN = ""  # the program, from the command line
CONFIG = """
out: {out}
seed: 7
data: {{corpus: {corpus}, validation: 0.2}}
model: {{layers: 2, heads: 2, width: 64, context: 32}}
train: {{steps: 12, batch: 8, log_every: 1}}
optimizer: {{lr: 1e-3, min_lr: 1e-4, warmup: 4}}
validation: {{every: 6, batches: 2}}
checkpoint: {{every: 6}}
sample: {{bytes: 20}}
"""
# What a mode may differ by from fp32 on the CPU, in any step's loss.
EXACT, ROUNDED = 2e-4, 5e-2
MODES = {"plain kernels": (["model.kernels=plain"], EXACT), "fused": ([], EXACT), "zero1": (["parallel.mode=zero1"], EXACT),
         "zero2": (["parallel.mode=zero2"], EXACT), "zero3": (["parallel.mode=zero3"], EXACT),
         "offload": (["parallel.offload=on"], EXACT), "recompute": (["model.activation_checkpointing=blocks"], EXACT),
         "accumulate": (["train.accumulate=2"], EXACT), "deterministic": (["train.deterministic=on"], EXACT),
         "bf16": (["train.precision=bf16"], ROUNDED), "bf16-weights": (["train.precision=bf16-weights"], ROUNDED)}


class Gpu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-gpu-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "corpus.txt").write_bytes(bytes(97 + (i * i // 3 + i // 7) % 26 for i in range(8192)))
        self.train("cpu", ["device=cpu"])
        self.truth = self.losses("cpu")

    def start(self, name, arguments, **env):
        config = self.folder / f"{name}.yaml"
        config.write_text(CONFIG.format(out=self.folder / name, corpus=self.folder / "corpus.txt"))
        clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
        return subprocess.Popen([TRAIN, str(config), *arguments], env={**clean, "PHALANX_LANG": "en", **env}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, f"stdout:\n{out}\nstderr:\n{err}")
        return err

    def train(self, name, arguments):
        return self.finish(self.start(name, arguments))

    def losses(self, name):
        lines = [json.loads(line) for line in (self.folder / name / "log.jsonl").read_text().splitlines()]
        return {line["step"]: line["loss"] for line in lines if "loss" in line}

    def assert_near(self, name, delta):
        ours = self.losses(name)
        self.assertEqual(ours.keys(), self.truth.keys())
        worst = max(abs(ours[step] - loss) for step, loss in self.truth.items())
        self.assertLess(worst, delta, f"{name}: {ours}\nCPU: {self.truth}")

    def test_every_mode_has_the_losses_of_the_cpu(self):
        runs = {name: self.start(name, ["device=cuda", *arguments]) for name, (arguments, _) in MODES.items()}
        for name, process in runs.items():
            with self.subTest(name):
                self.assertIn("cuda:0", self.finish(process))
                self.assert_near(name, MODES[name][1])

    def test_fp16_scales_its_loss(self):
        self.train("fp16", ["device=cuda", "train.precision=fp16"])
        ours = self.losses("fp16")
        self.assertAlmostEqual(ours[1], self.truth[1], delta=ROUNDED)
        self.assertLess(ours[12], ours[1])

    def test_two_ranks_over_nccl(self):
        for mode in ("ddp", "zero1", "zero2", "zero3"):
            with self.subTest(mode):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", 0))
                    port = probe.getsockname()[1]
                ranks = [self.start(mode, ["device=cuda", f"parallel.mode={mode}"], RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0",
                                    LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_HOSTID=f"host{rank}",
                                    NCCL_SOCKET_IFNAME="lo") for rank in range(2)]
                said = [self.finish(rank) for rank in ranks]
                self.assertIn("nccl between 2 ranks", said[0])
                self.assertNotIn("Warning", said[0] + said[1])
                self.assert_near(mode, EXACT)

    def test_a_run_of_the_cpu_goes_on_here(self):
        self.train("moved", ["device=cpu"])
        shutil.rmtree(self.folder / "moved" / "checkpoints" / "step-00000012")
        self.train("moved", ["device=cuda"])
        self.assert_near("moved", EXACT)


    def test_fine_tuning(self):
        golden = json.loads((pathlib.Path(__file__).parent.parent / "finetune" / "training.json").read_text())
        write_model(self.folder / "model", golden["config"], golden["shapes"])
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golden["rows"]))
        recipe = {"model_name_or_path": str(self.folder / "model"), "stage": "sft", "do_train": True, "logging_steps": 1,
                  "tokenized_path": str(self.folder / "rows.jsonl"), "save_strategy": "no", "finetuning_type": "full", **golden["recipe"]}
        (self.folder / "recipe.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in recipe.items()))
        truth = [step["loss"] for step in golden["full"]["steps"]]
        for name, arguments, delta in (("here", [], EXACT), ("tf32", ["tf32=true"], ROUNDED), ("bf16", ["bf16=true"], ROUNDED),
                                       ("host", ["use_cpu=true"], EXACT)):
            with self.subTest(name):
                out = self.folder / name
                done = subprocess.run([TRAIN, self.folder / "recipe.yaml", f"output_dir={out}", *arguments], capture_output=True, text=True,
                                      env={**os.environ, "PHALANX_LANG": "en"}, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("on GPUs" in done.stderr, name != "host", done.stderr)
                state = json.loads((out / "trainer_state.json").read_text())
                losses = [entry["loss"] for entry in state["log_history"] if "loss" in entry]
                for ours, theirs in zip(losses, truth, strict=True):
                    self.assertAlmostEqual(ours, theirs, delta=delta)


def main():
    global TRAIN
    TRAIN = sys.argv.pop(1)
    with tempfile.TemporaryDirectory(prefix="phalanx-gpu-") as folder:
        path = pathlib.Path(folder)
        (path / "corpus.txt").write_bytes(bytes(range(97, 123)) * 64)
        (path / "try.yaml").write_text(CONFIG.format(out=path / "try", corpus=path / "corpus.txt"))
        tried = subprocess.run([TRAIN, path / "try.yaml", "device=cuda", "train.steps=1"], capture_output=True, text=True)
        if tried.returncode == 3:
            print("SKIP: " + tried.stderr.strip().splitlines()[0].removeprefix("error: "))
            sys.exit(77)
    unittest.main(verbosity=2)


main()
