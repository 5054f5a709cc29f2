"""phalanx-train as a program: real ranks, started by hand and by torchrun, stopped, killed and resumed.

Usage: launch_test.py Ranks|Words PATH-OF-phalanx-train
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).parent
TRAIN = ""  # the program, from the command line
CONFIG = """
out: {out}
seed: 7
device: cpu
data: {{corpus: {corpus}, validation: 0.2}}
model: {{layers: 2, heads: 2, width: 32, context: 16}}
train: {{steps: 12, batch: 8, log_every: 1}}
optimizer: {{lr: 3e-3, min_lr: 3e-4, warmup: 4}}
validation: {{every: 4, batches: 2}}
checkpoint: {{every: 5}}
sample: {{bytes: 20}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True).returncode == 0


def without_launcher(env):
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PHALANX_EVENT_FD")
    return {k: v for k, v in env.items() if k not in names and not k.startswith("TORCHELASTIC")}


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-launch-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes = []
        self.addCleanup(self.end_processes)
        (self.folder / "corpus.txt").write_bytes(bytes(97 + (i * i // 3 + i // 7) % 26 for i in range(16 * 64)))

    def end_processes(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def config(self, name):
        path = self.folder / f"{name}.yaml"
        path.write_text(CONFIG.format(out=self.folder / name, corpus=self.folder / "corpus.txt"))
        return str(path)

    def start(self, arguments, rank=None, world=1, port=0, **more):
        env = dict(without_launcher(os.environ), OMP_NUM_THREADS="1")
        if rank is not None:
            env.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        env.update(more.pop("env", {}))
        process = subprocess.Popen([TRAIN, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.processes.append(process)
        return process

    def start_ranks(self, world, arguments, **more):
        port = free_port()
        return [self.start(arguments, rank, world, port, **more) for rank in range(world)]

    def finish(self, process, expected=0):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, expected, f"stdout:\n{out}\nstderr:\n{err}")
        return out, err

    def log(self, name):
        lines = [json.loads(line) for line in (self.folder / name / "log.jsonl").read_text().splitlines()]
        return ({line["step"]: line["loss"] for line in lines if "loss" in line},
                {line["step"]: line["validation_loss"] for line in lines if "validation_loss" in line})

    def assert_same_curve(self, name, reference):
        for ours, theirs in zip(self.log(name), reference):
            self.assertEqual(ours.keys(), theirs.keys())
            for step, loss in theirs.items():
                self.assertAlmostEqual(ours[step], loss, delta=1e-5)

    def weights(self, name):
        """The model as other programs read it: merged from the ranks' shards."""
        to = self.folder / f"{name}-merged"
        subprocess.run([TRAIN, "merge", str(self.folder / name / "checkpoints" / "step-00000012"), "-o", str(to)], check=True,
                       capture_output=True, timeout=60)
        return (to / "model.safetensors").read_bytes()

    def wait_for_step(self, process, step):
        for line in process.stdout:
            if line.startswith(f"step {step}/"):
                return
        self.fail(f"step {step} was never printed: {process.stderr.read()}")


class Ranks(Program):
    def test_small_print(self):
        """The buffers that send gradients are no gradients, and a wrong batch is told by each rank before its first step."""
        said = self.finish(self.start_ranks(2, [self.config("zero2"), "parallel.mode=zero2", "parallel.share_parameters=off",
                                             "train.steps=1"])[0])[1]
        sizes = re.search(r"memory of a rank: parameters ([\d.]+) KiB, gradients ([\d.]+) KiB, buffers that send gradients [\d.]+ ", said)
        self.assertIsNotNone(sizes, said)
        parameters, gradients = (float(size) for size in sizes.groups())
        self.assertAlmostEqual(gradients, parameters / 2, delta=parameters / 20)
        for rank in self.start_ranks(2, [self.config("batch"), "train.batch=7"]):
            out, err = self.finish(rank, 2)
            self.assertIn("train.batch", err)
            self.assertNotIn("step ", out)

    def test_one_rank_two_ranks_and_torchrun_give_the_same_losses(self):
        out, err = self.finish(self.start([self.config("alone")]))
        self.assertIn("step 12/12  loss", out)
        self.assertIn("1 thread per rank", err)
        self.assertTrue((self.folder / "alone" / "sample.txt").stat().st_size >= 20)
        reference = self.log("alone")
        self.assertEqual(len(reference[0]), 12)

        ranks = self.start_ranks(2, [self.config("byhand")])
        outputs = [self.finish(rank) for rank in ranks]
        self.assertEqual(outputs[1][0] + outputs[1][1], "", "only rank 0 speaks")
        self.assertIn("shared memory of 2 ranks", outputs[0][1])
        self.assert_same_curve("byhand", reference)

        if not has_torch():
            self.skipTest("/usr/bin/python3 has no torch: not run under torchrun")
        run = subprocess.run(
            ["/usr/bin/python3", str(HERE / "torchrun.py"), "--nnodes=1", "--nproc_per_node=2", "--rdzv_backend=static",
             f"--master_port={free_port()}", "--no_python", TRAIN, self.config("torchrun")],
            env=dict(without_launcher(os.environ), TMPDIR=str(self.folder)), capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assert_same_curve("torchrun", reference)
        self.assertEqual(self.weights("torchrun"), self.weights("byhand"), "two ranks are two ranks, whoever starts them")

    def test_sigterm_finishes_the_step_saves_and_exits_143(self):
        more = ["train.steps=400", "checkpoint.every=0", "checkpoint.best=off"]
        for rank in self.start_ranks(2, [self.config("whole"), *more]):
            self.finish(rank)
        arguments = [self.config("parts"), *more]
        ranks = self.start_ranks(2, arguments)
        self.wait_for_step(ranks[0], 20)
        ranks[1].send_signal(signal.SIGTERM)  # one rank is told; both stop behind the same step
        _, err = self.finish(ranks[0], 143)
        self.finish(ranks[1], 143)
        self.assertIn("requested by SIGTERM", err)
        saved = list((self.folder / "parts" / "checkpoints").glob("step-*/DONE"))
        self.assertEqual(len(saved), 1)
        ranks = self.start_ranks(2, arguments)
        for rank in ranks:
            self.finish(rank)
        self.assertEqual(self.log("parts")[0], self.log("whole")[0], "to the last bit")

    def test_kill_at_any_moment_leaves_something_to_resume(self):
        arguments = [self.config("killed"), "train.steps=300", "checkpoint.every=1", "sample.bytes=0", "validation.every=0"]
        dice = random.Random(3)
        before = 0
        for _ in range(4):
            process = self.start(arguments)
            self.wait_for_step(process, before + 3)
            time.sleep(dice.random() * 0.05)  # not to wait for anything: to die at some other instruction
            process.kill()
            process.communicate()
            done = sorted((self.folder / "killed" / "checkpoints").glob("step-*/DONE"))
            self.assertTrue(done)
            before = int(done[-1].parent.name[5:])
        self.finish(self.start(arguments[:-1] + ["validation.every=0", f"train.steps={before + 5}"]))
        _, err = self.finish(self.start(arguments[:-1] + ["validation.every=0", f"train.steps={before + 6}"]))
        self.assertIn(f"resumed after step {before + 5}", err)
        out, err = self.finish(self.start(arguments[:-1] + ["validation.every=0", f"train.steps={before + 2}"]))
        self.assertIn(f"nothing to train: the checkpoint is at step {before + 6}, and the configuration ends at step {before + 2}", err)
        self.assertNotIn("resumed", err)
        self.assertEqual(list((self.folder / "killed" / "checkpoints").glob(".saving*")), [])

    def test_a_dead_rank_ends_the_others(self):
        ranks = self.start_ranks(3, [self.config("dead"), "train.steps=1000000", "train.batch=6"])
        self.wait_for_step(ranks[0], 3)
        ranks[1].kill()
        began = time.monotonic()
        for rank in (ranks[0], ranks[2]):
            _, err = self.finish(rank, 1)
            self.assertIn("cannot continue", err)
            self.assertIn("hint: another rank exited first", err)
        self.assertLess(time.monotonic() - began, 10)

    def test_ranks_that_do_not_agree_are_told(self):
        port = free_port()
        ranks = [self.start([self.config("differ"), f"train.steps={12 + rank}"], rank, 2, port) for rank in range(2)]
        for rank in ranks:
            _, err = self.finish(rank, 2)
            self.assertIn("do not agree on the config", err)
            self.assertIn("rank 1 differs from rank 0", err)

    def test_events_tell_the_launcher_how_far_it_is(self):
        read, write = os.pipe()
        with os.fdopen(read) as events:
            process = self.start([self.config("events")], env={"PHALANX_EVENT_FD": str(write)}, pass_fds=(write,))
            os.close(write)
            self.finish(process)
            lines = [json.loads(line) for line in events]
        self.assertTrue(all(line["v"] == 1 and line["type"] == "progress" for line in lines))
        self.assertEqual({"load", "train", "eval", "save", "sample", "done"}, {line["phase"] for line in lines})
        self.assertEqual(lines[-1]["step"], 12)
        self.assertEqual(lines[-1]["total"], 12)
        self.assertGreater(lines[-1]["tokens_per_s"], 0)

    def test_a_listener_that_does_not_read_stops_nothing(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        process = self.start([self.config("deaf"), "train.steps=2000", "validation.every=0", "checkpoint.every=0", "sample.bytes=0"],
                             env={"PHALANX_EVENT_FD": str(write)}, pass_fds=(write,))
        os.close(write)
        self.finish(process)

    def test_a_listener_that_is_gone_stops_nothing(self):
        read, write = os.pipe()
        os.close(read)
        process = self.start([self.config("gone")], env={"PHALANX_EVENT_FD": str(write)}, pass_fds=(write,), restore_signals=True)
        os.close(write)
        self.finish(process)


class Words(Program):
    """What it prints, which takes a start per sentence."""

    def test_help_and_version(self):
        out, _ = self.finish(self.start(["--help"]))
        self.assertIn("optimizer.warmup", out)
        out, _ = self.finish(self.start(["--version"]))
        self.assertRegex(out, r"^phalanx-train \d+\.\d+\.\d+\n$")

    def test_what_is_wrong_is_said(self):
        config = self.config("wrong")
        cases = [
            ([], {}, 2, "no config file given"),
            (["--nope"], {}, 2, "unknown option"),
            ([str(self.folder / "none.yaml")], {}, 2, "cannot read the config"),
            ([config, "train.stps=1"], {}, 2, 'did you mean "train.steps"?'),
            ([config, "data.corpus=/nowhere"], {}, 2, "no such file"),
            ([config, "data.corpus=/dev/null"], {}, 2, "not a regular file"),
            ([config, "model.context=4096"], {}, 2, "lower model.context"),
            ([config, "device=cuda"], {}, 3, "finds no GPU"),
            ([config], {"RANK": "0"}, 2, "WORLD_SIZE is not set"),
            ([config], {"RANK": "1", "WORLD_SIZE": "2"}, 2, "MASTER_ADDR is not set"),
            ([config], {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9", "GLOO_SOCKET_IFNAME": "nix0"}, 2,
             "GLOO_SOCKET_IFNAME names"),
            ([config], {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "no.such.invalid", "MASTER_PORT": "29999"}, 4,
             "cannot resolve MASTER_ADDR"),
        ]
        for arguments, env, code, message in cases:
            with self.subTest(arguments=arguments, env=env):
                if "cuda" in str(arguments) and pathlib.Path("/dev/nvidia0").exists():
                    continue
                _, err = self.finish(self.start(arguments, env=env), code)
                self.assertRegex(err, r"(?m)^error: ")
                self.assertIn(message, err)

    def test_in_chinese_there_is_no_english_sentence(self):
        os.environ["PHALANX_LANG"] = "zh"
        self.addCleanup(os.environ.pop, "PHALANX_LANG")
        config = self.config("zh")
        said = ""
        for steps in (4, 8, 6):  # from the start, resumed, nothing to do
            out, err = self.finish(self.start([config, f"train.steps={steps}", "checkpoint.every=2"]))
            said += out + err
        out, err = self.finish(self.start(["merge", str(self.folder / "zh")]))
        said += out + err
        wrong = ""
        for arguments in (["merge", "nope"], [config, "train.batch=7", "train.accumulate=3"], [config, "train.step=7"],
                          [config, "model.width=10", "model.heads=3"], [config, "data.corpus=/nowhere"], [config, "data.corpus=/dev/null"],
                          [config, "data.corpus="], [config, "data.files=[x]"], [config, "model.context=4096"], [config, "train.steps=x"],
                          [config, "parallel.mode=zero9"], [config, "optimizer.min_lr=1"], ["--nope"], [str(self.folder / "none.yaml")],
                          ["checkpoints", "nope"], [config, "sample.prompt="]):
            wrong += self.finish(self.start(arguments), 2)[1]
        said += wrong
        for line in wrong.splitlines():  # causes too: two words already are English here
            bare = re.sub(r'"[^"]*"|/\S+|[\w.]+=\S*|No such file or directory|Is a directory|phalanx-train .*', "", line)
            self.assertIsNone(re.search(r"(?<![\w./=-])[A-Za-z][a-z]+[ ,;:]+[a-z]{2,}(?![\w./=-])", bare), line)
        self.assertIn("从第 4 步之后继续，共 8 步", said)
        self.assertIn("没有这个目录：", said)
        sentence = re.compile(r"(?<![\w./=-])[A-Za-z][a-z]+(?:[ ,;:]+[a-z]{2,}){3}(?![\w./=-])")
        for line in said.splitlines():
            if not line.startswith("  ") and not re.match(r"step \d+/", line):  # the sample, and figures that are read by programs
                self.assertIsNone(sentence.search(re.sub(r'"[^"]*"', "", line)), line)

    def test_no_library_is_loaded_that_libtorch_names_and_does_not_use(self):
        header = subprocess.run(["readelf", "-d", TRAIN], capture_output=True, text=True, check=True).stdout
        if "empty_libraries" not in header:
            self.skipTest("the build folder is one that others could make, or libtorch is not the system's: everything is loaded")
        loaded = subprocess.run(["ldd", TRAIN], capture_output=True, text=True, check=True).stdout.splitlines()
        unused = re.compile(r"libopencv|libQt|libgdal|libav(codec|format)")
        self.assertGreater(len(loaded), 5)
        self.assertEqual([line for line in loaded if unused.search(line) and "empty" not in line], [])

    def test_libraries_are_not_looked_for_where_it_is_started(self):
        header = subprocess.run(["readelf", "-d", TRAIN], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", header):
            for folder in path.split(":"):
                self.assertTrue(folder.startswith("/"), path)

    def test_the_reference_blas_is_noticed(self):
        reference = "/usr/lib/x86_64-linux-gnu/blas"
        if not pathlib.Path(reference, "libblas.so.3").exists():
            self.skipTest(f"Debian's reference BLAS is not in {reference}; apt-get install libblas3")
        _, err = self.finish(self.start([self.config("slow")], env={"LD_LIBRARY_PATH": reference}))
        self.assertIn("unoptimised reference BLAS", err)
        self.assertIn("hint: apt-get install libopenblas0", err)


if __name__ == "__main__":
    TRAIN = os.path.abspath(sys.argv.pop())
    unittest.main(verbosity=2)
