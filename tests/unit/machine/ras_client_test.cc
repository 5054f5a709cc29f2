// NCCL's RAS client against services on the loopback: one that speaks protocol 2 as NCCL does, and ones that do not.
#include "machine/ranks/ras_client.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace phalanx::machine {
namespace {

// Speaks RAS's protocol; `behaviour` says where it goes wrong.
struct Service {
  enum class Kind { kWell, kText, kSlow, kSilent, kSilentOnce, kCutOff, kGarbage, kHangsUp, kEndless };

  Service(os::Loop& the_loop, Kind the_kind) : loop(the_loop), kind(the_kind) {
    base::Result<os::Listener> opened = os::listen_tcp({"127.0.0.1", 0});
    PHALANX_CHECK(opened.ok());
    listener = std::move(*opened);
    listen_watch = *loop.watch(listener.fd.get(), EPOLLIN, [this](uint32_t) { accept(); });
  }
  ~Service() {
    loop.unwatch(listen_watch);
    for (auto& [fd, peer] : peers)
      if (peer.watch) loop.unwatch(peer.watch);
  }
  void accept() {
    base::Result<os::Accepted> taken = os::accept_tcp(listener.fd.get());
    if (!taken.ok() || !taken->fd.valid()) return;
    int fd = taken->fd.get();
    ++connections;
    peers[fd].fd = std::move(taken->fd);
    peers[fd].silent = kind == Kind::kSilent || (kind == Kind::kSilentOnce && connections == 1);
    peers[fd].watch = *loop.watch(fd, EPOLLIN, [this, fd](uint32_t) { read(fd); });
    if (kind == Kind::kGarbage) say(fd, "SSH-2.0-OpenSSH_9.2\r\n");
    if (kind == Kind::kHangsUp) close(fd);
  }
  void read(int fd) {
    char buffer[512];
    os::IoStep step = os::read_step(fd, buffer, sizeof buffer);
    if (step.kind == os::IoStep::kWouldBlock) return;
    if (step.kind != os::IoStep::kBytes) return close(fd);
    Peer& peer = peers[fd];
    peer.in.append(buffer, step.bytes);
    for (size_t end; !peer.silent && (end = peer.in.find('\n')) != std::string::npos;) {
      std::string line = peer.in.substr(0, end);
      peer.in.erase(0, end + 1);
      said.push_back(line);
      if (!answer(fd, line)) return;
    }
  }
  bool answer(int fd, const std::string& line) {
    if (line.starts_with("CLIENT PROTOCOL ")) return say(fd, "SERVER PROTOCOL 2\n"), true;
    if (line.starts_with("TIMEOUT ")) return say(fd, "OK\n"), true;
    if (line == "SET FORMAT json") return say(fd, kind == Kind::kText ? "ERROR: Unknown command SET FORMAT json\n" : "OK\n"), true;
    if (line != "VERBOSE STATUS") return say(fd, "ERROR: Unknown command " + line + "\n"), true;
    if (kind == Kind::kEndless) {
      loop.rewatch(peers[fd].watch, EPOLLIN | EPOLLOUT);
      loop.unwatch(peers[fd].watch);
      peers[fd].watch = *loop.watch(fd, EPOLLOUT, [this, fd](uint32_t) { say(fd, std::string(1 << 16, ' ')); });
      return false;
    }
    std::string text = kind == Kind::kText ? "NCCL version 2.26.2\nJob summary\n\nErrors\n======\n\nWarnings\n========\n\n"
                                           : R"({"nccl_version": "2.29.1"})";
    if (kind == Kind::kCutOff) text = text.substr(0, 12);
    if (kind == Kind::kSlow) {
      pieces = text;
      timer = loop.every(os::milliseconds(1), [this, fd] {
        if (!pieces.empty()) say(fd, pieces.substr(0, 1));
        pieces = pieces.empty() ? "" : pieces.substr(1);
        if (pieces.empty()) {
          loop.cancel(timer);
          close(fd);
        }
      });
      return false;
    }
    say(fd, text);
    close(fd);
    return false;
  }
  void say(int fd, const std::string& text) { os::write_step(fd, text.data(), text.size()); }
  void close(int fd) {
    if (peers[fd].watch) loop.unwatch(peers[fd].watch);
    peers.erase(fd);
  }

