#include "logs/nccl/log.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "os/files.h"

namespace phalanx::logs {
namespace {

NcclTopology read(std::string_view text, const NcclLimits& limits = {}) {
  NcclLog log(limits);
  uint64_t number = 0;
  for (std::string_view line : base::split_lines(text)) log.line(line, ++number);
  return log.finish();
}

NcclTopology read_file(const std::string& name) {
  base::Result<std::string> text = os::read_file(PHALANX_TEST_DATA "/nccl/" + name, 1 << 20);
  EXPECT_TRUE(text.ok()) << name;
  return text.ok() ? read(*text) : NcclTopology{};
}

TEST(NcclLine, FindsARecordBehindWhatALauncherWrote) {
  for (std::string_view before : {"", "[rank3]:", "[1,0]<stdout>:", "10.0.0.2: ", "[2026-11-21 07:31:02] ", "[default3]:"}) {
    std::string line = std::string(before) + "gpu-01.a:533:1765 [2] NCCL INFO Connected all rings\r\n";
    std::vector<NcclRecord> records = nccl_records(line);
    ASSERT_EQ(records.size(), 1u) << line;
    EXPECT_EQ(records[0].host, "gpu-01.a");
    EXPECT_EQ(records[0].pid, 533);
    EXPECT_EQ(records[0].tid, 1765);
    EXPECT_EQ(records[0].device, 2);
    EXPECT_EQ(records[0].message, "Connected all rings");
  }
}

TEST(NcclLine, ReadsWarningsOfAllVersions) {
  for (std::string_view line :
       {"gpu1:53:267 [-1] misc/socket.cc:484 NCCL WARN socketStart: Connect failed",
        "[2026-11-21 07:31:02] gpu1:53:267 [-1] misc/socket.cc:484 (ncclSocketTryAccept) NCCL WARN socketStart: Connect failed"}) {
    std::vector<NcclRecord> records = nccl_records(line);
    ASSERT_EQ(records.size(), 1u) << line;
    EXPECT_EQ(records[0].level, NcclRecord::Level::kWarn);
    EXPECT_EQ(records[0].place, "misc/socket.cc:484");
    EXPECT_EQ(records[0].message, "socketStart: Connect failed");
    EXPECT_EQ(records[0].device, -1);
  }
}

TEST(NcclLine, TwoRecordsInOneLineAreTwo) {
  std::vector<NcclRecord> records = nccl_records("a:1:2 [0] NCCL INFO comm 0x1 - Init [b:3:4 [1] NCCL INFO Connected all trees");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].message, "comm 0x1 - Init [");
  EXPECT_EQ(records[1].message, "Connected all trees");
  EXPECT_EQ(records[1].pid, 3);
}

TEST(NcclLine, OtherLinesAreNone) {
  for (std::string_view line :
       {"", "NCCL INFO", "RuntimeError: NCCL error in: ../torch/csrc", "x [0] NCCL INFO y", "a:b:2 [0] NCCL INFO y", ":1:2 [0] NCCL INFO y",
        "a:1:2 [0 NCCL INFO y", "NCCL version is old", "a:1:99999999999999999999 [0] NCCL INFO y"})
    EXPECT_TRUE(nccl_records(line).empty()) << line;
}

