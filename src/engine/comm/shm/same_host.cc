#include "engine/comm/shm/same_host.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "os/clock.h"

namespace phalanx::engine::comm {
namespace {

std::vector<uint8_t> as_bytes(std::string_view text) { return {text.begin(), text.end()}; }
std::string as_text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// What went wrong, and why.
std::string in_words(const base::Error& error) { return error.cause.empty() ? error.message : error.message + ", because " + error.cause; }

}  // namespace

std::string host_identity() {
  const std::string boot = os::boot_id();
  struct stat network{};
  // Without them no other rank can be known to be here: an identity of its own.
  if (boot.empty() || stat("/proc/self/ns/net", &network) != 0) return fmt::format("process {} of {}", getpid(), gethostid());
  return fmt::format("{} {}:{} {}", boot, network.st_dev, network.st_ino, geteuid());
}

std::vector<std::string> exchange_by_store(c10d::Store& store, std::string_view name, const std::string& text, int rank, int world,
                                           std::chrono::milliseconds timeout) {
  // Rank 0 reads all and leaves them in one place: two look-ups for each rank, however many there are.
  const std::string all = fmt::format("{}/all", name);
  std::vector<std::string> texts;
  if (rank != 0) {
    store.set(fmt::format("{}/{}", name, rank), as_bytes(text));
  } else {
    std::string joined = text;
    for (int r = 1; r < world; ++r) {
      const std::string key = fmt::format("{}/{}", name, r);
      store.wait({key}, timeout);
      joined += "\n" + as_text(store.get(key));
    }
    store.set(all, as_bytes(joined));
  }
  store.wait({all}, timeout);
  const std::string joined = as_text(store.get(all));
  for (std::string_view line : base::split(joined, '\n')) texts.emplace_back(line);
  texts.resize(static_cast<size_t>(world));
  return texts;
}

Met meet_on_host(c10d::Store& store, const std::vector<int>& members, int rank, std::chrono::milliseconds timeout) {
  const std::string prefix = fmt::format("host/{}", members.front());
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  const int index = static_cast<int>(place), count = static_cast<int>(members.size());
  // Who fails says so, and everyone says how it went; only when all are well the memory is used.
  const auto attempt = [&]() -> base::Result<SharedHost> {
    if (index == 0) {
      auto link = HostLink::listen();
      store.set(prefix + "/token", as_bytes(link.ok() ? link->token() : "none"));
      TRY(link.ok() ? base::ok() : base::Status(link.error()));
      TRY(link->accept_all(count, timeout, [&] { return store.check({prefix + "/failed"}); }));
      return share_host(std::move(link.value()), index, members);
    }
    store.wait({prefix + "/token"}, timeout);
    const std::string token = as_text(store.get(prefix + "/token"));
    if (token == "none") return base::fail(base::ErrorKind::kUnfit, "the first rank of this host cannot share memory");
    TRY_ASSIGN(HostLink link, HostLink::dial(token, index));
    return share_host(std::move(link), index, members);
  };
  base::Result<SharedHost> host = attempt();
  if (!host.ok()) store.set(prefix + "/failed", as_bytes("1"));
  const std::string told = host.ok() ? "" : fmt::format("rank {}: {}", rank, in_words(host.error()));
  const std::vector<std::string> all =
      exchange_by_store(store, prefix + "/met", base::join(base::split(told, '\n'), " "), index, count, timeout);
  Met met;
  for (const std::string& one : all)
    if (!one.empty() && met.why_not.empty()) met.why_not = one;
  if (met.why_not.empty()) met.host = std::move(host.value());
  return met;
}

}  // namespace phalanx::engine::comm
