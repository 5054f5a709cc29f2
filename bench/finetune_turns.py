"""Fine-tuning side by side: ours and transformers' modules in eager PyTorch take turns of a few steps (train_turns.py).

The same model, rows, order and optimizer; the losses must agree, else this fails.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from train_turns import Side

# (name, mode, lengths, steps a turn). alpaca: tokens of prompt and answer of real rows; equal: every row as long as the longest.
CASES = [
    ("lora, alpaca's lengths", "lora", "alpaca", 2),
    ("lora, equal lengths", "lora", "equal", 1),
    ("full, alpaca's lengths", "full", "alpaca", 2),
    ("full, equal lengths", "full", "equal", 1),
]
COMPARED, AGREE = 8, 2e-4
HERE = os.path.dirname(os.path.abspath(__file__))


def lengths_of(kind, folder):
    """The file of lengths."""
    alpaca = os.path.join(HERE, "alpaca_lengths.txt")
    if kind == "alpaca":
        return alpaca
    path = os.path.join(folder, "equal.txt")
    with open(alpaca) as file, open(path, "w") as out:
        for line in file:
            if line.strip() and not line.startswith("#"):
                prompt = int(line.split()[0])
                out.write(f"{prompt} {512 - prompt}\n")
    return path


def compare(ours, case, rounds, environment, folder):
    name, mode, kind, steps = case
    lengths = lengths_of(kind, folder)
    commands = [[ours, "qwen", mode, lengths], ["/usr/bin/python3", os.path.join(HERE, "finetune_peer.py"), "qwen", mode, lengths]]
    sides, seconds, worst, done = [], ([], []), 0.0, 0
    try:
        sides = [Side(command, 1, environment) for command in commands]
        for turn in range(rounds + 1):
            results = {side: sides[side].turn(steps) for side in ((0, 1) if turn % 2 else (1, 0))}
            compared = max(0, COMPARED - done)
            mine, theirs = results[0][1][0][:compared], results[1][1][0][:compared]
            worst = max([worst] + [abs(a - b) / abs(b) for a, b in zip(mine, theirs)])
            done += steps
            if turn:
                for side in (0, 1):
                    seconds[side].append(results[side][0] / steps)
        if worst > AGREE:
            raise SystemExit(f"error: {name}: losses differ by {worst:.2g} of their size, more than {AGREE:g}: not the same training")
        peaks = [side.end() for side in sides]
    finally:
        for side in sides:
            side.kill()
    return dict(name=name, ours_s=statistics.median(seconds[0]), peer_s=statistics.median(seconds[1]),
                ratio=statistics.median(b / a for a, b in zip(*seconds)), ours_mib=peaks[0], peer_mib=peaks[1], losses_differ=worst)


def main():
    parser = argparse.ArgumentParser(prog="./x bench finetune", description="Fine-tuning beside eager PyTorch, taking turns.")
    parser.add_argument("ours")
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 7")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="names that contain one of these, comma-separated")
    given = parser.parse_args()
    rounds = 3 if given.quick else 7
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    wanted = [word for word in given.only.split(",") if word]
    rows = []
    if not given.json:
        print(f"fine-tuning: one step of 4 rows, medians of {rounds} turns; 1 thread, {os.cpu_count()} cores; shapes of Qwen2.5-0.5B at an "
              "eighth of its width")
        print(f"{'':24} {'ours s':>8} {'peer s':>8} {'speed':>7} {'ours MiB':>9} {'peer MiB':>9} {'losses differ':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if wanted and not any(word in case[0] for word in wanted):
                continue
            row = compare(given.ours, case, rounds, environment, folder)
            rows.append(row)
            if not given.json:
                line = "{name:24} {ours_s:8.3f} {peer_s:8.3f} {ratio:6.2f}x {ours_mib:9.0f} {peer_mib:9.0f} {losses_differ:14.1e}"
                print(line.format(**row), flush=True)
    if given.json:
        json.dump({"schema": 1, "rounds": rounds, "rows": rows}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
