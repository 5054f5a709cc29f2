// read_command() over real files: the launchers of the field notes, their scripts and configurations.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/sha256.h"
#include "base/text.h"
#include "machine/command/launch_line.h"
#include "machine/command/paths.h"
#include "machine/command/shell_text.h"
#include "machine/probe.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

class Command : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phalanx-command-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + root_).c_str()), 0); }
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(os::make_folders(root_ + path.substr(0, path.find_last_of('/'))).ok());
    ASSERT_TRUE(os::write_file_atomic(root_ + path, text).ok());
  }
  CommandFacts read(std::vector<std::string> argv) {
    ProbeRequest request;
    request.root = root_;
    request.argv = std::move(argv);
    request.directory = "/home/train/work";
    request.environment = {{"HOME", "/home/train"}};
    return read_command(request);
  }
  std::string root_;
};

const CommandFile* find(const CommandFacts& f, const std::string& path) {
  for (const CommandFile& file : f.files)
    if (file.path == path) return &file;
  return nullptr;
}
std::string role(const CommandFacts& f, const std::string& path) {
  for (const NamedPath& p : f.paths)
    if (p.path == path) return p.role;
  return "";
}
std::string paths(const CommandFacts& f) {
  std::string text;
  for (const NamedPath& p : f.paths) text += p.role + " " + p.path + " (" + p.named_by + ")\n";
  return text;
}

TEST_F(Command, TheDataThatOptionsName) {
  write("/home/train/work/train.py", "import torch\n");
  EXPECT_EQ(role(read({"python3", "train.py", "--data", "/home/me/nope/data.bin"}), "/home/me/nope/data.bin"), "input");
  EXPECT_EQ(paths(read({"python3", "train.py", "--data", "cifar10", "--dataset", "org/name"})), "") << "names, not paths";
}

// --check-data of `phalanx train`, and the options of the engine, stand before the configuration.
TEST_F(Command, TheEnginesConfigurationBehindItsOptions) {
  write("/home/train/work/first.yaml", "data:\n  path: /data/tokens\n");
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--check-data"}, {"--check-data", "--threads", "4"}}) {
    std::vector<std::string> argv = {"phalanx-train"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"first.yaml", "train.steps=3"});
    CommandFacts f = read(argv);
    ASSERT_EQ(f.files.size(), 1u);
    EXPECT_EQ(f.files[0].path, "/home/train/work/first.yaml");
    EXPECT_TRUE(f.files[0].exists);
  }
}

TEST_F(Command, APythonScriptAndTheFilesItsOptionsName) {
  write("/home/train/work/train.py", "import torch\n");
  write("/home/train/work/models/llama/config.json", "{}");
  CommandFacts f = read({"python3.11", "-u", "train.py", "--data_path", "/data/corpus", "--output-dir=out", "--model_name_or_path",
                         "models/llama", "--tokenizer_name", "meta-llama/Llama-2-7b", "--lr", "1e-4", "--api_key", "abc", "--fp16"});
  EXPECT_EQ(f.launcher, "python");
  const CommandFile* script = find(f, "/home/train/work/train.py");
  ASSERT_TRUE(script);
  EXPECT_TRUE(script->exists);
  EXPECT_EQ(script->role, "script");
  EXPECT_EQ(script->named_by, "the command");
  EXPECT_EQ(script->size, 13);
  EXPECT_EQ(script->sha256, base::sha256_hex("import torch\n"));
  EXPECT_EQ(role(f, "/data/corpus"), "input");
  EXPECT_EQ(role(f, "/home/train/work/out"), "output");
  EXPECT_EQ(role(f, "/home/train/work/models/llama"), "input");
  EXPECT_EQ(f.paths.size(), 3u) << paths(f);  // the hub id is no path
  for (const std::string& word : f.launches.at(0).arguments) EXPECT_NE(word, "abc");
}

