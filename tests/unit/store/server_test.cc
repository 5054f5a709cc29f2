#include "store/server.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "no_descriptors.h"
#include "server_fixture.h"

namespace phalanx::store {
namespace {

class StoreServer : public ServerTest {
 protected:
  std::unique_ptr<Client> client(const char* from = "127.0.0.1") {
    return std::make_unique<Client>(*server_, [this](auto& condition) { return until(condition); }, from);
  }
  // A client that has been let in and served.
  std::unique_ptr<Client> modern() {
    auto out = client();
    EXPECT_EQ(out->ask(greeting() + frame(OpCode::kPing, uint32_t{7}), 4), bytes_of("07 00 00 00 "));
    return out;
  }
  static std::string byte(int value) { return std::string(1, static_cast<char>(value)); }
};

TEST_F(StoreServer, ModernTalk) {
  serve();
  auto a = client();
  EXPECT_EQ(a->ask(greeting() + frame(13, uint32_t{0x01020304}), 4), bytes_of("04 03 02 01 "));
  EXPECT_EQ(a->ask(frame(4, "init/", int64_t{1}), 8), i64(1));
  a->say(frame(1, "/k", "value"));
  EXPECT_EQ(a->ask(frame(6, int64_t{1}, "/k"), 1), byte(0));
  EXPECT_EQ(a->ask(frame(3, "/k"), 13), sized("value"));
  EXPECT_EQ(a->ask(frame(8, "/k"), 8), i64(1));
  EXPECT_EQ(a->ask(frame(7), 8), i64(1));
  Counters counters = server_->counters();
  EXPECT_EQ(counters.requests, 8u);
  EXPECT_EQ(counters.keys, 1u);
  EXPECT_EQ(counters.connected, 1u);
}

TEST_F(StoreServer, LegacyTalkWithItsWatchingConnection) {
  serve();
  auto main = client(), watching = client();
  EXPECT_EQ(watching->ask(frame(7, "/w"), 1), byte(3));
  main->say(frame(0, "/w", "one"));
  EXPECT_EQ(watching->hear(1 + 10 + 8 + 11), byte(1) + sized("/w") + sized("") + sized("one"));
  EXPECT_EQ(main->ask(frame(3, "/n", int64_t{3}), 8), i64(3));
  EXPECT_EQ(main->ask(frame(5, int64_t{1}, "/w") + frame(2, "/w"), 12), byte(0) + sized("one"));
  EXPECT_EQ(main->ask(frame(8, "/w"), 8), i64(1));
  EXPECT_EQ(watching->hear(1 + 10 + 11 + 8), byte(2) + sized("/w") + sized("one") + sized(""));
}

TEST_F(StoreServer, RequestsInOnePieceOrByteByByte) {
  serve();
  std::string requests = greeting() + frame(13, uint32_t{1}) + frame(4, "n", int64_t{1}) + frame(1, "k", "v") + frame(3, "k") + frame(7);
  std::string answers = bytes_of("01 00 00 00 ") + i64(1) + sized("v") + i64(2);
  EXPECT_EQ(client()->ask(requests, answers.size()), answers);
  server_->clear();
  auto slow = client();
  for (char c : requests) {
    slow->say(std::string(1, c));
    settle();
  }
  EXPECT_EQ(slow->hear(answers.size()), answers);
}

TEST_F(StoreServer, WaitersAreWokenAndForgotten) {
  serve();
  auto setter = modern();
  std::vector<std::unique_ptr<Client>> waiters;
  for (int i = 0; i < 50; ++i) {
    waiters.push_back(modern());
    waiters.back()->say(frame(6, int64_t{1}, "/k"));
  }
  EXPECT_TRUE(until([&] { return server_->counters().waiting == 50; }));
  for (int i = 0; i < 50; i += 2) waiters[i]->leave();
  EXPECT_TRUE(until([&] { return server_->counters().waiting == 25; }));
  setter->say(frame(1, "/k", "v"));
  for (int i = 1; i < 50; i += 2) EXPECT_EQ(waiters[i]->hear(1), byte(0));
  EXPECT_EQ(server_->counters().waiting, 0u);
  EXPECT_EQ(server_->counters().connected, 26u);
  EXPECT_EQ(setter->ask(frame(1, "/k", "w") + frame(3, "/k"), 9), sized("w"));
}

// PyTorch before 2.1 gives up a wait without a word and goes on.
TEST_F(StoreServer, ALegacyWaitGivenUpIsNotAnsweredLater) {
  serve();
  auto legacy = client();
  legacy->say(frame(5, int64_t{1}, "/late"));
  EXPECT_EQ(legacy->ask(frame(6), 8), i64(0));
  legacy->say(frame(0, "/late", "v"));
  EXPECT_EQ(legacy->ask(frame(6), 8), i64(1));
  auto current = modern();
  current->say(frame(6, int64_t{1}, "/later"));
  EXPECT_EQ(current->ask(frame(7), 8), i64(1));
  EXPECT_EQ(current->ask(frame(1, "/later", ""), 1), byte(0));  // here the wait stands until CANCEL_WAIT
}

TEST_F(StoreServer, StrangersMayOnlyProveThemselves) {
  serve();
  auto stranger = client("127.0.0.2");
  stranger->say(frame(0, "/k", "v"));
  EXPECT_TRUE(stranger->hung_up());
  EXPECT_EQ(server_->counters().refused, 1u);
  auto liar = client("127.0.0.2");
  EXPECT_EQ(liar->prove("0123456789abcdef0123456789abcdeF"), "");
  EXPECT_TRUE(liar->hung_up());
  EXPECT_EQ(server_->counters().bad_frames, 1u);
  auto mirror = client("127.0.0.2");  // sends the server's own proof back
  std::string challenge = mirror->ask("PHLX0123456789abcdef", 4 + 16 + 32);
  ASSERT_EQ(challenge.size(), 52u);
  EXPECT_EQ(mirror->ask(challenge.substr(20), 3), "");
  EXPECT_EQ(server_->counters().bad_frames, 2u);
  EXPECT_FALSE(server_->allowed("127.0.0.2"));
  auto early = client("127.0.0.2");  // connected before its address is allowed, speaks after
  settle();
  auto prober = client("127.0.0.2");
  EXPECT_EQ(prober->prove(kKey), "OK\n");
  EXPECT_TRUE(prober->hung_up());
  EXPECT_TRUE(server_->allowed("127.0.0.2"));
  EXPECT_EQ(early->ask(frame(3, "n", int64_t{1}), 8), i64(1));
  EXPECT_EQ(client("127.0.0.2")->ask(frame(3, "n", int64_t{1}), 8), i64(2));
  EXPECT_FALSE(server_->allowed("127.0.0.3"));
  auto other = client("127.0.0.3");
  other->say(greeting());
  EXPECT_TRUE(other->hung_up());
  EXPECT_EQ(server_->counters().probes, 1u);
  EXPECT_EQ(server_->counters().keys, 1u);
}

TEST_F(StoreServer, AProbeFromAnAllowedAddressIsNoPeer) {
  serve();
  auto worker = modern();
  EXPECT_EQ(client()->prove(kKey), "OK\n");
  settle();
  ASSERT_EQ(server_->peers().size(), 1u);
  EXPECT_EQ(server_->peers()[0].endpoint, worker->endpoint);
}

TEST_F(StoreServer, SilentStrangersAreFewAndBrief) {
  options_.max_unproven = 2;
  options_.unproven_deadline = std::chrono::milliseconds(50);
  serve();
  auto a = client("127.0.0.2"), b = client("127.0.0.2");
  settle();
  auto c = client("127.0.0.2");
  EXPECT_TRUE(c->hung_up());
  EXPECT_TRUE(a->hung_up());
  EXPECT_TRUE(b->hung_up());
  EXPECT_EQ(server_->counters().refused, 3u);
  EXPECT_EQ(server_->counters().connected, 0u);
  auto quiet = client();  // allowed: may be silent for ever, as a legacy client's second connection is
  os::Mono end = os::mono_now() + std::chrono::milliseconds(120);
  while (os::mono_now() < end) settle();
  EXPECT_TRUE(quiet->hears_nothing());
  EXPECT_EQ(server_->counters().connected, 1u);
}

// All places of those who are to prove themselves are taken by connections that say nothing: an agent gets in all the same.
TEST_F(StoreServer, SilentStrangersKeepNoAgentOut) {
  options_.max_unproven = 4;
  serve();
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(client("127.0.0.2"));
  EXPECT_TRUE(until([&] { return server_->counters().accepted == 12; }));
  EXPECT_EQ(server_->counters().connected, 4u);
  EXPECT_EQ(client("127.0.0.3")->prove(kKey), "OK\n");
  EXPECT_TRUE(server_->allowed("127.0.0.3"));
}

TEST_F(StoreServer, NoMoreConnectionsThanAllowed) {
  options_.max_connections = 2;
  serve();
  auto a = modern(), b = modern(), c = client();
  EXPECT_TRUE(c->hung_up());
  EXPECT_EQ(server_->counters().refused, 1u);
  a->leave();
  EXPECT_TRUE(until([&] { return server_->counters().connected == 1; }));
  modern();
}

TEST_F(StoreServer, HostileClientsHarmNobody) {
  serve();
  auto good = modern();
  good->say(frame(6, int64_t{1}, "/k"));
  const std::string attacks[] = {
      "GET / HTTP/1.0\r\n\r\n",
      std::string(100'000, '\xff'),
      greeting() + frame(99),
      greeting() + frame(3, int64_t{-1}),
      greeting() + frame(6, int64_t{1} << 40),
      greeting() + frame(1, "k", int64_t{1} << 30),
      greeting() + frame(1, "n", "no number") + frame(4, "n", int64_t{1}),
      frame(2, int64_t{1} << 62),
  };
  uint64_t bad = 0;
  for (auto& attack : attacks) {
    auto hostile = client();
    hostile->say(attack);
    EXPECT_TRUE(hostile->hung_up());
    EXPECT_EQ(server_->counters().bad_frames, ++bad);
  }
  modern()->say(frame(1, "/k", "v"));
  EXPECT_EQ(good->hear(1), byte(0));
}

TEST_F(StoreServer, LargestValueAndUnparsedBound) {
  options_.max_unparsed = 12 << 20;
  serve();
  auto a = modern();
  std::string big(options_.limits.max_value, 'b');
  a->say(frame(1, "/big", big));
  EXPECT_EQ(a->ask(frame(3, "/big"), 8 + big.size()), sized(big));
  auto b = modern(), c = modern();
  std::string most = frame(1, "/big", big);
  most.pop_back();
  b->say(most);
  c->say(most);
  EXPECT_TRUE(until([&] { return server_->counters().over_limit == 1; }));
  auto& left = b->hears_nothing() ? b : c;
  EXPECT_EQ(left->ask("b" + frame(7), 8), i64(1));
}

// Answers that are not read stop the client's own requests, nobody else's, and nothing is lost.
TEST_F(StoreServer, ASlowReaderIsPaused) {
  serve();
  auto slow = modern(), other = modern();
  std::string big(1 << 20, 'x');
  slow->say(frame(1, "/big", big));
  std::string ask_often;
  for (int i = 0; i < 40; ++i) ask_often += frame(3, "/big") + frame(4, "count", int64_t{1});
  slow->say(ask_often);
  settle();
  std::string count = other->ask(frame(4, "count", int64_t{0}), 8);
  EXPECT_LT(count[0], 30);  // most of them have to wait
  for (int i = 1; i <= 40; ++i) ASSERT_EQ(slow->hear(8 + big.size() + 8), sized(big) + i64(i));
  EXPECT_EQ(slow->ask(frame(7), 8), i64(2));
}

TEST_F(StoreServer, AWatcherThatDoesNotReadIsDropped) {
  options_.max_unsent = 20 << 20;
  serve();
  auto watcher = client();
  EXPECT_EQ(watcher->ask(frame(7, "/w"), 1), byte(3));
  auto setter = modern();
  std::string big(4 << 20, 'x');
  for (int i = 0; i < 6; ++i) setter->say(frame(1, "/w", big));
  EXPECT_TRUE(until([&] { return server_->counters().over_limit == 1; }));
  EXPECT_EQ(setter->ask(frame(7), 8), i64(1));
}

TEST_F(StoreServer, MoreThanTheTableHoldsDropsTheClient) {
  options_.max_table = 1 << 20;
  serve();
  auto a = modern(), b = modern();
  a->say(frame(1, "/k", std::string(2 << 20, 'x')));
  EXPECT_TRUE(a->hung_up());
  EXPECT_EQ(server_->counters().over_limit, 1u);
  EXPECT_EQ(b->ask(frame(7), 8), i64(0));
}

TEST_F(StoreServer, PeersTellWhoIsThere) {
  serve();
  std::vector<os::Endpoint> first;
  server_->on_first_request([&](const Peer& peer) { first.push_back(peer.endpoint); });
  auto a = client(), b = client(), silent = client();
  a->ask(greeting() + frame(13, uint32_t{4242}), 4);
  b->ask(frame(3, "init/", int64_t{1}), 8);
  b->ask(frame(3, "init/", int64_t{1}), 8);
  EXPECT_EQ(first, (std::vector<os::Endpoint>{a->endpoint, b->endpoint}));
  auto peers = server_->peers();
  ASSERT_EQ(peers.size(), 3u);
  EXPECT_EQ(peers[0].endpoint, a->endpoint);
  EXPECT_EQ(peers[0].dialect, Dialect::kModern);
  EXPECT_EQ(peers[0].pid, 4242u);
  EXPECT_EQ(peers[1].dialect, Dialect::kLegacy);
  EXPECT_EQ(peers[1].requests, 2u);
  EXPECT_EQ(peers[2].endpoint, silent->endpoint);
  EXPECT_EQ(peers[2].requests, 0u);
  EXPECT_LE(peers[0].since, peers[2].since);
  b->leave();
  EXPECT_TRUE(until([&] { return !server_->peers()[1].connected; }));
  EXPECT_GE(server_->peers()[1].until, peers[1].since);
}

TEST_F(StoreServer, ClearBeginsAnew) {
  serve();
  auto waiting = modern(), other = modern();
  other->say(frame(1, "/k", "v"));
  waiting->say(frame(6, int64_t{1}, "/never"));
  EXPECT_TRUE(until([&] { return server_->counters().waiting == 1 && server_->counters().keys == 1; }));
  server_->clear();
  EXPECT_TRUE(waiting->hung_up());
  EXPECT_TRUE(other->hung_up());
  Counters counters = server_->counters();
  EXPECT_EQ(counters.keys + counters.connected + counters.waiting + counters.bytes, 0u);
  EXPECT_TRUE(server_->peers().empty());
  EXPECT_EQ(modern()->ask(frame(3, "/k"), 8), sized(""));
}

// The table's walk over waiters and the closing of clients that do not take their answers must not trip over each other.
TEST_F(StoreServer, ManyComeAndGoAtOnce) {
  serve();
  std::vector<std::unique_ptr<Client>> clients;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 40; ++i) {
      clients.push_back(client());
      clients.back()->say(greeting() + frame(6, int64_t{2}, "/a" + std::to_string(i % 7), "/b"));
    }
    for (size_t i = 0; i < clients.size(); i += 3) clients[i]->leave();
    clients.push_back(client());
    std::string all = greeting();
    for (int i = 0; i < 7; ++i) all += frame(1, "/a" + std::to_string(i), "") + frame(8, "/a" + std::to_string(i));
    clients.back()->say(all + frame(1, "/b", "") + frame(8, "/b"));
    EXPECT_TRUE(until([&] { return server_->counters().waiting < 40; }));
    clients.clear();
  }
  EXPECT_TRUE(until([&] { return server_->counters().connected == 0; }));
  EXPECT_EQ(server_->counters().bytes, 0u);
}

// Out of descriptors, the server looks away for a moment and goes on later.
TEST_F(StoreServer, SurvivesRunningOutOfDescriptors) {
  serve();
  auto before = modern();
  auto blocked = client();
  {
    NoDescriptors none;
    EXPECT_LT(wakeups(*loop_), 30);
    EXPECT_EQ(before->ask(frame(7), 8), i64(0));
    EXPECT_EQ(server_->counters().connected, 1u);
  }
  EXPECT_EQ(blocked->ask(greeting() + frame(7), 8), i64(0));
}

TEST_F(StoreServer, RefusesAKeyOfTheWrongSize) {
  options_.key = "short";
  auto listener = os::listen_tcp({"127.0.0.1", 0});
  EXPECT_FALSE(Server::start(*loop_, std::move(*listener), options_).ok());
}

}  // namespace
}  // namespace phalanx::store
