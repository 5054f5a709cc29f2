// Findings from NCCL logs: lines as NCCL writes them, healthy and broken.
#include "diagnosis/nccl/view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "codes/code.h"
#include "doctor/catalogue.h"
#include "logs/nccl/log.h"
#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

using doctor::Severity;

logs::NcclTopology read(std::string_view text) {
  logs::NcclLog log;
  uint64_t number = 0;
  for (std::string_view line : base::split_lines(text)) log.line(line, ++number);
  return log.finish();
}

std::vector<NcclFinding> judge(const std::string& text) {
  std::vector<NcclFinding> findings = judge_nccl(read(text));
  for (const NcclFinding& f : findings) {
    EXPECT_TRUE(codes::find(f.code)) << f.code;
    EXPECT_FALSE(f.evidence.english.empty() || f.evidence.chinese.empty()) << f.code;
  }
  return findings;
}

std::string codes(const std::string& text) {
  std::string all;
  for (const NcclFinding& f : judge(text)) all += (all.empty() ? "" : " ") + std::string(f.code);
  return all;
}

std::string file(const std::string& name) {
  base::Result<std::string> text = os::read_file(PHALANX_TEST_DATA "/nccl/" + name, 1 << 20);
  return text.ok() ? *text : "";
}

// A rank of a job of `size` ranks, two to a host.
struct Rank {
  int n = 0, size = 4;
  std::string interface = "eth0", net = "10.1", network = "IB", version = "2.21.5+cuda12.4", settings = "";
  int channels = 2;
  std::string host() const { return fmt::format("gpu{:02d}", n / 2 + 1); }
  std::string say(std::string_view message, int thread = 60) const {
    return fmt::format("{}:{}:{} [{}] NCCL INFO {}\n", host(), 100 + n, 100 + n + thread, n % 2, message);
  }
  std::string begin() const {
    std::string ib = network == "IB" ? say("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>") : say("NET/IB : No device found.");
    return say(fmt::format("Bootstrap : Using {}:{}.0.{}<0>", interface, net, n / 2 + 1)) + say("NCCL version " + version) + settings + ib +
           say("Using network " + network) + identity("Init START");
  }
  std::string identity(std::string_view end) const {
    return say(fmt::format("ncclCommInitRank comm 0x5{}a rank {} nranks {} cudaDev {} nvmlDev {} busId 1b000 commId 0xabc - {}", n, n, size,
                           n % 2, n % 2, end));
  }
  std::string meet() const {
    return say(fmt::format("comm 0x5{}a rank {} nRanks {} nNodes 2 localRanks 2 localRank {} MNNVL 0", n, n, size, n % 2));
  }
  std::string edge(int to, std::string_view transport, std::string_view side = "") const {
    return say(fmt::format("Channel 00/0 : {}[{}] -> {}[{}]{} via {}", side == " [receive]" ? to : n, 0, side == " [receive]" ? n : to, 0,
                           side, transport));
  }
  std::string finish() const {
    return say("Connected all rings") + say("Connected all trees") +
           say(fmt::format("{} coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer", channels)) +
           identity("Init COMPLETE");
  }
};

std::string all(const std::vector<Rank>& ranks, std::string (Rank::*part)() const) {
  std::string text;
  for (const Rank& r : ranks) text += (r.*part)();
  return text;
}

std::string connected(const std::vector<Rank>& ranks, std::string_view local = "P2P/CUMEM", std::string_view net = "NET/IB/0/GDRDMA") {
  std::string text;
  for (const Rank& r : ranks) {
    int next = (r.n + 1) % r.size, before = (r.n + r.size - 1) % r.size;
    text += r.n % 2 == 0 ? r.edge(next, local) + r.edge(before, net, " [receive]") : r.edge(next, net, " [send]");
  }
  return text;
}

std::vector<Rank> four() { return {{0}, {1}, {2}, {3}}; }

std::string healthy(const std::vector<Rank>& ranks, std::string_view local = "P2P/CUMEM", std::string_view net = "NET/IB/0/GDRDMA") {
  return all(ranks, &Rank::begin) + all(ranks, &Rank::meet) + connected(ranks, local, net) + all(ranks, &Rank::finish);
}

TEST(NcclView, HealthyLogsHaveNoFindings) {
  for (const char* name : {"healthy_2.10.log", "healthy_2.18.log", "healthy_2.27.log"}) {
    ASSERT_FALSE(file(name).empty());
    EXPECT_EQ(codes(file(name)), "") << name;
  }
  EXPECT_EQ(codes(healthy(four())), "");
}

TEST(NcclView, AMissingRankIsNamed) {
  std::vector<NcclFinding> f = judge(Rank{0}.begin() + Rank{1}.begin() + Rank{3}.begin());
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-INIT-MISSING");
  EXPECT_EQ(f[0].ranks, (std::vector<int>{2}));
  EXPECT_EQ(f[0].communicator, "0xabc");
  EXPECT_EQ(f[0].evidence.english, "3 of 4 ranks in these logs began to initialise NCCL, and none completed; missing: rank 2");
}

