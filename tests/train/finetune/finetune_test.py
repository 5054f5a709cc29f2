"""phalanx-train with a LLaMA-Factory YAML, as a program: losses against golden runs, the files it writes, resuming, kills, bad input.

Usage: finetune_test.py PATH-OF-phalanx-train
"""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from hf_folders import read_safetensors, sines, write_model, write_safetensors, write_tokenizer  # noqa: E402

TRAIN = ""  # the program, from the command line
GOLDEN = json.loads((HERE / "training.json").read_text())
SHARED = pathlib.Path(os.environ.get("PHALANX_GOLDEN", HERE.parents[3] / "shared" / "golden"))
STATE_KEYS = ["best_global_step", "best_metric", "best_model_checkpoint", "epoch", "eval_steps", "global_step", "is_hyper_param_search",
              "is_local_process_zero", "is_world_process_zero", "log_history", "logging_steps", "max_steps", "num_input_tokens_seen",
              "num_train_epochs", "save_steps", "stateful_callbacks", "total_flos", "train_batch_size", "trial_name", "trial_params"]


def golden_adapter(folder):
    """The adapter from which tools/make_decoder_golden.py starts."""
    about, shapes, tensors = GOLDEN["adapter"], GOLDEN["shapes"], {}
    modules = sorted(n[:-len(".weight")] for n in shapes if n.endswith(".weight") and n.split(".")[-2] in about["target_modules"])
    for place, module in enumerate(modules):
        rows, columns = shapes[module + ".weight"]
        tensors[f"base_model.model.{module}.lora_A.weight"] = sines([about["r"], columns], place, scale=1 / 3, step=0.7)
        tensors[f"base_model.model.{module}.lora_B.weight"] = ([rows, about["r"]], [0.0] * (rows * about["r"]))
    folder.mkdir()
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "bias": "none", **about}))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-finetune-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = self.folder / "out"

    def start(self, arguments, cwd=None, **env):
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "PHALANX_EVENT_FD")
        clean = {k: v for k, v in os.environ.items() if k not in names}
        return subprocess.Popen([TRAIN, *map(str, arguments)], cwd=cwd, env={**clean, "OMP_NUM_THREADS": "1", "PHALANX_LANG": "en", **env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ranks(self, world, arguments, **more):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        return [self.start(arguments, RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), **more) for rank in range(world)]

    def run_train(self, arguments, expected=0, **more):
        process = self.start(arguments, **more)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, expected, f"stdout:\n{out}\nstderr:\n{err}")
        return out, err

    def read(self, name):
        return json.loads((self.out / name).read_text())

    def steps(self):
        return [entry for entry in self.read("trainer_state.json")["log_history"] if "loss" in entry]


class TokenizedCase(Case):
    """The repository's own golden run: rows of ids, a Qwen2 of 8 dimensions."""

    def setUp(self):
        super().setUp()
        write_model(self.folder / "model", GOLDEN["config"], GOLDEN["shapes"])
        golden_adapter(self.folder / "start")
        self.rows = self.folder / "rows.jsonl"
        self.rows.write_text("".join(json.dumps(row) + "\n" for row in GOLDEN["rows"]))
        recipe = {"model_name_or_path": str(self.folder / "model"), "stage": "sft", "do_train": True, "tokenized_path": str(self.rows),
                  "output_dir": str(self.out), "logging_steps": 1, "save_strategy": "no", "lora_dropout": 0.0, **GOLDEN["recipe"]}
        self.recipe = self.folder / "recipe.yaml"
        self.recipe.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in recipe.items()))

    def lora(self, *more):
        return [self.recipe, "finetuning_type=lora", f"adapter_name_or_path={self.folder / 'start'}", *more]


