#include "engine/train/check_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/data/batch_share.h"
#include "engine/data/files/check_files.h"
#include "engine/data/files/token_writer.h"
#include "engine/data/plan/step_plan.h"
#include "engine/train/data_settings.h"
#include "engine/train/report/progress.h"
#include "os/files.h"
#include "words/message.h"

namespace phalanx::engine::train {
namespace {

// Only its length: steps can be counted without the items.
class Counted : public data::Dataset {
 public:
  explicit Counted(int64_t size) : size_(size) {}
  std::string name() const override { return "the training data"; }
  int64_t size() const override { return size_; }
  base::Result<data::Sample> get(int64_t, data::ItemRandom&) const override {
    return base::fail(base::ErrorKind::kInternal, "this set has no items");
  }
  uint64_t fingerprint() const override { return 0; }

 private:
  int64_t size_;
};

WorldSteps steps_of(const Config& config, int world, int64_t items, data::Findings& findings) {
  WorldSteps steps{.world = world, .batch = {}};
  auto options = loader_options(config, 0, world);
  if (!options.ok()) {
    steps.batch = options.error().cause;
    findings.add(data::kNotShared, [&] { return fmt::format("{}: {}", options.error().cause, options.error().hint); });
    return steps;
  }
  steps.batch = data::describe(*data::share_batch(config.train.batch, world, config.train.accumulate), 0);
  for (int rank = 0; rank < world; rank += std::max(1, world - 1)) {  // own steps fall with the rank: the first and the last
    options->plan.rank = rank;
    auto planner = data::make_planner(Counted(items), options->plan);
    if (!planner.ok()) {
      steps.batch = planner.error().cause.empty() ? planner.error().message : planner.error().cause;
      findings.add(data::kTooFew, [&] { return base::counted("on {} ranks: {}", world, steps.batch); });
      return steps;
    }
    steps.steps = (*planner)->steps_per_epoch().value_or(0);
    steps.fewest_own = (*planner)->own_steps_per_epoch().value_or(0);
    if (rank == 0) steps.most_own = steps.fewest_own;
  }
  return steps;
}

data::WalkOptions walk_options(const Config& config, const CheckDataOptions& options, uint64_t vocabulary, const std::string& name) {
  data::WalkOptions walk;
  walk.workers = options.workers > 0 ? options.workers : std::max(2, static_cast<int>(config.data.workers));
  walk.seed = static_cast<uint64_t>(config.seed);
  walk.vocabulary = vocabulary;
  walk.context = config.model.context;
  walk.pad_multiple = config.data.pad_multiple;
  walk.progress = [name](int64_t items, int64_t problems) {
    const std::string text = words::tr(language_here(), "check-data: {}: {} items read, {} problems\n", name, items, problems);
    std::fputs(text.c_str(), stderr);
  };
  return walk;
}

base::Result<CheckDataOptions> take_flags(const std::vector<std::string>& arguments, std::vector<std::string>& rest) {
  CheckDataOptions options;
  auto value_of = [&](size_t& i) -> base::Result<std::string> {
    if (i + 1 < arguments.size()) return arguments[++i];
    return base::fail(base::ErrorKind::kUsage, fmt::format("{} needs a value", arguments[i]));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--json") {
      options.json = true;
    } else if (arguments[i] == "--threads") {
      TRY_ASSIGN(std::string text, value_of(i));
      TRY_ASSIGN(int64_t number, base::parse_int(text, 1, 64));
      options.workers = static_cast<int>(number);
    } else if (arguments[i] == "--worlds") {
      TRY_ASSIGN(std::string text, value_of(i));
      options.worlds.clear();
      for (std::string_view word : base::split(std::string_view(text), ',')) {
        TRY_ASSIGN(int64_t number, base::parse_int(word, 1, 65'536));
        options.worlds.push_back(static_cast<int>(number));
      }
    } else if (arguments[i].starts_with("-")) {
      return base::fail(base::ErrorKind::kUsage, fmt::format("unknown option {} of --check-data", base::quote(arguments[i])))
          .with_hint("phalanx-train --help");
    } else {
      rest.push_back(arguments[i]);
    }
  }
  return options;
}

}  // namespace

bool DataReport::clean() const {
  auto wrong = [](const data::DataFinding& finding) { return finding.severity == data::Severity::kError; };
  for (const CheckedSet& set : sets)
    if (std::any_of(set.report.findings.begin(), set.report.findings.end(), wrong)) return false;
  return std::none_of(findings.begin(), findings.end(), wrong);
}

base::Result<DataReport> check_data(const Config& config, const CheckDataOptions& options) {
  DataReport report;
  data::Findings findings;
  data::SetOptions set = set_options(config);
  TRY_ASSIGN(std::vector<std::string> paths, data::check_files(set.files, set, findings));
  if (!set.validation_files.empty()) TRY(data::check_files(set.validation_files, set, findings));
  auto opened = paths.empty() ? base::Result<data::OpenedSet>(data::OpenedSet{}) : data::open_paths(paths, set);
  if (!opened.ok() && !set.validation_files.empty()) {  // its files are named above; what can be read is read
    set.validation_files.clear();
    opened = data::open_paths(paths, set);
  }
  if (!opened.ok()) {
    findings.add(data::kUnreadable, [&] {
      const base::Error& error = opened.error();
      return error.cause.empty() ? error.message : fmt::format("{}: {}", error.message, error.cause);
    });
  } else if (!paths.empty()) {
    report.files = opened->files;
    const auto walk = walk_options(config, options, opened->vocabulary, "training");
    report.sets.push_back({"training", opened->stream ? data::walk(opened->stream, walk) : data::walk(opened->training, walk)});
    if (opened->validation)
      report.sets.push_back(
          {"validation", data::walk(opened->validation, walk_options(config, options, opened->vocabulary, "validation"))});
    for (int world : options.worlds) report.worlds.push_back(steps_of(config, world, report.sets[0].report.items, findings));
  }
  report.findings = findings.sorted();
  return report;
}

base::Result<int> check_data_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  TRY_ASSIGN(CheckDataOptions options, take_flags(arguments, rest));
  if (rest.empty()) return base::fail(base::ErrorKind::kUsage, "no config file given").with_hint("phalanx-train --check-data CONFIG.yaml");
  const std::string path = rest.front();
  rest.erase(rest.begin());
  auto text = os::read_file(path, 256 << 10);
  if (!text.ok())
    return base::fail(base::ErrorKind::kConfig, fmt::format("cannot read the config {}", base::quote(path))).because(text.error().message);
  TRY_ASSIGN(Config config, read_config(*text, path, rest));
  TRY_ASSIGN(DataReport report, check_data(config, options));
  const std::string shown = options.json ? base::to_text(to_json(report), 2) + "\n" : to_text(report, language_here());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
  return report.clean() ? 0 : base::exit_code(base::ErrorKind::kConfig);
}

base::Result<int> tokenize_command(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3)
    return base::fail(base::ErrorKind::kUsage, "--tokenize needs a file to write and files to read")
        .with_hint("phalanx-train --tokenize OUT.tokens FILE ...");
  TRY_ASSIGN(data::TokenHeader header, data::write_byte_tokens({arguments.begin() + 2, arguments.end()}, arguments[1]));
  fmt::print("{}: {} tokens in {} documents\n", arguments[1], header.tokens, header.documents);
  return 0;
}

}  // namespace phalanx::engine::train
