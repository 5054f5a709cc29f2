#include "wire/bounds.h"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "wire/rank_event.h"

namespace phalanx::wire {
namespace {

constexpr size_t kMostPathBytes = 16 << 10;
constexpr size_t kMostErrorFileBytes = 128 << 10;
constexpr size_t kMostContext = 32;
constexpr uint32_t kMostPort = 65'535;
constexpr int64_t kMostCount = 1LL << 50;  // of segments and the like: a thousand of them add up

// Collects the first fault of one message.
class Bounds {
 public:
  explicit Bounds(const char* message) : message_(message) {}
  void number(const char* what, uint64_t value, uint64_t most) {
    if (value > most) fault(fmt::format("{} is {}, at most {}", what, value, most));
  }
  void within(const char* what, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) fault(fmt::format("{} is {}, not from {} to {}", what, value, least, most));
  }
  void mono(const char* what, int64_t value) { within(what, value, -kMostMonoNs, kMostMonoNs); }
  void text(const char* what, std::string_view value, size_t most) {
    if (value.size() > most) fault(base::counted("{} has {} bytes, at most {}", what, value.size(), most));
  }
  void address(const char* what, const std::string& value) {
    text(what, value, kMostAddressBytes);
    char bytes[16];
    std::string bare = value.substr(0, std::min(value.find('%'), kMostAddressBytes));  // fe80::1%eth0
    bool numeric = ::inet_pton(AF_INET, bare.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, bare.c_str(), bytes) == 1;
    if (!numeric || value.find('\0') != std::string::npos) fault(fmt::format("{} is not an address", what));
  }
  void outcome(const Outcome& m) {
    number("the context of an error", m.error.context.size(), kMostContext);
    for (const std::string* part : {&m.error.message, &m.error.cause, &m.error.hint}) text("an error", *part, kMostTextBytes);
    for (const std::string& part : m.error.context) text("an error", part, kMostTextBytes);
  }
  base::Status result() && {
    if (fault_.empty()) return base::ok();
    return base::fail(base::ErrorKind::kInternal, std::string(message_) + ": " + fault_);
  }

 private:
  void fault(std::string text) {
    if (fault_.empty()) fault_ = std::move(text);
  }
  const char* message_;
  std::string fault_;
};

// A word as base::shell_quote() writes it, and nothing behind it.
bool is_one_shell_word(std::string_view text) {
  if (text.empty() || base::shell_quote(text) == text) return !text.empty();
  if (text.size() < 3 || text.front() != '\'' || text.back() != '\'') return false;
  return base::shell_quote(base::replace_all(text.substr(1, text.size() - 2), "'\\''", "'")) == text;
}

}  // namespace

bool is_advice_of_agent(std::string_view hint) {
  constexpr std::string_view kStat = "stat ", kExplain = "phalanx explain ";
  for (std::string_view fixed :
       {std::string_view(), kAdviceOnDirectory, kAdviceOnArrived, kAdviceOnTarget, kAdviceOnOthers, kAdviceOnKind, kAdviceOnPushedKind})
    if (hint == fixed) return true;
  if (hint.starts_with(kStat)) return is_one_shell_word(hint.substr(kStat.size()));
  auto of_a_code = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; };
  const std::string_view code = hint.starts_with(kExplain) ? hint.substr(kExplain.size()) : "";
  return !code.empty() && std::all_of(code.begin(), code.end(), of_a_code);
}

