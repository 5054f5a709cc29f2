// Which signature a line matches, once it is known which literals it holds. Pure.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/logs/literal_search.h"
#include "diagnosis/logs/signature.h"

namespace re2 {
class RE2;
}

namespace phalanx::diagnosis {

struct SignatureMatch {
  const Signature* signature = nullptr;  // null: none matches
  std::map<std::string, std::string> captures;
  bool is_fact() const { return signature && (signature->role == codes::Role::kContext || signature->role == codes::Role::kSuspect); }
};

class SignatureMatcher {
 public:
  // extra: further literals to look for; their ids follow those of the signatures, from first_extra() on. (Ids in
  // between stand for the end of a literal, see match_cut().)
  SignatureMatcher(std::span<const Signature> signatures, std::span<const std::string_view> extra);
  ~SignatureMatcher();

  const LiteralSearch& search() const { return search_; }
  uint32_t first_extra() const { return static_cast<uint32_t>(signatures_.size() + tails_.size()); }

  // ids: of the literals in the line, sorted, each once. Of several signatures that match: a benign one, else the one with the gravest
  // role, else the earliest in the list.
  SignatureMatch match(std::string_view line, std::span<const uint32_t> ids);
  // The same without what is captured; null: none matches.
  const Signature* signature_of(std::string_view line, std::span<const uint32_t> ids);
  // Whether one of the ids is that of a signature's literal: without one, match() finds nothing.
  bool may_match(std::span<const uint32_t> ids) const { return !ids.empty() && ids.front() < signatures_.size(); }
  bool matches(uint32_t id, std::string_view line);

  // Of a line that has lost its beginning ("rror: out of memory", or NCCL's "Last error:", which torch prints without its file and
  // "NCCL WARN"): as match(), with what the row's own example has in front of the same words put back. What is captured
  // in front of those words is the example's.
  SignatureMatch match_cut(std::string_view line, std::span<const uint32_t> ids);

 private:
  const re2::RE2& pattern(uint32_t id);
  int best_row(std::string_view line, std::span<const uint32_t> ids);  // -1: none
  SignatureMatch captured(uint32_t id, std::string_view line);

  static std::vector<uint32_t> rows_with_tails(std::span<const Signature> signatures);
  std::vector<std::string_view> literals(std::span<const std::string_view> extra) const;

  std::span<const Signature> signatures_;
  std::vector<uint32_t> tails_;  // rows whose literal can be lost in part with the beginning of a line
  LiteralSearch search_;
  std::vector<std::unique_ptr<re2::RE2>> patterns_;  // compiled when first needed
};

}  // namespace phalanx::diagnosis
