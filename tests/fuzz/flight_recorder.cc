// Any bytes as the flight recorder's dumps of up to four ranks, divided by a line of their own: a verdict with words, or an error.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "diagnosis/hang/flight_recorder.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<diagnosis::RankRecord> records;
  for (int rank = 0; rank < 4; ++rank) {
    size_t end = rest.find("\n--\n");
    base::Result<diagnosis::RankRecord> trace = diagnosis::read_flight_recorder(rank, rest.substr(0, end));
    if (trace.ok()) records.push_back(std::move(*trace));
    else PHALANX_CHECK(!trace.error().message.empty());
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 4);
  }
  diagnosis::Standstill v = diagnosis::compare_records(records);
  PHALANX_CHECK((v.kind == diagnosis::Standstill::Kind::kNothing) == v.evidence.english.empty());
  PHALANX_CHECK(v.evidence.english.empty() == v.evidence.chinese.empty());
  if (v.kind == diagnosis::Standstill::Kind::kNotJoined) PHALANX_CHECK(!v.culprits.empty() && !v.waiting.empty());
  return 0;
}
