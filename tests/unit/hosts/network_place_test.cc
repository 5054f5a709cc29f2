#include "hosts/connect/network_place.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hosts/connect/openssh.h"
#include "os/files.h"
#include "os/process.h"

namespace phalanx::hosts {
namespace {

std::string control_path(const std::string& place) {
  OpensshOptions options;
  options.control_folder = "/run/sockets";
  options.place = place;
  Launch launch = OpensshTransport(options).launch({"h1", "h1", 0}, 0);
  auto at = std::find_if(launch.argv.begin(), launch.argv.end(), [](const std::string& word) { return word.starts_with("ControlPath="); });
  return at == launch.argv.end() ? "" : *at;
}

TEST(NetworkPlace, AConnectionIsSharedWithinOnePlaceOnly) {
  EXPECT_EQ(control_path("here"), control_path("here"));
  EXPECT_NE(control_path("here"), control_path("there"));
}

TEST(NetworkPlace, ChangesWithTheFilesThatSayWhereANameLeads) {
  std::string home = std::filesystem::temp_directory_path() / "phalanx-place-XXXXXX", before = os::environment_value("HOME");
  ASSERT_TRUE(::mkdtemp(home.data()));
  ::setenv("HOME", home.c_str(), 1);
  std::string none = network_place();
  EXPECT_EQ(none, network_place());
  std::filesystem::create_directory(home + "/.ssh");
  std::ofstream(home + "/.ssh/config") << "Host h1\n  HostName 10.77.0.1\n";
  std::string one = network_place();
  std::ofstream(home + "/.ssh/config") << "Host h1\n  HostName 10.78.0.1\n";
  std::string other = network_place();
  EXPECT_NE(none, one);
  EXPECT_NE(one, other);
  ::setenv("HOME", before.c_str(), 1);
  std::filesystem::remove_all(home);
}

TEST(NetworkPlace, IsAnotherInAnotherNetworkNamespace) {
  std::string here = network_place();
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(::unshare(CLONE_NEWNET) != 0 ? 77 : network_place() == here ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace phalanx::hosts
