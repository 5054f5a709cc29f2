#include "os/net.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace phalanx::os {
namespace {

TEST(Net, APortIsFreeOnceItsListenerIsStoppedThoughAForkedChildHoldsACopy) {
  Listener listener = listen_tcp({"127.0.0.1", 0}).value();
  const Endpoint where = listener.endpoint;
  pid_t child = ::fork();
  if (child == 0) {
    ::poll(nullptr, 0, 60'000);
    ::_exit(0);
  }
  stop_listening(listener.fd);
  EXPECT_FALSE(listener.fd.valid());
  base::Result<Listener> again = listen_tcp(where);
  EXPECT_TRUE(again.ok()) << again.error().render();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace phalanx::os
