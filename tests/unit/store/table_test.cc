#include "store/table.h"

#include <gtest/gtest.h>

#include <map>

#include "requests.h"

namespace phalanx::store {
namespace {

class StoreTable : public ::testing::Test, protected Outbox {
 protected:
  std::string* room(ClientId client, size_t bytes) override {
    if (deaf_ == static_cast<int>(client)) return nullptr;
    promised_[client] += bytes;
    return &sent_[client];
  }
  Table::Outcome apply(ClientId client, OpCode code, std::vector<std::string_view> parts = {}, int64_t number = 0) {
    Op op{code, std::move(parts), number};
    Table::Outcome outcome = table_.apply(client, op, *this);
    for (auto& [id, bytes] : sent_) EXPECT_EQ(bytes.size(), promised_[id]);
    return outcome;
  }
  // Everything sent to a client since the last look.
  std::string sent(ClientId client) {
    promised_[client] = 0;
    return std::exchange(sent_[client], {});
  }
  // The answer to one request.
  std::string ask(OpCode code, std::vector<std::string_view> parts = {}, int64_t number = 0) {
    EXPECT_EQ(apply(0, code, std::move(parts), number), Table::Outcome::kDone);
    return sent(0);
  }
  static std::string byte(int value) { return std::string(1, static_cast<char>(value)); }

  Table table_{1 << 20};
  std::map<ClientId, std::string> sent_;
  std::map<ClientId, size_t> promised_;
  int deaf_ = -1;
};

TEST_F(StoreTable, SetGetDelete) {
  EXPECT_EQ(ask(OpCode::kGet, {"/k"}), sized(""));  // missing: empty
  EXPECT_EQ(ask(OpCode::kSet, {"/k", "one"}), "");
  EXPECT_EQ(ask(OpCode::kGet, {"/k"}), sized("one"));
  ask(OpCode::kSet, {"/k", std::string_view("\0two", 4)});
  EXPECT_EQ(ask(OpCode::kGet, {"/k"}), sized(std::string_view("\0two", 4)));
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(1));
  EXPECT_EQ(ask(OpCode::kDeleteKey, {"/k"}), i64(1));
  EXPECT_EQ(ask(OpCode::kDeleteKey, {"/k"}), i64(0));
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(0));
  EXPECT_EQ(table_.bytes(), 0u);
}

TEST_F(StoreTable, CompareSet) {
  EXPECT_EQ(ask(OpCode::kCompareSet, {"/k", "x", "new"}), sized("x"));  // missing, not expected to be
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(0));
  EXPECT_EQ(ask(OpCode::kCompareSet, {"/k", "", "one"}), sized("one"));
  EXPECT_EQ(ask(OpCode::kCompareSet, {"/k", "", "two"}), sized("one"));
  EXPECT_EQ(ask(OpCode::kCompareSet, {"/k", "one", "two"}), sized("two"));
  EXPECT_EQ(ask(OpCode::kGet, {"/k"}), sized("two"));
}

TEST_F(StoreTable, AddCountsInDecimalText) {
  EXPECT_EQ(ask(OpCode::kAdd, {"/n"}, 5), i64(5));
  EXPECT_EQ(ask(OpCode::kAdd, {"/n"}, -7), i64(-2));
  EXPECT_EQ(ask(OpCode::kGet, {"/n"}), sized("-2"));
  ask(OpCode::kSet, {"/n", " +40 apples"});
  EXPECT_EQ(ask(OpCode::kAdd, {"/n"}, 2), i64(42));
  ask(OpCode::kSet, {"/n", "9223372036854775807"});
  EXPECT_EQ(ask(OpCode::kAdd, {"/n"}, 1), i64(INT64_MIN));
  for (const char* bad : {"", "x", "+", "-", "+-1", "  ", "9223372036854775808"}) {
    ask(OpCode::kSet, {"/n", bad});
    EXPECT_EQ(apply(0, OpCode::kAdd, {"/n"}, 1), Table::Outcome::kNotANumber) << bad;
    EXPECT_EQ(apply(0, OpCode::kBarrier, {"/n"}, 1), Table::Outcome::kNotANumber) << bad;
    EXPECT_EQ(ask(OpCode::kGet, {"/n"}), sized(bad));
  }
}

TEST_F(StoreTable, AppendAndMulti) {
  ask(OpCode::kAppend, {"/a", "one"});
  ask(OpCode::kAppend, {"/a", "two"});
  ask(OpCode::kMultiSet, {"/b", "B", "/c", "C"});
  EXPECT_EQ(ask(OpCode::kMultiGet, {"/a", "/c", "/missing", "/b"}), sized("onetwo") + sized("C") + sized("") + sized("B"));
  EXPECT_EQ(ask(OpCode::kMultiGet), "");
  std::string keys = ask(OpCode::kListKeys);
  EXPECT_EQ(keys.size(), 8 + 3 * (8 + 2));
  EXPECT_EQ(keys.substr(0, 8), i64(3));
  EXPECT_NE(keys.find(sized("/c")), std::string::npos);
}

