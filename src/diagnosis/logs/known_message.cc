#include "diagnosis/logs/known_message.h"

#include <array>
#include <map>
#include <vector>

#include "diagnosis/logs/literal_search.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kTelling = 24;  // bytes of words that identify a message of whatever source

struct Origin {
  std::string_view prefix;   // of a module's path
  std::string_view sources;  // that print, or raise, there
};
constexpr std::array<Origin, 11> kOrigins = {{{"torch/", "torch gloo nccl"},
                                              {"deepspeed/", "deepspeed"},
                                              {"accelerate/", "accelerate"},
                                              {"transformers/", "transformers"},
                                              {"llamafactory/", "llamafactory"},
                                              {"llmtuner/", "llamafactory"},
                                              {"lightning/", "lightning"},
                                              {"lightning_fabric/", "lightning"},
                                              {"pytorch_lightning/", "lightning"},
                                              {"megatron/", "megatron"},
                                              {"flash_attn/", "-"}}};

// Divided by blanks; empty: any.
std::string_view sources_of(std::string_view line, std::string_view module) {
  if (line.find("NCCL WARN") != line.npos) return "nccl ofi";
  for (std::string_view end : {".cpp:", ".hpp:", ".cc:", ".h:"})
    if (line.find(end) != line.npos) return "torch gloo";
  for (const Origin& origin : kOrigins)
    if (module.starts_with(origin.prefix)) return origin.sources;
  return {};
}

std::vector<std::string_view> words_of(std::span<const codes::KnownMessage> messages) {
  std::vector<std::string_view> words;
  words.reserve(messages.size());
  for (const codes::KnownMessage& message : messages) words.push_back(message.words);
  return words;
}

}  // namespace

const codes::KnownMessage* known_message(std::string_view line, std::string_view module) {
  static const std::span<const codes::KnownMessage> messages = codes::known_messages();
  static const LiteralSearch search(words_of(messages));
  const std::string_view sources = sources_of(line, module);
  std::vector<LiteralSearch::Hit> hits;
  search.find(line, hits);
  const codes::KnownMessage* best = nullptr;
  size_t most = 0;
  for (const LiteralSearch::Hit& hit : hits) {
    const codes::KnownMessage& message = messages[hit.literal];
    const size_t bytes = message.words.size() + message.then.size();
    if (bytes <= most || (sources.empty() ? bytes < kTelling : sources.find(message.source) == sources.npos)) continue;
    if (line.find(message.then, hit.end) == line.npos) continue;
    best = &message;
    most = bytes;
  }
  return best;
}

const Signature* meaning_of(const codes::KnownMessage& message) {
  static const std::map<const codes::KnownMessage*, Signature> rows = [] {
    std::map<const codes::KnownMessage*, Signature> out;
    for (const codes::KnownMessage& one : codes::known_messages())
      if (!one.code.empty()) out.emplace(&one, Signature{one.code, one.role, one.words, "", ""});
    return out;
  }();
  const auto found = rows.find(&message);
  return found == rows.end() ? nullptr : &found->second;
}

}  // namespace phalanx::diagnosis
