#include "engine/train/verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/hf_index.h"
#include "engine/checkpoint/interrupt.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/reader.h"
#include "engine/train/model_files.h"
#include "engine/train/report/progress.h"
#include "os/clock.h"
#include "os/files.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::engine::train {
namespace {

struct Options {
  std::string operand;
  std::map<std::string, std::string> values;  // "--dtype" → "bf16"; switches → ""
};

base::Error usage(std::string what) { return base::fail(base::ErrorKind::kUsage, std::move(what)).with_hint("phalanx-train --help"); }

// One operand, options with a value ("-o DIR", "--output=DIR"), switches.
base::Result<Options> parse(const std::vector<std::string>& arguments, const std::set<std::string>& valued,
                            const std::set<std::string>& switches) {
  Options options;
  bool have_operand = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    if (!argument.starts_with("-") || argument == "-") {
      if (have_operand) return usage(fmt::format("{} takes one operand; unexpected {}", arguments[0], base::quote(argument)));
      options.operand = argument;
      have_operand = true;
    } else if (switches.contains(name) && equals == std::string::npos) {
      options.values[name] = "";
    } else if (valued.contains(name)) {
      if (equals == std::string::npos && i + 1 == arguments.size()) return usage(fmt::format("{} needs a value", name));
      options.values[name] = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    } else {
      return usage(fmt::format("{} has no option {}", arguments[0], base::quote(argument)));
    }
  }
  if (options.operand.empty()) return usage(fmt::format("{} needs a folder", arguments[0]));
  while (options.operand.size() > 1 && options.operand.back() == '/') options.operand.pop_back();
  return options;
}

base::Error no_such_folder(const std::string& folder) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("no such folder: {}", base::quote(folder, 400)));
}

int threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u)); }

