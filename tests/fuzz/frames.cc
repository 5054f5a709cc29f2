// Any bytes as one direction of the stream between launcher and agent: reader, every message's decoder, rank events. What decodes must
// encode to the same bytes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/check_messages.h"
#include "wire/rank_event.h"
#include "wire/sample_messages.h"

namespace {

template <typename Message>
void try_decode(std::string_view payload) {
  base::Result<Message> message = wire::decode<Message>(payload);
  if (!message.ok()) return;
  std::string again;
  wire::encode(again, *message);
  base::Result<Message> twice = wire::decode<Message>(std::string_view(again).substr(wire::kFrameHeaderBytes));
  CHECK(twice.ok());
  std::string third;
  wire::encode(third, *twice);
  CHECK(third == again);
}

template <typename... Messages>
void try_all(std::string_view payload) {
  (try_decode<Messages>(payload), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  wire::FrameReader reader;
  if (size > 0 && data[0] % 2 == 0) reader.feed(wire::kStreamMagic);
  size_t step = size > 1 ? 1 + data[1] : 1;
  for (size_t at = 0; at < size; at += step) {
    reader.feed(bytes.substr(at, step));
    for (;;) {
      base::Result<std::optional<wire::Frame>> frame = reader.next();
      if (!frame.ok()) return 0;
      if (!frame->has_value()) break;
    }
  }
  try_all<wire::Hello, wire::Prepared, wire::StoreOpened, wire::Reached, wire::Started, wire::Output, wire::Progress, wire::Exited,
          wire::Connected, wire::Pong, wire::Finished, wire::Trouble, wire::Prepare, wire::OpenStore, wire::Reach, wire::Start,
          wire::Signal, wire::Ping, wire::Probe, wire::Listen, wire::Dial, wire::Probed, wire::Listening, wire::Dialed, wire::Sample,
          wire::Dig, wire::Pulse, wire::Sampled, wire::Dug>(bytes);
  base::Result<wire::RankProgress> progress = wire::parse_rank_progress(bytes);
  if (progress.ok()) CHECK(wire::parse_rank_progress(wire::encode(*progress)).ok());
  return 0;
}