TEST_F(Command, TheShellScriptOfTheLightningNote) {
  write("/home/train/work/run_ddp_train.sh",
        "#/bin/bash\n\nMASTER_ADDR='172.16.12.2' # ainode02\n# MASTER_ADDR='172.16.12.8'\nMASTER_PORT='25678'\nGPUS=$1\nRANK=$2\n"
        "config_path=configs/gan.yaml\n\nCUDA_VISIBLE_DEVICES=$GPUS MASTER_ADDR=$MASTER_ADDR NODE_RANK=$RANK LOCAL_RANK=0 \\\n"
        "python3 cli.py fit -c $config_path >logs/nohup_logs/gan.log 2>&1\n");
  write("/home/train/work/cli.py", "");
  write("/home/train/work/configs/gan.yaml", "trainer:\n  accelerator: gpu\n  devices: [0]\n  num_nodes: 2\n  default_root_dir: runs\n");
  CommandFacts f = read({"./run_ddp_train.sh", "0", "1"});
  EXPECT_EQ(f.launcher, "python");
  ASSERT_EQ(f.launches.size(), 2u);
  const LaunchLine& inner = f.launches[1];
  EXPECT_EQ(inner.line, 10);
  EXPECT_EQ(inner.variables.at("MASTER_ADDR"), "172.16.12.2");
  EXPECT_EQ(inner.variables.at("LOCAL_RANK"), "0");
  EXPECT_EQ(inner.variables.at("NODE_RANK"), "1");
  EXPECT_EQ(inner.program, "cli.py");
  ASSERT_EQ(f.outputs.size(), 1u);
  EXPECT_EQ(f.outputs[0].folder, "/home/train/work/logs/nohup_logs");
  EXPECT_FALSE(f.outputs[0].folder_exists);
  EXPECT_FALSE(f.outputs[0].folder_made);
  EXPECT_TRUE(f.outputs[0].launch);
  ASSERT_TRUE(find(f, "/home/train/work/configs/gan.yaml"));
  EXPECT_EQ(find(f, "/home/train/work/configs/gan.yaml")->role, "lightning");
  EXPECT_EQ(find(f, "/home/train/work/run_ddp_train.sh")->role, "shell");
  EXPECT_EQ(role(f, "/home/train/work/runs"), "output");

  write("/home/train/work/logs/nohup_logs/x", "");
  EXPECT_TRUE(read({"bash", "run_ddp_train.sh"}).outputs.at(0).folder_exists);
}

TEST_F(Command, LlamaFactoryWithItsDataAndDeepSpeed) {
  write("/home/train/work/config/train.yaml",
        "model_name_or_path: /models/qwen\nstage: sft\ndataset: mine, hub\ndataset_dir: data\ndeepspeed: ds/z3.json\noutput_dir: saves/q\n"
        "tokenized_path: /cache/tok\nhf_hub_token: hf_abcdefghijklmnopqrstuvwxyz\n");
  write("/home/train/work/ds/z3.json", "{\"zero_optimization\": {\"stage\": 3}}");
  write("/home/train/work/data/dataset_info.json", "{\"mine\": {\"file_name\": \"mine.json\"}, \"hub\": {\"hf_hub_url\": \"a/b\"}}");
  CommandFacts f = read({"env", "FORCE_TORCHRUN=1", "NNODES=2", "llamafactory-cli", "train", "config/train.yaml"});
  EXPECT_EQ(f.launcher, "llamafactory");
  EXPECT_EQ(f.launches.at(0).variables.at("NNODES"), "2");
  EXPECT_EQ(find(f, "/home/train/work/config/train.yaml")->role, "llamafactory");
  EXPECT_EQ(find(f, "/home/train/work/ds/z3.json")->named_by, "deepspeed: in train.yaml");
  EXPECT_EQ(find(f, "/home/train/work/data/dataset_info.json")->role, "dataset_info");
  EXPECT_EQ(role(f, "/home/train/work/data/mine.json"), "input");
  EXPECT_EQ(role(f, "/models/qwen"), "input");
  EXPECT_EQ(role(f, "/home/train/work/saves/q"), "output");
  EXPECT_EQ(role(f, "/cache/tok"), "any");
  EXPECT_EQ(find(f, "/home/train/work/config/train.yaml")->text.find("hf_abc"), std::string::npos);
}

