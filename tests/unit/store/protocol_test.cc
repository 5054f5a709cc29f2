#include "store/protocol.h"

#include <gtest/gtest.h>

#include <vector>

#include "requests.h"

namespace phalanx::store {
namespace {

struct Seen {
  OpCode code;
  std::vector<std::string> parts;
  int64_t number = 0;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  out << static_cast<int>(seen.code) << " " << seen.number;
  for (auto& part : seen.parts) out << " '" << part << "'";
  return out;
}

// A connection that gets its bytes in pieces.
class Feed {
 public:
  explicit Feed(Limits limits = {}) : limits_(limits), parser_(limits_) {}
  void operator()(std::string_view piece) {
    kept_ += piece;
    while (!bad_) {
      Parser::Step step = parser_.next(kept_, op_);
      if (step.kind == Parser::Step::kMore) return;
      if (step.kind == Parser::Step::kBad) {
        bad_ = true;
        why = step.why;
        return;
      }
      seen.push_back({op_.code, {op_.parts.begin(), op_.parts.end()}, op_.number});
      kept_.erase(0, step.consumed);
    }
  }
  std::vector<Seen> seen;
  std::string why;
  bool bad() const { return bad_; }
  size_t kept() const { return kept_.size(); }
  Dialect dialect() const { return parser_.dialect(); }

