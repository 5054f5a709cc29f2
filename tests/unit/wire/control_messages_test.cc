#include "wire/control_messages.h"

#include <gtest/gtest.h>

namespace phalanx::wire {
namespace {

template <typename Message>
base::Result<Message> round_trip(const Message& message) {
  std::string bytes;
  EXPECT_TRUE(encode(bytes, message).ok());
  EXPECT_EQ(static_cast<FrameType>(bytes[4]), Message::kType);
  std::string_view payload = std::string_view(bytes).substr(kFrameHeaderBytes);
  for (size_t n = 0; n < payload.size(); ++n) EXPECT_FALSE(decode<Message>(payload.substr(0, n)).ok()) << n;
  EXPECT_FALSE(decode<Message>(std::string(payload) + "x").ok());
  return decode<Message>(payload);
}

TEST(ControlMessages, ComeBackWhole) {
  Ask ask{.wish = Wish::kStop, .grace_ms = 1500, .kill = true};
  base::Result<Ask> back = round_trip(ask);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->wish, Wish::kStop);
  EXPECT_EQ(back->grace_ms, 1500);
  EXPECT_TRUE(back->kill);
  EXPECT_EQ(round_trip(RunStatus{"{\"v\":1}"})->json, "{\"v\":1}");
  EXPECT_EQ(round_trip(Talk{"说"})->text, "说");
  EXPECT_EQ(round_trip(Dropped{1ULL << 40})->bytes, 1ULL << 40);
  EXPECT_EQ(round_trip(Ask{.wish = Wish::kLook})->wish, Wish::kLook);
  EXPECT_EQ(round_trip(Looked{"{\"v\":1}"})->json, "{\"v\":1}");
  EXPECT_EQ(round_trip(RunEnded{137})->exit_code, 137u);
  EXPECT_EQ(round_trip(Sweep{"20261121-073102-a3f9", 8000})->patience_ms, 8000u);
  base::Result<Swept> swept =
      round_trip(Swept{{{12, "python train.py", true}, {13, "", false}}, 3, {{14, "process 14 (ray): its environment cannot be read"}}});
  ASSERT_TRUE(swept.ok());
  ASSERT_EQ(swept->found.size(), 2u);
  EXPECT_EQ(swept->found[0].command, "python train.py");
  EXPECT_TRUE(swept->found[0].gone);
  EXPECT_FALSE(swept->found[1].gone);
  EXPECT_EQ(swept->waited_for, 3u);
}

TEST(ControlMessages, RefuseWhatMakesNoSense) {
  EXPECT_FALSE(round_trip(Ask{.wish = static_cast<Wish>(0)}).ok());
  EXPECT_FALSE(round_trip(Ask{.wish = static_cast<Wish>(5)}).ok());
  EXPECT_FALSE(round_trip(Ask{.grace_ms = -2}).ok());
  EXPECT_FALSE(round_trip(Ask{.grace_ms = INT64_MAX}).ok());
  EXPECT_FALSE(round_trip(RunEnded{256}).ok());
  EXPECT_FALSE(round_trip(Sweep{"", 1}).ok());
  EXPECT_FALSE(round_trip(Sweep{std::string(129, 'x'), 1}).ok());
  EXPECT_FALSE(round_trip(Swept{std::vector<SweptProcess>(kMaxSwept + 1), 0, {}}).ok());
}

TEST(ControlMessages, AClientsFramesAreSmall) {
  std::string bytes(kStreamMagic), frame;
  ASSERT_TRUE(put_frame(frame, FrameType::kAsk, std::string(kMaxAskBytes + 1, 'x')).ok());
  FrameReader reader(kMaxAskBytes);
  reader.feed(bytes + frame.substr(0, kFrameHeaderBytes));
  EXPECT_FALSE(reader.next().ok()) << "refused before its bytes have come";
}

}  // namespace
}  // namespace phalanx::wire
