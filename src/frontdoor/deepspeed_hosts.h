// DeepSpeed's hostfile and its filters, with DeepSpeed's own semantics (deepspeed/launcher/runner.py, fetch_hostfile and
// parse_resource_filter, with the fix of 2026-08: `--include host` selects the whole host). Grammar: docs/guides/front-doors.md. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontdoor/translation.h"

namespace phalanx::frontdoor {

constexpr size_t kLargestHostfile = 4u << 20;  // bytes
constexpr size_t kMostHosts = 65'536;
constexpr int kMostSlots = 4'096;  // on one host

struct Hostfile {
  std::vector<Host> hosts;           // in the order of the file; of a host named twice the slots are added up
  std::vector<std::string> merged;   // hosts that were named twice
  std::vector<std::string> guessed;  // "hosts.txt:3: slots=4abc is read as 4"
};

// Lines `HOST slots=N …`, comments and blank lines. Error kConfig, "hosts.txt:3: …".
base::Result<Hostfile> parse_deepspeed_hostfile(std::string_view text, std::string_view path);

// NAME[:SLOT[,SLOT…]][@NAME…]. A host or slot that the list does not have is an error, kUsage; hosts without a slot left are dropped, and
// so are slots named twice. `hosts` with slots 0: their number is not known, and every slot is taken.
base::Result<std::vector<Host>> filter_hosts(const std::vector<Host>& hosts, std::string_view filter, bool include);

}  // namespace phalanx::frontdoor