class Tokenized(TokenizedCase):
    def assert_golden(self, truth):
        steps = self.steps()
        self.assertEqual([entry["step"] for entry in steps], list(range(1, 9)))
        for ours, theirs in zip(steps, truth["steps"]):
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=6e-5)  # logged with four digits
            self.assertAlmostEqual(ours["grad_norm"] / theirs["grad_norm"], 1, delta=1e-4)
            self.assertAlmostEqual(ours["learning_rate"], theirs["learning_rate"], delta=1e-12)
        mean = sum(entry["loss"] for entry in truth["steps"]) / 8
        self.assertAlmostEqual(self.read("train_results.json")["train_loss"], mean, delta=1e-5)

    def assert_tensors(self, path, truth, prefix=""):
        tensors, metadata = read_safetensors(path)
        self.assertEqual(metadata, {"format": "pt"})
        self.assertEqual(sorted(tensors), sorted(prefix + name for name in truth))
        for name, (total, norm) in truth.items():
            numbers = tensors[prefix + name][1]
            self.assertAlmostEqual(sum(numbers), total, delta=2e-4, msg=name)
            self.assertAlmostEqual(sum(x * x for x in numbers) ** 0.5, norm, delta=2e-4, msg=name)

    def test_lora_is_the_golden_run(self):
        _, err = self.run_train(self.lora("plot_loss=true"))
        self.assertIn("training 240 of 1840 parameters (13.04 %): 8 steps", err)
        self.assert_golden(GOLDEN["lora"])
        self.assert_tensors(self.out / "adapter_model.safetensors", GOLDEN["lora"]["sum_and_norm_after"], "base_model.model.")
        config = self.read("adapter_config.json")
        for key, value in GOLDEN["adapter"].items():
            self.assertEqual(config[key], value)
        self.assertEqual(config["peft_type"], "LORA")
        self.assertEqual(list(self.read("trainer_state.json")), STATE_KEYS)
        state = self.read("trainer_state.json")
        self.assertEqual((state["global_step"], state["max_steps"], state["train_batch_size"]), (8, 8, 2))
        # Nine rows are five batches, and three steps an epoch: 2 + 2 + 1 batches.
        self.assertEqual([round(entry["epoch"], 2) for entry in self.steps()], [0.4, 0.8, 1, 1.4, 1.8, 2, 2.4, 2.8])
        lines = [json.loads(line) for line in (self.out / "trainer_log.jsonl").read_text().splitlines()]
        self.assertEqual([line["current_steps"] for line in lines], [1, 2, 3, 4, 5, 6, 7, 8, 8])
        self.assertEqual(list(lines[0]), ["current_steps", "total_steps", "loss", "lr", "epoch", "percentage", "elapsed_time",
                                          "remaining_time"])
        self.assertEqual(lines[3]["percentage"], 50.0)
        results = self.read("train_results.json")
        self.assertEqual(sorted(results), ["epoch", "total_flos", "train_loss", "train_runtime", "train_samples_per_second",
                                           "train_steps_per_second"])
        self.assertEqual(results, self.read("all_results.json"))
        xml.etree.ElementTree.parse(self.out / "training_loss.svg")
        _, err = self.run_train(self.lora(), 2)
        self.assertIn("set overwrite_output_dir: true", err)

    def test_keys_of_the_device_change_nothing_on_cpus(self):
        _, err = self.run_train(self.lora("use_cpu=true", "tf32=true"))
        self.assertNotIn("on GPUs", err)
        self.assert_golden(GOLDEN["lora"])

    def test_full_is_the_golden_run(self):
        self.run_train([self.recipe, "finetuning_type=full"])
        self.assert_golden(GOLDEN["full"])
        self.assert_tensors(self.out / "model.safetensors", GOLDEN["full"]["sum_and_norm_after"])
        self.assertEqual(self.read("config.json"), GOLDEN["config"])
        # What was written is a model again: its first loss is near the last one here.
        second = self.folder / "second"
        self.run_train([self.recipe, "finetuning_type=full", f"model_name_or_path={self.out}", f"output_dir={second}"])
        first = self.steps()[0]["loss"]
        self.out = second
        self.assertLess(self.steps()[0]["loss"], first)

    def test_freeze_trains_what_it_names(self):
        self.run_train([self.recipe, "finetuning_type=freeze", "freeze_trainable_layers=1", "freeze_trainable_modules=mlp"])
        before, _ = read_safetensors(self.folder / "model" / "model.safetensors")
        after, _ = read_safetensors(self.out / "model.safetensors")
        changed = sorted(name for name in before if before[name][1] != after[name][1])
        self.assertEqual(changed, [f"model.layers.1.mlp.{part}_proj.weight" for part in ("down", "gate", "up")])
        _, err = self.run_train([self.recipe, "finetuning_type=freeze", "freeze_trainable_modules=mpl", "overwrite_output_dir=true"], 2)
        self.assertIn("hint: freeze_trainable_modules: mlp", err)

    def test_bf16_is_near_fp32(self):
        self.run_train(self.lora("bf16=true"))
        for ours, theirs in zip(self.steps(), GOLDEN["lora"]["steps"]):
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=0.05)
            self.assertNotAlmostEqual(ours["grad_norm"], theirs["grad_norm"], delta=1e-7)

    def test_lines_and_checkpoints_come_when_they_are_asked_for(self):
        self.run_train(self.lora("logging_steps=3", "logging_first_step=true", "save_strategy=steps", "save_steps=0.25",
                                 "save_total_limit=2"))
        self.assertEqual([entry["step"] for entry in self.steps()], [1, 3, 6])
        truth = [entry["loss"] for entry in GOLDEN["lora"]["steps"]]
        self.assertAlmostEqual(self.steps()[1]["loss"], (truth[1] + truth[2]) / 2, delta=6e-5)
        self.assertEqual(sorted(path.name for path in self.out.glob("checkpoint-*")), ["checkpoint-6", "checkpoint-8"])
        self.run_train(self.lora("overwrite_output_dir=true", "save_strategy=epoch", "save_only_model=true"))
        self.assertEqual(sorted(path.name for path in self.out.glob("checkpoint-*")), ["checkpoint-3", "checkpoint-6", "checkpoint-8"])
        self.assertEqual(sorted(path.name for path in (self.out / "checkpoint-3").iterdir()),
                         ["README.md", "adapter_config.json", "adapter_model.safetensors", "trainer_state.json"])


