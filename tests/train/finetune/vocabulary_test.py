"""phalanx-train with a LLaMA-Factory YAML: modules trained whole beside an adapter, added tokens, the best of the checkpoints.

Usage: vocabulary_test.py PATH-OF-phalanx-train
"""
import json
import pathlib
import shutil
import sys
import unittest

import finetune_test
from finetune_test import GOLDEN, TextCase, TokenizedCase, golden_adapter
from hf_folders import read_safetensors, sines, write_safetensors

PREFIX = "base_model.model."


def is_saved(name):
    return name.split(".")[-2].endswith(tuple(GOLDEN["saved"]))


class Saved(TokenizedCase):
    assert_golden, assert_tensors = finetune_test.Tokenized.assert_golden, finetune_test.Tokenized.assert_tensors

    def start_with_saved(self):
        """The golden adapter, and beside it what it saves: what the model has."""
        folder = self.folder / "saving"
        golden_adapter(folder)
        tensors, _ = read_safetensors(folder / "adapter_model.safetensors")
        model = {name: sines(shape, place, "norm" in name) for place, (name, shape) in enumerate(sorted(GOLDEN["shapes"].items()))}
        model["lm_head.weight"] = model["model.embed_tokens.weight"]
        tensors.update({PREFIX + name: tensor for name, tensor in model.items() if is_saved(name)})
        write_safetensors(folder / "adapter_model.safetensors", tensors)
        config = json.loads((folder / "adapter_config.json").read_text())
        (folder / "adapter_config.json").write_text(json.dumps({**config, "modules_to_save": GOLDEN["saved"]}))
        return [self.recipe, "finetuning_type=lora", f"adapter_name_or_path={folder}"]

    def test_saved_modules_are_the_golden_run(self):
        self.run_train(self.start_with_saved())
        self.assert_golden(GOLDEN["lora_and_saved"])
        self.assert_tensors(self.out / "adapter_model.safetensors", GOLDEN["lora_and_saved"]["sum_and_norm_after"], PREFIX)
        self.assertEqual(self.read("adapter_config.json")["modules_to_save"], GOLDEN["saved"])
        whole = (self.out / "adapter_model.safetensors").read_bytes()
        # Sharded, and resumed.
        sharded = 'deepspeed={"zero_optimization": {"stage": 3}}'
        self.run_train([*self.start_with_saved_again(), sharded, "output_dir=" + str(self.folder / "sharded")])
        numbers, _ = read_safetensors(self.folder / "sharded" / "adapter_model.safetensors")
        truth, _ = read_safetensors(self.out / "adapter_model.safetensors")
        self.assertEqual(numbers.keys(), truth.keys())
        for name, (_, values) in numbers.items():
            self.assertLess(max(abs(a - b) for a, b in zip(values, truth[name][1])), 1e-4, name)
        self.run_train([*self.start_with_saved_again(), "save_strategy=steps", "save_steps=3", "overwrite_output_dir=true"])
        self.run_train([*self.start_with_saved_again(), f"resume_from_checkpoint={self.out / 'checkpoint-3'}",
                        f"output_dir={self.folder / 'resumed'}"])
        self.assertEqual((self.folder / "resumed" / "adapter_model.safetensors").read_bytes(), whole)

    def start_with_saved_again(self):
        return [self.recipe, "finetuning_type=lora", f"adapter_name_or_path={self.folder / 'saving'}"]

    def test_a_new_adapter_saves_what_it_is_told_to(self):
        new = [self.recipe, "finetuning_type=lora", "additional_target=lm_head", "overwrite_output_dir=true"]
        _, err = self.run_train(new)
        self.assertIn("training 2392 of 3992 parameters", err)  # 1600, an adapter, and a head that is no longer the embedding
        tensors, _ = read_safetensors(self.out / "adapter_model.safetensors")
        saved = [name for name in tensors if ".lora_" not in name]
        self.assertEqual(saved, [PREFIX + "lm_head.weight"])
        base, _ = read_safetensors(self.folder / "model" / "model.safetensors")
        self.assertNotEqual(tensors[saved[0]][1], base["model.embed_tokens.weight"][1])
        # Merged, the head stays apart from the embedding, and config.json says so.
        (self.folder / "export.yaml").write_text(f"model_name_or_path: {self.folder / 'model'}\nadapter_name_or_path: {self.out}\n"
                                                 f"export_dir: {self.folder / 'merged'}\n")
        self.run_train(["export", self.folder / "export.yaml"])
        merged, _ = read_safetensors(self.folder / "merged" / "model.safetensors")
        self.assertEqual(merged["lm_head.weight"], tensors[saved[0]])
        self.assertEqual(merged["model.embed_tokens.weight"], base["model.embed_tokens.weight"])
        self.assertIs(json.loads((self.folder / "merged" / "config.json").read_text())["tie_word_embeddings"], False)
        # What it has learned is there again: the first loss of a training that goes on is near the last one.
        last = self.steps()[-1]["loss"]
        self.run_train([self.recipe, "finetuning_type=lora", f"adapter_name_or_path={self.out}", "learning_rate=0",
                        f"output_dir={self.folder / 'next'}"])
        self.out = self.folder / "next"
        self.assertLess(abs(self.steps()[0]["loss"] - last), 0.7)
        for key, reason in (("additional_target=no_such", 'no module "no_such"'), ("additional_target=mlp", "and be trained whole")):
            self.assertIn(reason, self.run_train([*new, key], 2)[1])
        self.assertIn("additional_target needs finetuning_type lora", self.run_train([*new, "finetuning_type=full"], 2)[1])

    def test_create_new_adapter(self):
        start = [self.recipe, "finetuning_type=lora", "lora_rank=4", f"adapter_name_or_path={self.folder / 'start'}"]
        self.run_train([*start, "create_new_adapter=true"])
        self.assertEqual(self.read("adapter_config.json")["r"], 4)
        self.run_train([*start, "overwrite_output_dir=true"])
        self.assertEqual(self.read("adapter_config.json")["r"], 2)
        self.assertIn("create_new_adapter needs adapter_name_or_path",
                      self.run_train([self.recipe, "finetuning_type=lora", "create_new_adapter=true"], 2)[1])

    def test_extra_modules_of_freeze(self):
        def changed(*more):
            self.run_train([self.recipe, "finetuning_type=freeze", "freeze_trainable_layers=1", "overwrite_output_dir=true", *more])
            after, _ = read_safetensors(self.out / "model.safetensors")
            before, _ = read_safetensors(self.folder / "model" / "model.safetensors")
            return {name for name in after if after[name] != before[name]}
        layer = changed()
        self.assertTrue(all(name.startswith("model.layers.1.") for name in layer))
        self.assertEqual(changed("freeze_extra_modules=embed_tokens") - layer, {"model.embed_tokens.weight"})
        norms = {name for name in GOLDEN["shapes"] if "norm" in name}
        self.assertEqual(changed("freeze_extra_modules=norm") - layer, norms - layer)
        _, err = self.run_train([self.recipe, "finetuning_type=freeze", "freeze_extra_modules=embed_token"], 2)
        self.assertIn("freeze_extra_modules: embed_tokens", err)


