#include "job/copy/content_stream.h"

#include <gtest/gtest.h>

#include <fstream>

#include "../scratch.h"
#include "base/packing.h"
#include "wire/copy_messages.h"

using namespace phalanx;

namespace {

scratch::Folders folders;

class Contents : public testing::Test {
 protected:
  void SetUp() override { root_ = folders.make("contents"); }
  void add(const std::string& name, const std::string& content) {
    std::ofstream(root_ + "/" + name, std::ios::binary) << content;
    wanted_.entries.push_back(static_cast<uint32_t>(manifest_.entries.size()));
    manifest_.entries.push_back({name, sync::Kind::kFile, content.size(), 0, std::string(sync::kDigestBytes, 'd')});
    all_ += content;
  }
  job::ContentStream stream(job::ContentStream::Place place = {}) { return {root_, manifest_, nullptr, packers_, wanted_, place}; }
  // What a host has of a block.
  static std::string contents(const job::ContentStream::Block& block) {
    wire::FrameReader reader;
    reader.feed(wire::kStreamMagic);
    reader.feed(block.frames);
    std::string all, unpacked;
    for (;;) {
      base::Result<std::optional<wire::Frame>> frame = reader.next();
      EXPECT_TRUE(frame.ok());
      if (!frame.ok() || !*frame) return all;
      if ((*frame)->type == wire::FrameType::kCopyBytes) {
        all += wire::decode<wire::CopyBytes>((*frame)->payload)->data;
        continue;
      }
      base::Result<wire::CopyPacked> packed = wire::decode<wire::CopyPacked>((*frame)->payload);
      EXPECT_TRUE(packed.ok() && base::unpack(packed->packing, packed->data, packed->size, unpacked));
      all += unpacked;
    }
  }

  std::string root_, all_;
  sync::Manifest manifest_;
  job::Packers packers_;
  job::Wanted wanted_;
};

TEST_F(Contents, ComeWholeAndShorter) {
  for (int i = 0; i < 100; ++i) add("f" + std::to_string(1000 + i), i % 9 == 0 ? "" : std::string(9000, static_cast<char>('a' + i % 26)));
  add("g", std::string(1'000'000, 'z'));
  add("h", "");
  job::ContentStream stream = this->stream();
  std::string got;
  uint64_t files = 0, frames = 0;
  for (size_t b = 0; const job::ContentStream::Block* block = stream.block(b); ++b) {
    got += contents(*block);
    files += block->files;
    frames += block->frames.size();
  }
  EXPECT_EQ(got, all_);
  EXPECT_EQ(files, 102U);
  EXPECT_LT(frames, all_.size() / 10);
}

TEST_F(Contents, OfAFileThatIsThereInPartBeginAfterThat) {
  add("a", "aaaa");
  add("b", "0123456789");
  wanted_.partial = 1;
  wanted_.from = 6;
  EXPECT_EQ(contents(*stream().block(0)), "aaaa6789");
}

// A file is read once for two hosts; the one that is too far behind has a stream of its own, from where it is.
TEST_F(Contents, AHostFarBehindGetsTheRestFromItsPlace) {
  constexpr size_t kBlocks = 70, kBlock = 256 << 10;
  std::string large(kBlocks * kBlock, '\0');
  for (size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>(i * 7919 >> 8);
  add("large", large);
  add("small", "the end");
  job::ContentStream stream = this->stream();
  const job::ContentStream::Place slow = stream.block(0)->after;
  size_t blocks = 0;
  while (stream.block(blocks)) ++blocks;
  EXPECT_GE(blocks, kBlocks);
  EXPECT_FALSE(stream.holds(1));
  EXPECT_TRUE(stream.holds(blocks - 1));
  job::ContentStream own = this->stream(slow);
  std::string rest;
  for (size_t b = 0; const job::ContentStream::Block* block = own.block(b); ++b) {
    rest += contents(*block);
    own.forget_before(b);
  }
  EXPECT_TRUE(rest == all_.substr(kBlock)) << rest.size();
}

}  // namespace
