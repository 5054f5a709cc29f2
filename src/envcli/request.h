// The command line of phalanx-env: what the launcher passes on of `phalanx env`, which it has checked against its table of flags
// (cli/flags/flag_table_move.cc).
//
//   phalanx-env [--json] [--dry-run] [--partial] [--old-prefix=PATH]... [--] show|verify|rehome ENV
//   phalanx-env --output=FILE [--] pack ENV
//   phalanx-env [--] unpack FILE PLACE
//
// What the launcher asks for by itself:
//
//   phalanx-env [--to=PATH] -- prepare ENV     the environment as it is to be sent (envcli/prepare.cc)
//   phalanx-env --no-hashes -- verify ENV      of files whose hashes were checked when they arrived
//   phalanx-env [--json] -- compare ENV        what `show --json` said on several hosts, on standard input (envcli/compare.cc)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace phalanx::envcli {

struct Request {
  std::string verb;
  std::string environment;  // a directory or a name; of unpack, the file
  std::string place;        // of unpack
  std::string output;       // of pack
  bool json = false;
  bool dry_run = false;
  bool partial = false;
  bool hashes = true;
  std::string to;
  std::vector<std::string> old_prefixes;
};

// `arguments` without argv[0]. Error kUsage: an unknown verb or flag, or not exactly one environment.
base::Result<Request> read_request(std::span<const std::string> arguments);

}  // namespace phalanx::envcli
