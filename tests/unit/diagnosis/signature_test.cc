#include "diagnosis/logs/signature.h"

#include <gtest/gtest.h>

#include <set>

#include "codes/code.h"
#include "codes/values.h"
#include "diagnosis/logs/signature_matcher.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

TEST(Signatures, EachMatchesItsLineAndNotTheOther) {
  std::span<const Signature> rows = codes::signatures();
  EXPECT_GE(rows.size(), 300u);
  const std::vector<std::string_view> others = codes::signature_others();
  ASSERT_EQ(others.size(), rows.size());
  SignatureMatcher matcher(rows, {});
  for (uint32_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].pattern);
    ASSERT_GE(rows[i].literal.size(), 4u);
    EXPECT_NE(rows[i].line.find(rows[i].literal), std::string_view::npos) << "the line must hold the literal";
    EXPECT_TRUE(matcher.matches(i, rows[i].line));
    bool found = others[i].find(rows[i].literal) != std::string_view::npos && matcher.matches(i, others[i]);
    EXPECT_FALSE(found) << others[i];
    EXPECT_FALSE(others[i].empty());
  }
}

TEST(Signatures, EachHasACodeWithAPage) {
  for (const Signature& row : codes::signatures()) EXPECT_TRUE(codes::find(row.code)) << row.code;
  EXPECT_TRUE(codes::find(traceback_signature().code));
}

// Whichever other row also knows a line, the line is counted under its own row's code, or under a graver row that names the same thing
// more closely (LOG-HARMLESS: the line is told to be harmless).
TEST(Signatures, ALineIsCountedOnce) {
  std::span<const Signature> rows = codes::signatures();
  SignatureMatcher matcher(rows, {});
  std::set<std::string> shared;
  for (const Signature& row : rows) {
    std::vector<LiteralSearch::Hit> hits;
    matcher.search().find(row.line, hits);
    std::set<uint32_t> ids;
    for (const LiteralSearch::Hit& hit : hits) ids.insert(hit.literal);
    std::vector<uint32_t> sorted(ids.begin(), ids.end());
    SignatureMatch match = matcher.match(row.line, sorted);
    ASSERT_NE(match.signature, nullptr) << row.line;
    if (match.signature->code != row.code) shared.insert(std::string(row.code) + " < " + std::string(match.signature->code));
    EXPECT_FALSE(row.role == Role::kRoot && match.signature->role == Role::kBenign) << row.line;
  }
  EXPECT_LE(shared.size(), 0u) << testing::PrintToString(shared);
}

const Signature* known(SignatureMatcher& matcher, const std::string& line) {
  std::vector<LiteralSearch::Hit> hits;
  matcher.search().find(line, hits);
  std::set<uint32_t> ids;
  for (const LiteralSearch::Hit& hit : hits) ids.insert(hit.literal);
  return matcher.match(line, std::vector<uint32_t>(ids.begin(), ids.end())).signature;
}

// `check` reads the table, `explain` the rows: they must agree on every Xid.
TEST(Signatures, XidsAreThoseOfTheTable) {
  SignatureMatcher matcher(codes::signatures(), {});
  const codes::ValueTable& table = codes::values("xid");
  std::set<std::string> numbers;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string number(table.row(i)[0]), code(table.row(i)[1]);
    if (code.empty()) continue;  // no fault of a GPU that computes
    numbers.insert(number);
    std::string tail = "pid=77, name=python, x";
    if (number == "154") tail = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)";
    const Signature* found = known(matcher, "NVRM: Xid (PCI:0000:34:00): " + number + ", " + tail);
    ASSERT_NE(found, nullptr) << number;
    EXPECT_EQ(found->code, code) << number;
  }
  for (int number = 1; number < 200; ++number) {
    std::string line = "NVRM: Xid (PCI:0000:34:00): " + std::to_string(number) + ", pid=77, name=python, x";
    EXPECT_TRUE(numbers.count(std::to_string(number)) || !known(matcher, line)) << number;
  }
}

TEST(Signatures, ASuspectIsOneOfSomething) {
  const codes::ValueTable& table = codes::values("suspects");
  std::set<std::string_view> listed, roles;
  for (size_t i = 0; i < table.size(); ++i) listed.insert(table.row(i)[0]);
  for (const Signature& one : codes::signatures())
    if (one.role == codes::Role::kSuspect) roles.insert(one.code);
  EXPECT_EQ(listed, roles);
}

// What a message stands for is decided by the value in it.
TEST(Signatures, ValuesDecide) {
  SignatureMatcher matcher(codes::signatures(), {});
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory", "LIM-MEMLOCK"},
      {"NCCL WARN Call to ibv_reg_mr failed with error Bad address", "IB-PEERMEM"},
      {"RuntimeError: shm_open(/torch_12_3) failed: No space left on device (28)", "FS-SHM-SMALL"},
      {"OSError: [Errno 28] No space left on device: '/data/a'", "FS-DISK-FULL"},
      {"RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "GPU-XID-NVLINK"},
      {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "GPU-XID-MEMORY"},
      {"NCCL WARN NET/IB: Got completion from peer 10.0.0.2<1> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0", "IB-RETRY"},
      {"NCCL WARN NET/IB: Got completion from peer 10.0.0.2<1> with status=IBV_WC_REM_ACCESS_ERR(10) opcode=0", "IB-REMOTE-ACCESS"},
      {"NCCL WARN NET/IB: Got completion from peer 10.0.0.2<1> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=0", "LOG-PEER-GONE"},
      {"NCCL WARN socketStartConnect: Connect to 10.0.0.1<1> failed: Connection refused", "NET-CONNECT-REFUSED"},
      {"NCCL WARN socketStartConnect: Connect to 10.0.0.1<1> failed : No route to host", "NET-NO-ROUTE"},
      {"[c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).", "RDZV-PORT-TAKEN"},
      {"[c10d] The server socket has failed to bind to 10.0.0.9:29500 (errno: 99 - Cannot assign requested address).",
       "RDZV-MASTER-OTHER-HOST"},
      {"RuntimeError: Requires distributed package to be available", "ENV-CPU-TORCH"},
      {"NCCL WARN Cuda failure 802 'system not yet initialized'", "GPU-FABRIC-MANAGER"},
      {"NCCL WARN Error: failed to create shared memory file /dev/shm/nccl-a1B2c3, error No space left on device (28)", "FS-SHM-SMALL"},
      {"NVRM: Xid (PCI:0000:34:00): 79, pid=1, GPU has fallen off the bus. This is usually caused by a riser.", "GPU-XID-BUS"},
  };
  for (const auto& [line, code] : lines) {
    const Signature* found = known(matcher, line);
    ASSERT_NE(found, nullptr) << line;
    EXPECT_EQ(found->code, code) << line;
  }
}

}  // namespace
}  // namespace phalanx::diagnosis
