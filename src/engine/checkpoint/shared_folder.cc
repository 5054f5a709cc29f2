#include "engine/checkpoint/shared_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/owner.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

std::string sign_of(const std::string& folder, std::string_view token, int rank) {
  return fmt::format("{}/.seen-{}.{}", folder, token, rank);
}

base::Status leave_sign(const std::string& folder, const std::string& sign, std::string_view token) {
  if (auto made = os::make_folders(folder, 0755); !made.ok()) return cannot_tell(std::move(made).error());
  return write_durably(sign, token);
}

base::Status look_for_signs(int world, const std::string& folder, std::string_view token) {
  std::vector<int> missing;
  for (int rank = 0; rank < world; ++rank) {
    auto sign = os::read_if_present(sign_of(folder, token, rank), 256);
    if (!sign.ok()) return std::move(sign).error();  // kInternal: nobody knows whether the ranks share it
    if (*sign != token) missing.push_back(rank);
  }
  if (missing.empty()) return base::ok();
  return base::fail(base::ErrorKind::kUnfit, fmt::format("the ranks do not share the folder {}", base::quote(folder, 400)))
      .because(fmt::format("rank 0 does not see the files written there by rank(s) {}", base::format_ranges(missing)))
      .with_hint("set `out` to a folder on a disk that all hosts mount");
}

}  // namespace

std::string common_token(comm::Group& group) {
  return comm::exchange(group, group.rank() == 0 ? make_token() : "", "checkpoint token").front();
}

base::Status require_shared(comm::Group& group, const std::string& folder, std::string_view token) {
  const std::string mine = sign_of(folder, token, group.rank());
  TRY(comm::agree(group, leave_sign(folder, mine, token), "writing to the checkpoint folder"));
  base::Status seen = group.rank() == 0 ? look_for_signs(group.world(), folder, token) : base::ok();
  base::Status all = comm::agree(group, std::move(seen), "looking for the files of the other ranks");
  unlink(mine.c_str());
  return all;
}

}  // namespace phalanx::engine::checkpoint