// A line on stderr each second at most: rewritten on a terminal, a new one every ten seconds elsewhere.
class ProgressLine {
 public:
  void show(uint64_t done, uint64_t all) {
    const os::Mono now = os::mono_now();
    if (now - last_ < std::chrono::seconds(terminal_ ? 1 : 10)) return;
    last_ = now;
    const std::string text = fmt::format("merged {} of {}", base::format_bytes(done), base::format_bytes(all));
    std::fprintf(stderr, "%s%s%s", terminal_ ? "\r" : "", words::said_in(language_here(), text).c_str(), terminal_ ? "\x1b[K" : "\n");
    drawn_ = terminal_;
  }
  void clear() {
    if (drawn_) std::fprintf(stderr, "\r\x1b[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool drawn_ = false;
  os::Mono last_ = os::mono_now();
};

// The checkpoint a folder stands for: itself, or the newest readable among those it holds.
base::Result<std::string> checkpoint_in(const std::string& folder) {
  TRY_ASSIGN(const bool there, os::is_present_folder(folder));
  if (!there) return no_such_folder(folder);
  TRY_ASSIGN(const bool itself, checkpoint::is_there(folder + "/" + checkpoint::kManifestFile));
  if (itself) return folder;
  for (const std::string& place : {folder, folder + "/checkpoints"}) {
    TRY_ASSIGN(std::optional<std::string> newest, checkpoint::latest(place));
    if (newest) return std::move(*newest);
  }
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} is not a checkpoint and contains none", base::quote(folder, 400)))
      .because("it has no manifest.json and no step-… folder with a DONE mark");
}

base::Result<checkpoint::MergeOptions> merge_options(const Options& options) {
  checkpoint::MergeOptions how;
  TRY_ASSIGN(how.checkpoint, checkpoint_in(options.operand));
  auto value = [&](const char* shortest, const char* name) -> std::optional<std::string> {
    auto found = options.values.find(name);
    if (found == options.values.end()) found = options.values.find(shortest);
    return found == options.values.end() ? std::nullopt : std::optional(found->second);
  };
  how.folder = value("-o", "--output").value_or(how.checkpoint + "-merged");
  while (how.folder.size() > 1 && how.folder.back() == '/') how.folder.pop_back();
  if (how.folder.empty()) return usage("-o needs a folder");
  if (auto dtype = value("", "--dtype")) {
    const std::map<std::string, std::string> known{{"bf16", "BF16"}, {"fp16", "F16"}, {"fp32", "F32"}};
    if (!known.contains(*dtype)) return usage(fmt::format("--dtype is {}, but must be bf16, fp16 or fp32", base::quote(*dtype)));
    how.dtype = known.at(*dtype);
  }
  if (auto size = value("", "--max-shard-size")) {
    TRY_ASSIGN(int64_t bytes, base::parse_bytes(*size));
    how.max_file_bytes = static_cast<uint64_t>(bytes);
  }
  how.replace = options.values.contains("--replace");
  return how;
}

void tell_how_to_load(const checkpoint::Merged& merged) {
  const std::string folder = base::printable(merged.folder, 4096);
  const std::string text = merged.described
                               ? words::tr(language_here(), "{}/config.json describes the model. In Python, in that folder:", folder) +
                                     "\n  import phalanx_gpt\n  model = phalanx_gpt.load(\".\")"
                               : words::tr(language_here(), "no config.json: the checkpoint does not describe how its model is computed");
  fmt::print("{}\n", text);
}

base::Result<int> merge(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(Options options, parse(arguments, {"-o", "--output", "--dtype", "--max-shard-size"}, {"--replace", "--json"}));
  TRY_ASSIGN(checkpoint::MergeOptions how, merge_options(options));
  ProgressLine line;
  how.beside = [&](const checkpoint::Reader& reader) { return model_files(reader, how.dtype); };
  how.progress = [&](uint64_t done, uint64_t all) { line.show(done, all); };
  const os::Mono start = os::mono_now();
  const checkpoint::Interrupt never;  // SIGINT ends the process; the folder appears whole or not at all
  auto merged = checkpoint::merge(how, never);
  line.clear();
  if (!merged.ok()) return std::move(merged).error();
  if (options.values.contains("--json")) {
    base::Json json = {
        {"version", 1}, {"checkpoint", how.checkpoint}, {"folder", merged->folder}, {"tensors", merged->tensors}, {"bytes", merged->bytes}};
    json["described"] = merged->described;
    json["files"] = base::Json::array();
    for (const checkpoint::NamedFile& file : merged->files)
      json["files"].push_back({{"name", file.name}, {"bytes", file.file.bytes}, {"sha256", file.file.sha256}});
    fmt::print("{}\n", base::to_text(json, 2));
    return 0;
  }
  fmt::print("{}\n",
             words::tr(language_here(), "{}: {} tensors, {} in {} files, {}", base::printable(merged->folder, 4096), merged->tensors,
                       base::format_bytes(merged->bytes), merged->files.size(), base::format_duration(os::mono_now() - start)));
  tell_how_to_load(*merged);
  return 0;
}

struct Listed {
  std::string path;
  std::optional<int64_t> step, world;
  uint64_t bytes = 0;
  bool best = false;
  std::string damage;  // empty: none was found
};

Listed look_at(const std::string& path, bool verify) {
  Listed listed{path, {}, {}, 0, false, ""};
  auto reader = checkpoint::Reader::open(path);
  base::Status status = reader.ok() ? base::ok() : base::Status(std::move(reader).error());
  if (status.ok()) {
    listed.step = reader->step();
    listed.world = reader->world();
    listed.bytes = reader->bytes();
    if (verify) status = reader->verify(threads());
  }
  if (!status.ok()) listed.damage = status.error().message + (status.error().cause.empty() ? "" : ": " + status.error().cause);
  return listed;
}

base::Json json_of(const Listed& one, bool verified) {
  base::Json json = {{"path", one.path}, {"state", !one.damage.empty() ? "damaged" : verified ? "verified" : "complete"}};
  if (one.step) json["step"] = *one.step;
  if (one.world) json["world"] = *one.world;
  if (one.step) json["version"] = checkpoint::kVersion;
  if (one.step) json["bytes"] = one.bytes;
  json["best"] = one.best;
  if (!one.damage.empty()) json["damage"] = one.damage;
  return json;
}

base::Result<int> list(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(Options options, parse(arguments, {}, {"--verify", "--json"}));
  std::string folder = options.operand;
  TRY_ASSIGN(const bool there, os::is_present_folder(folder));
  if (!there) return no_such_folder(folder);
  TRY_ASSIGN(std::vector<std::string> all, checkpoint::list(folder));
  TRY_ASSIGN(const bool inner, os::is_present_folder(folder + "/checkpoints"));
  if (all.empty() && inner) {
    folder += "/checkpoints";
    TRY_ASSIGN(all, checkpoint::list(folder));
  }
  const bool verify = options.values.contains("--verify"), as_json = options.values.contains("--json");
  auto found_best = checkpoint::best(folder);
  if (!found_best.ok()) fmt::print(stderr, "{}", found_best.error().render());
  const std::optional<checkpoint::Best> best = found_best.ok() ? *found_best : std::nullopt;
  base::Json json = {{"version", 1}, {"folder", folder}, {"checkpoints", base::Json::array()}};
  bool damaged = false;
  if (!as_json) fmt::print("{:<16}{:>10}{:>7}{:>12}  {}\n", "checkpoint", "step", "ranks", "size", "state");
  for (const std::string& path : all) {
    Listed one = look_at(path, verify);
    one.best = best && one.step == best->step;
    damaged = damaged || !one.damage.empty();
    json["checkpoints"].push_back(json_of(one, verify));
    if (as_json) continue;
    const std::string state = !one.damage.empty() ? "damaged: " + one.damage : verify ? "verified" : "complete";
    fmt::print("{:<16}{:>10}{:>7}{:>12}  {}{}\n", std::filesystem::path(path).filename().string(),
               one.step ? fmt::to_string(*one.step) : "?", one.world ? fmt::to_string(*one.world) : "?",
               one.step ? base::format_bytes(one.bytes) : "?", base::printable(state, 2000),
               one.best ? fmt::format(", best ({} {:.6g})", base::printable(best->metric), best->value) : "");
  }
  if (as_json) fmt::print("{}\n", base::to_text(json, 2));
  return damaged ? 1 : 0;
}

struct Verb {
  std::string_view name;
  base::Result<int> (*run)(const std::vector<std::string>&);
  std::string_view synopsis;
  words::Text help;
};
constexpr std::array kVerbs{
    Verb{"merge", merge,
         "phalanx-train merge CHECKPOINT [-o FOLDER] [--dtype bf16|fp16|fp32] [--max-shard-size 5GB] [--replace] [--json]\n",
         words::Text{"    writes a checkpoint's model as model.safetensors, or as several files with an index, for other programs, with a\n"
                     "    config.json that describes it and phalanx_gpt.py, which loads it in Python\n"}},
    Verb{"checkpoints", list, "phalanx-train checkpoints FOLDER [--verify] [--json]\n",
         words::Text{"    lists a run's checkpoints; --verify reads them in full; 1 if one is damaged\n"}},
};

}  // namespace

std::optional<base::Result<int>> run_verb(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  for (const Verb& verb : kVerbs) {
    if (arguments[0] != verb.name) continue;
    if (arguments.size() == 2 && (arguments[1] == "--help" || arguments[1] == "-h")) {
      fmt::print("usage: {}{}", verb.synopsis, verb.help.in(language_here()));
      return base::Result<int>(0);
    }
    return verb.run(arguments);
  }
  return std::nullopt;
}

std::string help_of_verbs() {
  std::string text;
  for (const Verb& verb : kVerbs) text += fmt::format("{}{}", verb.synopsis, verb.help.in(language_here()));
  return text;
}

}  // namespace phalanx::engine::train