 private:
  Limits limits_;
  Parser parser_;
  Op op_;
  std::string kept_;
  bool bad_ = false;
};

std::vector<Seen> parse(std::string_view bytes) {
  Feed feed;
  feed(bytes);
  EXPECT_FALSE(feed.bad()) << feed.why;
  EXPECT_EQ(feed.kept(), 0u);
  return feed.seen;
}

std::string why_bad(std::string_view bytes, Limits limits = {}) {
  Feed feed(limits);
  feed(bytes);
  return feed.bad() ? feed.why : "not bad";
}

const std::vector<Seen> kModernTalk = {
    {OpCode::kValidate, {}},
    {OpCode::kPing, {}, 4711},
    {OpCode::kSet, {"/k", "value"}},
    {OpCode::kCompareSet, {"/k", "value", ""}},
    {OpCode::kGet, {"/k"}},
    {OpCode::kAdd, {"init/"}, -1},
    {OpCode::kCheck, {"/k", "/l"}},
    {OpCode::kCheck, {}},
    {OpCode::kWait, {"/k"}},
    {OpCode::kNumKeys, {}},
    {OpCode::kDeleteKey, {""}},
    {OpCode::kAppend, {"/k", std::string(300, 'x')}},
    {OpCode::kMultiGet, {"/a", "/b", "/c"}},
    {OpCode::kMultiSet, {"/a", "1", "/b", "", "/c", "3"}},
    {OpCode::kCancelWait, {}},
    {OpCode::kQueuePush, {"/q", "item"}},
    {OpCode::kQueuePop, {"/q"}},
    {OpCode::kQueueLen, {"/q"}},
    {OpCode::kListKeys, {}},
    {OpCode::kBarrier, {"/b"}, 8},
};
std::string modern_talk() {
  return greeting() + frame(13, uint32_t{4711}) + frame(1, "/k", "value") + frame(2, "/k", "value", "") + frame(3, "/k") +
         frame(4, "init/", int64_t{-1}) + frame(5, int64_t{2}, "/k", "/l") + frame(5, int64_t{0}) + frame(6, int64_t{1}, "/k") + frame(7) +
         frame(8, "") + frame(9, "/k", std::string(300, 'x')) + frame(10, int64_t{3}, "/a", "/b", "/c") +
         frame(11, int64_t{3}, "/a", "1", "/b", "", "/c", "3") + frame(12) + frame(14, "/q", "item") + frame(15, "/q") + frame(16, "/q") +
         frame(17) + frame(18, "/b", int64_t{8});
}

const std::vector<Seen> kLegacyTalk = {
    {OpCode::kAdd, {"init/"}, 1}, {OpCode::kSet, {"/k", "v"}},    {OpCode::kCompareSet, {"/k", "v", "w"}},
    {OpCode::kGet, {"/k"}},       {OpCode::kCheck, {"/k", "/l"}}, {OpCode::kWait, {"/k"}},
    {OpCode::kNumKeys, {}},
};
std::string legacy_talk() {
  return frame(3, "init/", int64_t{1}) + frame(0, "/k", "v") + frame(1, "/k", "v", "w") + frame(2, "/k") +
         frame(4, int64_t{2}, "/k", "/l") + frame(5, int64_t{1}, "/k") + frame(6);
}

TEST(StoreProtocol, ModernTable) { EXPECT_EQ(parse(modern_talk()), kModernTalk); }
TEST(StoreProtocol, LegacyTable) { EXPECT_EQ(parse(legacy_talk()), kLegacyTalk); }

// What Debian's PyTorch 1.13.1 wrote for watchKey("w"), then set, compareSet, add, check, deleteKey and wait.
TEST(StoreProtocol, LegacyBytesAsPyTorchWritesThem) {
  EXPECT_EQ(parse(bytes_of("07 02 00 00 00 00 00 00 00 2f 77")), (std::vector<Seen>{{OpCode::kWatchKey, {"/w"}}}));
  std::string talk = bytes_of(
      "00 02 00 00 00 00 00 00 00 2f 77 03 00 00 00 00 00 00 00 6f 6e 65 "
      "01 02 00 00 00 00 00 00 00 2f 77 03 00 00 00 00 00 00 00 74 77 6f 01 00 00 00 00 00 00 00 33 "
      "03 02 00 00 00 00 00 00 00 2f 77 04 00 00 00 00 00 00 00 "
      "04 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 77 03 00 00 00 00 00 00 00 2f 7a 7a ");
  EXPECT_EQ(parse(talk), (std::vector<Seen>{{OpCode::kSet, {"/w", "one"}},
                                            {OpCode::kCompareSet, {"/w", "two", "3"}},
                                            {OpCode::kAdd, {"/w"}, 4},
                                            {OpCode::kCheck, {"/w", "/zz"}}}));
  EXPECT_EQ(parse(bytes_of("08 02 00 00 00 00 00 00 00 2f 77 ")), (std::vector<Seen>{{OpCode::kDeleteKey, {"/w"}}}));
}

TEST(StoreProtocol, EverySplitPoint) {
  const std::pair<std::string, std::vector<Seen>> talks[] = {{modern_talk(), kModernTalk}, {legacy_talk(), kLegacyTalk}};
  for (auto& [bytes, expected] : talks) {
    for (size_t at = 0; at <= bytes.size(); ++at) {
      Feed feed;
      feed(bytes.substr(0, at));
      feed(bytes.substr(at));
      ASSERT_EQ(feed.seen, expected) << "split at " << at;
      ASSERT_EQ(feed.kept(), 0u);
    }
    for (size_t piece : {1, 2, 3, 5, 7, 64}) {
      Feed feed;
      for (size_t at = 0; at < bytes.size(); at += piece) feed(bytes.substr(at, piece));
      ASSERT_EQ(feed.seen, expected) << "pieces of " << piece;
    }
  }
}

TEST(StoreProtocol, DialectIsKnownFromTheFirstBytes) {
  Feed unsure;
  for (size_t i = 0; i < 4; ++i) {
    unsure(kModernGreeting.substr(i, 1));
    EXPECT_EQ(unsure.dialect(), Dialect::kUnknown);
  }
  unsure(kModernGreeting.substr(4));
  EXPECT_EQ(unsure.dialect(), Dialect::kModern);
  Feed legacy_set;  // its second byte is the length's lowest
  legacy_set(frame(0, std::string(0xCE, 'k'), "v"));
  EXPECT_EQ(legacy_set.dialect(), Dialect::kLegacy);
  EXPECT_EQ(legacy_set.seen.size(), 1u);
  Feed probe;
  probe("PHLX");
  EXPECT_EQ(probe.dialect(), Dialect::kProbe);
  probe("0123456789abcdef");
  EXPECT_EQ(probe.seen, (std::vector<Seen>{{OpCode::kProbe, {"0123456789abcdef"}}}));
  probe("0123456789abcdef0123456789abcde");
  EXPECT_EQ(probe.seen.size(), 1u);
  probe("f");
  EXPECT_EQ(probe.seen.back(), (Seen{OpCode::kProof, {"0123456789abcdef0123456789abcdef"}}));
  probe("x");
  EXPECT_TRUE(probe.bad());
}

// PyTorch 2.1 speaks legacy with the codes of WATCH_KEY closed up.
TEST(StoreProtocol, PyTorch21) {
  std::string talk = frame(3, "init/", int64_t{1}) + frame(8, "/k", "more") + frame(7, "/k") + frame(9, int64_t{1}, "/k") +
                     frame(10, int64_t{1}, "/k", "v") + frame(11);
  std::vector<Seen> expected = {{OpCode::kAdd, {"init/"}, 1}, {OpCode::kAppend, {"/k", "more"}}, {OpCode::kDeleteKey, {"/k"}},
                                {OpCode::kMultiGet, {"/k"}},  {OpCode::kMultiSet, {"/k", "v"}},  {OpCode::kCancelWait, {}}};
  EXPECT_EQ(parse(talk), expected);
  // Once it is known to be 2.1, an APPEND may arrive in any pieces.
  Feed feed;
  std::string known = frame(11);
  for (char c : known + frame(8, "/k", "more")) feed(std::string(1, c));
  EXPECT_EQ(feed.seen, (std::vector<Seen>{{OpCode::kCancelWait, {}}, {OpCode::kAppend, {"/k", "more"}}}));
  // A connection that only watches goes on watching.
  EXPECT_EQ(parse(frame(7, "/a") + frame(7, "/b")), (std::vector<Seen>{{OpCode::kWatchKey, {"/a"}}, {OpCode::kWatchKey, {"/b"}}}));
}

TEST(StoreProtocol, EachRequestWithItsTag) {
  std::string tag = bytes_of("ce f7 85 3c ");
  std::string talk = tag + frame(3, "init/", int64_t{1}) + tag + frame(8, "/k", "more") + tag + frame(7, "/k") + tag + frame(6);
  std::vector<Seen> expected = {
      {OpCode::kAdd, {"init/"}, 1}, {OpCode::kAppend, {"/k", "more"}}, {OpCode::kDeleteKey, {"/k"}}, {OpCode::kNumKeys, {}}};
  for (size_t at = 0; at <= talk.size(); ++at) {
    Feed feed;
    feed(talk.substr(0, at));
    feed(talk.substr(at));
    ASSERT_EQ(feed.seen, expected) << "split at " << at;
  }
  EXPECT_EQ(why_bad(talk + frame(6)), "a request without its tag");
  EXPECT_EQ(why_bad(tag + frame(12)), "unknown request code");
}

TEST(StoreProtocol, LimitsHoldBeforeTheBytesArrive) {
  Limits limits;
  std::string longest(limits.max_key, 'k');
  EXPECT_EQ(parse(greeting() + frame(3, longest)).back().parts[0], longest);
  auto start_of = [](int code, uint64_t number) { return frame(code, static_cast<int64_t>(number)); };
  EXPECT_EQ(why_bad(greeting() + start_of(3, limits.max_key + 1)), "key too long");
  EXPECT_EQ(why_bad(start_of(2, limits.max_key + 1)), "key too long");
  EXPECT_EQ(why_bad(start_of(2, ~0ull)), "key too long");
  EXPECT_EQ(why_bad(greeting() + frame(1, "k", static_cast<int64_t>(limits.max_value + 1))), "value too long");
  EXPECT_EQ(why_bad(greeting() + frame(1, "k", static_cast<int64_t>(limits.max_value))), "not bad");
  EXPECT_EQ(why_bad(greeting() + start_of(6, limits.max_keys + 1)), "too many keys in one request");
  EXPECT_EQ(why_bad(greeting() + start_of(6, limits.max_keys)), "not bad");
  EXPECT_EQ(why_bad(greeting() + start_of(10, ~0ull)), "too many keys in one request");
  Limits small;
  small.max_op = 100;
  EXPECT_EQ(why_bad(greeting() + frame(2, "k", std::string(40, 'x'), int64_t{40}), small), "request too long");
}

TEST(StoreProtocol, NonsenseIsBad) {
  EXPECT_EQ(why_bad("GET / HTTP/1.1\r\n"), "unknown request code");
  EXPECT_EQ(why_bad(std::string("\x16\x03\x01\x02\x00\x01", 6)), "unknown request code");  // TLS
  EXPECT_EQ(why_bad("PHLY"), "unknown request code");
  EXPECT_EQ(why_bad(greeting() + greeting()), "unknown request code");
  EXPECT_EQ(why_bad(greeting() + frame(19)), "unknown request code");
  EXPECT_EQ(why_bad(frame(12)), "unknown request code");
  EXPECT_EQ(why_bad(bytes_of("00 ce f7 85 3d 00 00 00 00 ")), "key too long");
  Feed bad;
  bad(greeting() + frame(7) + frame(99) + frame(7));
  EXPECT_EQ(bad.seen.size(), 2u);  // what came before it counts
}

TEST(StoreProtocol, ManyKeysInManyPieces) {
  std::string bytes = greeting() + frame(6, int64_t{100'000});
  for (int i = 0; i < 100'000; ++i) bytes += sized("/key" + std::to_string(i));
  Feed feed;
  for (size_t at = 0; at < bytes.size(); at += 1000) feed(std::string_view(bytes).substr(at, 1000));
  ASSERT_EQ(feed.seen.size(), 2u);
  EXPECT_EQ(feed.seen[1].parts.size(), 100'000u);
  EXPECT_EQ(feed.seen[1].parts[77'777], "/key77777");
}

}  // namespace
}  // namespace phalanx::store
