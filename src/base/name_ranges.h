// Many names as one word, as Slurm, pdsh and clush write them: gpu[01-04,7]-ib[0-1]. Pure.
//
// Grammar: text and any number of brackets; a bracket holds numbers and low-high ranges separated by commas. A low end
// written with a leading zero fixes the width: [08-11] is 08 09 10 11, and both ends must then have the same width.
// Several brackets give every combination, the leftmost changing slowest. Source: slurm.conf(5), hostlist(3) of pdsh.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::base {

// What a word cannot be, and where: `at` is a byte offset into the word.
struct RangeFault {
  size_t at = 0;
  std::string message;
  std::string hint;
};

// All names of `word`, in order. On failure returns an Error (kUsage) and, if `fault` is given, its parts. More than
// `most` names is a failure, found before anything is expanded.
Result<std::vector<std::string>> expand_names(std::string_view word, size_t most, RangeFault* fault = nullptr);

// The inverse, for showing: neighbours in the list that differ only in their last number are joined, so that expanding
// the words gives the same names in the same order. {gpu01, gpu02, gpu04, login} is {"gpu[01-02,04]", "login"}.
std::vector<std::string> fold_names(std::span<const std::string> names);

}  // namespace phalanx::base
