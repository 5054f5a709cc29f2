"""phalanx-train with a LLaMA-Factory YAML: packing, evaluation, pairs of answers, other families of models, and talking with the result.

Usage: stages_test.py PATH-OF-phalanx-train
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

import finetune_test
from finetune_test import GOLDEN, TextCase
from hf_folders import read_safetensors, write_model


class Stages(TextCase):
    def add_set(self, name, entry, records):
        path = self.folder / "data" / "dataset_info.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), name: {"file_name": f"{name}.json", **entry}}))
        (self.folder / "data" / f"{name}.json").write_text(json.dumps(records))

    def add_pairs(self):
        self.add_set("pairs", {"ranking": True, "columns": {"prompt": "instruction", "chosen": "good", "rejected": "bad"}},
                     [{"instruction": f"{a}+{b}", "good": str(a + b), "bad": f"{a + b + 1}!"} for a in range(3) for b in range(3)])

    def test_packing(self):
        def said(*more):
            _, err = self.train("dataset=sums", "overwrite_output_dir=true", "max_steps=2", "learning_rate=0",
                                "lr_scheduler_type=constant", "per_device_train_batch_size=16", *more)
            return next(line for line in err.splitlines() if line.startswith("data: ")), self.steps()[0]["loss"]
        alone = said()
        # An example is 22 tokens of source and 3 of target: two fit into 63, and one token stays free.
        neat, packed = said("neat_packing=true"), said("packing=true")
        self.assertEqual(neat[0], "data: 8 sequences, 400 tokens, 48 of them learned; records omitted: 0")
        self.assertEqual(packed[0], neat[0])
        self.assertAlmostEqual(neat[1], alone[1], delta=1.1e-4)
        self.assertNotAlmostEqual(packed[1], alone[1], delta=1e-3)
        # Groups of records are packed by themselves: of three, two share a sequence. Each of two parts has groups of 3, 3 and 2.
        self.assertIn("data: 10 sequences", said("neat_packing=true", "preprocessing_batch_size=3", "preprocessing_num_workers=2")[0])
        self.assertEqual(said("packing=true", "cutoff_len=12", "train_on_prompt=true")[0].split()[1], "16")

    def test_evaluation(self):
        more = ["dataset=sums", "val_size=0.25", "eval_strategy=steps", "eval_steps=4", "per_device_eval_batch_size=3", "max_steps=10",
                "do_eval=true", "plot_loss=true"]
        _, err = self.train(*more)
        self.assertIn("data: 12 sequences", err)
        self.assertIn("evaluation: 4 sequences", err)
        history = self.read("trainer_state.json")["log_history"]
        found = [(entry["step"], entry["eval_loss"]) for entry in history if "eval_loss" in entry]
        self.assertEqual([step for step, _ in found], [4, 8, 10])
        self.assertLess(found[-1][1], found[0][1])
        results = self.read("eval_results.json")
        self.assertEqual(sorted(results), ["epoch", "eval_loss", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"])
        self.assertEqual(results["eval_loss"], found[-1][1])
        self.assertEqual(self.read("all_results.json"), {**self.read("train_results.json"), **results})
        lines = [json.loads(line) for line in (self.out / "trainer_log.jsonl").read_text().splitlines()]
        self.assertEqual([line["current_steps"] for line in lines if "eval_loss" in line], [4, 8, 10])
        # The records that numpy's permutation puts first are set aside, and learned nowhere.
        self.train("dataset=sums", "val_size=4", "max_steps=1", "overwrite_output_dir=true")
        _, err = self.train("dataset=sums", "eval_strategy=epoch", expected=2)
        self.assertIn("evaluation needs eval_dataset or val_size", err)

    def test_evaluation_is_that_of_training(self):
        # With one batch of all rows and a learning rate of 0 both are the mean over all labels.
        self.train("dataset=sums", "eval_dataset=sums", "eval_strategy=epoch", "per_device_eval_batch_size=16", "learning_rate=0",
                   "per_device_train_batch_size=16", "max_steps=1")
        entry = next(entry for entry in self.read("trainer_state.json")["log_history"] if "eval_loss" in entry)
        self.assertAlmostEqual(entry["eval_loss"], self.steps()[0]["loss"], delta=6e-5)

    def test_evaluations_survive_a_stop(self):
        more = ["dataset=sums", "val_size=4", "eval_strategy=steps", "eval_steps=3", "save_strategy=steps", "save_steps=4"]
        self.train(*more, "output_dir=whole")
        whole = json.loads((self.folder / "whole" / "trainer_state.json").read_text())["log_history"]
        self.train(*more, "resume_from_checkpoint=whole/checkpoint-4")

        def losses(history):
            return [{key: entry[key] for key in ("step", "loss", "eval_loss") if key in entry} for entry in history[:-1]]
        self.assertEqual(losses(self.read("trainer_state.json")["log_history"]), losses(whole))

    def test_pairs(self):
        self.add_pairs()
        dpo = ["stage=dpo", "dataset=pairs", "max_steps=12", "per_device_train_batch_size=3", "learning_rate=0.01"]
        _, err = self.train(*dpo, "save_strategy=steps", "save_steps=5", "logging_steps=2")
        self.assertIn("data: 9 sequences", err)
        steps = self.steps()
        self.assertEqual(list(steps[0]), ["epoch", "grad_norm", "learning_rate", "logps/chosen", "logps/rejected", "loss",
                                          "rewards/accuracies", "rewards/chosen", "rewards/margins", "rewards/rejected", "step"])
        self.assertLess(abs(steps[0]["loss"] - math.log(2)), 0.05)
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] - 0.05)
        self.assertEqual(steps[-1]["rewards/accuracies"], 1)
        # A stopped run goes on with the same reference, to the last bit.
        truth = (self.out / "adapter_model.safetensors").read_bytes(), steps
        self.train(*dpo, "logging_steps=2", "output_dir=again", f"resume_from_checkpoint={self.out / 'checkpoint-5'}")
        self.out = self.folder / "again"
        self.assertEqual(((self.out / "adapter_model.safetensors").read_bytes(), self.steps()), truth)
        _, err = self.train("dataset=pairs", expected=2)
        self.assertIn("its records are pairs of answers (ranking), for stage dpo", err)
        _, err = self.train("stage=dpo", expected=2)
        self.assertIn("its entry does not say ranking: true", err)

    def test_keys_that_change_a_run(self):
        def run(*more):
            self.train("dataset=sums", "max_steps=5", "lora_rank=4", "overwrite_output_dir=true", *more)
            return self.steps()
        plain = run()
        self.assertNotEqual(run("use_rslora=true")[-1]["loss"], plain[-1]["loss"])
        self.assertTrue(self.read("adapter_config.json")["use_rslora"])
        for key in ("adam_beta1=0.5", "adam_epsilon=0.01", "loraplus_lr_ratio=16"):
            steps = run(key)
            self.assertEqual(steps[0], plain[0], key)
            self.assertNotEqual(steps[-1]["loss"], plain[-1]["loss"], key)
        # The first loss depends on the rows only: a new adapter changes nothing yet.
        self.assertNotEqual(run("data_seed=7")[0]["loss"], plain[0]["loss"])
        self.assertEqual(run("seed=7", "data_seed=42")[0]["loss"], plain[0]["loss"])
        unshuffled = run("disable_shuffling=true", "seed=1")
        self.assertEqual(run("disable_shuffling=true", "seed=2")[0]["loss"], unshuffled[0]["loss"])
        rates = [entry["learning_rate"] for entry in run("lr_scheduler_type=cosine_with_min_lr", "lr_scheduler_kwargs={min_lr_rate: 0.5}",
                                                         "warmup_steps=2")]
        self.assertEqual(rates[:3], [0, 0.01, 0.02])
        self.assertTrue(0.01 < rates[-1] < 0.02)
        # Two turns, of which both are learned, or the last.
        def learned(on):
            _, err = self.train("dataset=talks", "max_steps=1", "overwrite_output_dir=true", f"mask_history={on}")
            return int(err.split(" of them learned")[0].split()[-1])
        self.assertEqual((learned("false"), learned("true")), (21, 14))
        self.train("dataset=sums", "val_size=4", "evaluation_strategy=epoch", "max_steps=4", "overwrite_output_dir=true")
        self.assertIn("eval_loss", self.read("all_results.json"))
        self.run_train(["export", "recipe.yaml", "adapter_name_or_path=out", "export_dir=merged", "export_size=1"], cwd=self.folder)

    def test_check_data_starts_nothing(self):
        more = ["dataset=sums", "val_size=2", "max_steps=-1", "num_train_epochs=2"]
        out, _ = self.run_train(["--check-data", "recipe.yaml", *more, "--worlds", "1,2"], cwd=self.folder)
        self.assertIn("model: qwen2, 2 layers", out)
        self.assertIn("data: 14 sequences", out)
        self.assertIn("2 ranks: 4 steps", out)
        self.assertFalse(self.out.exists())
        out, _ = self.run_train(["--check-data", "--json", "recipe.yaml"], cwd=self.folder)
        self.assertEqual((json.loads(out)["sequences"], json.loads(out)["omitted_records"]), (18, 1))
        (self.folder / "data" / "sums.json").write_text('[{"instruction": "1", "output": "2"},\n {"instruction": 3}]')
        _, err = self.run_train(["--check-data", "recipe.yaml"], 2, cwd=self.folder)
        self.assertIn("data/sums.json, record 1 (line 2)", err)

    def test_lines_of_a_text_file(self):
        path = self.folder / "data" / "dataset_info.json"
        path.write_text(json.dumps({"prose": {"file_name": "prose.txt", "columns": {"prompt": "text"}}}))
        (self.folder / "data" / "prose.txt").write_bytes(b"some words\r\nand more of them\n")
        _, err = self.train("stage=pt", "dataset=prose", "packing=false", "max_steps=1")
        self.assertIn("data: 2 sequences, 28 tokens", err)
        (self.folder / "data" / "prose.txt").write_bytes(b"good\nb\xff\n")
        _, err = self.train("stage=pt", "dataset=prose", "overwrite_output_dir=true", expected=2)
        self.assertIn("prose.txt, record 1 (line 2)", err)

    def test_chat(self):
        self.train("max_steps=2")

        def talk(arguments, said):
            process = subprocess.run([finetune_test.TRAIN, "chat", *arguments], cwd=self.folder, input=said, text=True,
                                     capture_output=True, timeout=60, env={**os.environ, "OMP_NUM_THREADS": "1", "PHALANX_LANG": "en"})
            self.assertEqual(process.returncode, 0, process.stderr)
            return process.stdout, process.stderr
        greedy = ["model", "--adapter", "out", "--max-new-tokens", "5"]
        first, err = talk(greedy, "1+1\n")
        self.assertIn("template chatml", err)
        self.assertEqual(first, self.run_train(["generate", *greedy, "1+1"], cwd=self.folder)[0])
        # The second message is answered with the first in mind, and without it after /clear. Empty lines are nothing.
        both, _ = talk(greedy, "1+1\n\n2+2\n")
        self.assertTrue(both.startswith(first) and len(both) > len(first))
        again, err = talk(greedy, "1+1\n/clear\n1+1\n/system Be brief.\n/help\n/exit\n2+2\n")
        self.assertEqual(again, first * 2)
        self.assertIn("/clear forgets the conversation", err)
        # A recipe of `llamafactory-cli chat`.
        (self.folder / "chat.yaml").write_text("model_name_or_path: model\nadapter_name_or_path: out\ntemplate: chatml\n"
                                               "infer_backend: huggingface\ntrust_remote_code: true\n")
        self.assertEqual(talk(["chat.yaml", "do_sample=false", "max_new_tokens=5"], "1+1\n")[0], first)
        for sure in ("top_k=1", "top_p=0.000001"):
            self.assertEqual(talk(["chat.yaml", sure, "max_new_tokens=5"], "1+1\n")[0], first)
        self.assertNotEqual(talk(["chat.yaml", "max_new_tokens=5", "repetition_penalty=1.5", "temperature=3"], "1+1\n")[0], first)


class Families(TextCase):
    """A model of another family, through the whole program: trained, merged, continued."""

    def check(self, config, rename):
        shapes = {name: [260 if size == 19 else size for size in shape] for name, shape in GOLDEN["shapes"].items()}
        write_model(self.folder / "model", {**GOLDEN["config"], "vocab_size": 260, **config}, rename(shapes))
        self.train("save_strategy=steps", "save_steps=6")
        losses = [entry["loss"] for entry in self.steps()]
        self.assertLess(losses[-1], losses[0])
        self.run_train(["export", "recipe.yaml", "adapter_name_or_path=out", "export_dir=merged", "output_dir=null"], cwd=self.folder)
        before, _ = read_safetensors(self.folder / "model" / "model.safetensors")
        after, _ = read_safetensors(self.folder / "merged" / "model.safetensors")
        self.assertEqual({name: shape for name, (shape, _) in before.items()}, {name: shape for name, (shape, _) in after.items()})
        common = ["--max-new-tokens", "8", "2+2"]
        adapted, _ = self.run_train(["generate", "model", "--adapter", "out", *common], cwd=self.folder)
        self.assertEqual(self.run_train(["generate", "merged", *common], cwd=self.folder)[0], adapted)
        return sorted(json.loads((self.out / "adapter_config.json").read_text())["target_modules"])

    def test_gemma(self):
        def rename(shapes):
            out = {name: shape for name, shape in shapes.items() if not name.endswith(".bias")}
            for layer in range(2):
                for name in ("pre_feedforward", "post_feedforward"):
                    out[f"model.layers.{layer}.{name}_layernorm.weight"] = [8]
                for name in ("q", "k"):
                    out[f"model.layers.{layer}.self_attn.{name}_norm.weight"] = [4]
            return out
        modules = self.check({"model_type": "gemma3_text", "sliding_window": 4, "sliding_window_pattern": 2}, rename)
        self.assertEqual(modules, ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"])

    def test_phi(self):
        def rename(shapes):
            out = {name: shape for name, shape in shapes.items() if "_proj" not in name or "o_proj" in name or "down_proj" in name}
            for layer in range(2):
                out[f"model.layers.{layer}.self_attn.qkv_proj.weight"] = [32, 8]
                out[f"model.layers.{layer}.mlp.gate_up_proj.weight"] = [24, 8]
            return out
        self.assertEqual(self.check({"model_type": "phi3"}, rename), ["down_proj", "gate_up_proj", "o_proj", "qkv_proj"])


if __name__ == "__main__":
    finetune_test.TRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
