// Any bytes as the text of a rank's log that is cleaned of secrets, and as a progress.jsonl. Cleaning twice is cleaning once, up to what
// the first left behind.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "logs/escape.h"
#include "logs/redact.h"
#include "logs/runs/progress_log.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  size_t found = 0;
  std::string clean = logs::redact(bytes, &found);
  PHALANX_CHECK(found == 0 ? clean == logs::strip_escapes(bytes) : clean.size() <= bytes.size() + found * logs::kRedacted.size());
  for (const logs::ProgressPoint& point : logs::read_progress(bytes))
    PHALANX_CHECK(logs::read_progress(logs::encode_point(point)).size() == 1);
  base::Result<base::Json> json = base::parse_json(bytes);
  if (json.ok()) PHALANX_CHECK(base::parse_json(base::to_text(logs::redact_json(*json))).ok());
  return 0;
}
