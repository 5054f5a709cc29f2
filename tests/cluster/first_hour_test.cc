// The first hour of a new user, by the commands of docs/design/first-hour.md, in both languages. What other tests run already is only
// named on that page.
#include <fmt/format.h>

#include <regex>

#include "base/json.h"
#include "base/text.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx;
using namespace phalanx::testbed;
using namespace std::chrono_literals;

class FirstHour : public Launcher {
 protected:
  Outcome type(const std::string& command, milliseconds deadline = 30s) {
    return cluster().run_on(
        "ctl", {.argv = {"/bin/bash", "-c", std::string("PATH=") + directory(PHALANX_PROGRAM) + ":$PATH; cd /tmp; " + command}}, deadline);
  }
  static std::string directory(const std::string& path) { return path.substr(0, path.rfind('/')); }
  // One file of a log, which `explain` reads.
  Outcome explained(const std::string& text) {
    say("ctl", "printf '%s\\n' '" + text + "' > /tmp/job.log");
    return type("phalanx explain job.log");
  }
};

TEST_F(FirstHour, ImportErrorsOfExtensionsAreNotBlamedOnTheLibraryPath) {
  start();
  const std::string trace = "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n    import flash_attn\n";
  for (const char* message : {"ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
                              "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory",
                              "ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"}) {
    Outcome said = explained(trace + message);
    EXPECT_EQ(said.exit_code, 0) << said;
    EXPECT_HAS(said.out, "ENV-OTHER-BUILD: a package was built for another version of torch or CUDA");
    EXPECT_HAS_NOT(said.out, "LD_LIBRARY_PATH");
  }
  EXPECT_HAS(explained(trace + "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory").out,
             "ENV-LIBRARY-MISSING");
  EXPECT_HAS_NOT(explained(trace + "ValueError: bad").out, "latest");
  Outcome missing = type("phalanx explain nofile.log");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_HAS(missing.err, "error: file not found: \"nofile.log\"");
}

TEST_F(FirstHour, ARefusedRunIsToldByWhyAndExplainSaysSo) {
  start();
  Outcome refused = type("phalanx run -H h1:2,h9:2 -- python train.py");
  EXPECT_EQ(refused.exit_code, 4) << refused;
  EXPECT_HAS(refused.err, "h9: the host name cannot be resolved");
  Outcome latest = type("phalanx explain latest");
  EXPECT_EQ(latest.exit_code, 2) << latest;
  EXPECT_HAS(latest.err, "because no rank of this run has printed anything");
  EXPECT_HAS(latest.err, "hint: phalanx why");
  EXPECT_HAS(type("phalanx why").out, "h9: the host name cannot be resolved");
}

// The run stands still, tells so without a terminal, and can be stopped; then nothing is left.
TEST_F(FirstHour, ADetachedRunFromStartToStop) {
  start();
  Outcome run =
      type("phalanx run -d --name first -H h1,h2 -- sh -c 'for i in 1 2 3; do echo step $i/300 loss 16.7; sleep 0.2; done; exec sleep 60'");
  EXPECT_EQ(run.exit_code, 0) << run;
  Outcome logs = type("timeout 20 sh -c 'until phalanx ps | grep -q \"3/300  *16.7\"; do sleep 0.1; done'; phalanx ps");
  EXPECT_HAS(logs.out, "3/300");
  EXPECT_HAS(type("timeout 20 sh -c 'until phalanx logs --tail 1 first | grep \"1. step 3/300\"; do sleep 0.1; done'").out,
             "[h2:1] step 3/300 loss 16.7");
  EXPECT_HAS(type("phalanx why first").out, "3/300");
  Outcome stopped = type("phalanx stop first");
  EXPECT_EQ(stopped.exit_code, 0) << stopped;
  EXPECT_HAS(stopped.err, "h2: nothing left");
  EXPECT_EQ(leftovers(2s), "");
}

