"""finetune_folder.py FOLDER: a small Qwen2 of Hugging Face's kind, rows of tokens, and a LLaMA-Factory YAML with absolute paths, x.yaml."""
import json
import pathlib
import sys

TRAIN = pathlib.Path(__file__).resolve().parents[2] / "train" / "finetune"
sys.path.insert(0, str(TRAIN))
sys.dont_write_bytecode = True
from hf_folders import write_model  # noqa: E402

golden = json.loads((TRAIN / "training.json").read_text())
folder = pathlib.Path(sys.argv[1])
write_model(folder / "model", golden["config"], golden["shapes"])
(folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golden["rows"]))
recipe = {"model_name_or_path": str(folder / "model"), "stage": "sft", "do_train": True, "finetuning_type": "lora", "lora_rank": 4,
          "lora_dropout": 0.2, "tokenized_path": str(folder / "rows.jsonl"), "output_dir": str(folder / "out"), "logging_steps": 1,
          "save_strategy": "steps", "save_steps": 4, "max_steps": 8, "per_device_train_batch_size": 1, "learning_rate": 0.02}
(folder / "x.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in recipe.items()))
