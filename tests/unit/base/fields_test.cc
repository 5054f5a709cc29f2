#include "base/fields.h"

#include <gtest/gtest.h>

#include "base/json_fields.h"

namespace phalanx::base {
namespace {

struct Disk {
  std::string path;
  int64_t free_bytes = 0;
  std::vector<Disk> parts;
};
PHALANX_FIELDS(Disk, path, free_bytes, parts);
struct Nothing {};
PHALANX_FIELDS(Nothing);
struct Many {
  int64_t a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9;
};
// 80 of the 81 that the macro has room for.
PHALANX_FIELDS(Many, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9,
               a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a0,
               a1, a2, a3, a4, a5, a6, a7, a8, a9, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9);

struct Counter {
  int calls = 0;
  void operator()(const char*, int64_t&) { ++calls; }
};

TEST(Fields, AreWrittenUnderTheirNamesInTheOrderOfTheList) {
  EXPECT_EQ(to_text(to_json(Disk{"/a", 7, {{"/b", 1, {}}}})),
            "{\"path\":\"/a\",\"free_bytes\":7,\"parts\":[{\"path\":\"/b\",\"free_bytes\":1,\"parts\":[]}]}");
  EXPECT_EQ(to_text(to_json(Nothing{})), "{}");
}

TEST(Fields, AreReadBack) {
  Result<Disk> disk = from_json<Disk>(Json{{"free_bytes", 5}, {"parts", Json::array({Json{{"path", "/c"}}})}});
  ASSERT_TRUE(disk.ok());
  EXPECT_EQ(disk->path, "");
  EXPECT_EQ(disk->free_bytes, 5);
  ASSERT_EQ(disk->parts.size(), 1u);
  EXPECT_EQ(disk->parts[0].path, "/c");
}

TEST(Json, AListThatIsMissingIsEmpty) {
  const Json json = {{"words", {"a", 1, "b"}}, {"number", 7}};
  EXPECT_EQ(get_list(json, "words").size(), 3u);
  EXPECT_EQ(get_strings(json, "words"), (std::vector<std::string>{"a", "b"}));
  for (const char* key : {"number", "none"}) {
    EXPECT_TRUE(get_list(json, key).empty()) << key;
    EXPECT_TRUE(get_strings(json, key).empty()) << key;
  }
  EXPECT_TRUE(get_list(Json(), "words").empty());
}

TEST(Fields, MayBeMany) {
  Many many;
  Counter counter;
  fields(counter, many);
  EXPECT_EQ(counter.calls, 80);
}

}  // namespace
}  // namespace phalanx::base
