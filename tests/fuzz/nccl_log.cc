// Any lines as NCCL's log: a topology within its limits, whose ranks belong to processes that are there, and the findings from it.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "diagnosis/nccl/view.h"
#include "logs/nccl/log.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  logs::NcclLimits limits{.processes = 64, .communicators = 16, .ranks = 64, .edges = 64, .warnings = 8, .text = 64};
  logs::NcclLog log(limits);
  uint64_t number = 0;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (std::string_view line : base::split_lines(text)) log.line(line, ++number);
  logs::NcclTopology t = log.finish();
  PHALANX_CHECK(t.processes.size() <= limits.processes && t.communicators.size() <= limits.communicators);
  PHALANX_CHECK(t.warnings.size() <= limits.warnings);
  size_t ranks = 0;
  for (const logs::NcclCommunicator& c : t.communicators) {
    PHALANX_CHECK(!c.ranks.empty());
    ranks += c.ranks.size();
    for (const auto& [n, rank] : c.ranks) PHALANX_CHECK(rank.process < t.processes.size() && rank.last.size() <= 4 * limits.text);
  }
  PHALANX_CHECK(ranks <= limits.ranks);
  for (const logs::NcclWarning& w : t.warnings) PHALANX_CHECK(w.process < t.processes.size());
  for (const diagnosis::NcclFinding& f : diagnosis::judge_nccl(t)) PHALANX_CHECK(!f.code.empty() && !f.evidence.english.empty());
  diagnosis::NcclSection section = diagnosis::nccl_section(t, [](uint64_t line) { return std::to_string(line); });
  PHALANX_CHECK(section.lines.empty() == t.processes.empty() && section.lines.size() < 300);
  return 0;
}