class Resume(TokenizedCase):
    """Stopped, killed and continued runs end where an undisturbed one ends, to the last bit."""

    MORE = ("adapter_name_or_path=null", "lora_dropout=0.2", "save_strategy=steps", "save_steps=1", "logging_steps=2", "max_steps=24",
            "save_total_limit=3")

    def command(self, *more):
        return [self.recipe, "finetuning_type=lora", *self.MORE, *more]

    def results(self, folder):
        history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
        return ((folder / "adapter_model.safetensors").read_bytes(), [entry for entry in history if "loss" in entry],
                json.loads((folder / "train_results.json").read_text())["train_loss"])

    whole = None  # the results of an undisturbed run, and its folder, for all tests

    def reference(self):
        if not Resume.whole:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-finetune-"))
            self.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
            self.run_train(self.command(f"output_dir={folder}", "save_total_limit=null"))
            Resume.whole = self.results(folder), folder
        return Resume.whole[0]

    def test_from_any_checkpoint(self):
        truth = self.reference()
        self.run_train(self.command(f"resume_from_checkpoint={Resume.whole[1] / 'checkpoint-7'}"))
        self.assertEqual(self.results(self.out), truth)
        self.assertEqual(sorted(path.name for path in self.out.glob("checkpoint-*")), ["checkpoint-22", "checkpoint-23", "checkpoint-24"])
        # The newest one, unasked; then the data changes.
        shutil.rmtree(self.out / "checkpoint-24")
        _, err = self.run_train(self.command())
        self.assertIn("resumed after step 23 of 24", err)
        self.assertEqual(self.results(self.out), truth)
        self.rows.write_text(self.rows.read_text().replace("18", "17"))
        _, err = self.run_train(self.command("resume_from_checkpoint=true"), 2)
        self.assertIn("other data", err)

    def test_going_back_to_an_earlier_step_keeps_what_is_saved_from_there(self):
        self.run_train(self.command("save_total_limit=null"))
        process = self.start(self.command(f"resume_from_checkpoint={self.out / 'checkpoint-5'}", "save_total_limit=2"))
        self.read_lines(process, 3)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertIn("resumed after step 5", err)
        steps = sorted(int(path.name.split("-")[1]) for path in self.out.glob("checkpoint-*"))
        done = 24 if process.returncode == 0 else int(err.split("stopped after step ")[1].split()[0])
        self.assertEqual(steps, [done - 1, done], err)

    def test_a_restart_continues_what_the_run_has_saved(self):
        truth = self.reference()
        attempt = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "one run"}
        # Of another training, from which this run was told to start: it has higher numbers, and other data.
        self.run_train(self.command("seed=7", "save_total_limit=null"))
        for _ in range(5):  # on a busy machine the run may be over before the signal arrives
            process = self.start(self.command("overwrite_output_dir=true", "save_total_limit=null"), **attempt,
                                 TORCHELASTIC_RESTART_COUNT="0")
            self.read_lines(process, 2)
            process.kill()
            process.communicate()
            if process.returncode == -signal.SIGKILL:
                break
        (self.out / "checkpoint-24").mkdir(exist_ok=True)  # nor is this one of the run
        _, err = self.run_train(self.command("overwrite_output_dir=true"), **attempt, TORCHELASTIC_RESTART_COUNT="1")
        self.assertIn("resumed after step", err)
        self.assertEqual(self.results(self.out), truth)
        self.assertFalse((self.out / ".owner").exists())
        attempt["TORCHELASTIC_RUN_ID"] = "another run"
        _, err = self.run_train(self.command("overwrite_output_dir=true"), **attempt, TORCHELASTIC_RESTART_COUNT="1")
        self.assertNotIn("resumed after step", err)

    def test_the_later_of_two_runs_in_one_folder_has_it(self):
        for _ in range(5):  # on a busy machine the run may be over before it is stopped
            process = self.start(self.command("overwrite_output_dir=true"))
            self.read_lines(process, 2)
            process.send_signal(signal.SIGSTOP)
            (self.out / ".owner").write_text("of another\n")
            process.send_signal(signal.SIGCONT)
            _, err = process.communicate(timeout=60)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 2, err)
        self.assertIn("another run writes its checkpoints to", err)

    def test_a_loss_that_is_not_finite_ends_the_training(self):
        weights = self.folder / "model" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4] + b"\xc0\x7f\xc0\x7f")  # NaN, in fp32 as in bf16
        _, err = self.run_train(self.command(), 1)
        self.assertIn("the loss of step 1 is not a finite number", err)

    @staticmethod
    def read_lines(process, count):
        for _ in range(count):
            process.stdout.readline()

    def test_after_sigterm(self):
        truth = self.reference()
        for _ in range(5):  # on a busy machine the run may be over before the signal arrives
            process = self.start(self.command("overwrite_output_dir=true"))
            self.read_lines(process, 2)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 143, err)
        self.assertIn("a checkpoint was saved", err)
        _, err = self.run_train(self.command())
        self.assertIn("resumed after step", err)
        self.assertEqual(self.results(self.out), truth)
        steps = [json.loads(line)["current_steps"] for line in (self.out / "trainer_log.jsonl").read_text().splitlines()]
        self.assertEqual(steps, [*range(2, 25, 2), 24])

    def test_after_kills_at_any_moment(self):
        truth, chance = self.reference(), random.Random(5)
        for _ in range(3):
            process = self.start(self.command())
            try:
                self.read_lines(process, chance.randrange(1, 5))
                time.sleep(0.02 * chance.random())
                process.kill()
            finally:
                process.communicate()
            for checkpoint in self.out.glob("checkpoint-*"):
                read_safetensors(checkpoint / "phalanx_state.safetensors")
                read_safetensors(checkpoint / "adapter_model.safetensors")
                json.loads((checkpoint / "trainer_state.json").read_text())
        self.assertTrue(any(self.out.glob("checkpoint-*")))
        _, err = self.run_train(self.command())
        self.assertIn("resumed after step", err)
        self.assertEqual(self.results(self.out), truth)
        self.assertEqual(list(self.out.glob(".saving-*")), [])


