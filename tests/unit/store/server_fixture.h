// A store served inside the test, on the loopback, and clients that talk to it through real sockets. Everything runs on one
// thread: whoever waits for something turns the loop.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>

#include "requests.h"
#include "store/server.h"
#include "wire/challenge.h"

namespace phalanx::store {

inline constexpr std::string_view kKey = "0123456789abcdef0123456789abcdef";

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    auto loop = os::Loop::create();
    ASSERT_TRUE(loop.ok());
    loop_ = std::move(*loop);
    options_.key = kKey;
  }
  void serve() {
    auto listener = os::listen_tcp({"127.0.0.1", 0});
    ASSERT_TRUE(listener.ok());
    auto server = Server::start(*loop_, std::move(*listener), options_);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    server_->allow("127.0.0.1");
  }
  bool until(const std::function<bool()>& condition) {
    os::Mono end = os::mono_now() + std::chrono::seconds(10);
    while (!condition()) {
      if (os::mono_now() > end) return false;
      loop_->poll(std::chrono::milliseconds(10));
    }
    return true;
  }
  // Everything that is on its way is served.
  void settle() {
    for (int i = 0; i < 5; ++i) loop_->poll(std::chrono::milliseconds(1));
  }

  std::unique_ptr<os::Loop> loop_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

class Client {
 public:
  using Until = std::function<bool(const std::function<bool()>&)>;
  Client(const Server& server, Until until, const char* from = "127.0.0.1") : until_(std::move(until)) {
    fd_ = os::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::inet_pton(AF_INET, server.endpoint().address.c_str(), &address.sin_addr);
    address.sin_port = htons(server.endpoint().port);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_TRUE(os::set_nonblocking(fd_.get()).ok());
    endpoint = *os::local_endpoint(fd_.get());
  }
  void say(std::string_view bytes) {
    EXPECT_TRUE(until_([&] {
      os::IoStep step = os::write_step(fd_.get(), bytes.data(), bytes.size());
      if (step.kind == os::IoStep::kBytes) bytes.remove_prefix(step.bytes);
      return bytes.empty() || step.kind == os::IoStep::kEnd || step.kind == os::IoStep::kError;
    }));
  }
  // The next `size` bytes; fewer if the server hangs up or ten seconds pass.
  std::string hear(size_t size) {
    std::string out(size, '\0');
    size_t at = 0;
    until_([&] {
      os::IoStep step = os::read_step(fd_.get(), out.data() + at, size - at);
      if (step.kind == os::IoStep::kBytes) at += step.bytes;
      return at == size || step.kind == os::IoStep::kEnd || step.kind == os::IoStep::kError;
    });
    out.resize(at);
    return out;
  }
  std::string ask(std::string_view request, size_t answer_size) {
    say(request);
    return hear(answer_size);
  }
  // As a probe of an agent that holds `key`: what the server answers in the end. Checks the server's own proof against the true key.
  std::string prove(std::string_view key) {
    std::string nonce(wire::kNonceBytes, 'n');
    std::string answer = ask("PHLX" + nonce, 4 + wire::kNonceBytes + wire::kProofBytes);
    if (answer.size() < 4 + wire::kNonceBytes) return "no challenge";
    std::string theirs = answer.substr(4, wire::kNonceBytes), proof = answer.substr(4 + wire::kNonceBytes);
    EXPECT_TRUE(wire::proves(proof, wire::Side::kListener, kKey, nonce, theirs));
    return ask(wire::proof_of(wire::Side::kDialer, key, nonce, theirs), 3);
  }
  bool hears_nothing() {
    char byte;
    return os::read_step(fd_.get(), &byte, 1).kind == os::IoStep::kWouldBlock;
  }
  bool hung_up() { return hear(1).empty() && !hears_nothing(); }
  void leave() { fd_.reset(); }

  os::Endpoint endpoint;

 private:
  Until until_;
  os::Fd fd_;
};

}  // namespace phalanx::store
