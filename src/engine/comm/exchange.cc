// What ranks tell each other, on top of any group's operations.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/text.h"
#include "base/unicode.h"
#include "engine/comm/group.h"

namespace phalanx::engine::comm {
namespace {

constexpr int64_t kMaxText = 1 << 20;

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", base::format_ranges(ranks));
}

}  // namespace

std::string reason(const std::exception& failure) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&failure);
  std::string text = torch_error ? torch_error->what_without_backtrace() : failure.what();
  return base::printable(text.substr(0, text.find('\n')), 400);
}

void fail_within(const std::string& doing, const std::exception& failure) {
  const std::string why = reason(failure);
  const std::string what = fmt::format("{}: {}", doing, why);
  // Gloo has one class of exceptions for every failed connection; only its text tells a closed connection from the others.
  const bool closed = why.find("by peer") != std::string::npos || why.find("Connection reset") != std::string::npos;
  if (closed || dynamic_cast<const PeerExited*>(&failure)) throw PeerExited(what);
  throw std::runtime_error(what);
}

std::vector<std::string> exchange(Group& group, std::string_view text, std::string_view label) {
  const int64_t world = group.world();
  at::Tensor lengths = at::zeros({world}, at::TensorOptions().dtype(at::kLong));
  lengths.data_ptr<int64_t>()[group.rank()] = static_cast<int64_t>(text.size());
  at::Tensor shared_lengths = lengths.to(group.device());
  group.all_gather(shared_lengths, shared_lengths.narrow(0, group.rank(), 1), label);
  lengths = shared_lengths.to(at::kCPU);
  const int64_t* length = lengths.data_ptr<int64_t>();
  const int64_t longest = *std::max_element(length, length + world);
  if (longest > kMaxText) throw std::length_error(fmt::format("{}: the message of {} bytes is too long", label, longest));

  at::Tensor bytes = at::zeros({world, longest}, at::TensorOptions().dtype(at::kByte));
  if (!text.empty()) std::memcpy(bytes.data_ptr<uint8_t>() + group.rank() * longest, text.data(), text.size());
  at::Tensor shared = bytes.to(group.device());
  if (longest > 0) group.all_gather(shared, shared.select(0, group.rank()), label);
  bytes = shared.to(at::kCPU);
  std::vector<std::string> texts;
  for (int64_t r = 0; r < world; ++r)
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()) + r * longest, static_cast<size_t>(length[r]));
  return texts;
}

base::Status require_same(Group& group, std::string_view what, uint64_t fingerprint) {
  at::Tensor all = at::zeros({group.world()}, at::TensorOptions().dtype(at::kLong));
  all.data_ptr<int64_t>()[group.rank()] = static_cast<int64_t>(fingerprint);
  at::Tensor shared = all.to(group.device());
  group.all_gather(shared, shared.narrow(0, group.rank(), 1), fmt::format("fingerprint of {}", what));
  all = shared.to(at::kCPU);
  const int64_t* prints = all.data_ptr<int64_t>();
  std::vector<int> different;
  for (int rank = 1; rank < group.world(); ++rank)
    if (prints[rank] != prints[0]) different.push_back(rank);
  if (different.empty()) return base::ok();
  return base::fail(base::ErrorKind::kConfig, fmt::format("the ranks do not agree on {}", what))
      .because(fmt::format("{} differ{} from rank 0", ranks_text(different), different.size() > 1 ? "" : "s"))
      .with_hint("use the same files and arguments on every host");
}

base::Status agree(Group& group, base::Status mine, std::string_view doing) {
  // One byte of kind, then the message.
  std::string told;
  if (!mine.ok()) {
    told.push_back(static_cast<char>('0' + static_cast<int>(mine.error().kind)));
    const std::string message = base::printable(mine.error().message, 2000), cause = base::printable(mine.error().cause, 2000);
    told += cause.empty() ? message : fmt::format("{}, because {}", message, cause);
  }
  const std::vector<std::string> all = exchange(group, told, doing);
  std::vector<int> failed;
  for (int rank = 0; rank < group.world(); ++rank)
    if (!all[static_cast<size_t>(rank)].empty()) failed.push_back(rank);
  if (failed.empty() || !mine.ok()) return mine;
  const std::string& first = all[static_cast<size_t>(failed.front())];
  return base::fail(static_cast<base::ErrorKind>(first[0] - '0'), fmt::format("{} failed on {}", doing, ranks_text(failed)))
      .because(fmt::format("rank {}: {}", failed.front(), first.substr(1)));
}

}  // namespace phalanx::engine::comm