// So many English words after one another, outside quotes: a sentence. Not counted: what ranks, logs, ssh and the kernel say, and commands.
std::string english_in(std::string text, int words = 4) {
  // Two words with a comma between them may be a list of values, and those after "phalanx" are a command.
  const std::regex sentence(fmt::format("(^|[^A-Za-z0-9_./=-])(?!{}phalanx )[A-Za-z][a-z]+([{}]+[a-z]{{2,}}){{{}}}(?![A-Za-z0-9_./=-])",
                                        words > 2 ? "-" : "", words > 2 ? " ,;:" : " ", words - 1));
  static const std::regex kOfOthers(
      "\"[^\"]*\"|'[^']*'|Address already in use|No such file or directory|ssh: .*|\\$ .*|^\\[.*|^  job.log:.*");
  for (size_t open = text.find("“"); open != std::string::npos; open = text.find("“", open))  // quoted over the ends of lines
    text.erase(open, text.find("”", open) == std::string::npos ? std::string::npos : text.find("”", open) - open);
  std::string found;
  for (std::string_view line : base::split_lines(text))
    if (std::regex_search(std::regex_replace(std::string(line), kOfOthers, ""), sentence)) found += std::string(line) + "\n";
  return found;
}

constexpr const char* kTyped[] = {"run -H h1,h2 -- sh -c 'echo step 1/2 loss 3.5'",
                                  "why",
                                  "ps -a",
                                  "inspect",
                                  "logs",
                                  "plan -H h1:2,h2:2 --spares h3 -- python train.py",
                                  "run -H h1:1,h2:1 --iface ens5 -- python train.py",
                                  "run -H h1:1,h2:1 --master-port 22 -- python train.py",
                                  "why",
                                  "run -H h1:2,h9:2 -- python train.py",
                                  "explain latest",
                                  "explain nofile.log",
                                  "explain job.log",
                                  "why",
                                  "kill",
                                  "run train.py",
                                  "run -H h1 --nope -- true",
                                  "run -H h1,h2 -- sh -c 'exit 3'",
                                  "why",
                                  "check h1,h2 -- python train.py --data /home/me/nope/data.bin",
                                  "run -d --name a -H h1,h2 -- sleep 60",
                                  "stop a",
                                  "wait a",
                                  "clean",
                                  "report -o z.tgz",
                                  "fit --params 7B --lora 8",
                                  "fit meta-llama/Llama-2-7b-hf",
                                  "bench",
                                  "exec -H h1,h2 -- true",
                                  "inspect --rank 0",
                                  "explain a",
                                  "run --timeout 1s -H h1,h2 -- sleep 60",
                                  "why",
                                  "logs nosuch",
                                  "attach",
                                  "stop",
                                  "explain NO-SUCH",
                                  "completion tcsh",
                                  "run -H h1,h2 --env FOO -- true",
                                  "run --hostfile nosuch -- true",
                                  "run -H h1,h1 -- true",
                                  "run -H h1 --nnodes 3 -- true",
                                  "run -H h1 --stall 5 -- true",
                                  "report nosuch",
                                  "config show",
                                  "run -it image bash",
                                  "run -v /data:/data image true",
                                  "logs --all-containers a",
                                  "stop -t 5 a",
                                  "attach a",
                                  "run -H h1,,h2 -- true",
                                  "run -H 'h[1' -- true",
                                  "run -H h1 --stall 5x -- true",
                                  "run -H h1 --gpus x:y:z -- true",
                                  "fit -H h1 --params 7B",
                                  "run -H h1 --ssh-option Port=2 -- true",
                                  "run -H h1,h2 --sync -- python3 nosuch.py",
                                  "run -H h1,h2 -C /nowhere -- true",
                                  "run -H h1 --nproc-per-node x -- true",
                                  "run -H h1 --max-restarts -1 -- true",
                                  "stacks nosuch",
                                  "config get",
                                  "push /tmp",
                                  "run --sync /tmp -H h1 -- true",
                                  "submit --dry-run -- true",
                                  "fit"};

