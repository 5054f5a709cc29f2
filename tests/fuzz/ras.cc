// Any bytes as a report of NCCL's RAS, and as two of them: a verdict with words in both languages, or an error.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "diagnosis/hang/ras.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  base::Result<diagnosis::RasReport> now = diagnosis::read_ras(text), before = diagnosis::read_ras(text.substr(0, size / 2));
  if (!now.ok()) {
    PHALANX_CHECK(!now.error().message.empty());
    return 0;
  }
  for (const diagnosis::RasReport* then : {before.ok() ? &*before : nullptr, &*now}) {
    diagnosis::Standstill v = diagnosis::judge_ras(*now, then, 5);
    PHALANX_CHECK((v.kind == diagnosis::Standstill::Kind::kNothing) == v.evidence.english.empty());
    PHALANX_CHECK(v.evidence.english.empty() == v.evidence.chinese.empty());
  }
  return 0;
}
