// The catalogue: one row per thing that can be found. A row is everything there is to a code: its check, its words, its page
// (`phalanx explain CODE`), its line in the docs. Codes are permanent: scripts and people remember them.
//
// A check is a pure function of a situation. It adds one finding per host or set of hosts; equal evidence is folded later.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "doctor/finding.h"
#include "doctor/situation.h"

namespace doctor {

enum class Group {
  kGpu,         // GPU-   the cards and their driver
  kVisibility,  // VIS-   which cards a rank sees
  kNetwork,     // NET-   interfaces, addresses, links
  kInfiniband,  // IB-
  kNccl,        // NCCL-  its library and settings
  kRendezvous,  // RDZV-  addresses, ports and names the ranks meet by
  kSoftware,    // ENV-   Python, packages, variables
  kStorage,     // FS-
  kTime,        // TIME-
  kLimits,      // LIM-
  kProcess,     // PROC-  what earlier jobs left
  kCommand,     // CMD-   what the user wrote: scripts and configurations
  kData,        // DATA-  data set, loader, checkpoint and memory hints
  kSpeed,       // PERF-
};

// Where a check puts what it finds.
class Findings {
 public:
  Findings(const Row& row, std::vector<Finding>& out) : row_(row), out_(out) {}
  void on(size_t host, Words evidence, std::string fix = "") { out_.push_back({&row_, {host}, std::move(evidence), std::move(fix), ""}); }
  void on(std::vector<size_t> hosts, Words evidence, std::string fix = "", std::string where = "") {
    out_.push_back({&row_, std::move(hosts), std::move(evidence), std::move(fix), std::move(where)});
  }
  void job(Words evidence, std::string fix = "") { out_.push_back({&row_, {}, std::move(evidence), std::move(fix), ""}); }

 private:
  const Row& row_;
  std::vector<Finding>& out_;
};

struct Row {
  std::string_view code;  // "NET-WRONG-IFACE"
  Severity severity;
  Group group;
  base::Bilingual title;     // one line, no full stop: "a port the job needs is taken"
  base::Bilingual question;  // what the check asks: "Is MASTER_PORT free on the host of rank 0?"
  base::Bilingual why;       // what happens otherwise, with the messages users see; one paragraph or more, separated by '\n'
  base::Bilingual fix;       // what to do, commands on lines of their own that start with "$ "
  std::string_view source;   // documents, source files or issues this rests on; may be empty
  void (*check)(const Situation& situation, Findings& findings);
};

// All rows, group by group. One function per group in rows_<group>.cc.
std::span<const Row> gpu_rows();
std::span<const Row> visibility_rows();
std::span<const Row> network_rows();
std::span<const Row> infiniband_rows();
std::span<const Row> nccl_rows();
std::span<const Row> rendezvous_rows();
std::span<const Row> software_rows();
std::span<const Row> storage_rows();
std::span<const Row> time_rows();
std::span<const Row> limits_rows();
std::span<const Row> process_rows();
std::span<const Row> command_rows();
std::span<const Row> data_rows();
std::span<const Row> speed_rows();

std::vector<const Row*> catalogue();
const Row* find_row(std::string_view code);  // case-insensitive; null if there is none
std::string_view prefix(Group group);        // "NET-"
base::Bilingual title(Group group);

}  // namespace doctor