TEST_F(FirstHour, InChineseThereIsNoEnglishSentence) {
  start();
  say("ctl",
      "mkdir -p ~/mine && touch ~/mine/train.py && printf 'ImportError: libcudart.so.11.0: cannot open shared object file: No such file\n' "
      "> /tmp/job.log");
  EXPECT_NE(english_in("the host did not answer"), "");
  EXPECT_EQ(english_in("phalanx: 2 个 rank，会合地址 10.77.0.1\n提示：phalanx stop a3f9\n"), "");
  for (const char* command : kTyped) {
    Outcome said = type(std::string("export PHALANX_LANG=zh; phalanx ") + command);
    EXPECT_EQ(english_in(said.out + said.err), "") << "phalanx " << command;
  }
  EXPECT_EQ(english_in(type("cd ~/mine && PHALANX_LANG=zh phalanx run -H h1:2,h2:2 -- python train.py").err), "");
}

TEST_F(FirstHour, InChineseAMistakeInTheProjectFileIsToldWithoutAnEnglishSentence) {
  start({.hosts = 1});
  say("ctl", "mkdir -p ~/mine");
  // Two words already are English here: keys and values stand in quotes, or alone.
  for (const char* line : {"ifaces: eth0",
                           "hosts: [h1 h2]",
                           "hosts: h1 h2",
                           "hosts: [h1: 2]",
                           "hosts: hostfile",
                           "env: 3",
                           "env: {1A: x}",
                           "accept: 7",
                           "accept: [FS-SHM-SMAL]",
                           "stall: soon",
                           "dry-run: true",
                           "nnodes: [1]",
                           "iface:",
                           "- a",
                           "[a",
                           "a: &x 1",
                           "nproc-per-node: x",
                           "sync: yes",
                           "color: maybe",
                           "hosts: h1\nhosts: h2",
                           "spares: h1:x"}) {
    say("ctl", std::string("printf '%s\\n' '") + line + "' > ~/mine/phalanx.yaml");
    Outcome said = type("cd ~/mine && PHALANX_LANG=zh phalanx run -H h1 -- true");
    EXPECT_EQ(said.exit_code, 2) << line << said;
    EXPECT_EQ(english_in(said.err, 2), "") << line;
  }
  say("ctl", "echo 'hosts: [h1 h2]' > ~/mine/phalanx.yaml");
  EXPECT_HAS(type("cd ~/mine && PHALANX_LANG=zh phalanx run -H h1 -- true").err,
             "phalanx.yaml:1:8: \"hosts\"，第 3 个字符：主机名中不能有 \" \"");
}

// No hint holds a host or a path that the user does not have.
TEST_F(FirstHour, NothingIsInventedWhenThePlaceOrTheDataIsWrong) {
  start();
  say("ctl", "mkdir -p ~/mine && touch ~/mine/train.py");
  Outcome there = type("cd ~/mine && phalanx run -H h1:2,h2:2 -- python train.py");
  EXPECT_EQ(there.exit_code, 3) << there;
  EXPECT_HAS(there.err, "/root/mine does not exist");
  EXPECT_HAS(there.err, "--sync -- python train.py\n");
  EXPECT_HAS(type("phalanx run --sync ~/mine -H h1 -- true").err,
             "error: \"/root/mine\" is a directory, not a command\n\nhint: write --sync=/root/mine\n");
  // The directory is there, but the script is not: on no host, or not on all.
  say("h1", "mkdir -p ~/mine");
  say("h2", "mkdir -p ~/mine");
  Outcome script = type("cd ~/mine && phalanx run -H h1,h2 -- python3 train.py");
  EXPECT_EQ(script.exit_code, 3) << script;
  EXPECT_HAS(script.err, "hint: phalanx run -H h1,h2 --sync -- python3 train.py    # if train.py is here\n");
  EXPECT_EQ(type("cd ~/mine && phalanx run -H h1,h2 --sync -- python3 train.py").exit_code, 0);
  say("h1", "touch ~/mine/train.py");
  EXPECT_HAS(type("cd ~/mine && phalanx run -H h1,h2 -- python3 train.py").err, "# or: run --sync");
  Outcome typo = type("cd ~/mine && phalanx run -H h1,h2 --sync -- python3 trian.py");
  EXPECT_EQ(typo.exit_code, 2) << typo;
  EXPECT_HAS(typo.err, "/root/mine/trian.py does not exist, so it is not copied to the hosts\n\nhint: did you mean train.py?\n");
  EXPECT_HAS_NOT(typo.err, "copied /root");
  Outcome data = type("phalanx check h1,h2 -- python train.py --data /home/me/nope/data.bin");
  EXPECT_HAS(data.out, "/home/me/nope/data.bin (--data) does not exist");
  EXPECT_HAS(data.out, "fix: Check the spelling; relative paths start at the working directory\n");
  for (const Outcome& outcome : {there, data})
    for (const char* invented : {"gpu0", "/data/", "node0", "<host>"}) {
      EXPECT_HAS_NOT(outcome.out, invented);
      EXPECT_HAS_NOT(outcome.err, invented);
    }
}