class Ranks(TokenizedCase):
    def start_ranks(self, world, *more):
        return self.ranks(world, self.lora("adapter_name_or_path=null", "lora_dropout=0.2", *more))

    def run_ranks(self, world, *more, expected=0):
        ranks = self.start_ranks(world, *more)
        said = [rank.communicate(timeout=120) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [expected] * world, said)
        return said

    def test_any_number_of_ranks_learns_the_same(self):
        runs = {}
        zero3 = {"train_batch_size": "auto", "bf16": {"enabled": "auto"},
                 "zero_optimization": {"stage": 3, "overlap_comm": False, "stage3_param_persistence_threshold": 20}}
        (self.folder / "ds_z3_config.json").write_text(json.dumps(zero3))
        for world in (1, 4):
            self.out = self.folder / f"of-{world}"
            more = [f"deepspeed={self.folder / 'ds_z3_config.json'}"] if world == 4 else []
            more += [f"gradient_accumulation_steps={4 // world}", f"output_dir={self.out}", "save_strategy=steps", "save_steps=4"]
            said = self.run_ranks(world, *more)
            self.assertEqual([out for out, _ in said[1:]], [""] * (world - 1))
            self.assertEqual("ZeRO: zero3 over 4 ranks" in said[0][1], world == 4)
            runs[world] = self.steps(), read_safetensors(self.out / "adapter_model.safetensors")[0]
        # Begun by four, which shared out the parameters, continued by two, which share out the gradients.
        self.out = self.folder / "continued"
        self.run_ranks(2, "gradient_accumulation_steps=2", f"output_dir={self.out}", "deepspeed={zero_optimization: {stage: 2}}",
                       f"resume_from_checkpoint={self.folder / 'of-4' / 'checkpoint-4'}")
        runs["continued"] = self.steps(), read_safetensors(self.out / "adapter_model.safetensors")[0]
        for world in (4, "continued"):
            for ours, alone in zip(runs[world][0], runs[1][0]):
                self.assertAlmostEqual(ours["loss"], alone["loss"], delta=1.1e-4)
                self.assertAlmostEqual(ours["grad_norm"], alone["grad_norm"], delta=1e-5)
                self.assertEqual((ours["epoch"], ours["learning_rate"]), (alone["epoch"], alone["learning_rate"]))
            for name, (_, numbers) in runs[1][1].items():
                self.assertLess(max(abs(a - b) for a, b in zip(numbers, runs[world][1][name][1])), 1e-5, name)

    def test_a_kill_in_the_middle_of_a_save_loses_nothing(self):
        more = ["finetuning_type=full", "max_steps=8", "save_strategy=steps", "save_steps=1", "save_total_limit=2",
                "deepspeed={zero_optimization: {stage: 3, stage3_param_persistence_threshold: 20}}"]
        self.run_ranks(2, *more)
        truth = self.steps(), (self.out / "model.safetensors").read_bytes()
        for last in (3, 5):  # the save after which rank 0 is killed in the next one
            shutil.rmtree(self.out, ignore_errors=True) if last == 3 else None
            ranks, until = self.start_ranks(2, *more), time.monotonic() + 60
            while time.monotonic() < until and ranks[0].poll() is None:
                names = os.listdir(self.out) if self.out.exists() else []
                if f"checkpoint-{last}" in names and any(name.startswith(".saving-checkpoint") for name in names):
                    ranks[0].kill()
            said = [rank.communicate(timeout=60) for rank in ranks]
            self.assertEqual(ranks[0].returncode, -signal.SIGKILL, said)
            self.assertNotEqual(ranks[1].returncode, 0, said)
            for checkpoint in self.out.glob("checkpoint-*"):
                read_safetensors(checkpoint / "phalanx_state.safetensors")
                read_safetensors(checkpoint / "model.safetensors")
                json.loads((checkpoint / "trainer_state.json").read_text())
        said = self.run_ranks(2, *more)
        self.assertIn("resumed after step", said[0][1])
        self.assertEqual((self.steps(), (self.out / "model.safetensors").read_bytes()), truth)
        self.assertEqual(list(self.out.glob(".saving-*")), [])

    def test_all_ranks_end_if_one_cannot_start(self):
        said = self.run_ranks(2, "resume_from_checkpoint=true", expected=2)
        self.assertIn("has no checkpoint", said[0][1])
        self.assertIn("rank 0", said[1][1])


