// Any bytes as what a machine without the token sends to node 0 of a run that is started by hand, and as what one with the token puts into
// its records: nothing opens without a proof, and what is decoded keeps its bounds.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hosts/join/gather.h"
#include "hosts/join/member_facts.h"
#include "wire/sealed.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (wire::Side side : {wire::Side::kListener, wire::Side::kDialer}) {
    wire::SealedStream stream(side, "a token that nobody guesses", std::string(wire::kNonceBytes, 'n'));
    std::string reply;
    const size_t step = size > 0 ? 1 + data[0] % 64 : 1;
    for (size_t at = 0; at < size; at += step)
      if (!stream.feed(bytes.substr(at, step), reply).ok()) break;
    PHALANX_CHECK(!stream.open());
    PHALANX_CHECK(reply.size() <= wire::kNonceBytes + wire::kProofBytes);
  }
  (void)wire::SealedStream::resume(bytes);
  base::Result<hosts::MemberFacts> facts = hosts::decode_member_facts(bytes);
  if (facts.ok()) PHALANX_CHECK(hosts::encode(*facts) == bytes);
  base::Result<hosts::JoinVerdict> verdict = hosts::decode_join_verdict(bytes);
  if (verdict.ok()) PHALANX_CHECK(hosts::encode(*verdict) == bytes);
  return 0;
}