base::Status within_bounds(const Hello& m) {
  Bounds b("Hello");
  b.text("the build", m.build, kMostNameBytes);
  b.text("the host's name", m.hostname, kMostNameBytes);
  b.text("the user's name", m.user, kMostNameBytes);
  b.text("the fingerprint", m.fingerprint, kMostNameBytes);
  b.number("the number of CPUs", m.cpus, kMostOfAHost);
  b.number("the number of GPUs", m.gpus, kMostOfAHost);
  b.number("the number of addresses", m.addresses.size(), kMostAddresses);
  for (const Address& a : m.addresses) {
    b.text("an interface's name", a.interface, kMostAddressBytes);
    b.address("an address", a.address);
  }
  b.text("ssh's address", m.ssh_server, kMostAddressBytes);  // "UNKNOWN" behind some proxies
  b.text("ssh's address", m.ssh_client, kMostAddressBytes);
  b.mono("the clock", m.now_ns);
  b.within("the wall clock", m.wall_ns, 0, kMostWallNs);
  return std::move(b).result();
}
base::Status within_bounds(const Prepared& m) {
  Bounds b("Prepared");
  b.outcome(m.outcome);
  b.text("the program", m.program, kMostPathBytes);
  return std::move(b).result();
}
base::Status within_bounds(const StoreOpened& m) {
  Bounds b("StoreOpened");
  b.outcome(m.outcome);
  b.number("the port", m.port, kMostPort);
  b.number("the holder's process id", m.holder, INT32_MAX);
  return std::move(b).result();
}
base::Status within_bounds(const Reached& m) {
  Bounds b("Reached");
  b.outcome(m.outcome);
  b.text("the interface's name", m.interface, kMostAddressBytes);
  return std::move(b).result();
}
base::Status within_bounds(const Started& m) {
  Bounds b("Started");
  b.outcome(m.outcome);
  b.number("the rank", m.rank, INT32_MAX);
  b.number("the pid", m.pid, INT32_MAX);
  return std::move(b).result();
}
base::Status within_bounds(const Output& m) {
  Bounds b("Output");
  b.number("the rank", m.rank, INT32_MAX);
  b.mono("the time", m.at_ns);
  return std::move(b).result();
}
base::Status within_bounds(const Progress& m) {
  Bounds b("Progress");
  b.number("the rank", m.rank, INT32_MAX);
  b.mono("the time", m.at_ns);
  b.text("the line", m.line, kMaxRankEventBytes);
  return std::move(b).result();
}
base::Status within_bounds(const Exited& m) {
  Bounds b("Exited");
  b.number("the rank", m.rank, INT32_MAX);
  b.number("the status", m.status, 0xffff);
  b.number("the signal", m.stopped_by_us, 64);
  b.mono("the time", m.at_ns);
  b.text("the error file", m.error_file, kMostErrorFileBytes);
  b.text("the last words", m.last_words, kMostTextBytes);
  b.number("the number of signs", m.signs.size(), kMostSigns);
  for (const ExitSign& sign : m.signs) b.text("what the kernel says", sign.text, kMostTextBytes);
  return std::move(b).result();
}
base::Status within_bounds(const Connected& m) {
  Bounds b("Connected");
  b.number("the rank", m.rank, INT32_MAX);
  return std::move(b).result();
}
base::Status within_bounds(const Pong& m) {
  Bounds b("Pong");
  b.mono("the clock", m.now_ns);
  return std::move(b).result();
}
base::Status within_bounds(const Trouble& m) {
  Bounds b("Trouble");
  b.text("the text", m.text, kMostTextBytes);
  return std::move(b).result();
}
base::Status within_bounds(const Probed& m) {
  Bounds b("Probed");
  b.outcome(m.outcome);
  return std::move(b).result();
}
base::Status within_bounds(const Listening& m) {
  Bounds b("Listening");
  b.number("the number of places", m.places.size(), kMostListened);
  for (const ListenedPlace& place : m.places) {
    b.outcome(place.outcome);
    b.number("a port", place.port, kMostPort);
  }
  return std::move(b).result();
}
base::Status within_bounds(const Dialed& m) {
  Bounds b("Dialed");
  b.number("the number of links", m.links.size(), kMostLinks);
  for (const DialedLink& link : m.links) {
    b.text("a local address", link.local_address, kMostAddressBytes);
    b.number("an error number", link.error_number, INT32_MAX);
    for (int64_t time : {link.connect_ns, link.round_trip_ns}) b.mono("a time", time);
    for (int64_t count : {link.bytes_per_second, link.segments, link.retransmits}) b.within("a count", count, -kMostCount, kMostCount);
  }
  return std::move(b).result();
}
base::Status within_bounds(const Pulse& m) {
  Bounds b("Pulse");
  b.mono("the time", m.at_ns);
  b.number("the number of ranks", m.ranks.size(), kMostOfAHost);
  for (const RankPulse& rank : m.ranks) b.number("a rank", rank.rank, INT32_MAX);
  b.number("the number of peers", m.peers.size(), kMostPeers);
  for (const PeerPulse& peer : m.peers) b.text("the address of a peer", peer.address, kMostAddressBytes);
  b.number("the stolen time", m.stolen_permille, 1000);
  return std::move(b).result();
}
base::Status within_bounds(const Sampled& m) {
  Bounds b("Sampled");
  b.outcome(m.outcome);
  return std::move(b).result();
}
base::Status within_bounds(const Dug& m) {
  Bounds b("Dug");
  b.number("the number of pieces", m.pieces.size(), size_t{kMostOfAHost} * 8);
  for (const Piece& piece : m.pieces) b.number("a rank", piece.rank, INT32_MAX);
  return std::move(b).result();
}

base::Status within_bounds(const CopyWanted& m) {
  Bounds b("CopyWanted");
  b.number("the number of entries", m.entries.size(), m.whole_list ? 0 : kMostWanted);
  b.number("the bytes that are there", m.from, kMostCopiedBytes);
  return std::move(b).result();
}

base::Status within_bounds(const CopyProgress& m) {
  Bounds b("CopyProgress");
  b.number("the number of entries", m.made, kMostWanted);
  return std::move(b).result();
}

base::Status within_bounds(const CopyListening& m) {
  Bounds b("CopyListening");
  b.outcome(m.outcome);
  b.number("the port", m.port, kMostPort);
  return std::move(b).result();
}

base::Status within_bounds(const CopyPassing& m) {
  Bounds b("CopyPassing");
  b.outcome(m.outcome);
  return std::move(b).result();
}

base::Status within_bounds(const CopyTaken& m) {
  Bounds b("CopyTaken");
  b.number("the number of bytes", m.bytes, kMostCopiedBytes);
  return std::move(b).result();
}

base::Status within_bounds(const CopyDone& m) {
  Bounds b("CopyDone");
  b.outcome(m.outcome);
  b.text("the path", m.path, kMostPathBytes);
  b.number("the files removed", m.removed, kMostWanted);
  b.number("the files that stayed", m.stayed, kMostWanted);
  return std::move(b).result();
}

}  // namespace phalanx::wire
