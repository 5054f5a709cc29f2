// The table of `phalanx ps`. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "words/message.h"

namespace phalanx::view {

struct RunRow {
  std::string id;
  words::Text state;
  std::vector<std::string> hosts;
  int64_t ranks = 0;
  std::optional<int64_t> age_s;  // since it began; of an ended one, since it ended
  bool ended = false;
  std::string step, loss;  // "120/1000", "2.31"; may be empty
  std::string speed;       // "15.3k tok/s"; no column where no run has one
  std::string command;
  std::string name;   // given by the user; no column where no run has one
  std::string owner;  // of another user's run; no column where every run is this user's
};

// columns: of the terminal, the command is cut there; 0: whole.
std::string run_table(const std::vector<RunRow>& rows, base::Language language, size_t columns);

}  // namespace phalanx::view
