#include "diagnosis/cause.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "doctor/catalogue.h"

namespace diagnosis {
namespace {

TEST(Causes, EachHasItsWordsInBothLanguages) {
  for (const Cause* cause : causes()) {
    SCOPED_TRACE(cause->code);
    for (const base::Bilingual* words : {&cause->title, &cause->why, &cause->fix}) {
      EXPECT_FALSE(words->english.empty());
      EXPECT_FALSE(words->chinese.empty());
    }
    EXPECT_NE(cause->title.english.back(), '.');
  }
}

TEST(Causes, CodesAreUniqueAndNotTheDoctors) {
  std::set<std::string_view> codes;
  for (const Cause* cause : causes()) {
    EXPECT_TRUE(codes.insert(cause->code).second) << cause->code;
    EXPECT_EQ(doctor::find_row(cause->code), nullptr) << cause->code;
  }
}

TEST(Causes, AreFoundWhateverTheCase) {
  ASSERT_NE(find_cause("host-lost"), nullptr);
  EXPECT_EQ(find_cause("host-lost")->code, "HOST-LOST");
  EXPECT_EQ(find_cause("HOST"), nullptr);
}

}  // namespace
}  // namespace diagnosis