class AddedTokens(TextCase):
    def rows(self, path, name):
        (rows, columns), numbers = read_safetensors(path)[0][name]
        return [numbers[i * columns:(i + 1) * columns] for i in range(rows)]

    def write_data(self):
        sums = [{"instruction": f"<plus>{a}", "input": "", "output": f"{a}<done>"} for a in range(8)]
        (self.folder / "data" / "sums.json").write_text(json.dumps(sums))

    def test_lora_learns_them(self):
        self.write_data()
        more = ["dataset=sums", "add_tokens=<plus>", "add_special_tokens=<done>"]
        _, err = self.train(*more, "max_steps=40")
        self.assertIn("the embedding has 320 rows now, 260 before", err)  # 259 + 2 tokens, to a multiple of 64
        # <|im_start|>user\n<plus>0<|im_end|>\n<|im_start|>assistant\n, and 0<done><|im_end|>\n.
        self.assertIn("data: 8 sequences, 200 tokens, 32 of them learned", err)
        config = self.read("adapter_config.json")
        self.assertEqual(config["modules_to_save"], ["embed_tokens", "lm_head"])
        before = self.rows(self.folder / "model" / "model.safetensors", "model.embed_tokens.weight")
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            self.assertEqual(len(self.rows(self.out / "adapter_model.safetensors", PREFIX + name)), 320)
        tokenizer = self.read("tokenizer.json")
        old = json.loads((self.folder / "model" / "tokenizer.json").read_text())
        self.assertEqual(tokenizer["added_tokens"][:-2], old["added_tokens"])
        self.assertEqual([(t["id"], t["content"], t["special"], t["normalized"]) for t in tokenizer["added_tokens"][-2:]],
                         [(259, "<plus>", False, True), (260, "<done>", True, False)])
        self.assertEqual({**tokenizer, "added_tokens": 0}, {**old, "added_tokens": 0})
        added = self.read("tokenizer_config.json")["added_tokens_decoder"]
        self.assertEqual((added["260"]["content"], added["260"]["special"]), ("<done>", True))
        # Generated from the adapter, and from the merged model, whose folder needs nothing else.
        common = ["--max-new-tokens", "4", "<plus>3"]
        adapted, err = self.run_train(["generate", "model", "--adapter", "out", *common], cwd=self.folder)
        self.assertIn("21 tokens of prompt", err)
        self.run_train(["export", "recipe.yaml", "adapter_name_or_path=out", "export_dir=merged", "output_dir=null"], cwd=self.folder)
        merged = self.folder / "merged"
        self.assertEqual(self.run_train(["generate", "merged", *common], cwd=self.folder)[0], adapted)
        about = json.loads((merged / "config.json").read_text())
        self.assertEqual((about["vocab_size"], about["tie_word_embeddings"]), (320, False))
        self.assertEqual((merged / "tokenizer.json").read_bytes(), (self.out / "tokenizer.json").read_bytes())
        self.assertEqual(len(self.rows(merged / "model.safetensors", "lm_head.weight")), 320)
        self.assertEqual(len(before), 260)
        # An adapter that is trained further brings its tokens along; more of them have no room.
        _, err = self.train("dataset=sums", "adapter_name_or_path=out", "output_dir=next", "max_steps=1")
        self.assertIn("data: 8 sequences, 200 tokens", err)
        many = ",".join(f"<t{i}>" for i in range(64))
        _, err = self.train(*more, f"add_tokens={many}", "adapter_name_or_path=out", "output_dir=next", expected=2)
        self.assertIn("the adapter's embedding has 320 rows, and the tokenizer 325 tokens", err)

    def test_adapters_on_adapters(self):
        self.write_data()
        self.train("dataset=sums", "add_tokens=<plus>", "add_special_tokens=<done>", "max_steps=4")
        # A new adapter on top of one that has learned tokens knows them too, and what comes after it.
        _, err = self.train("dataset=sums", "adapter_name_or_path=out", "create_new_adapter=true", "output_dir=second", "max_steps=4")
        self.assertIn("data: 8 sequences, 200 tokens", err)
        second = self.folder / "second"
        self.assertIsNone(json.loads((second / "adapter_config.json").read_text())["modules_to_save"])
        _, err = self.train("dataset=sums", "adapter_name_or_path=out,second", "output_dir=third", "max_steps=1")
        self.assertIn("data: 8 sequences, 200 tokens", err)
        both = ["generate", "model", "--adapter", "out,second", "--max-new-tokens", "4", "<plus>3"]
        said, err = self.run_train(both, cwd=self.folder)
        self.assertIn("21 tokens of prompt", err)
        export = ["export", "recipe.yaml", "adapter_name_or_path=out,second", "export_dir=merged", "output_dir=null"]
        self.run_train(export, cwd=self.folder)
        self.assertEqual((self.folder / "merged" / "tokenizer.json").read_bytes(), (self.out / "tokenizer.json").read_bytes())
        self.assertEqual(self.run_train(["generate", "merged", *both[4:]], cwd=self.folder)[0], said)
        # Without the first one the second is out of place, and it is said.
        note = "second was trained on a model that out had been merged into"
        self.assertNotIn(note, err)
        self.assertIn(note, self.run_train(["generate", "model", "--adapter", "second", *both[4:]], cwd=self.folder)[1])
        _, err = self.run_train([*both, "--adapter", "second"], 2, cwd=self.folder)
        self.assertIn("--adapter is given twice", err)

    def test_frozen_rows_are_told(self):
        _, err = self.train("dataset=sums", "finetuning_type=freeze", "add_tokens=<a>", "max_steps=1")
        self.assertIn("the rows of new tokens are frozen", err)

    def test_rows_begin_as_the_mean_and_some_noise(self):
        self.train("finetuning_type=full", "dataset=sums", "add_tokens=<a>,<b>", "learning_rate=0", "lr_scheduler_type=constant",
                   "max_steps=1")
        before = self.rows(self.folder / "model" / "model.safetensors", "model.embed_tokens.weight")
        after = self.rows(self.out / "model.safetensors", "model.embed_tokens.weight")
        self.assertEqual(self.read("config.json")["vocab_size"], 320)
        self.assertIs(self.read("config.json")["tie_word_embeddings"], True)
        self.assertEqual(after[:259], before[:259])  # <a> takes 259, a row that no token had
        others = before[:259]
        mean = [sum(column) / len(others) for column in zip(*others)]
        noise = [value - middle for row in after[259:] for value, middle in zip(row, mean)]
        self.assertEqual(len(noise), 61 * 8)
        self.assertLess(abs(sum(noise) / len(noise)), 0.1)
        spread = (sum(value ** 2 for value in noise) / len(noise)) ** 0.5
        self.assertLess(abs(spread - 8 ** -0.5), 0.05)
        self.assertEqual(len({row for row in map(tuple, after[259:])}), 61)

    def test_resize_vocab_alone(self):
        # Every token has a row already: the embedding stays as long as it is, but is trained beside the adapter.
        self.train("dataset=sums", "resize_vocab=true", "max_steps=2")
        self.assertEqual(self.read("adapter_config.json")["modules_to_save"], ["embed_tokens", "lm_head"])
        self.assertEqual(len(self.rows(self.out / "adapter_model.safetensors", PREFIX + "lm_head.weight")), 260)
        # The older name of add_special_tokens.
        _, err = self.train("dataset=sums", "new_special_tokens=<done>", "max_steps=1", "output_dir=older")
        self.assertNotIn("the embedding has", err)  # there was a row to spare
        self.assertTrue(json.loads((self.folder / "older" / "tokenizer.json").read_text())["added_tokens"][-1]["special"])

    def test_bad_input(self):
        for keys, reason in (
                (["add_tokens=<a>", "additional_target=lm_head"], "additional_target lacks embed_tokens or lm_head"),
                (["add_tokens=['']"], "is not a list of names"),
                (["add_tokens=<a>", "tokenized_path=x.jsonl"], "which tokenized_path does without")):
            self.assertIn(reason, self.train("dataset=sums", *keys, expected=2)[1])
        _, err = self.run_train(["export", "recipe.yaml", "add_tokens=<a>", "export_dir=merged", "template=null"], 2, cwd=self.folder)
        self.assertIn("template is missing; add_tokens", err)

