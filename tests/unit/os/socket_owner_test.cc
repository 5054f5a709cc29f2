#include "os/socket_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace phalanx::os {
namespace {

constexpr uid_t kStranger = 61'202;

class SocketOwner : public testing::TestWithParam<SocketOwners::Way> {
 protected:
  void listen(const std::string& address) {
    listener_ = listen_tcp({address, 0}).value();
    owners_ = SocketOwners::open(listener_.endpoint, GetParam()).value();
  }
  Fd connect(int family, const char* address) {
    Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET, v6.sin6_family = AF_INET6;
    v4.sin_port = v6.sin6_port = htons(listener_.endpoint.port);
    bool v4_given = family == AF_INET;
    EXPECT_EQ(::inet_pton(family, address, v4_given ? static_cast<void*>(&v4.sin_addr) : &v6.sin6_addr), 1);
    const sockaddr* to = v4_given ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
    EXPECT_EQ(::connect(fd.get(), to, v4_given ? sizeof(v4) : sizeof(v6)), 0);
    return fd;
  }
  // Who the next one waiting is.
  PeerOwner next() {
    pollfd ready{listener_.fd.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 5000), 1);
    accepted_ = accept_tcp(listener_.fd.get()).value();
    return owners_->of(accepted_.peer, local_endpoint(accepted_.fd.get()).value());
  }
  Listener listener_;
  std::optional<SocketOwners> owners_;
  Accepted accepted_;
};

TEST_P(SocketOwner, IsThisUserInEveryFamily) {
  for (auto [listens, family, dials] : {std::tuple{"127.0.0.1", AF_INET, "127.0.0.1"},
                                        {"127.0.0.9", AF_INET, "127.0.0.9"},
                                        {"127.0.0.1", AF_INET6, "::ffff:127.0.0.1"},
                                        {"::1", AF_INET6, "::1"}}) {
    if (std::string_view(listens) == "::1" && !listen_tcp({"::1", 0}).ok()) continue;  // a machine without IPv6
    listen(listens);
    Fd client = connect(family, dials);
    PeerOwner owner = next();
    EXPECT_EQ(owner.kind, PeerOwner::kUser) << listens << " " << dials;
    EXPECT_EQ(owner.uid, ::getuid());
    EXPECT_TRUE(owner.trusted());
  }
}

TEST_P(SocketOwner, IsAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be a second user";
  listen("127.0.0.1");
  pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(1);
    Fd client = connect(AF_INET, "127.0.0.1");
    ::pause();
  }
  PeerOwner owner = next();
  EXPECT_EQ(owner.kind, PeerOwner::kUser);
  EXPECT_EQ(owner.uid, kStranger);
  EXPECT_FALSE(owner.trusted());
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

// The kernel says that a socket without a process is root's, and of one in TIME_WAIT as well.
TEST_P(SocketOwner, IsNobodyOnceTheSocketIsClosed) {
  listen("127.0.0.1");
  connect(AF_INET, "127.0.0.1").reset();
  PeerOwner owner = next();
  EXPECT_EQ(owner.kind, PeerOwner::kGone);
  EXPECT_FALSE(owner.trusted());
}

TEST_P(SocketOwner, IsElsewhereForTheAddressOfAnotherMachine) {
  listen("127.0.0.1");
  PeerOwner owner = owners_->of({"192.0.2.77", 40'000}, listener_.endpoint);  // RFC 5737
  EXPECT_EQ(owner.kind, PeerOwner::kElsewhere);
  EXPECT_TRUE(owner.trusted());
  EXPECT_EQ(owners_->of({"127.0.0.77", 40'000}, listener_.endpoint).kind, PeerOwner::kGone);
}

INSTANTIATE_TEST_SUITE_P(Ways, SocketOwner, testing::Values(SocketOwners::Way::kBest, SocketOwners::Way::kTables),
                         [](const auto& way) { return way.param == SocketOwners::Way::kBest ? "Best" : "Tables"; });

}  // namespace
}  // namespace phalanx::os
