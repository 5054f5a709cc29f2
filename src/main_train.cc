// phalanx-train: trains a model on one rank of many. Reads the command line and the environment, runs the rank, and turns
// an Error into a message and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/env.h"
#include "engine/data/files/cut_files.h"
#include "engine/finetune/finetune.h"
#include "engine/train/check_data.h"
#include "engine/train/config.h"
#include "engine/train/rank.h"
#include "engine/train/report/progress.h"
#include "engine/train/verbs.h"
#include "os/files.h"
#include "words/message.h"
#include "words/said.h"

using namespace phalanx;

namespace {

constexpr const char* kUsage =
    "usage: phalanx-train CONFIG.yaml [KEY=VALUE ...]\n"
    "       phalanx-train [--explain] RECIPE.yaml [KEY=VALUE ...]\n"
    "       phalanx-train merge | checkpoints FOLDER ...\n"
    "       phalanx-train export RECIPE.yaml | generate MODEL PROMPT ... | chat MODEL\n"
    "       phalanx-train --check-data [--json] [--threads N] [--worlds 1,2,4] CONFIG.yaml | RECIPE.yaml [KEY=VALUE ...]\n"
    "       phalanx-train --tokenize OUT.tokens FILE ...\n"
    "       phalanx-train --help | --version\n\n";

constexpr words::Text kWhat[] = {
    words::Text{"Trains a byte-level GPT, data parallel. Started alone, it is a single rank; several ranks are started by\n"
                "`phalanx run`, torchrun, or anything else that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.\n\n"},
    words::Text{"CONFIG.yaml has sections of keys (`train:` with `steps: 1000` below it); KEY=VALUE arguments\n"
                "(train.steps=1000) override it. Keys, defaults and meanings:\n"},
};
constexpr words::Text kCheckpoints{"\nCheckpoints:\n"};
constexpr words::Text kExitCodes{
    "\nExit codes: 0 done, 1 the training failed, 2 usage or config, 3 this host is unfit, 4 the other ranks\n"
    "cannot be reached, 70 a bug; 143 or 130: stopped by SIGTERM or SIGINT after a step, checkpoint saved.\n"};

void print_help() {
  const base::Language language = engine::train::language_here();
  fmt::print("{}{}{}", kUsage, kWhat[0].in(language), engine::finetune::help());
  fmt::print("{}{}{}", kWhat[1].in(language), engine::train::help_of_settings(language), kCheckpoints.in(language));
  fmt::print("{}{}", engine::train::help_of_verbs(), kExitCodes.in(language));
}

base::Status check(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments)
    if (argument.starts_with("-"))
      return base::fail(base::ErrorKind::kUsage, fmt::format("unknown option {}", base::quote(argument))).with_hint("phalanx-train --help");
  if (arguments.empty()) return base::fail(base::ErrorKind::kUsage, "no config file given").with_hint("phalanx-train --help");
  return base::ok();
}

base::Result<int> run(std::vector<std::string> arguments) {
  for (auto verb : {engine::train::run_verb, engine::finetune::run_verb})
    if (auto code = verb(arguments)) return std::move(*code);
  if (std::erase(arguments, "--check-data") > 0) return engine::train::check_data_command(arguments);
  if (!arguments.empty() && arguments[0] == "--tokenize") return engine::train::tokenize_command(arguments);
  const bool explain = std::erase(arguments, "--explain") > 0;
  TRY(check(arguments));
  const std::string& path = arguments[0];
  const std::vector<std::string> settings(arguments.begin() + 1, arguments.end());
  auto text = os::read_file(path, 256 << 10);
  if (!text.ok()) {
    base::Error error = base::fail(base::ErrorKind::kConfig, fmt::format("cannot read the config {}", base::quote(path)));
    return std::move(error).because(text.error().message);
  }
  if (explain || engine::finetune::is_recipe(*text)) return engine::finetune::run_command({path, *text, settings}, explain);
  TRY_ASSIGN(engine::train::Config config, engine::train::read_config(*text, path, settings));
  TRY_ASSIGN(engine::comm::RankEnv env, engine::comm::read_rank_env(engine::comm::process_environment));
  return engine::train::run_rank(config, env);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    print_help();
    return 0;
  }
  if (arguments.size() == 1 && arguments[0] == "--version") {
    fmt::print("phalanx-train {}\n", PHALANX_VERSION);
    return 0;
  }
  engine::data::name_cut_files();
  base::Result<int> code = run(arguments);
  if (code.ok()) return *code;
  const std::string message = words::render(code.error(), engine::train::language_here());
  std::fwrite(message.data(), 1, message.size(), stderr);
  return base::exit_code(code.error().kind);
}
