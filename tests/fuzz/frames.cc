// Any bytes as one direction of the stream between launcher and agent: reader, every message's decoder, rank events. What decodes must
// encode to the same bytes. And messages of hostile values: what encodes and is not refused is within its bounds, too much is an error.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/bounds.h"
#include "wire/check_messages.h"
#include "wire/copy_messages.h"
#include "wire/rank_event.h"
#include "wire/sample_messages.h"

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
  PHALANX_CHECK(wire::within_bounds(*message).ok());
}

template <typename... Messages>
void try_all(std::string_view payload) {
  (try_decode<Messages>(payload), ...);
}

// Numbers and lengths straight from the input, far outside of what the random bytes above reach: texts longer than a frame among them.
class Values {
 public:
  explicit Values(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    std::string_view taken = bytes_.substr(0, 1 + (bytes_.empty() ? 0 : static_cast<unsigned char>(bytes_[0]) % 8));
    for (char c : taken) value = value << 8 | static_cast<unsigned char>(c);
    bytes_.remove_prefix(taken.size());
    return value;
  }
  std::string text() { return std::string(bytes_.substr(0, number() % 300)); }
  // Now and then one that fills a frame to its edge, or is just too long for it.
  std::string edge() {
    if (number() % 64 != 7) return text();  // 0 is what comes when the input is used up
    return std::string(wire::kMaxFrameBytes - 8 + number() % 16, 'x');
  }
  wire::Outcome outcome() { return {number() % 2 == 0, base::fail(base::ErrorKind::kUnfit, text()).because(text()).with_hint(text())}; }

 private:
  std::string_view bytes_;
};

template <typename Message>
void try_encode(const Message& message) {
  std::string frame = "before";
  if (!wire::encode(frame, message).ok()) {
    PHALANX_CHECK(frame == "before");
    return;
  }
  PHALANX_CHECK(frame.size() <= 6 + wire::kFrameHeaderBytes + wire::kMaxFrameBytes);
  std::string_view payload = std::string_view(frame).substr(6 + wire::kFrameHeaderBytes);
  PHALANX_CHECK(wire::decode<Message>(payload).ok() == wire::within_bounds(message).ok());
}

void try_values(std::string_view bytes) {
  Values v(bytes);
  auto u32 = [&] { return static_cast<uint32_t>(v.number()); };
  auto i64 = [&] { return static_cast<int64_t>(v.number()); };
  wire::Hello hello;
  hello.build = v.text(), hello.hostname = v.text(), hello.user = v.text();
  hello.gpus = u32(), hello.cpus = u32(), hello.now_ns = i64(), hello.wall_ns = i64();
  hello.addresses.assign(v.number() % 600, {"eth0", v.number() % 2 == 0 ? "10.0.0.1" : v.text().substr(0, 100)});
  try_encode(hello);
  try_encode(wire::Prepared{v.outcome(), v.text()});
  try_encode(wire::Started{v.outcome(), u32(), u32()});
  wire::Exited exited{u32(), u32(), i64(), static_cast<uint8_t>(u32()), v.text(), v.text(), {}};
  exited.signs.assign(v.number() % 300, {static_cast<wire::ExitSign::Kind>(1 + v.number() % 5), v.text()});
  try_encode(exited);
  try_encode(wire::Pong{v.number(), i64()});
  try_encode(wire::Trouble{v.edge()});
  wire::Listening listening;
  listening.places.assign(v.number() % 40, {v.outcome(), u32()});
  try_encode(listening);
  wire::Dialed dialed{u32(), {}};
  dialed.links.assign(v.number() % 40,
                      {u32(), false, static_cast<wire::LinkOutcome>(v.number() % 12), u32(), i64(), i64(), i64(), i64(), i64(), ""});
  try_encode(dialed);
  wire::Pulse pulse{i64(), u32(), {}, {}, 0};
  pulse.ranks.assign(v.number() % 9000, {u32(), u32(), u32(), u32(), 'S', v.number(), u32()});
  pulse.peers.assign(v.number() % 100, {v.text(), u32(), u32(), u32(), u32()});
  pulse.stolen_permille = u32();
  try_encode(pulse);
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
          wire::Dig, wire::Pulse, wire::Sampled, wire::Dug, wire::CopyBegin, wire::CopyBytes, wire::CopyPacked, wire::CopyRelease,
          wire::CopyListen, wire::CopyPassOn, wire::CopyWanted, wire::CopyProgress, wire::CopyListening, wire::CopyPassing, wire::CopyTaken,
          wire::CopyDone>(bytes);
  try_values(bytes);
  base::Result<wire::RankProgress> progress = wire::parse_rank_progress(bytes);
  if (progress.ok()) PHALANX_CHECK(wire::parse_rank_progress(wire::encode(*progress)).ok());
  return 0;
}
