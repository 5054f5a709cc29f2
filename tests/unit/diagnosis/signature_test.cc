#include "diagnosis/logs/signature.h"

#include <gtest/gtest.h>

#include <set>

#include "codes/code.h"
#include "diagnosis/logs/signature_matcher.h"
#include "diagnosis/logs/verdict.h"

namespace phalanx::diagnosis {
namespace {

TEST(Signatures, EachMatchesItsLineAndNotTheOther) {
  std::span<const Signature> rows = codes::signatures();
  EXPECT_GE(rows.size(), 300u);
  SignatureMatcher matcher(rows, {});
  for (uint32_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].pattern);
    ASSERT_GE(rows[i].literal.size(), 4u);
    EXPECT_NE(rows[i].line.find(rows[i].literal), std::string_view::npos) << "the line must hold the literal";
    EXPECT_TRUE(matcher.matches(i, rows[i].line));
    bool found = rows[i].other.find(rows[i].literal) != std::string_view::npos && matcher.matches(i, rows[i].other);
    EXPECT_FALSE(found) << rows[i].other;
    EXPECT_FALSE(rows[i].other.empty());
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

}  // namespace
}  // namespace phalanx::diagnosis