class BadInput(TokenizedCase):
    def refuse(self, *arguments, said):
        out, err = self.run_train([*arguments], 2)
        for text in said:
            self.assertIn(text, err)
        self.assertNotIn("step 1/", out)
        self.assertFalse(self.out.exists())

    def test_rows(self):
        lines = self.rows.read_text().splitlines()
        for wrong, said in (('{"input_ids": [1, 2], "labels": [1, 2]', "record 3 (line 4)"),
                            ('{"input_ids": [1, 2], "labels": [1, 19]}', "label 19 at position 1 is outside the vocabulary")):
            self.rows.write_text("\n".join([*lines[:3], wrong, *lines[3:]]))
            self.refuse(*self.lora(), said=["rows.jsonl, record 3 (line 4)", said])

    def test_recipe(self):
        self.refuse(self.recipe, "lora_rnk=8", "pure_bf16=true", "fsdp=full_shard", "lora_dropout=2",
                    said=['unknown key "lora_rnk"; the nearest is lora_rank', "pure_bf16: true:", "fsdp: full_shard:",
                          'lora_dropout: "2" is not a number from 0 to 0.999'])
        self.refuse(self.recipe, "tokenized_path=null", "dataset=one", "template=chatlm", said=["unknown template", "template: chatml"])

    def test_weights(self):
        path = self.folder / "model" / "model.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole[:-5])
        self.refuse(*self.lora(), said=["cannot read the weights"])
        path.write_bytes(whole)
        tensors, _ = read_safetensors(path)
        del tensors["model.norm.weight"], tensors["model.layers.1.mlp.up_proj.weight"]
        tensors["model.extra"] = ([2], [0.0, 1.0])
        write_safetensors(path, tensors)
        self.refuse(*self.lora(), said=["missing: model.layers.1.mlp.up_proj.weight, model.norm.weight", "unexpected: model.extra"])

    def test_explain_tells_of_every_key(self):
        out, _ = self.run_train(["--explain", self.recipe, "overwrite_cache=true", "report_to=none",
                                 "deepspeed={zero_optimization: {stage: 2, overlap_comm: true}}"])
        self.assertIn("deepspeed.zero_optimization.stage: 2  # what ranks share out", out)
        self.assertIn("not used: deepspeed.zero_optimization.overlap_comm: true", out)
        self.assertIn("learning_rate: 0.02  # largest learning rate", out)
        self.assertIn("not used: overwrite_cache: true  # there is no cache of tokens", out)
        self.assertFalse(self.out.exists())


