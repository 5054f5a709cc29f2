#include "wire/frame.h"

#include <gtest/gtest.h>

#include <random>

namespace phalanx::wire {
namespace {

std::string stream(std::initializer_list<std::string> payloads) {
  std::string out(kStreamMagic);
  for (const std::string& p : payloads) EXPECT_TRUE(put_frame(out, FrameType::kTrouble, p).ok());
  return out;
}

std::vector<std::string> read_all(FrameReader& reader) {
  std::vector<std::string> out;
  for (;;) {
    base::Result<std::optional<Frame>> frame = reader.next();
    EXPECT_TRUE(frame.ok());
    if (!frame.ok() || !frame->has_value()) return out;
    out.emplace_back((*frame)->payload);
  }
}

TEST(Frame, EverySplitPointGivesTheSameFrames) {
  std::string bytes = "Welcome to gpu02!\nlast login\n" + stream({"one", "", std::string(300, 'x')});
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReader reader;
    std::vector<std::string> got;
    for (std::string_view part : {std::string_view(bytes).substr(0, cut), std::string_view(bytes).substr(cut)}) {
      reader.feed(part);
      for (std::string& p : read_all(reader)) got.push_back(std::move(p));
    }
    ASSERT_EQ(got, (std::vector<std::string>{"one", "", std::string(300, 'x')})) << "cut at " << cut;
    EXPECT_EQ(reader.noise(), "Welcome to gpu02!\nlast login\n");
  }
}

TEST(Frame, NoiseWithoutEndIsRefused) {
  FrameReader reader;
  reader.feed(std::string(kMaxNoiseBytes + 100, 'n'));
  EXPECT_FALSE(reader.next().ok());
  EXPECT_FALSE(reader.next().ok()) << "it stays broken";
}

TEST(Frame, AnotherVersionIsNamed) {
  FrameReader reader;
  reader.feed(std::string_view("\0PHALANX-9\n", 11));
  base::Result<std::optional<Frame>> frame = reader.next();
  ASSERT_FALSE(frame.ok());
  EXPECT_NE(frame.error().message.find("another version"), std::string::npos);
}

TEST(Frame, AnOversizedLengthIsRefusedBeforeItIsBuffered) {
  FrameReader reader;
  std::string bytes(kStreamMagic);
  bytes += std::string("\xff\xff\xff\x7f\x4c", 5);
  reader.feed(bytes);
  EXPECT_FALSE(reader.next().ok());
}

TEST(Frame, ManyFramesInRandomPiecesKeepTheirOrder) {
  std::mt19937 random(7);
  std::string bytes(kStreamMagic);
  std::vector<std::string> want;
  for (int i = 0; i < 2000; ++i) {
    want.push_back(std::to_string(i) + std::string(random() % 400, 'p'));
    ASSERT_TRUE(put_frame(bytes, FrameType::kOutput, want.back()).ok());
  }
  FrameReader reader;
  std::vector<std::string> got;
  for (size_t at = 0; at < bytes.size();) {
    size_t n = std::min<size_t>(1 + random() % 5000, bytes.size() - at);
    reader.feed(std::string_view(bytes).substr(at, n));
    at += n;
    for (std::string& p : read_all(reader)) got.push_back(std::move(p));
  }
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace phalanx::wire