TEST_F(StoreTable, PingAndCheck) {
  EXPECT_EQ(ask(OpCode::kPing, {}, 0xFFFFFFFE), bytes_of("fe ff ff ff "));
  EXPECT_EQ(ask(OpCode::kCheck), byte(0));
  EXPECT_EQ(ask(OpCode::kCheck, {"/k"}), byte(1));
  ask(OpCode::kSet, {"/k", ""});
  EXPECT_EQ(ask(OpCode::kCheck, {"/k"}), byte(0));
  EXPECT_EQ(ask(OpCode::kCheck, {"/k", "/l"}), byte(1));
  ask(OpCode::kQueuePush, {"/l", "x"});
  EXPECT_EQ(ask(OpCode::kCheck, {"/k", "/l"}), byte(0));
}

TEST_F(StoreTable, WaitIsAnsweredWhenEveryKeyIsThere) {
  apply(1, OpCode::kWait, {"/a", "/b", "/a"});
  apply(2, OpCode::kWait, {"/b"});
  EXPECT_EQ(table_.waiting(), 2u);
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(0));  // a key waited for does not exist
  ask(OpCode::kSet, {"/b", "1"});
  EXPECT_EQ(sent(2), byte(0));
  EXPECT_EQ(sent(1), "");
  ask(OpCode::kDeleteKey, {"/b"});  // it has been there
  ask(OpCode::kAdd, {"/a"}, 1);
  EXPECT_EQ(sent(1), byte(0));
  ask(OpCode::kSet, {"/a", "2"});
  EXPECT_EQ(sent(1), "");
  EXPECT_EQ(table_.waiting(), 0u);
  apply(1, OpCode::kWait, {"/a"});
  EXPECT_EQ(sent(1), byte(0));
  apply(1, OpCode::kWait, {});
  EXPECT_EQ(sent(1), byte(0));
}

TEST_F(StoreTable, EveryWayToMakeAKeyWakes) {
  const std::pair<OpCode, std::vector<std::string_view>> ways[] = {
      {OpCode::kSet, {"/k", "v"}},    {OpCode::kCompareSet, {"/k", "", "v"}},      {OpCode::kAdd, {"/k"}},
      {OpCode::kAppend, {"/k", "v"}}, {OpCode::kMultiSet, {"/x", "1", "/k", "2"}}, {OpCode::kQueuePush, {"/k", "v"}},
  };
  for (auto& [code, parts] : ways) {
    table_.clear();
    apply(1, OpCode::kWait, {"/k"});
    apply(0, code, parts);
    EXPECT_EQ(sent(1), byte(0)) << static_cast<int>(code);
  }
}

TEST_F(StoreTable, AWaiterThatIsGoneLeavesNothing) {
  apply(1, OpCode::kWait, {"/a", "/b"});
  apply(2, OpCode::kWait, {"/a"});
  apply(3, OpCode::kWait, {"/a"});
  table_.forget(2);  // from the middle of the line
  ask(OpCode::kSet, {"/a", "1"});
  EXPECT_EQ(sent(2), "");
  EXPECT_EQ(sent(3), byte(0));
  table_.forget(1);
  ask(OpCode::kSet, {"/b", "1"});
  EXPECT_EQ(sent(1), "");
  ask(OpCode::kDeleteKey, {"/a"});
  ask(OpCode::kDeleteKey, {"/b"});
  EXPECT_EQ(table_.bytes(), 0u);
  apply(1, OpCode::kWait, {"/only/waited/for"});
  EXPECT_GT(table_.bytes(), 0u);
  table_.forget(1);
  EXPECT_EQ(table_.bytes(), 0u);
}

TEST_F(StoreTable, CancelAndReplace) {
  apply(1, OpCode::kCancelWait);
  EXPECT_EQ(sent(1), byte(1));  // also when nothing was waited for
  apply(1, OpCode::kWait, {"/a"});
  apply(1, OpCode::kCancelWait);
  EXPECT_EQ(sent(1), byte(1));
  ask(OpCode::kSet, {"/a", "1"});
  EXPECT_EQ(sent(1), "");
  apply(1, OpCode::kWait, {"/b"});
  apply(1, OpCode::kWait, {"/c"});  // replaces the other
  ask(OpCode::kSet, {"/b", "1"});
  EXPECT_EQ(sent(1), "");
  ask(OpCode::kSet, {"/c", "1"});
  EXPECT_EQ(sent(1), byte(0));
}

