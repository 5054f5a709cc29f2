// Any bytes as a log, in pieces of any size: the scan and the judge end, keep their bounds, and whatever they name has a page and stands in
// the file. The first byte chooses the size of the pieces.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "codes/code.h"
#include "diagnosis/logs/verdict.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static diagnosis::LogScan scan;
  size_t piece = size_t{1} + data[0] * size_t{3};
  std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  scan.begin_file({.name = "fuzz.log", .host = {}});
  for (size_t at = 0; at < text.size(); at += piece) scan.feed(text.substr(at, piece));
  scan.end_file();
  diagnosis::LogVerdict verdict = diagnosis::judge_logs(scan.finish());
  PHALANX_CHECK(verdict.files.size() == 1);
  PHALANX_CHECK(verdict.files[0].bytes == text.size());
  PHALANX_CHECK(verdict.files[0].lines <= text.size());
  for (const diagnosis::LogCascade& cascade : verdict.cascades) PHALANX_CHECK(codes::find(cascade.code) != nullptr);
  if (!verdict.cause) return 0;
  PHALANX_CHECK(codes::find(verdict.cause->code) != nullptr);
  PHALANX_CHECK(!verdict.cause->evidence.empty());
  for (const diagnosis::LogEvidence& evidence : verdict.cause->evidence) {
    PHALANX_CHECK(evidence.line >= 1 && evidence.line <= verdict.files[0].lines);
    PHALANX_CHECK(evidence.text.size() <= diagnosis::kEventBytes);
  }
  return 0;
}