TEST(NcclView, LogsOfSomeRanksAreNotMissingRanks) {
  std::vector<Rank> one = {{0}};
  EXPECT_EQ(codes(healthy(one)), "");
}

TEST(NcclView, ARankThatStoppedOnTheWay) {
  std::vector<Rank> ranks = four();
  std::string text = all(ranks, &Rank::begin) + all(ranks, &Rank::meet) + connected({{0}, {1}, {3}}) + all({{0}, {1}, {3}}, &Rank::finish);
  std::vector<NcclFinding> f = judge(text);
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-INIT-STOPPED");
  EXPECT_EQ(f[0].ranks, (std::vector<int>{2}));
  EXPECT_EQ(f[0].hosts, (std::vector<std::string>{"gpu02"}));
  EXPECT_EQ(f[0].evidence.english, "rank 2: bootstrap complete, channels not yet announced; finished: rank 0–1, 3");
  EXPECT_EQ(codes(all(ranks, &Rank::begin)), "NCCL-INIT-STOPPED") << "all are there, and none came further";
}

TEST(NcclView, ChannelsThatAreNotConnected) {
  std::vector<Rank> ranks = four();
  std::string text = all(ranks, &Rank::begin) + all(ranks, &Rank::meet);
  std::vector<NcclFinding> f = judge(text + connected(ranks));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-CONNECT-STOPPED");
  EXPECT_EQ(f[0].ranks.size(), 4u);
  EXPECT_EQ(f[0].evidence.english, "rank 0–3: connecting channels");
  f = judge(text + connected({{0}, {1}, {3}}) + ranks[2].edge(3, "P2P/CUMEM"));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].evidence.english, "rank 0–3: connecting channels; connections announced by one side only: 1 → 2");
}

// Since 2.22 after Init COMPLETE, at the first collective.
TEST(NcclView, ConnectingLaterIsSeenToo) {
  std::vector<Rank> ranks = four();
  std::string text = all(ranks, &Rank::begin) + all(ranks, &Rank::meet);
  for (const Rank& r : ranks) text += r.identity("Init COMPLETE");
  EXPECT_EQ(codes(text), "") << "no collective has been called";
  EXPECT_EQ(codes(text + ranks[0].say("Channel 00/1 : 0[0] -> 2[0] [send] via NET/IB/0/GDRDMA/Shared")), "") << "a send needs no rings";
  std::vector<NcclFinding> f = judge(text + connected(ranks));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-CONNECT-STOPPED");
  EXPECT_EQ(f[0].evidence.english, "rank 0–3: connecting channels at the first collective");
  EXPECT_EQ(codes(text + connected(ranks) + all(ranks, &Rank::finish)), "");
}

TEST(NcclView, SocketsDespiteInfiniband) {
  std::vector<Rank> ranks = four();
  ranks[2].network = ranks[3].network = "Socket";
  std::vector<NcclFinding> f = judge(healthy(ranks));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-SOCKET-DESPITE-IB");
  EXPECT_EQ(f[0].hosts, (std::vector<std::string>{"gpu02"}));
  EXPECT_EQ(f[0].evidence.english,
            "gpu02 uses sockets, although InfiniBand was found on gpu01 (mlx5_0:1/IB); NCCL found no InfiniBand on gpu02");
  for (Rank& r : ranks) r.network = "Socket";
  EXPECT_EQ(codes(healthy(ranks, "P2P/CUMEM", "NET/Socket/0")), "");
  ranks[3].network = "AWS Libfabric";
  EXPECT_EQ(codes(healthy(ranks, "P2P/CUMEM", "NET/Socket/0")), "NCCL-TRANSPORT-DIFFERS");
}

TEST(NcclView, WaysInsideAHost) {
  EXPECT_EQ(codes(healthy(four(), "SHM/direct/direct")), "NCCL-NO-P2P NCCL-NO-P2P");
  EXPECT_EQ(codes(healthy(four(), "NET/IB/0/GDRDMA")), "NCCL-LOCAL-NETWORK NCCL-LOCAL-NETWORK");
  std::vector<Rank> off = four();
  for (Rank& r : off) r.settings = r.say("NCCL_P2P_DISABLE set by environment to 1.");
  EXPECT_EQ(codes(healthy(off, "SHM/direct/direct")), "NCCL-P2P-OFF NCCL-P2P-OFF");
  std::vector<NcclFinding> f = judge(healthy(four()) + Rank{0}.edge(1, "SHM/direct"));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].severity, Severity::kNote) << "GPUs under two CPUs";
}

TEST(NcclView, GpudirectOnOneHostOnly) {
  std::string text = healthy(four());
  EXPECT_EQ(codes(base::replace_all(text, "[send] via NET/IB/0/GDRDMA", "[send] via NET/IB/0")), "NCCL-NO-GDR");
  std::string none = base::replace_all(text, "/GDRDMA", "");
  EXPECT_EQ(codes(none), "") << "cards that cannot";
  EXPECT_EQ(codes(none + Rank{0}.say("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")), "NCCL-NO-GDR");
}

