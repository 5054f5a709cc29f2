// Any bytes as what an agent says of its ranks, as a stack's text, as a line of output: the judge of a stall reads them all.
#include "diagnosis/hang/hang.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json_fields.h"
#include "logs/step_line.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  logs::step_in(bytes);
  diagnosis::place_in(bytes);
  base::Result<base::Json> json = base::parse_json(bytes);
  if (!json.ok()) return 0;
  base::Result<machine::HostSample> sample = base::from_json<machine::HostSample>(*json);
  if (!sample.ok()) return 0;
  diagnosis::HangInput input;
  input.hosts = {"h1", "h2"};
  for (const machine::RankSample& rank : sample->ranks) {
    diagnosis::RankView view;
    view.rank = static_cast<int>(input.ranks.size());
    view.host = input.ranks.size() % 2;
    view.first = view.then = rank;
    view.stack = std::string(bytes.substr(0, 512));
    input.ranks.push_back(std::move(view));
  }
  diagnosis::Diagnosis verdict = diagnosis::judge_hang(input);
  PHALANX_CHECK(!verdict.code.empty());
  for (int rank : verdict.ranks) PHALANX_CHECK(rank >= 0 && static_cast<size_t>(rank) < input.ranks.size());
  diagnosis::ranks_to_ask(input, verdict);
  return 0;
}