TEST_F(Command, DataThatLiesElsewhereIsNoPath) {
  for (const char* folder : {"ONLINE", "REMOTE:org/data", "s3://bucket/data"}) {
    write("/home/train/work/train.yaml", "stage: sft\ndataset: mine\ndataset_dir: " + std::string(folder) + "\n");
    CommandFacts f = read({"llamafactory-cli", "train", "train.yaml"});
    EXPECT_EQ(f.files.size(), 1u) << folder;
    EXPECT_EQ(paths(f), "");
  }
}

TEST_F(Command, AccelerateWithHostfileAndItsDefaultConfiguration) {
  const std::string config =
      "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_hostfile: ./path/hostfile\ndistributed_type: DEEPSPEED\n";
  write("/home/train/work/acc.yaml", config);
  write("/home/train/work/path/hostfile", "10.0.0.1 slots=8\n");
  CommandFacts f = read({"accelerate", "launch", "--multi_gpu", "--config_file", "acc.yaml", "--num_processes", "16", "t.py", "--x", "1"});
  EXPECT_EQ(f.launcher, "accelerate");
  EXPECT_EQ(f.launches.at(0).program, "t.py");
  EXPECT_EQ(f.launches.at(0).options.at("num_processes"), "16");
  EXPECT_EQ(find(f, "/home/train/work/path/hostfile")->role, "hostfile");
  EXPECT_FALSE(find(f, "/home/train/work/t.py")->exists);
  write("/home/train/.cache/huggingface/accelerate/default_config.yaml", config);
  EXPECT_TRUE(find(read({"accelerate", "launch", "t.py"}), "/home/train/.cache/huggingface/accelerate/default_config.yaml"));
}

TEST_F(Command, ScriptsThatStartScripts) {
  write("/home/train/work/outer.sh",
        "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\nexport OMP_NUM_THREADS=4\nfor i in 1 2; do\n  bash inner.sh run.py &\ndone\n");
  write("/home/train/work/inner.sh",
        "torchrun --nproc_per_node=${GPUS:-4} --standalone \"$1\" \\\n  --deepspeed ds.json <<EOF\npython not_this.py\nEOF\n");
  write("/home/train/work/ds.json", "{}");
  CommandFacts f = read({"bash", "-c", "./outer.sh"});
  ASSERT_EQ(f.launches.size(), 4u);
  EXPECT_EQ(f.launcher, "torchrun");
  EXPECT_EQ(f.launches[3].options.at("nproc_per_node"), "4");
  EXPECT_EQ(f.launches[3].program, "run.py");
  EXPECT_EQ(f.launches[3].line, 1);
  EXPECT_TRUE(f.launches[2].background);
  EXPECT_EQ(f.launches[2].variables.at("OMP_NUM_THREADS"), "4");
  EXPECT_TRUE(find(f, "/home/train/work/ds.json"));
  EXPECT_FALSE(find(f, "/home/train/work/not_this.py"));

  write("/home/train/work/self.sh", "bash self.sh\n");  // starts itself
  EXPECT_LE(read({"bash", "self.sh"}).launches.size(), 32u);
}

TEST_F(Command, HostileFilesCostNothing) {
  write("/home/train/work/big.py", std::string(300 << 10, '#'));
  ASSERT_EQ(::mkfifo((root_ + "/home/train/work/pipe.sh").c_str(), 0600), 0);
  EXPECT_EQ(find(read({"python", "big.py"}), "/home/train/work/big.py")->text, "");
  EXPECT_EQ(find(read({"python", "big.py"}), "/home/train/work/big.py")->sha256.size(), 64u);
  EXPECT_EQ(find(read({"bash", "pipe.sh"}), "/home/train/work/pipe.sh")->error, "is no regular file");
  write("/home/train/work/bad.yaml", "a: [1\nb: *x\n");
  EXPECT_TRUE(find(read({"llamafactory-cli", "train", "bad.yaml"}), "/home/train/work/bad.yaml")->exists);
  std::string many;
  for (int i = 0; i < 500; ++i) many += "python s" + std::to_string(i) + ".py > /l/" + std::to_string(i) + "/x\n";
  write("/home/train/work/many.sh", many);
  CommandFacts f = read({"bash", "many.sh"});
  EXPECT_EQ(f.launches.size(), 32u);
  EXPECT_EQ(f.files.size(), 32u);
  EXPECT_EQ(f.outputs.size(), 32u);
  EXPECT_TRUE(read({}).files.empty());
  for (const char* text : {"$", "${", "${x", "$(", "`", "\"", "'", "\\", "a <<", ">", "((((", "echo $((", "&>", "a=\"$(b"}) {
    write("/home/train/work/odd.sh", text);
    read({"bash", "odd.sh"});
  }
}

