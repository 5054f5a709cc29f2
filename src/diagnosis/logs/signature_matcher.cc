#include "diagnosis/logs/signature_matcher.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/check.h"

namespace phalanx::diagnosis {
namespace {

constexpr int64_t kPatternMemory = 1 << 20;

constexpr size_t kLostBytes = 12;     // of a line's beginning: within them a literal may be lost in part
constexpr size_t kShortestTail = 6;   // what is left of it then
constexpr size_t kOverlap = 10;       // bytes that a cut line and a row's example share
constexpr size_t kMostInFront = 120;  // what is put back in front of them

// The end of a row's literal that stands so near to the beginning of a line that the rest of it can be lost; empty: it does not.
std::string_view tail_of(const Signature& row) {
  size_t at = row.line.find(row.literal);
  if (at >= kLostBytes || row.literal.size() < kLostBytes - at + kShortestTail) return {};
  return row.literal.substr(kLostBytes - at);
}

bool alike(char a, char b) { return a == b || (a >= '0' && a <= '9' && b >= '0' && b <= '9'); }

// Where in `example` the words stand that `line` begins with; npos: nowhere, or at its beginning.
size_t overlap(std::string_view example, std::string_view line) {
  if (line.size() < kOverlap) return example.npos;
  for (size_t at = 1; at + kOverlap <= example.size() && at <= kMostInFront; ++at)
    if (std::equal(line.begin(), line.begin() + kOverlap, example.begin() + at, alike)) return at;
  return example.npos;
}

// Which of two roles a line is counted under.
int weight(Role role) {
  switch (role) {
    case Role::kBenign: return 5;
    case Role::kRoot: return 4;
    case Role::kSymptom: return 3;
    case Role::kCascade: return 2;
    case Role::kSuspect: return 1;
    case Role::kContext: return 0;
  }
  return 0;
}

}  // namespace

std::vector<uint32_t> SignatureMatcher::rows_with_tails(std::span<const Signature> signatures) {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < signatures.size(); ++i)
    if (!tail_of(signatures[i]).empty()) rows.push_back(i);
  return rows;
}

std::vector<std::string_view> SignatureMatcher::literals(std::span<const std::string_view> extra) const {
  std::vector<std::string_view> literals;
  for (const Signature& signature : signatures_) literals.push_back(signature.literal);
  for (uint32_t row : tails_) literals.push_back(tail_of(signatures_[row]));
  literals.insert(literals.end(), extra.begin(), extra.end());
  return literals;
}

SignatureMatcher::SignatureMatcher(std::span<const Signature> signatures, std::span<const std::string_view> extra)
    : signatures_(signatures), tails_(rows_with_tails(signatures)), search_(literals(extra)), patterns_(signatures_.size()) {}

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

SignatureMatch SignatureMatcher::captured(uint32_t id, std::string_view line) {
  SignatureMatch out;
  out.signature = &signatures_[id];
  const re2::RE2& found = pattern(id);
  if (found.NumberOfCapturingGroups() == 0) return out;
  std::vector<re2::StringPiece> groups(static_cast<size_t>(found.NumberOfCapturingGroups()) + 1);
  found.Match(re2::StringPiece(line.data(), line.size()), 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
              static_cast<int>(groups.size()));
  for (const auto& [name, index] : found.NamedCapturingGroups())
    if (const re2::StringPiece& group = groups[static_cast<size_t>(index)]; group.data()) out.captures[name] = std::string(group);
  return out;
}

int SignatureMatcher::best_row(std::string_view line, std::span<const uint32_t> ids) {
  int best = -1;
  for (uint32_t id : ids) {
    if (id >= signatures_.size()) break;
    if (best >= 0 && weight(signatures_[id].role) <= weight(signatures_[static_cast<size_t>(best)].role)) continue;
    if (matches(id, line)) best = static_cast<int>(id);
  }
  return best;
}

SignatureMatch SignatureMatcher::match(std::string_view line, std::span<const uint32_t> ids) {
  int best = best_row(line, ids);
  return best < 0 ? SignatureMatch{} : captured(static_cast<uint32_t>(best), line);
}

const Signature* SignatureMatcher::signature_of(std::string_view line, std::span<const uint32_t> ids) {
  int best = best_row(line, ids);
  return best < 0 ? nullptr : &signatures_[static_cast<size_t>(best)];
}

SignatureMatch SignatureMatcher::match_cut(std::string_view line, std::span<const uint32_t> ids) {
  int best = -1;
  std::string whole;
  for (uint32_t id : ids) {
    if (id >= first_extra()) break;
    uint32_t row = id < signatures_.size() ? id : tails_[id - signatures_.size()];
    if (best >= 0 && weight(signatures_[row].role) <= weight(signatures_[best].role)) continue;
    if (signatures_[row].role == Role::kBenign) continue;  // a guess at lost words does not make a line harmless
    std::string_view example = signatures_[row].line;
    size_t at = overlap(example, line);
    if (at == example.npos) continue;
    std::string candidate = std::string(example.substr(0, at)) + std::string(line);
    if (!matches(row, candidate)) continue;
    best = static_cast<int>(row);
    whole = std::move(candidate);
  }
  return best < 0 ? SignatureMatch{} : captured(static_cast<uint32_t>(best), whole);
}

}  // namespace phalanx::diagnosis
