#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "machine/gpu/cuda_order.h"
#include "machine/identity.h"
#include "machine/network/sockets.h"
#include "machine/network/tcp_sockets.h"
#include "machine/small_files.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

std::string tree(std::initializer_list<std::string> folders) {
  std::string root = scratch::folder("host-test");
  for (const std::string& f : folders) EXPECT_TRUE(os::make_folders(root + f).ok());
  return root;
}

TEST(Gpus, AreCountedFromTheDriverElseFromTheirDevices) {
  EXPECT_EQ(count_gpus(tree({"/proc/driver/nvidia/gpus/0000:01:00.0", "/proc/driver/nvidia/gpus/0000:41:00.0", "/dev/nvidia0"})), 2u);
  EXPECT_EQ(count_gpus(tree({"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3x"})), 2u);
  EXPECT_EQ(count_gpus(tree({"/dev"})), 0u);
}

TEST(Gpus, VisibleDevicesEndAtTheFirstInvalidOne) {
  EXPECT_EQ(count_selected("0,1", 4), 2u);
  EXPECT_EQ(count_selected("", 4), 0u);
  EXPECT_EQ(count_selected("-1", 4), 0u);
  EXPECT_EQ(count_selected("0,7,1", 4), 1u);
  EXPECT_EQ(count_selected("0, 2 ,3", 4), 3u);
  EXPECT_EQ(count_selected("GPU-8932f937,1", 4), 1u);
  EXPECT_EQ(count_selected("GPU-8932f937,GPU-addf", 4), 2u);
  EXPECT_EQ(count_selected("0,2,0", 4), 0u);
  EXPECT_EQ(count_selected("NoDevFiles", 4), 0u);
}

TEST(SmallFiles, NamesOfAFolderAreSortedWithoutHiddenOnes) {
  const std::string folder = tree({"/b", "/a", "/.c"});
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names_in(folder, 1).size(), 1u);
  EXPECT_TRUE(names_in(folder + "/none").empty());
}

TEST(Identity, ThisMachine) {
  Identity id = identify("", nullptr);
  EXPECT_FALSE(id.hostname.empty());
  EXPECT_GE(id.cpus, 1u);
  for (const os::InterfaceAddress& a : id.addresses) EXPECT_NE(a.address, "127.0.0.1");
}

TEST(Sockets, LinesOfProcNetTcp) {
  EXPECT_EQ(proc_net_forms({"127.0.0.1", 8080})[0], "0100007F:1F90");
  EXPECT_EQ(proc_net_forms({"10.77.0.1", 29500})[1], "0000000000000000FFFF000001004D0A:733C");
  EXPECT_EQ(proc_net_forms({"::1", 80})[0], "00000000000000000000000001000000:0050");
  const char* line =
      "   1: 0200A8C0:D431 0100007F:1F90 01 00000000:00000000 02:000004F2 00000000  1000        0 123456 2 0000000000000000 20";
  EXPECT_EQ(match_tcp_line(line, "0100007F:1F90"), 123456u);
  EXPECT_EQ(match_tcp_line(line, "0100007F:1F91"), 0u);
  EXPECT_EQ(match_tcp_line("  sl  local_address rem_address   st", "0100007F:1F90"), 0u);
  EXPECT_EQ(match_tcp_line("", "x"), 0u);
}

TEST(Sockets, ARealConnectionIsFoundInItsProcess) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    base::Result<os::Listener> listener = os::listen_tcp({address, 0});
    if (!listener.ok()) continue;  // a machine without IPv6
    const os::Endpoint endpoint = listener->endpoint;
    EXPECT_TRUE(sockets_to(endpoint).empty());
    os::Fd client = os::connect_tcp_start(endpoint).value();
    std::set<uint64_t> inodes;
    for (int i = 0; i < 200 && inodes.empty(); ++i) inodes = sockets_to(endpoint);
    ASSERT_EQ(inodes.size(), 1u) << address;
    EXPECT_EQ(sockets_in_tables(endpoint), inodes) << "the tables say the same";
    std::optional<std::set<uint64_t>> told = established_to(endpoint);
    if (told) {
      EXPECT_EQ(*told, inodes);
    } else {
      std::printf("this kernel has no inet_diag: only its tables were read\n");
    }
    const std::string spelling = endpoint.address == "::1" ? "0:0:0:0:0:0:0:1" : "::ffff:127.0.0.1";
    EXPECT_EQ(sockets_to({spelling, endpoint.port}), inodes) << "another spelling";
    EXPECT_TRUE(holds_socket({::getpid()}, inodes));
    EXPECT_FALSE(holds_socket({1}, inodes));
  }
}

}  // namespace
}  // namespace phalanx::machine