TEST_F(StoreTable, QueueWakesOneInLine) {
  for (ClientId client : {1, 2, 3}) apply(client, OpCode::kWait, {"/q"});
  apply(4, OpCode::kWait, {"/q", "/other"});
  ask(OpCode::kQueuePush, {"/q", "first"});
  EXPECT_EQ(sent(1), byte(0));
  EXPECT_EQ(sent(2), "");
  ask(OpCode::kQueuePush, {"/q", "second"});
  EXPECT_EQ(sent(2), byte(0));
  EXPECT_EQ(ask(OpCode::kQueueLen, {"/q"}), i64(2));
  EXPECT_EQ(ask(OpCode::kQueuePop, {"/q"}), i64(2) + sized("first"));
  EXPECT_EQ(ask(OpCode::kQueuePop, {"/q"}), i64(1) + sized("second"));
  EXPECT_EQ(ask(OpCode::kQueuePop, {"/q"}), i64(0));
  EXPECT_EQ(ask(OpCode::kQueueLen, {"/q"}), i64(0));
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(0));
  table_.forget(3);
  ask(OpCode::kQueuePush, {"/q", "third"});
  EXPECT_EQ(sent(4), "");  // still misses /other
  ask(OpCode::kSet, {"/other", ""});
  EXPECT_EQ(sent(4), byte(0));
}

TEST_F(StoreTable, AnItemIsNotLostToAClientThatCannotTakeIt) {
  ask(OpCode::kQueuePush, {"/q", "item"});
  deaf_ = 5;
  apply(5, OpCode::kQueuePop, {"/q"});
  deaf_ = -1;
  EXPECT_EQ(ask(OpCode::kQueuePop, {"/q"}), i64(1) + sized("item"));
}

TEST_F(StoreTable, BarrierLetsEverybodyGoTogether) {
  apply(1, OpCode::kBarrier, {"/b"}, 3);
  apply(2, OpCode::kBarrier, {"/b"}, 3);
  EXPECT_EQ(sent(1) + sent(2), "");
  EXPECT_EQ(ask(OpCode::kGet, {"/b"}), sized("2"));
  apply(3, OpCode::kBarrier, {"/b"}, 3);
  EXPECT_EQ(sent(1), byte(0));
  EXPECT_EQ(sent(2), byte(0));
  EXPECT_EQ(sent(3), byte(0));
  apply(4, OpCode::kBarrier, {"/b"}, 3);  // late: the count is past the world size
  EXPECT_EQ(sent(4), byte(0));
}

TEST_F(StoreTable, WatchersAreToldAsPyTorchTellsThem) {
  apply(9, OpCode::kWatchKey, {"/w"});
  EXPECT_EQ(sent(9), byte(3));
  ask(OpCode::kSet, {"/w", "one"});
  EXPECT_EQ(sent(9), byte(1) + sized("/w") + sized("") + sized("one"));
  ask(OpCode::kCompareSet, {"/w", "one", "3"});
  EXPECT_EQ(sent(9), byte(0) + sized("/w") + sized("one") + sized("3"));
  ask(OpCode::kCompareSet, {"/w", "other", "5"});
  EXPECT_EQ(sent(9), "");
  ask(OpCode::kAdd, {"/w"}, 4);
  EXPECT_EQ(sent(9), byte(0) + sized("/w") + sized("3") + sized("7"));
  ask(OpCode::kDeleteKey, {"/w"});
  EXPECT_EQ(sent(9), byte(2) + sized("/w") + sized("7") + sized(""));
  apply(9, OpCode::kWatchKey, {"/w"});  // once is enough
  EXPECT_EQ(sent(9), byte(3));
  ask(OpCode::kSet, {"/w", ""});
  EXPECT_EQ(sent(9), byte(1) + sized("/w") + sized("") + sized(""));
  table_.forget(9);
  ask(OpCode::kDeleteKey, {"/w"});
  EXPECT_EQ(sent(9), "");
  EXPECT_EQ(table_.bytes(), 0u);
}

TEST_F(StoreTable, StaysWithinItsBound) {
  std::string big(400'000, 'x');
  EXPECT_EQ(apply(0, OpCode::kSet, {"/a", big}), Table::Outcome::kDone);
  EXPECT_EQ(apply(0, OpCode::kSet, {"/b", big}), Table::Outcome::kDone);
  EXPECT_EQ(apply(0, OpCode::kSet, {"/c", big}), Table::Outcome::kFull);
  EXPECT_EQ(apply(0, OpCode::kAppend, {"/a", big}), Table::Outcome::kFull);
  EXPECT_EQ(apply(0, OpCode::kQueuePush, {"/q", big}), Table::Outcome::kFull);
  EXPECT_EQ(apply(0, OpCode::kMultiSet, {"/x", "", "/y", big}), Table::Outcome::kFull);
  EXPECT_EQ(ask(OpCode::kNumKeys), i64(2));
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) names.push_back("/many" + std::to_string(i));
  EXPECT_EQ(apply(1, OpCode::kWait, {names.begin(), names.end()}), Table::Outcome::kFull);
  int done = 0;
  for (auto& name : names) done += apply(0, OpCode::kSet, {name, ""}) == Table::Outcome::kDone;
  EXPECT_LT(done, 2000);
  EXPECT_LE(table_.bytes(), size_t{1} << 20);
  ask(OpCode::kSet, {"/a", ""});
  EXPECT_EQ(apply(0, OpCode::kSet, {"/c", std::string_view(big).substr(1000)}), Table::Outcome::kDone);
  table_.clear();
  EXPECT_EQ(table_.bytes() + table_.keys() + table_.waiting(), 0u);
}

}  // namespace
}  // namespace phalanx::store
