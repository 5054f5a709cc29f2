#include "diagnosis/logs/bug_watch.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

struct VersionWord {
  std::string_view word, component;
};
constexpr std::array<VersionWord, 21> kVersionWords = {{{"NCCL version ", "nccl"},
                                                        {"nvidia-nccl-cu11==", "nccl"},
                                                        {"nvidia-nccl-cu12==", "nccl"},
                                                        {"nvidia-nccl-cu13==", "nccl"},
                                                        {"Initializing aws-ofi-nccl ", "ofi"},
                                                        {"PyTorch version", "torch"},
                                                        {"torch version", "torch"},
                                                        {"torch==", "torch"},
                                                        {"DeepSpeed info: version=", "deepspeed"},
                                                        {"deepspeed==", "deepspeed"},
                                                        {"DeepSpeed version", "deepspeed"},
                                                        {"accelerate==", "accelerate"},
                                                        {"`Accelerate` version", "accelerate"},
                                                        {"Accelerate version", "accelerate"},
                                                        {"transformers==", "transformers"},
                                                        {"`transformers` version", "transformers"},
                                                        {"Transformers version", "transformers"},
                                                        {"lightning==", "lightning"},
                                                        {"lightning version", "lightning"},
                                                        {"llamafactory==", "llamafactory"},
                                                        {"`llamafactory` version", "llamafactory"}}};
constexpr size_t kMostBetween = 12;  // bytes from the words to the digits: " (GPU?): "
constexpr size_t kMostVersions = 16;

// The words of all triggers, each once.
const std::vector<std::string_view>& triggers() {
  static const std::vector<std::string_view> words = [] {
    std::set<std::string_view> all;
    for (const codes::KnownBug& bug : codes::known_bugs()) all.insert(bug.trigger.begin(), bug.trigger.end());
    return std::vector<std::string_view>(all.begin(), all.end());
  }();
  return words;
}

// "2.21.5" of " 2.21.5+cuda12.4"; empty: no version follows.
std::string_view version_in(std::string_view rest) {
  size_t begin = rest.substr(0, kMostBetween).find_first_of("0123456789");
  if (begin == rest.npos) return {};
  std::string_view version = rest.substr(begin);
  version = version.substr(0, std::min<size_t>(version.find_first_not_of("0123456789."), 20));
  while (version.ends_with('.')) version.remove_suffix(1);
  return version.find('.') == version.npos ? std::string_view() : version;
}

std::vector<int> numbers(std::string_view version) {
  std::vector<int> out;
  for (std::string_view part : base::split(version, '.')) {
    int number = 0;
    std::from_chars(part.data(), part.data() + part.size(), number);
    out.push_back(number);
  }
  return out;
}

bool affected(const codes::KnownBug& bug, std::string_view version) {
  const std::vector<int> has = numbers(version);
  return (bug.from.empty() || has >= numbers(bug.from)) && has < numbers(bug.fixed);
}

}  // namespace

std::string_view component_name(std::string_view component) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNames = {{{"nccl", "NCCL"},
                                                                                    {"ofi", "aws-ofi-nccl"},
                                                                                    {"torch", "PyTorch"},
                                                                                    {"deepspeed", "DeepSpeed"},
                                                                                    {"accelerate", "accelerate"},
                                                                                    {"transformers", "transformers"},
                                                                                    {"lightning", "Lightning"},
                                                                                    {"llamafactory", "LLaMA-Factory"}}};
  for (const auto& [key, name] : kNames)
    if (key == component) return name;
  return component;
}

std::span<const std::string_view> bug_literals() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> words = triggers();
    for (const VersionWord& version : kVersionWords) words.push_back(version.word);
    return words;
  }();
  return all;
}

void see_bug_literal(BugSigns& signs, size_t literal, std::string_view rest, size_t file, uint64_t line) {
  if (literal >= triggers().size()) {
    std::set<std::string>& versions = signs.versions[kVersionWords[literal - triggers().size()].component];
    std::string_view version = version_in(rest);
    if (!version.empty() && versions.size() < kMostVersions) versions.emplace(version);
    return;
  }
  if (signs.words.empty()) signs.words.resize(triggers().size());
  BugSign& sign = signs.words[literal];
  if (!sign.seen || sign.file != file) sign = {true, file, line, line};
  sign.last = line;
}

std::vector<FittingBug> fitting_bugs(const BugSigns& signs, std::span<const uint64_t> last_work) {
  std::vector<FittingBug> out;
  if (signs.words.empty()) return out;
  for (const codes::KnownBug& bug : codes::known_bugs()) {
    auto versions = signs.versions.find(bug.component);
    if (versions == signs.versions.end() || versions->second.empty()) continue;
    auto is_affected = [&](const std::string& version) { return affected(bug, version); };
    if (!std::all_of(versions->second.begin(), versions->second.end(), is_affected)) continue;
    bool all = true, stayed = false;
    for (std::string_view word : bug.trigger) {
      auto place = std::lower_bound(triggers().begin(), triggers().end(), word) - triggers().begin();
      const BugSign& sign = signs.words[static_cast<size_t>(place)];
      all = all && sign.seen;
      stayed = stayed || (sign.seen && (sign.file >= last_work.size() || sign.last > last_work[sign.file]));
    }
    if (all && stayed) out.push_back({&bug, *versions->second.begin()});
  }
  return out;
}

}  // namespace phalanx::diagnosis
