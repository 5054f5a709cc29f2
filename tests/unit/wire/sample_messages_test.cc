#include "wire/sample_messages.h"

#include <gtest/gtest.h>

using namespace phalanx;

namespace {

template <typename Message>
Message there_and_back(const Message& message) {
  std::string frame;
  EXPECT_TRUE(wire::encode(frame, message).ok());
  auto got = wire::decode<Message>(std::string_view(frame).substr(wire::kFrameHeaderBytes));
  EXPECT_TRUE(got.ok());
  for (size_t cut = wire::kFrameHeaderBytes; cut < frame.size(); ++cut)
    EXPECT_FALSE(wire::decode<Message>(std::string_view(frame).substr(wire::kFrameHeaderBytes, cut - wire::kFrameHeaderBytes)).ok());
  return got.ok() ? std::move(got).value() : Message{};
}

TEST(SampleMessages, ComeBackAsTheyWere) {
  wire::Sample sample{7, true, false, 1500};
  EXPECT_EQ(there_and_back(sample).id, 7u);
  EXPECT_TRUE(there_and_back(sample).frames);
  sample.looks = 24;
  EXPECT_EQ(there_and_back(sample).looks, 24u);
  EXPECT_EQ(there_and_back(wire::Dig{8, {0, 3}, true, 2000}).ranks, (std::vector<uint32_t>{0, 3}));
  wire::Pulse pulse{5, 5000, {{2, 4990, 12, 3, 'R', 1 << 20, 77}}, {{"10.0.0.2", 900, 45, 25, 18}}, 120};
  EXPECT_EQ(there_and_back(pulse).ranks.at(0).delayed_ms, 77u);
  EXPECT_EQ(there_and_back(pulse).peers.at(0).address, "10.0.0.2");
  EXPECT_EQ(there_and_back(pulse).peers.at(0).recovering, 18u);
  EXPECT_EQ(there_and_back(pulse).stolen_permille, 120u);
  EXPECT_EQ(there_and_back(pulse).ranks.at(0).cpu_ms, 4990u);
  EXPECT_EQ(there_and_back(pulse).ranks.at(0).state, 'R');
  wire::Sampled sampled{7, {}, "{}"};
  EXPECT_EQ(there_and_back(sampled).json, "{}");
  EXPECT_EQ(there_and_back(wire::Dug{8, {{3, wire::PieceKind::kToolStack, "#0 x"}}}).pieces.at(0).bytes, "#0 x");
}

TEST(SampleMessages, AnUnknownKindOfPieceIsRefused) {
  std::string frame;
  ASSERT_TRUE(encode(frame, wire::Dug{8, {{3, wire::PieceKind::kRasReport, "x"}}}).ok());
  std::string payload = frame.substr(wire::kFrameHeaderBytes);
  const size_t kind = 4 + 4 + 4;  // after the id, the count and the rank
  for (int value = 0; value < 256; ++value) {
    payload[kind] = static_cast<char>(value);
    EXPECT_EQ(wire::decode<wire::Dug>(payload).ok(), value >= 1 && value <= 4) << value;
  }
}

TEST(SampleMessages, ACountThatCannotBeIsRefused) {
  EXPECT_FALSE(wire::decode<wire::Pulse>(std::string_view("\0\0\0\0\0\0\0\0\1\0\0\0\xff\xff\xff\x7f", 16)).ok());
}

}  // namespace
