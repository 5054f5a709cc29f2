#include "diagnosis/logs/signature_matcher.h"

#include <re2/re2.h>

#include "base/check.h"

namespace phalanx::diagnosis {
namespace {

constexpr int64_t kPatternMemory = 1 << 20;

std::vector<std::string_view> literals_of(std::span<const Signature> signatures, std::span<const std::string_view> extra) {
  std::vector<std::string_view> literals;
  for (const Signature& signature : signatures) literals.push_back(signature.literal);
  literals.insert(literals.end(), extra.begin(), extra.end());
  return literals;
}

// Which of two roles a line is counted under.
int weight(Role role) {
  switch (role) {
    case Role::kBenign: return 4;
    case Role::kRoot: return 3;
    case Role::kSymptom: return 2;
    case Role::kCascade: return 1;
    case Role::kContext: return 0;
  }
  return 0;
}

}  // namespace

SignatureMatcher::SignatureMatcher(std::span<const Signature> signatures, std::span<const std::string_view> extra)
    : signatures_(signatures), search_(literals_of(signatures_, extra)), patterns_(signatures_.size()) {}

SignatureMatcher::~SignatureMatcher() = default;

const re2::RE2& SignatureMatcher::pattern(uint32_t id) {
  if (!patterns_[id]) {
    re2::RE2::Options options;
    options.set_encoding(re2::RE2::Options::EncodingLatin1);  // any bytes
    options.set_log_errors(false);
    options.set_max_mem(kPatternMemory);
    std::string_view text = signatures_[id].pattern;
    patterns_[id] = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
    PHALANX_CHECK(patterns_[id]->ok());
  }
  return *patterns_[id];
}

bool SignatureMatcher::matches(uint32_t id, std::string_view line) {
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern(id));
}

SignatureMatch SignatureMatcher::match(std::string_view line, std::span<const uint32_t> ids) {
  int best = -1;
  for (uint32_t id : ids) {
    if (id >= signatures_.size()) continue;
    if (best >= 0 && weight(signatures_[id].role) <= weight(signatures_[best].role)) continue;
    if (matches(id, line)) best = static_cast<int>(id);
  }
  SignatureMatch out;
  if (best < 0) return out;
  out.signature = &signatures_[best];
  const re2::RE2& found = pattern(static_cast<uint32_t>(best));
  if (found.NumberOfCapturingGroups() == 0) return out;
  std::vector<re2::StringPiece> groups(static_cast<size_t>(found.NumberOfCapturingGroups()) + 1);
  found.Match(re2::StringPiece(line.data(), line.size()), 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
              static_cast<int>(groups.size()));
  for (const auto& [name, index] : found.NamedCapturingGroups())
    if (const re2::StringPiece& group = groups[static_cast<size_t>(index)]; group.data()) out.captures[name] = std::string(group);
  return out;
}

}  // namespace phalanx::diagnosis