class Best(TextCase):
    """With a learning rate that is far too high, evaluations get worse after some of the first ones."""
    KEYS = ["dataset=sums", "val_size=4", "eval_strategy=steps", "eval_steps=2", "save_strategy=steps", "save_steps=2", "learning_rate=0.4",
            "lr_scheduler_type=constant", "load_best_model_at_end=true", "save_total_limit=1"]

    def evaluations(self):
        found = {}  # of a step the first one: another follows the last step where do_eval asks for it
        for entry in self.read("trainer_state.json")["log_history"]:
            if "eval_loss" in entry:
                found.setdefault(entry["step"], entry["eval_loss"])
        return found

    def weights(self, folder):
        return (folder / "adapter_model.safetensors").read_bytes()

    def test_the_result_is_the_best_checkpoint(self):
        keys, pick = [*self.KEYS, "do_eval=true", "max_steps=6"], min
        _, err = self.train(*keys)
        if min(self.evaluations(), key=self.evaluations().get) == 6:  # it shows nothing, on this processor; the worst is looked for
            pick = max
            _, err = self.train(*keys, "greater_is_better=true", "metric_for_best_model=eval_loss", "overwrite_output_dir=true")
        state, found = self.read("trainer_state.json"), self.evaluations()
        best = pick(found, key=found.get)
        self.assertLess(best, 6)
        self.assertIn(f"the result is the checkpoint of step {best}: no later one had the best evaluation so far", err)
        self.assertEqual((state["best_global_step"], state["best_model_checkpoint"]), (best, f"out/checkpoint-{best}"))
        self.assertEqual(state["best_metric"], found[best])
        self.assertEqual(sorted(path.name for path in self.out.glob("checkpoint-*")), sorted({f"checkpoint-{best}", "checkpoint-6"}))
        self.assertEqual(self.weights(self.out), self.weights(self.out / f"checkpoint-{best}"))
        self.assertNotEqual(self.weights(self.out), self.weights(self.out / "checkpoint-6"))
        # do_eval judges the result, not the last step.
        self.assertAlmostEqual(self.read("eval_results.json")["eval_loss"], found[best], delta=1e-6)
        # The same where parameters are sharded, and by the worst instead of the best.
        self.train(*self.KEYS, "greater_is_better=true", "metric_for_best_model=eval_loss", "overwrite_output_dir=true",
                   'deepspeed={"zero_optimization": {"stage": 3}}')
        found = self.evaluations()
        worst = max(found, key=found.get)
        self.assertEqual(self.weights(self.out), self.weights(self.out / f"checkpoint-{worst}"))

    def test_training_ends_early(self):
        more = [*self.KEYS, "early_stopping_steps=2", "max_steps=40", "save_total_limit=9"]
        _, err = self.train(*more)
        found = self.evaluations()
        self.assertLess(len(found), 20)
        best = min(found, key=found.get)
        last = max(found)
        self.assertEqual(last, best + 4)  # two evaluations later
        self.assertIn(f"training ends after step {last} of 40: no evaluation has been better than that after step {best}", err)
        self.assertIn(f"mean loss {self.read('train_results.json')['train_loss']:.4f}", err)
        counter = self.read("trainer_state.json")["stateful_callbacks"]["EarlyStoppingCallback"]["attributes"]
        self.assertEqual(counter, {"early_stopping_patience_counter": 2})
        # A run that was stopped in between counts on.
        whole = self.weights(self.out), found
        self.train(*more, f"resume_from_checkpoint={self.out / f'checkpoint-{last - 2}'}", "output_dir=again")
        self.out = self.folder / "again"
        self.assertEqual((self.weights(self.folder / "out" / f"checkpoint-{best}"), self.evaluations()), whole)
        # A run that has ended early does not go on.
        _, err = self.train(*more)
        self.assertIn(f"training ends after step {last} of 40", err)
        self.assertEqual(self.evaluations(), found)
        # Somebody has tidied up: the run ends all the same.
        shutil.rmtree(self.folder / "out" / f"checkpoint-{best}")
        _, err = self.train(*more, f"resume_from_checkpoint={self.folder / 'out' / f'checkpoint-{last - 2}'}", "output_dir=third")
        self.assertIn(f"checkpoint-{best} is gone: the result is the model after the last step", err)

    def run_ranks(self, arguments):
        both = self.ranks(2, arguments, cwd=self.folder)
        said = [rank.communicate(timeout=120) for rank in both]
        self.assertEqual([rank.returncode for rank in both], [0, 0], said)

    def test_ranks_end_together(self):
        keys = [*self.KEYS, "early_stopping_steps=2", "max_steps=40", "per_device_train_batch_size=2", "save_total_limit=9"]
        self.run_ranks(["recipe.yaml", *keys])
        found = self.evaluations()
        last = max(found)
        self.assertLess(last, 40)
        self.run_ranks(["recipe.yaml", *keys, f"resume_from_checkpoint=out/checkpoint-{last - 2}", "output_dir=again"])
        self.out = self.folder / "again"
        self.assertEqual(self.evaluations(), found)

    def test_bad_input(self):
        for keys, reason in (
                (["eval_strategy=no"], "need an eval_strategy"),
                (["save_strategy=epoch"], "needs a save_strategy that is eval_strategy"),
                (["save_steps=3"], "needs save_steps that is a multiple of eval_steps"),
                (["metric_for_best_model=accuracy"], 'evaluations have no "accuracy"'),
                (["greater_is_better=maybe"], '"maybe" is not one of true, false'),
                (["load_best_model_at_end=false", "greater_is_better=true"], "greater_is_better needs metric_for_best_model")):
            self.assertIn(reason, self.train(*self.KEYS, *keys, expected=2)[1])


if __name__ == "__main__":
    finetune_test.TRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