TEST(NcclLog, Version210HasNamesOnlyAtTheEnd) {
  NcclTopology t = read_file("healthy_2.10.log");
  ASSERT_EQ(t.communicators.size(), 1u);
  const NcclCommunicator& c = t.communicators[0];
  EXPECT_EQ(c.size, 4);
  ASSERT_EQ(c.ranks.size(), 4u);
  EXPECT_EQ(c.ring, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(c.rings, 2);
  for (const auto& [n, rank] : c.ranks) {
    EXPECT_TRUE(rank.complete && rank.rings && rank.trees && rank.announced && !rank.started) << n;
    EXPECT_EQ(rank.channels, 2);
    EXPECT_EQ(t.processes[rank.process].host, n < 2 ? "nodea" : "nodeb");
    EXPECT_EQ(t.processes[rank.process].network, "IB");
    EXPECT_EQ(t.processes[rank.process].ib_devices, (std::vector<std::string>{"mlx5_0:1/IB", "mlx5_1:1/IB"}));
  }
  EXPECT_EQ(c.ranks.at(2).bus_id, "1b000");
  EXPECT_EQ(c.ranks.at(2).tree, "3/0/-1->2->-1");
  const NcclEdge& net = c.edges.at({1, 2, "NET/IB/1/GDRDMA"});
  EXPECT_EQ(net.sent, 2u);
  EXPECT_EQ(net.received, 2u);
  EXPECT_EQ(c.edges.at({0, 1, "P2P/IPC/read"}).sent, 3u);
  EXPECT_EQ(t.versions, (std::vector<std::string>{"2.10.3+cuda11.3"}));
  EXPECT_EQ(t.left_out, 0u);
}

TEST(NcclLog, Version218OverSockets) {
  NcclTopology t = read_file("healthy_2.18.log");
  ASSERT_EQ(t.communicators.size(), 1u);
  const NcclCommunicator& c = t.communicators[0];
  EXPECT_EQ(c.id, "0xc40540e13bf8d8f2");
  ASSERT_EQ(c.ranks.size(), 2u);
  EXPECT_EQ(c.edges.size(), 2u);
  EXPECT_EQ(c.edges.at({1, 0, "NET/Socket/0"}).received, 3u);
  const NcclProcess& p = t.processes[c.ranks.at(1).process];
  EXPECT_EQ(p.bootstrap_interface, "bond0");
  EXPECT_EQ(p.bootstrap_address, "172.16.12.7");
  EXPECT_EQ(p.socket_interfaces, (std::vector<std::string>{"bond0:172.16.12.7<0>"}));
  EXPECT_TRUE(p.ib_none);
  EXPECT_EQ(c.ranks.at(1).nvls_channels, 0);
  EXPECT_EQ(c.ranks.at(1).p2p_channels, 2);
}

TEST(NcclLog, Version227ConnectsLaterAndSplits) {
  NcclTopology t = read_file("healthy_2.27.log");
  ASSERT_EQ(t.communicators.size(), 3u);
  const NcclCommunicator& world = t.communicators[0];
  EXPECT_EQ(world.id, "0x2fb902677fd5202e");
  EXPECT_EQ(world.function, "ncclCommInitRankConfig");
  ASSERT_EQ(world.ranks.size(), 4u);
  for (const auto& [n, rank] : world.ranks) {
    EXPECT_TRUE(rank.started && rank.complete && rank.rings && rank.destroyed) << n;
    EXPECT_EQ(rank.nodes, 2);
    EXPECT_EQ(rank.local_ranks, 2);
    EXPECT_EQ(rank.pxn, true);
    EXPECT_DOUBLE_EQ(rank.init_seconds, 1.16);
    EXPECT_DOUBLE_EQ(rank.bootstrap_seconds, 0.93);
    EXPECT_EQ(t.processes[rank.process].version, "2.27.3+cuda12.8");
  }
  const NcclEdge& pxn = world.edges.at({1, 2, "NET/IB/0/GDRDMA"});
  EXPECT_EQ(pxn.proxy, 0);
  EXPECT_EQ(pxn.sent, 5u);
  EXPECT_EQ(pxn.received, 5u);
  EXPECT_EQ(world.edges.at({2, 3, "P2P/CUMEM"}).sent, 15u);
  for (size_t i : {1, 2}) {
    EXPECT_EQ(t.communicators[i].id, "0x2fb902677fd5202e/split 1 color " + std::to_string(i - 1));
    ASSERT_EQ(t.communicators[i].ranks.size(), 2u);
    EXPECT_TRUE(t.communicators[i].ranks.at(1).complete);
  }
}

TEST(NcclLog, ARankThatNeverGotItsNameIsStillThere) {
  NcclTopology t = read(
      "a:1:9 [0] NCCL INFO Channel 00/02 :    0   1\n"
      "a:1:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
      "b:2:9 [0] NCCL INFO Trees [0] -1/-1/-1->1->0\n"
      "a:1:9 [0] NCCL INFO Channel 00/0 : 0[1000] -> 1[1000] [send] via NET/Socket/0\n"
      "a:1:9 [0] misc/socket.cc:50 NCCL WARN Timeout waiting for connection from b<4711>\n"
      "a:1:9 [0] misc/socket.cc:50 NCCL WARN Timeout waiting for connection from b<4711>\n"
      "a:1:9 [0] NCCL INFO transport.cc:34 -> 6\n");
  ASSERT_EQ(t.communicators.size(), 1u);
  const NcclCommunicator& c = t.communicators[0];
  EXPECT_EQ(c.id, "");
  ASSERT_EQ(c.ranks.size(), 2u);
  EXPECT_TRUE(c.ranks.at(0).announced);
  EXPECT_FALSE(c.ranks.at(0).rings);
  EXPECT_FALSE(c.ranks.at(1).announced);
  EXPECT_EQ(c.edges.at({0, 1, "NET/Socket/0"}).received, 0u);
  ASSERT_EQ(t.warnings.size(), 1u);
  EXPECT_EQ(t.warnings[0].count, 2);
  EXPECT_EQ(t.warnings[0].line, 5u);
  EXPECT_EQ(t.processes[0].first_error, "transport.cc:34 -> 6");
}

// One process with several GPUs, each initialised by a thread; until 2.14 communicators have no id, so that ranks find their place by
// number and size.
TEST(NcclLog, TwoCommunicatorsOfOneSizeWithoutIds) {
  std::string text;
  for (int turn = 0; turn < 2; ++turn)
    for (int rank = 0; rank < 2; ++rank)
      text += "a:1:" + std::to_string(10 + rank) + " [" + std::to_string(rank) + "] NCCL INFO comm 0x7f" + std::to_string(turn) +
              std::to_string(rank) + " rank " + std::to_string(rank) + " nranks 2 cudaDev " + std::to_string(rank) +
              " busId 1000 - Init COMPLETE\n";
  NcclTopology t = read(text + "a:1:11 [1] NCCL INFO comm 0x701 rank 1 nranks 2 cudaDev 1 busId 1000 - Abort COMPLETE\n" +
                        "a:1:11 [1] NCCL INFO comm 0x7f11 rank 1 nranks 2 cudaDev 1 busId 1000 - Abort COMPLETE\n");
  ASSERT_EQ(t.communicators.size(), 2u);
  EXPECT_EQ(t.communicators[1].ranks.size(), 2u);
  EXPECT_FALSE(t.communicators[0].ranks.at(1).aborted);
  EXPECT_TRUE(t.communicators[1].ranks.at(1).aborted);
}

TEST(NcclLog, TornAndForeignLinesDoNoHarm) {
  NcclTopology t = read(
      "gpu1:1:9 [0] NCCL INFO Bootstrap : Using ib0:fe80::1%ib0<0>\n"
      "gpu1:1:9 [0] NCCL INFO Channel 00 : 0[1agpu1:1:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
      "gpu1:1:9 [0] NCCL INFO Channel\n"
      "gpu1:1:9 [0] NCCL INFO Channel 00/0 : 0[\n"
      "gpu1:1:9 [0] NCCL INFO comm 0x1 rank 9 nranks 4 cudaDev 0 busId 1 - Init COMPLETE\n"
      "gpu1:1:9 [0] NCCL INFO comm 0x1 rank 99999999999999 nranks 4 - Init COMPLETE\n"
      "gpu1:1:9 [0] NCCL INFO NET/IB : Using [ [x [9\n"
      "gpu1:1:9 [0] NCCL INFO Init timings: rank 0 nranks 4 total\n"
      "gpu1:1:9 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n");
  ASSERT_EQ(t.processes.size(), 1u) << "a line that began inside another is its process's all the same";
  EXPECT_EQ(t.processes[0].bootstrap_interface, "ib0");
  EXPECT_EQ(t.processes[0].bootstrap_address, "fe80::1%ib0");
  EXPECT_EQ(t.processes[0].settings.at("NCCL_IB_TIMEOUT"), "22");
  ASSERT_EQ(t.communicators.size(), 1u);
  EXPECT_EQ(t.communicators[0].ranks.count(9), 0u);
}

TEST(NcclLog, CountsWhatIsBeyondItsLimits) {
  std::string text;
  for (int i = 0; i < 50; ++i) {
    std::string n = std::to_string(i);
    text += "h" + n + ":" + n + ":1 [0] NCCL INFO comm 0x1 rank " + n + " nranks 64 cudaDev 0 nvmlDev 0 busId 1 commId 0xa" + n +
            " - Init START\nh0:0:1 [0] NCCL INFO Channel 0/0 : 0[0] -> " + n + "[0] [send] via NET/IB/0\n" +
            "h0:0:1 [0] x.cc:1 NCCL WARN " + n + "\n";
  }
  NcclTopology t = read(text, {.processes = 9, .communicators = 5, .ranks = 3, .edges = 4, .warnings = 2, .text = 64});
  EXPECT_LE(t.processes.size(), 9u);
  EXPECT_LE(t.communicators.size(), 5u);
  EXPECT_EQ(t.warnings.size(), 2u);
  EXPECT_GT(t.left_out, 100u);
}

TEST(NcclLog, RcclSaysItsCommunicatorBehindTheTransport) {
  NcclTopology t = read("a:1:9 [1] NCCL INFO Channel 00/0 : 0[c000] -> 1[d000] via P2P/direct pointer comm 0x56af44d4d6d0 nRanks 04\n");
  ASSERT_EQ(t.communicators.size(), 1u);
  EXPECT_EQ(t.communicators[0].edges.count({0, 1, "P2P/direct pointer"}), 1u);
}

TEST(NcclLog, CountsAlgorithms) {
  NcclTopology t = read(
      "a:1:9 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
      "a:1:9 [0] NCCL INFO AllReduce: 8192 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n");
  EXPECT_EQ(t.algorithms, (std::map<std::string, uint64_t>{{"AllReduce RING/LL", 2}}));
}

}  // namespace
}  // namespace phalanx::logs
