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
};

class SignatureMatcher {
 public:
  // extra: further literals to look for; their ids follow those of the signatures, from first_extra() on.
  SignatureMatcher(std::span<const Signature> signatures, std::span<const std::string_view> extra);
  ~SignatureMatcher();

  const LiteralSearch& search() const { return search_; }
  uint32_t first_extra() const { return static_cast<uint32_t>(signatures_.size()); }

  // ids: of the literals in the line, sorted, each once. Of several signatures that match: a benign one, else the one with the gravest
  // role, else the earliest in the list.
  SignatureMatch match(std::string_view line, std::span<const uint32_t> ids);
  bool matches(uint32_t id, std::string_view line);

 private:
  const re2::RE2& pattern(uint32_t id);

  std::span<const Signature> signatures_;
  LiteralSearch search_;
  std::vector<std::unique_ptr<re2::RE2>> patterns_;  // compiled when first needed
};

}  // namespace phalanx::diagnosis