class TextCase(Case):
    """Data sets of text, a template, a byte-level tokenizer."""

    def setUp(self):
        super().setUp()
        shapes = {name: [260 if size == 19 else size for size in shape] for name, shape in GOLDEN["shapes"].items()}
        write_model(self.folder / "model", {**GOLDEN["config"], "vocab_size": 260}, shapes)
        write_tokenizer(self.folder / "model", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
        data = self.folder / "data"
        data.mkdir()
        (data / "dataset_info.json").write_text(json.dumps({"sums": {"file_name": "sums.json"}, "talks": {
            "file_name": "talks.jsonl", "formatting": "sharegpt"}}))
        (data / "sums.json").write_text(json.dumps([{"instruction": f"{a}+{b}", "input": "", "output": str(a + b)}
                                                    for a in range(4) for b in range(4)]))
        talk = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
        (data / "talks.jsonl").write_text("".join(json.dumps({"conversations": turns}) + "\n" for turns in (talk, talk[:1], talk * 2)))
        recipe = {"model_name_or_path": "model", "stage": "sft", "do_train": True, "finetuning_type": "lora", "dataset": "sums,talks",
                  "dataset_dir": "data", "template": "chatml", "cutoff_len": 64, "output_dir": "out", "logging_steps": 1,
                  "save_strategy": "no", "max_steps": 12, "learning_rate": 0.02, "per_device_train_batch_size": 4}
        (self.folder / "recipe.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in recipe.items()))

    def train(self, *more, expected=0):
        return self.run_train(["recipe.yaml", *more], expected, cwd=self.folder)


class Texts(TextCase):
    def test_conversations_are_learned(self):
        _, err = self.train()
        self.assertIn("data: 18 sequences", err)
        self.assertIn("records omitted: 1", err)
        losses = [entry["loss"] for entry in self.steps()]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(sorted(self.read("adapter_config.json")["target_modules"]),
                         ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"])
        self.assertEqual(self.read("adapter_config.json")["lora_alpha"], 16)
        config = self.read("tokenizer_config.json")
        self.assertEqual((config["eos_token"], config["pad_token"]), ("<|im_end|>", "<|im_end|>"))
        self.assertEqual((self.out / "tokenizer.json").read_bytes(), (self.folder / "model" / "tokenizer.json").read_bytes())

    def test_export_and_generate(self):
        self.train("finetuning_type=lora", "lora_target=q_proj,down_proj", "lora_rank=2")
        self.run_train(["export", "recipe.yaml", "adapter_name_or_path=out", "export_dir=merged", "output_dir=null"], cwd=self.folder)
        before, _ = read_safetensors(self.folder / "model" / "model.safetensors")
        adapter, _ = read_safetensors(self.out / "adapter_model.safetensors")
        after, _ = read_safetensors(self.folder / "merged" / "model.safetensors")
        self.assertEqual({name: shape for name, (shape, _) in before.items()}, {name: shape for name, (shape, _) in after.items()})
        for name, (shape, numbers) in after.items():
            module = "base_model.model." + name[:-len(".weight")]
            wanted = list(before[name][1])
            if module + ".lora_A.weight" in adapter:
                rows, columns = shape
                a, b = adapter[module + ".lora_A.weight"][1], adapter[module + ".lora_B.weight"][1]
                for i in range(rows):
                    for j in range(columns):
                        wanted[i * columns + j] += 2 * sum(b[i * 2 + k] * a[k * columns + j] for k in range(2))  # alpha 4, rank 2
            self.assertLess(max(abs(x - y) for x, y in zip(numbers, wanted)), 1e-6, name)
        _, err = self.run_train(["export", "recipe.yaml", "adapter_name_or_path=out", "export_dir=merged"], 2, cwd=self.folder)
        self.assertIn('export_dir "merged" is not empty', err)
        # The template that was trained with is found again, beside the adapter and beside the merged model.
        common = ["--max-new-tokens", "12", "2+2"]
        adapted, err = self.run_train(["generate", "model", "--adapter", "out", *common], cwd=self.folder)
        self.assertIn("template chatml, 22 tokens of prompt", err)
        self.assertEqual(self.run_train(["generate", "merged", *common], cwd=self.folder)[0], adapted)
        drawn = [self.run_train(["generate", "merged", "--temperature=2", f"--seed={seed}", *common], cwd=self.folder)[0]
                 for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_keys_of_the_data(self):
        # A source is <|im_start|>user\n0+0<|im_end|>\n<|im_start|>assistant\n, a target 0<|im_end|>\n.
        def tokens(*more):
            _, err = self.train("dataset=sums", "max_samples=2", "max_steps=1", "overwrite_output_dir=true", *more)
            line = next(line for line in err.splitlines() if line.startswith("data: "))
            words = line.split()
            return int(words[3]), int(words[5])  # sequences are words[1]
        source, target = 1 + 5 + 3 + 1 + 1 + 1 + 10, 3
        system = 1 + len("system\nBe brief.") + 1 + 1
        self.assertEqual(tokens("default_system=Be brief."), (2 * (system + source + target), 2 * target))
        self.assertEqual(tokens("train_on_prompt=true", "cutoff_len=20"), (40, 40))

    def test_plain_texts(self):
        info = json.loads((self.folder / "data" / "dataset_info.json").read_text())
        info["prose"] = {"file_name": "prose.jsonl", "columns": {"prompt": "text"}}
        (self.folder / "data" / "dataset_info.json").write_text(json.dumps(info))
        texts = ["a" * 25, "b" * 11, "", "c" * 3]
        (self.folder / "data" / "prose.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

        def said(*more):
            _, err = self.train("stage=pt", "template=null", "dataset=prose", "cutoff_len=16", "max_steps=2", "overwrite_output_dir=true",
                                *more)
            return next(line for line in err.splitlines() if line.startswith("data: "))
        # 26 + 12 + 4 tokens with their ends: two blocks of 16, 10 are dropped. Padding is the end of text, which is then not learned.
        self.assertEqual(said(), "data: 2 sequences, 32 tokens, 31 of them learned; records omitted: 1")
        self.assertEqual(said("packing=false"), "data: 3 sequences, 32 tokens, 30 of them learned; records omitted: 1")
        self.assertFalse((self.out / "phalanx_template.json").exists())

    def test_bad_text_is_named(self):
        path = self.folder / "data" / "talks.jsonl"
        path.write_text(path.read_text() + '{"conversations": "x"}\n')
        _, err = self.train(expected=2)
        self.assertIn("data/talks.jsonl, record 3 (line 4)", err)
        _, err = self.train("template=llama3", expected=2)
        self.assertIn("does not fit the tokenizer", err)


class Example(Case):
    """What the guide From LLaMA-Factory types, with two steps each."""

    def test_quick_start(self):
        examples = HERE.parents[2] / "examples" / "finetune"
        subprocess.run(["/usr/bin/python3", examples / "make_example.py", "example"], cwd=self.folder, check=True, capture_output=True)
        for recipe in ("words", "ordinals"):
            self.run_train([examples / f"{recipe}.yaml", "max_steps=2", "logging_steps=1"], cwd=self.folder)
            self.assertTrue((self.folder / "example" / recipe / "training_loss.svg").exists())


@unittest.skipUnless((SHARED / "README.md").exists(), "needs the golden data: ../shared/golden, or PHALANX_GOLDEN=<folder>")
class Golden(Case):
    """Twenty steps of the real Trainer, through the program."""

    def check(self, name):
        truth = json.loads((SHARED / "training" / name / "expected.json").read_text())
        folder = f"training/{name}"
        self.run_train([f"{folder}/settings.yaml", f"tokenized_path={folder}/data.jsonl", f"output_dir={self.out}"], cwd=SHARED)
        steps = self.steps()
        self.assertEqual(len(steps), 20)
        for ours, theirs in zip(steps, truth["steps"]):
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1.5e-4)  # 1e-4, and half a digit of the log
            self.assertAlmostEqual(ours["grad_norm"] / theirs["grad_norm"], 1, delta=1e-4)
            self.assertAlmostEqual(ours["learning_rate"], theirs["learning_rate"], delta=1e-12)
        self.assertAlmostEqual(self.read("train_results.json")["train_loss"], truth["train_loss"], delta=1e-4)
        theirs = SHARED / "training" / name / "adapter"
        if not theirs.exists():
            return
        ours_config, their_config = self.read("adapter_config.json"), json.loads((theirs / "adapter_config.json").read_text())
        for config in (ours_config, their_config):
            config["target_modules"].sort()
        self.assertEqual(ours_config, their_config)
        ours, metadata = read_safetensors(self.out / "adapter_model.safetensors")
        wanted, their_metadata = read_safetensors(theirs / "adapter_model.safetensors")
        self.assertEqual(metadata, their_metadata)
        self.assertEqual({n: shape for n, (shape, _) in ours.items()}, {n: shape for n, (shape, _) in wanted.items()})
        for tensor, (_, numbers) in wanted.items():
            self.assertLess(max(abs(a - b) for a, b in zip(ours[tensor][1], numbers)), 2e-3, tensor)


# The others differ in nothing that the program adds to the library, whose test (tests/train/tuning) has all eight.
for one in ("lora-qwen2-accum4-remainder", "full-llama-decay-clip"):
    setattr(Golden, "test_" + one.replace("-", "_"), lambda self, name=one: self.check(name))


if __name__ == "__main__":
    if not (SHARED / "README.md").exists():
        print("SKIPPED: the golden runs of the real Trainer need ../shared/golden, or PHALANX_GOLDEN=<folder>", file=sys.stderr)
    TRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
