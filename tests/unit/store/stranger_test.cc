// Another user of this machine, against the store: root becomes user 61202 in a child, which connects from the same host.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "server_fixture.h"

namespace phalanx::store {
namespace {

constexpr uid_t kStranger = 61'202;

class StoreStranger : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (::getuid() != 0) GTEST_SKIP() << "needs root, to be a second user";
  }
  // What a stranger's connection from `from` hears after it has sent `bytes`; "refused" if it is closed without a byte. The stranger stays
  // until it has heard something: `leaves` closes at once, so that no process holds its socket any more when the server looks.
  std::string attack(const std::string& bytes, const char* from = "127.0.0.1", bool leaves = false) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(kStranger, kStranger, kStranger) != 0 || ::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(1);
      os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      ::inet_pton(AF_INET, from, &address.sin_addr);
      if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) ::_exit(2);
      ::inet_pton(AF_INET, server_->endpoint().address.c_str(), &address.sin_addr);
      address.sin_port = htons(server_->endpoint().port);
      if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) ::_exit(3);
      if (::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) ::_exit(4);
      if (leaves) ::_exit(0);
      char heard[64];
      ssize_t n = ::read(fd.get(), heard, sizeof(heard));
      std::string said = n > 0 ? std::string(heard, static_cast<size_t>(n)) : "refused";
      ::_exit(::write(pipe[1], said.data(), said.size()) > 0 ? 0 : 5);
    }
    ::close(pipe[1]);
    int status = -1;
    if (leaves) EXPECT_EQ(::waitpid(child, &status, 0), child);  // before the server looks
    else EXPECT_TRUE(until([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    settle();
    EXPECT_EQ(status, 0);
    char said[64];
    ssize_t n = ::read(pipe[0], said, sizeof(said));
    ::close(pipe[0]);
    return n > 0 ? std::string(said, static_cast<size_t>(n)) : "";
  }
};

TEST_F(StoreStranger, ReadsAndWritesNothing) {
  serve();
  server_->allow("127.0.0.2");  // as an agent allows all addresses of its host
  auto worker = std::make_unique<Client>(*server_, [this](auto& condition) { return until(condition); });
  worker->say(greeting());
  worker->say(frame(1, "/default_pg/0//cuda//0/nccl_unique_id", "secret"));
  std::string set = greeting() + frame(1, "/default_pg/0//cuda//0/nccl_unique_id", "forged") + frame(13, uint32_t{7});
  EXPECT_EQ(attack(set), "refused");
  EXPECT_EQ(attack(set, "127.0.0.2"), "refused");
  EXPECT_EQ(attack(greeting() + frame(3, "/default_pg/0//cuda//0/nccl_unique_id")), "refused");
  EXPECT_EQ(attack(greeting() + frame(17)), "refused");
  EXPECT_EQ(attack("PHLX0123456789abcdef"), "refused") << "not even a challenge";
  EXPECT_EQ(server_->counters().foreign, 5u);
  EXPECT_EQ(worker->ask(frame(3, "/default_pg/0//cuda//0/nccl_unique_id"), 14), sized("secret"));
  EXPECT_EQ(server_->peers().size(), 1u);
}

// A socket that no process holds any more is root's for the kernel: the stranger connects, writes and is gone before the server looks.
TEST_F(StoreStranger, WhoIsGoneBeforeWeLookIsNotTakenForRoot) {
  serve();
  for (int i = 0; i < 20; ++i) attack(greeting() + frame(1, "/k", "forged"), "127.0.0.1", true);
  EXPECT_TRUE(until([&] { return server_->counters().accepted == 20; }));
  settle();
  EXPECT_EQ(server_->counters().keys, 0u);
  EXPECT_EQ(server_->counters().refused, 20u);
}

// An agent of root whose command runs its ranks as another user.
TEST_F(StoreStranger, AUserOfTheRunIsNone) {
  options_.admits_user = [](uid_t uid) { return uid == kStranger; };
  serve();
  EXPECT_EQ(attack(greeting() + frame(4, "n", int64_t{5})), i64(5));
  EXPECT_EQ(server_->counters().foreign, 0u);
}

}  // namespace
}  // namespace phalanx::store
