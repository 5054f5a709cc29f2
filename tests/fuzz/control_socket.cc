// Any bytes as what a client sends on a run's control socket, and as what a launcher or an agent answers. What decodes must encode to the
// same bytes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/control_messages.h"

using namespace phalanx;

namespace {

template <typename Message>
void try_decode(std::string_view payload) {
  base::Result<Message> message = wire::decode<Message>(payload);
  if (!message.ok()) return;
  std::string again;
  PHALANX_CHECK(wire::encode(again, *message).ok());
  base::Result<Message> twice = wire::decode<Message>(std::string_view(again).substr(wire::kFrameHeaderBytes));
  PHALANX_CHECK(twice.ok());
  std::string third;
  PHALANX_CHECK(wire::encode(third, *twice).ok());
  PHALANX_CHECK(third == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  wire::FrameReader reader(wire::kMaxAskBytes);
  if (size > 0 && data[0] % 2 == 0) reader.feed(wire::kStreamMagic);
  size_t step = size > 1 ? 1 + data[1] : 1;
  bool good = true;
  for (size_t at = 0; at < size && good; at += step) {
    reader.feed(bytes.substr(at, step));
    for (;;) {
      base::Result<std::optional<wire::Frame>> frame = reader.next();
      good = frame.ok();
      if (!good || !frame->has_value()) break;
      PHALANX_CHECK((*frame)->payload.size() <= wire::kMaxAskBytes);
      if ((*frame)->type == wire::FrameType::kAsk) try_decode<wire::Ask>((*frame)->payload);
    }
  }
  try_decode<wire::Ask>(bytes);
  try_decode<wire::RunStatus>(bytes);
  try_decode<wire::Talk>(bytes);
  try_decode<wire::Dropped>(bytes);
  try_decode<wire::RunEnded>(bytes);
  try_decode<wire::Looked>(bytes);
  try_decode<wire::Sweep>(bytes);
  try_decode<wire::Swept>(bytes);
  return 0;
}