  struct Peer {
    os::Fd fd;
    os::WatchId watch = 0;
    std::string in;
    bool silent = false;
  };
  os::Loop& loop;
  Kind kind;
  os::Listener listener;
  os::WatchId listen_watch = 0;
  os::TimerId timer = 0;
  std::string pieces;
  std::map<int, Peer> peers;
  std::vector<std::string> said;
  int connections = 0;
};

class RasClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    loop_ = std::move(*os::Loop::create());
  }
  base::Result<RasAnswer> ask(std::vector<os::Endpoint> endpoints, int deadline_ms = 5000) {
    std::optional<base::Result<RasAnswer>> result;
    int calls = 0;
    RasClient client(*loop_, std::move(endpoints), {.deadline = os::milliseconds(deadline_ms), .patience = os::milliseconds(40)},
                     [&](base::Result<RasAnswer> answer) {
                       result = std::move(answer);
                       ++calls;
                     });
    os::Mono end = os::mono_now() + std::chrono::seconds(10);
    while (!result && os::mono_now() < end) loop_->poll(os::milliseconds(10));
    PHALANX_CHECK(result);
    for (int i = 0; i < 3; ++i) loop_->poll(os::milliseconds(1));
    EXPECT_EQ(calls, 1);
    return std::move(*result);
  }
  base::Result<RasAnswer> ask(Service::Kind kind, int deadline_ms = 5000) {
    service_ = std::make_unique<Service>(*loop_, kind);
    return ask(std::vector<os::Endpoint>{service_->listener.endpoint}, deadline_ms);
  }
  void TearDown() override { service_.reset(); }
  std::unique_ptr<os::Loop> loop_;
  std::unique_ptr<Service> service_;
};

TEST_F(RasClientTest, AsksAsNcclsOwnClientDoes) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kWell);
  ASSERT_TRUE(answer.ok()) << answer.error().render();
  EXPECT_TRUE(answer->json);
  EXPECT_EQ(answer->text, R"({"nccl_version": "2.29.1"})");
  EXPECT_EQ(service_->said, (std::vector<std::string>{"CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"}));
}

TEST_F(RasClientTest, AnOlderOneAnswersInText) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kText);
  ASSERT_TRUE(answer.ok()) << answer.error().render();
  EXPECT_FALSE(answer->json);
  EXPECT_TRUE(answer->text.starts_with("NCCL version 2.26.2"));
}

TEST_F(RasClientTest, ASlowOneIsWaitedFor) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kSlow);
  ASSERT_TRUE(answer.ok()) << answer.error().render();
  EXPECT_EQ(answer->text, R"({"nccl_version": "2.29.1"})");
}

TEST_F(RasClientTest, AProcessThatIsStoppedIsPassedOver) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kSilentOnce);
  ASSERT_TRUE(answer.ok()) << answer.error().render();
  EXPECT_EQ(service_->connections, 2);
}

TEST_F(RasClientTest, SilenceEndsAtTheDeadline) {
  os::Mono begin = os::mono_now();
  base::Result<RasAnswer> answer = ask(Service::Kind::kSilent, 200);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, base::ErrorKind::kTimeout);
  EXPECT_LT(os::mono_now() - begin, std::chrono::seconds(2));
}

TEST_F(RasClientTest, WhatIsNotRasIsToldApart) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kGarbage);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, base::ErrorKind::kConfig);
  EXPECT_EQ(answer.error().cause, "it said \"SSH-2.0-OpenSSH_9.2\"");
  answer = ask(Service::Kind::kHangsUp);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("closed the connection"), std::string::npos);
}

TEST_F(RasClientTest, ACutOffOrEndlessAnswerIsRefused) {
  base::Result<RasAnswer> answer = ask(Service::Kind::kCutOff);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "the answer of NCCL's RAS is cut off");
  answer = ask(Service::Kind::kEndless);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "the answer of NCCL's RAS is larger than 32 MiB");
}

TEST_F(RasClientTest, NobodyThereIsUnreachable) {
  os::Endpoint closed = os::listen_tcp({"127.0.0.1", 0})->endpoint;  // closed again
  base::Result<RasAnswer> answer = ask({{"::1", closed.port}, closed});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, base::ErrorKind::kUnreachable);
  service_ = std::make_unique<Service>(*loop_, Service::Kind::kWell);
  EXPECT_TRUE(ask({closed, service_->listener.endpoint}).ok()) << "the next address is tried";
  EXPECT_FALSE(ask_ras({closed}, {}).ok());
}

TEST(RasEndpoints, AreReadFromNcclsVariable) {
  EXPECT_EQ(*ras_endpoints(""), (std::vector<os::Endpoint>{{"::1", 28028}, {"127.0.0.1", 28028}}));
  EXPECT_EQ(*ras_endpoints("localhost:5000"), (std::vector<os::Endpoint>{{"::1", 5000}, {"127.0.0.1", 5000}}));
  EXPECT_EQ(*ras_endpoints("10.0.0.1:77"), (std::vector<os::Endpoint>{{"10.0.0.1", 77}}));
  EXPECT_EQ(*ras_endpoints("[fd00::1]:77"), (std::vector<os::Endpoint>{{"fd00::1", 77}}));
  for (std::string_view bad : {"10.0.0.1", "gpu01:77", "10.0.0.1:0", "10.0.0.1:x", ":77"}) EXPECT_FALSE(ras_endpoints(bad).ok()) << bad;
}

}  // namespace
}  // namespace phalanx::machine
