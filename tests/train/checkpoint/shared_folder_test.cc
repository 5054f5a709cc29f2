// Ranks that share their folder, and ranks that only believe so.
#include "engine/checkpoint/shared_folder.h"

#include <gtest/gtest.h>

#include "engine/checkpoint/folder.h"
#include "ranks.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;

TEST(SharedFolder, IsSeenByAll) {
  ranks::TempFolder folder;
  ranks::run(3, [&](engine::comm::Group& group) {
    const std::string token = common_token(group);
    EXPECT_EQ(token.size(), 16u);
    auto shared = require_shared(group, folder / "a/b", token);
    EXPECT_TRUE(shared.ok()) << shared.error().render();
  });
  EXPECT_TRUE(names_in(folder / "a/b").value().empty());
}

TEST(SharedFolder, ARankWithAFolderOfItsOwnIsNamedOnAllRanks) {
  ranks::TempFolder folder;
  ranks::run(4, [&](engine::comm::Group& group) {
    const std::string token = common_token(group);
    const std::string mine = folder / (group.rank() == 2 ? "host2" : "shared");
    auto shared = require_shared(group, mine, token);
    ASSERT_FALSE(shared.ok());
    EXPECT_NE(shared.error().render().find("files written there by rank(s) 2"), std::string::npos) << shared.error().render();
  });
}

TEST(SharedFolder, ARankThatCannotWriteIsNamed) {
  ranks::TempFolder folder;
  ranks::run(2, [&](engine::comm::Group& group) {
    auto shared = require_shared(group, group.rank() == 1 ? "/proc/none" : folder.path(), common_token(group));
    EXPECT_FALSE(shared.ok());
  });
}

}  // namespace