TEST(NcclView, WhatDiffersBetweenRanks) {
  std::vector<Rank> ranks = four();
  ranks[3].version = "2.20.5+cuda12.4";
  std::vector<NcclFinding> f = judge(healthy(ranks));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-VERSION-DIFFERS");
  EXPECT_EQ(f[0].evidence.english, "NCCL 2.20.5: gpu02; 2.21.5: gpu01, gpu02");
  ranks = four();
  ranks[1].channels = 4;
  f = judge(healthy(ranks));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-CHANNELS-DIFFER");
  EXPECT_EQ(f[0].evidence.english, "channels built: 2: rank 0, 2–3; 4: rank 1");
  ranks = four();
  for (int n : {2, 3}) ranks[static_cast<size_t>(n)].interface = "docker0", ranks[static_cast<size_t>(n)].net = "172.17";
  EXPECT_EQ(codes(healthy(ranks)), "NCCL-INTERFACES-DIFFER");
  for (int n : {2, 3}) ranks[static_cast<size_t>(n)].net = "10.1";
  EXPECT_EQ(codes(healthy(ranks)), "") << "another name in the same network";
  ranks = four();
  ranks[0].settings = ranks[0].say("NCCL_PXN_DISABLE set by environment to 1.");
  EXPECT_EQ(codes(healthy(ranks)), "PERF-PXN");
}

TEST(NcclView, RanksOfAPartOfTheJobAreNotThoseOfTheJob) {
  auto start = [](const Rank& r, int n, const std::string& id) {
    return r.say(
        fmt::format("ncclCommInitRank comm 0x6{}a rank {} nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId {} - Init START", r.n, n, id));
  };
  std::vector<NcclFinding> f = judge(healthy(four()) + start(Rank{2}, 0, "0xdef"));
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "NCCL-INIT-MISSING");
  EXPECT_FALSE(f[0].ranks_of_job);
  EXPECT_TRUE(f[0].evidence.english.starts_with("in communicator 0xdef of 2 ranks: 1 of 2 ranks")) << f[0].evidence.english;
  f = judge(start(Rank{0}, 0, "0xdef") + start(Rank{2}, 0, "0xfed"));
  ASSERT_EQ(f.size(), 2u);
  EXPECT_FALSE(f[0].ranks_of_job) << "two groups of one size: neither is the job";
}

TEST(NcclView, APieceOfALogHasNoEnd) { EXPECT_EQ(codes(connected(four())), ""); }

TEST(NcclView, AnAbortedCommunicatorIsNotStuck) {
  std::vector<Rank> ranks = four();
  std::string text = all(ranks, &Rank::begin) + all(ranks, &Rank::meet) + connected(ranks);
  for (const Rank& r : ranks) text += r.say(fmt::format("comm 0x5{}a rank {} nranks 4 cudaDev 0 busId 1b000 - Abort COMPLETE", r.n, r.n));
  EXPECT_EQ(codes(text), "");
}

NcclSection section(const std::string& text) {
  return nccl_section(read(text), [](uint64_t number) { return fmt::format("x.log:{}", number); });
}

TEST(NcclSection, ShowsWhoAndHow) {
  std::vector<Rank> ranks = four();
  std::string text = healthy(ranks) + "gpu02:103:1 [1] misc/socket.cc:484 NCCL WARN connect failed\n";
  NcclSection s = section(text);
  std::string lines;
  for (const doctor::Words& w : s.lines) {
    EXPECT_FALSE(w.chinese.empty());
    lines += w.english + "\n";
  }
  EXPECT_EQ(lines,
            "2.21.5+cuda12.4, 4 processes on 2 hosts (gpu01 ×2, gpu02 ×2); IB; bootstrap eth0\n"
            "communicator 0xabc: 4 of 4 ranks seen, 4 complete; channels 2\n"
            "  gpu01 → gpu01  P2P/CUMEM (1 pair, 1 channel)\n"
            "  gpu01 → gpu02  NET/IB/0/GDRDMA (1 pair, 1 channel)\n"
            "  gpu02 → gpu01  NET/IB/0/GDRDMA (1 pair, 1 channel)\n"
            "  gpu02 → gpu02  P2P/CUMEM (1 pair, 1 channel)\n"
            "warning, x.log:47, gpu02 pid 103: misc/socket.cc:484: connect failed\n");
  s = section(Rank{0}.begin());
  EXPECT_NE(s.lines.back().english.find("rank 0 (gpu01) stopped: bootstrap: waiting for other ranks; x.log:5: ncclCommInitRank"),
            std::string::npos)
      << s.lines.back().english;
  EXPECT_TRUE(section("hello\n").lines.empty());
}

}  // namespace
}  // namespace phalanx::diagnosis