TEST_F(Command, TheCommitCheckedOut) {
  const std::string commit = "0123456789abcdef0123456789abcdef01234567", other(40, 'a');
  write("/home/train/work/src/train.py", "");
  write("/home/train/work/.git/HEAD", "ref: refs/heads/main\n");
  write("/home/train/work/.git/packed-refs", "# pack-refs with: peeled\n" + other + " refs/heads/main\n");
  EXPECT_EQ(read({"python", "src/train.py"}).git_head, other);
  write("/home/train/work/.git/refs/heads/main", commit + "\n");
  EXPECT_EQ(read({"python", "src/train.py"}).git_head, commit);
  write("/home/train/work/.git/HEAD", "ref: ../../../etc/passwd\n");
  EXPECT_EQ(read({"python", "src/train.py"}).git_head, "");
}

TEST(LaunchLine, WrappersAndLaunchers) {
  auto launch = [](const std::string& text) {
    std::vector<std::string> words;
    for (std::string_view w : base::split_words(text)) words.emplace_back(w);
    LaunchLine l = read_launch(words).line;
    return l.launcher + "|" + l.program + "|" + base::join(l.arguments, " ");
  };
  EXPECT_EQ(launch("nohup env -u X A=1 numactl --cpunodebind=0 python -W ignore -m pkg.train --a"), "python|pkg.train|--a");
  EXPECT_EQ(launch("python -m torch.distributed.launch --nproc_per_node=4 --use_env main.py x"), "torch.distributed.launch|main.py|x");
  EXPECT_EQ(launch("torchrun --standalone --nproc-per-node 2 t.py --b c"), "torchrun|t.py|--b c");
  EXPECT_EQ(launch("deepspeed --hostfile h --no_ssh t.py"), "deepspeed|t.py|");
  EXPECT_EQ(launch("conda run -n llm --no-capture-output python t.py"), "python|t.py|");
  EXPECT_EQ(launch("timeout -k 5 1h taskset -c 0-3 ./t.sh"), "direct|./t.sh|");
  EXPECT_EQ(launch("llamafactory-cli chat x.yaml"), "||");
  EXPECT_EQ(launch("python -c import_this a.py"), "python||");
  EXPECT_EQ(launch("ls -l"), "||");
  EXPECT_EQ(launch("python"), "python||");
}

TEST(Secrets, AreCutOutOfTexts) {
  EXPECT_EQ(without_secrets("export WANDB_API_KEY=abc123 X=1\n", false), "export WANDB_API_KEY=*** X=1\n");
  EXPECT_EQ(without_secrets("hf_token: \"s3cret\" # x\n", false), "hf_token: \"***\" # x\n");
  EXPECT_EQ(without_secrets("os.environ['SECRET_KEY'] = 'x y'\n", true), "os.environ['SECRET_KEY'] = '***'\n");
  EXPECT_EQ(without_secrets("{\"password\": \"p\"}", false), "{\"password\": \"***\"}");
  EXPECT_EQ(without_secrets("login('hf_abcdefghijklmnopqrstuvwx')", true), "login('***')");
  EXPECT_EQ(without_secrets("token = tokenizer(x)\ntokenizer_name: a\n", true), "token = tokenizer(x)\ntokenizer_name: a\n");
  EXPECT_EQ(without_secrets("KEY=$1\n", false), "KEY=$1\n");
}

}  // namespace
}  // namespace phalanx::machine
