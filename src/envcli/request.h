// The command line of phalanx-env: what the launcher passes on of `phalanx env`, which it has checked against its table of flags
// (cli/flags/flag_table_move.cc).
//
//   phalanx-env [--json] [--dry-run] [--partial] [--old-prefix=PATH]... [--] show|verify|rehome ENV
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::envcli {

struct Request {
  std::string verb;
  std::string environment;  // a directory or a name
  bool json = false;
  bool dry_run = false;
  bool partial = false;
  std::vector<std::string> old_prefixes;
};

// `arguments` without argv[0]. Error kUsage: an unknown verb or flag, or not exactly one environment.
base::Result<Request> read_request(std::span<const std::string> arguments);

}  // namespace phalanx::envcli
