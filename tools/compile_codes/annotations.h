// codes/annotations/*.tsv: what messages of the catalogue mean.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "codes/signature.h"

namespace phalanx::codes {

struct Annotation {
  std::string code;              // empty: none
  Role role = Role::kRoot;       // of the code
  std::string decides;           // RE2: the values that decide; empty: the words are enough
  std::string line;              // an example
  std::string english, chinese;  // the answer: what the message means, and what to do. Empty: the page of the code is the answer

  bool is_answer() const { return !english.empty(); }
};

// By the words of their message; of one source.
using Annotations = std::map<std::string, Annotation>;
using AnnotatedSources = std::map<std::string, Annotations>;  // by source

// `names`: the codes that have a page. Error (kConfig): the catalogue has no message with an annotation's words, which can
// happen after a new run of the generator, its example does not contain them, or it says neither a code nor an answer.
base::Result<AnnotatedSources> read_annotations(const std::filesystem::path& codes, const std::set<std::string>& names);

// Those without an answer, as rows of signatures; `others` gets a line for each that must not match.
base::Result<std::string> annotation_rows(const AnnotatedSources& sources, std::string& others);

}  // namespace phalanx::codes
