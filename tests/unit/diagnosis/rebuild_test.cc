#include "diagnosis/logs/rebuild.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace phalanx::diagnosis {
namespace {

constexpr std::string_view kOom =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB";
constexpr std::string_view kNccl = "gpu01:90:401 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read with words up to the width";

struct Rebuilt {
  std::string text;
  std::multiset<std::pair<size_t, uint32_t>> given, found;  // what the rebuilder says is in the text, and what is
};

Rebuilt rebuilt(std::string_view block) {
  static ScanMatcher matcher;
  LineRebuilder rebuilder(matcher);
  std::vector<LiteralSearch::Hit> hits = {{1, 1}}, plain;
  std::optional<std::string> whole = rebuilder.rebuild(block, hits);
  Rebuilt out{.text = whole ? *whole : std::string(block), .given = {}, .found = {}};
  matcher.search().find(out.text, plain);
  for (const auto& hit : hits) out.given.insert({hit.end, hit.literal});
  for (const auto& hit : plain) out.found.insert({hit.end, hit.literal});
  return out;
}

std::string broken(std::string_view line, size_t columns) {
  std::string out;
  for (; !line.empty(); line.remove_prefix(std::min(columns, line.size()))) out += std::string(line.substr(0, columns)) + "\n";
  return out;
}

// Where the first part alone says what the whole says, it stays as it is.
TEST(LineRebuilder, PutsTogetherWhatWasBrokenAtAWidth) {
  for (size_t columns = 60; columns < kOom.size(); ++columns) {
    Rebuilt out = rebuilt(broken(kOom, columns));
    EXPECT_EQ(out.text, columns < kOom.find(". GPU") ? std::string(kOom) + "\n\n" : broken(kOom, columns)) << columns;
    EXPECT_EQ(out.given, out.found);
  }
  EXPECT_EQ(rebuilt(broken(kNccl, 70)).text, std::string(kNccl) + "\n\n");
}

TEST(LineRebuilder, TakesMessagesOutOfJsonThatWasBrokenToo) {
  const std::string json = "{\"log\": \"" + std::string(kOom) + "\"}";
  Rebuilt whole = rebuilt("x\n" + json + "\ny\n");
  EXPECT_EQ(whole.text, "x\n" + std::string(kOom) + "\ny\n");
  EXPECT_EQ(whole.given, whole.found);
}

TEST(LineRebuilder, LeavesOtherLinesAsTheyAre) {
  const std::string steps = "[rank0]: step 1 of 100 | loss 2.345 | grad_norm 0.700 | 41.2 samples/s\n" + std::string(kOom) +
                            "\n[rank1]: step 1 of 100 | loss 2.345 | grad_norm 0.700 | 41.2 samples/s\n{\"event\": \"step\"}\n";
  for (std::string_view text : {std::string_view(steps), std::string_view(""), std::string_view("\n\n"), std::string_view("x")}) {
    Rebuilt out = rebuilt(text);
    EXPECT_EQ(out.text, text);
    EXPECT_EQ(out.given, out.found);
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
