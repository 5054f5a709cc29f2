// Which files of an environment name none of its former places, so that the next push need not read them. A cache: what is unreadable or
// malformed counts as empty, and losing it costs time only.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "envmove/prefix.h"

namespace phalanx::envmove {

class CleanIndex {
 public:
  // folder: where such files lie; empty: none is kept. One file per environment and move.
  CleanIndex(const std::string& folder, const std::string& root, const Move& move);
  // Keeps what was asked for or added; nothing of files that are gone.
  void save();

  // content: its SHA-256. From any thread.
  bool holds(std::string_view path, std::string_view content);
  void add(std::string_view path, std::string_view content);

 private:
  std::string file_;
  std::unordered_set<std::string> before_, now_;
  std::mutex mutex_;
};

}  // namespace phalanx::envmove
