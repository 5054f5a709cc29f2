// The InfiniBand probe over trees that look like /sys/class/infiniband of real cards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "machine/infiniband/text.h"
#include "machine/probe.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

class Tree {
 public:
  Tree() {
    root_ = scratch::folder("ib-test");
    EXPECT_FALSE(root_.empty());
  }
  void put(const std::string& path, const std::string& text) {
    std::string full = root_ + path;
    ASSERT_TRUE(os::make_folders(full.substr(0, full.rfind('/'))).ok());
    std::ofstream(full) << text << "\n";
  }
  void port(const std::string& device, const std::string& state, const std::string& phys, const std::string& layer, const std::string& rate,
            const std::string& sm_lid) {
    std::string p = "/sys/class/infiniband/" + device + "/ports/1";
    put("/sys/class/infiniband/" + device + "/fw_ver", "20.35.1012");
    put("/sys/class/infiniband/" + device + "/board_id", "MT_0000000223");
    put(p + "/state", state);
    put(p + "/phys_state", phys);
    put(p + "/link_layer", layer);
    put(p + "/rate", rate);
    put(p + "/lid", "0x1f");
    put(p + "/sm_lid", sm_lid);
    put(p + "/pkeys/0", "0xffff");
    put(p + "/counters/symbol_error", "12");
    put(p + "/counters/port_rcv_data", "999999");
    put(p + "/hw_counters/local_ack_timeout_err", "3");
  }
  void gid(const std::string& device, int index, const std::string& gid, const std::string& type, const std::string& interface) {
    std::string p = "/sys/class/infiniband/" + device + "/ports/1", n = std::to_string(index);
    put(p + "/gids/" + n, gid);
    put(p + "/gid_attrs/types/" + n, type);
    put(p + "/gid_attrs/ndevs/" + n, interface);
  }
  InfinibandFacts probe() {
    ProbeRequest request;
    request.root = root_;
    return probe_infiniband(request);
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST(Infiniband, APortThatWaitsForItsSubnetManager) {
  Tree tree;
  tree.port("mlx5_0", "2: INIT", "5: LinkUp", "InfiniBand", "200 Gb/sec (4X HDR)", "0x0");
  tree.put("/sys/module/mlx5_core/version", "x");
  tree.put("/sys/module/nvidia_peermem/version", "x");
  tree.put("/dev/infiniband/uverbs0", "");
  tree.put("/usr/lib64/libibverbs.so.1", "");
  InfinibandFacts f = tree.probe();
  ASSERT_EQ(f.devices.size(), 1u);
  ASSERT_EQ(f.devices[0].ports.size(), 1u);
  const IbPort& p = f.devices[0].ports[0];
  EXPECT_EQ(p.state, "INIT");
  EXPECT_EQ(p.phys_state, "LinkUp");
  EXPECT_EQ(p.rate_gbps, 200);
  EXPECT_EQ(p.lid, 31);
  EXPECT_EQ(p.sm_lid, 0);
  EXPECT_EQ(p.counters, (std::map<std::string, int64_t>{{"symbol_error", 12}, {"local_ack_timeout_err", 3}}));
  EXPECT_TRUE(f.uverbs && f.peermem);
  EXPECT_EQ(f.libibverbs, "/usr/lib64/libibverbs.so.1");
  EXPECT_EQ(f.modules, (std::vector<std::string>{"mlx5_core", "nvidia_peermem"}));
}

TEST(Infiniband, APortWithoutACableMixedLinkLayersAndALowerRate) {
  Tree tree;
  tree.port("mlx5_0", "4: ACTIVE", "5: LinkUp", "InfiniBand", "100 Gb/sec (4X EDR)", "0x1");
  tree.port("mlx5_2", "1: DOWN", "2: Polling", "InfiniBand", "10 Gb/sec (4X SDR)", "0x0");
  tree.port("mlx5_10", "4: ACTIVE", "5: LinkUp", "Ethernet", "25 Gb/sec (1X EDR)", "0x0");
  InfinibandFacts f = tree.probe();
  ASSERT_EQ(f.devices.size(), 3u);
  EXPECT_EQ(f.devices[1].name, "mlx5_2") << "numbers in order";
  EXPECT_EQ(f.devices[1].ports[0].phys_state, "Polling");
  EXPECT_EQ(f.devices[2].ports[0].link_layer, "Ethernet");
  EXPECT_EQ(f.devices[0].ports[0].rate_gbps, 100);
  EXPECT_FALSE(f.uverbs);
  EXPECT_EQ(f.libibverbs, "");
}

TEST(Infiniband, RoceGidsWithTheirTypesAndInterfaces) {
  Tree tree;
  tree.port("mlx5_0", "4: ACTIVE", "5: LinkUp", "Ethernet", "100 Gb/sec (4X EDR)", "0x0");
  tree.gid("mlx5_0", 0, "fe80:0000:0000:0000:b859:9fff:fe03:0410", "IB/RoCE v1", "ens1");
  tree.gid("mlx5_0", 1, "fe80:0000:0000:0000:b859:9fff:fe03:0410", "RoCE v2", "ens1");
  tree.gid("mlx5_0", 2, "0000:0000:0000:0000:0000:ffff:0a01:000b", "IB/RoCE v1", "ens1");
  tree.gid("mlx5_0", 3, "0000:0000:0000:0000:0000:ffff:0a01:000b", "RoCE v2", "ens1");
  tree.gid("mlx5_0", 4, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
  InfinibandFacts f = tree.probe();
  const std::vector<IbGid>& gids = f.devices[0].ports[0].gids;
  ASSERT_EQ(gids.size(), 4u);
  EXPECT_EQ(gids[3].index, 3);
  EXPECT_EQ(gids[3].type, "RoCE v2");
  EXPECT_EQ(gids[3].interface, "ens1");
  EXPECT_TRUE(is_ipv4_gid(gids[3].gid) && is_link_local_gid(gids[1].gid));
}

TEST(Infiniband, AMachineWithoutAndATreeOfNonsense) {
  Tree none;
  EXPECT_TRUE(none.probe().devices.empty());
  Tree tree;
  tree.port("mlx5_0", "", "garbage", std::string(3000, 'x'), "-1 Gb", "99999999999999999999999");
  tree.put("/sys/class/infiniband/mlx5_0/ports/notaport/state", "4: ACTIVE");
  tree.gid("mlx5_0", 0, "no gid", "", "");
  InfinibandFacts f = tree.probe();
  ASSERT_EQ(f.devices.size(), 1u);
  ASSERT_EQ(f.devices[0].ports.size(), 1u);
  EXPECT_EQ(f.devices[0].ports[0].rate_gbps, 0);
  EXPECT_EQ(f.devices[0].ports[0].sm_lid, 0);
  EXPECT_TRUE(f.devices[0].ports[0].gids.empty());
}

}  // namespace
}  // namespace phalanx::machine