TEST_F(FirstHour, FitSaysWhatItCannotCompute) {
  start({.hosts = 1});
  Outcome lora = type("phalanx fit --params 7B --lora");
  EXPECT_EQ(lora.exit_code, 2) << lora;
  EXPECT_HAS(lora.err, "--lora needs a value");
  EXPECT_HAS(type("phalanx fit --params 7B --lora 8").err, "hint: phalanx fit model/config.json --lora RANK");
  say("ctl",
      "mkdir -p ~/llama && echo '{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num_attention_heads\":32,"
      "\"num_hidden_layers\":32,\"vocab_size\":32000,\"max_position_embeddings\":4096}' > ~/llama/config.json");
  Outcome seven = type("phalanx fit ~/llama --lora 8 --gpu-memory 24GiB --nproc-per-node 8");
  EXPECT_EQ(seven.exit_code, 0) << seven;
  EXPECT_HAS(seven.out, "19,988,480 parameters are trained");
  EXPECT_HAS(seven.out, "cheapest that fits: DDP, checkpointed");
  Outcome hub = type("phalanx fit meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(hub.exit_code, 2) << hub;
  EXPECT_HAS(hub.err, "hint: download its config.json, then phalanx fit <folder>/config.json");
  EXPECT_HAS(type("phalanx fit ./nope/config.json").err, "hint: ls -l ./nope/config.json");
}

TEST_F(FirstHour, CheckInContinuousIntegration) {
  start();
  Outcome text = type("phalanx check h1,h9 --json 2> /dev/null");
  base::Result<base::Json> json = base::parse_json(text.out);
  ASSERT_TRUE(json.ok()) << text;
  EXPECT_EQ((*json)["exit_code"], text.exit_code);
  EXPECT_EQ(text.exit_code, 4);
  EXPECT_EQ((*json)["unreachable"], base::Json::array({"h9"}));
  for (const base::Json& finding : (*json)["findings"]) EXPECT_NE(finding["advice"], "") << finding["code"];
}

// What a shell hands over without being asked, what a run keeps of it, and what a report holds.
TEST_F(FirstHour, SecretsTravelAreRecordedByNameAndStayOutOfTheReport) {
  start();
  Outcome run = type(
      "export WANDB_API_KEY=topsecret HF_TOKEN=hf_abcdef; phalanx run -H h1,h2 -- sh -c 'echo WANDB_API_KEY \"$WANDB_API_KEY\"; "
      "echo OMP $OMP_NUM_THREADS'; phalanx report -o r.tgz && mkdir r && tar -xf r.tgz -C r");
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_HAS(run.out, "WANDB_API_KEY topsecret");
  EXPECT_HAS(type("phalanx inspect").out, "HF_TOKEN");
  EXPECT_HAS(say("ctl", "cat ~/.local/state/phalanx/runs/latest/run.json"), "WANDB_API_KEY");
  EXPECT_EQ(type("grep -rl 'topsecret\\|hf_abcdef' r").out, "");
  EXPECT_HAS(type("phalanx help run").out, "WANDB_*");
}

}  // namespace
