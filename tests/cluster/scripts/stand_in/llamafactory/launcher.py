"""Writes trainer_log.jsonl as llamafactory/train/callbacks.py does (LogCallback, ff6d4d12e): rank 0 appends a line, and closes the file."""
import json
import os
import sys

with open(sys.argv[1]) as file:
    folder = [line.split(":", 1)[1].strip() for line in file if line.startswith("output_dir:")][0]
if os.environ["RANK"] == "0":
    os.makedirs(folder, exist_ok=True)
    for step in (5, 10, 15):
        line = {"current_steps": step, "total_steps": 15, "loss": 3.0 / step, "lr": 1e-4, "epoch": step / 15, "percentage": step / 0.15,
                "elapsed_time": "0:00:01", "remaining_time": "0:00:00", "throughput": 900.5, "total_tokens": 100 * step}
        with open(os.path.join(folder, "trainer_log.jsonl"), "a") as log:
            log.write(json.dumps(line) + "\n")
