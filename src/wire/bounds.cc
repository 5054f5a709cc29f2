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
constexpr int64_t kDayMs = 86'400'000;

// Collects the first fault of one message.
class Bounds {
 public:
  explicit Bounds(const char* message) : message_(message) {}
  Bounds& number(const char* what, uint64_t value, uint64_t most) {
    if (value > most) fault(fmt::format("{} is {}, at most {}", what, value, most));
    return *this;
  }
  Bounds& within(const char* what, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) fault(fmt::format("{} is {}, not from {} to {}", what, value, least, most));
    return *this;
  }
  Bounds& mono(const char* what, int64_t value) { return within(what, value, -kMostMonoNs, kMostMonoNs); }
  Bounds& text(const char* what, std::string_view value, size_t most) {
    if (value.size() > most) fault(base::counted("{} has {} bytes, at most {}", what, value.size(), most));
    return *this;
  }
  Bounds& address(const char* what, const std::string& value) {
    text(what, value, kMostAddressBytes);
    char bytes[16];
    std::string bare = value.substr(0, std::min(value.find('%'), kMostAddressBytes));  // fe80::1%eth0
    bool numeric = ::inet_pton(AF_INET, bare.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, bare.c_str(), bytes) == 1;
    if (!numeric || value.find('\0') != std::string::npos) fault(fmt::format("{} is not an address", what));
    return *this;
  }
  Bounds& outcome(const Outcome& m) {
    number("the context of an error", m.error.context.size(), kMostContext);
    for (const std::string* part : {&m.error.message, &m.error.cause, &m.error.hint}) text("an error", *part, kMostTextBytes);
    for (const std::string& part : m.error.context) text("an error", part, kMostTextBytes);
    return *this;
  }
  template <typename List, typename Check>
  Bounds& each(const List& list, Check check) {
    for (const auto& item : list) check(*this, item);
    return *this;
  }
  operator base::Status() const {  // NOLINT: implicit on purpose, `return Bounds("Pong").mono(…);`
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
  for (std::string_view fixed : {std::string_view(), kAdviceOnDirectory, kAdviceOnArrived, kAdviceOnTarget, kAdviceOnOthers, kAdviceOnKind,
                                 kAdviceOnPushedKind, kAdviceOnMount, kAdviceOnSpace})
    if (hint == fixed) return true;
  if (hint.starts_with(kStat)) return is_one_shell_word(hint.substr(kStat.size()));
  auto of_a_code = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; };
  const std::string_view code = hint.starts_with(kExplain) ? hint.substr(kExplain.size()) : "";
  return !code.empty() && std::all_of(code.begin(), code.end(), of_a_code);
}

base::Status within_bounds(const Hello& m) {
  return Bounds("Hello")
      .text("the build", m.build, kMostNameBytes)
      .text("the host's name", m.hostname, kMostNameBytes)
      .text("the user's name", m.user, kMostNameBytes)
      .text("the fingerprint", m.fingerprint, kMostNameBytes)
      .number("the number of CPUs", m.cpus, kMostOfAHost)
      .number("the number of GPUs", m.gpus, kMostOfAHost)
      .number("the number of addresses", m.addresses.size(), kMostAddresses)
      .each(m.addresses,
            [](Bounds& b, const Address& a) {
              b.text("an interface's name", a.interface, kMostAddressBytes).address("an address", a.address);
            })
      .text("ssh's address", m.ssh_server, kMostAddressBytes)  // "UNKNOWN" behind some proxies
      .text("ssh's address", m.ssh_client, kMostAddressBytes)
      .mono("the clock", m.now_ns)
      .within("the wall clock", m.wall_ns, 0, kMostWallNs);
}
base::Status within_bounds(const Prepared& m) {
  return Bounds("Prepared").outcome(m.outcome).text("the program", m.program, kMostPathBytes);
}
base::Status within_bounds(const StoreOpened& m) {
  return Bounds("StoreOpened")
      .outcome(m.outcome)
      .number("the port", m.port, kMostPort)
      .number("the holder's process id", m.holder, INT32_MAX);
}
base::Status within_bounds(const Reached& m) {
  return Bounds("Reached").outcome(m.outcome).text("the interface's name", m.interface, kMostAddressBytes);
}
base::Status within_bounds(const Started& m) {
  return Bounds("Started").outcome(m.outcome).number("the rank", m.rank, INT32_MAX).number("the pid", m.pid, INT32_MAX);
}
base::Status within_bounds(const Output& m) { return Bounds("Output").number("the rank", m.rank, INT32_MAX).mono("the time", m.at_ns); }
base::Status within_bounds(const Progress& m) {
  return Bounds("Progress").number("the rank", m.rank, INT32_MAX).mono("the time", m.at_ns).text("the line", m.line, kMaxRankEventBytes);
}
base::Status within_bounds(const Exited& m) {
  return Bounds("Exited")
      .number("the rank", m.rank, INT32_MAX)
      .number("the status", m.status, 0xffff)
      .number("the signal", m.stopped_by_us, 64)
      .mono("the time", m.at_ns)
      .text("the error file", m.error_file, kMostErrorFileBytes)
      .text("the last words", m.last_words, kMostTextBytes)
      .number("the number of signs", m.signs.size(), kMostSigns)
      .each(m.signs, [](Bounds& b, const ExitSign& sign) { b.text("what the kernel says", sign.text, kMostTextBytes); });
}
base::Status within_bounds(const Connected& m) { return Bounds("Connected").number("the rank", m.rank, INT32_MAX); }
base::Status within_bounds(const Pong& m) { return Bounds("Pong").mono("the clock", m.now_ns); }
base::Status within_bounds(const Trouble& m) { return Bounds("Trouble").text("the text", m.text, kMostTextBytes); }
base::Status within_bounds(const Probed& m) { return Bounds("Probed").outcome(m.outcome); }
base::Status within_bounds(const Listening& m) {
  return Bounds("Listening")
      .number("the number of places", m.places.size(), kMostListened)
      .each(m.places, [](Bounds& b, const ListenedPlace& place) { b.outcome(place.outcome).number("a port", place.port, kMostPort); });
}
base::Status within_bounds(const Dialed& m) {
  return Bounds("Dialed").number("the number of links", m.links.size(), kMostLinks).each(m.links, [](Bounds& b, const DialedLink& link) {
    b.text("a local address", link.local_address, kMostAddressBytes);
    b.number("an error number", link.error_number, INT32_MAX);
    for (int64_t time : {link.connect_ns, link.round_trip_ns}) b.mono("a time", time);
    for (int64_t count : {link.bytes_per_second, link.segments, link.retransmits}) b.within("a count", count, -kMostCount, kMostCount);
  });
}
base::Status within_bounds(const Pulse& m) {
  return Bounds("Pulse")
      .mono("the time", m.at_ns)
      .number("the number of ranks", m.ranks.size(), kMostOfAHost)
      .each(m.ranks, [](Bounds& b, const RankPulse& rank) { b.number("a rank", rank.rank, INT32_MAX); })
      .number("the number of peers", m.peers.size(), kMostPeers)
      .each(m.peers, [](Bounds& b, const PeerPulse& peer) { b.text("the address of a peer", peer.address, kMostAddressBytes); })
      .number("the stolen time", m.stolen_permille, 1000);
}
base::Status within_bounds(const Sampled& m) { return Bounds("Sampled").outcome(m.outcome); }
base::Status within_bounds(const Dug& m) {
  return Bounds("Dug")
      .number("the number of pieces", m.pieces.size(), size_t{kMostOfAHost} * 8)
      .each(m.pieces, [](Bounds& b, const Piece& piece) { b.number("a rank", piece.rank, INT32_MAX); });
}
base::Status within_bounds(const CopyWanted& m) {
  return Bounds("CopyWanted")
      .number("the number of entries", m.entries.size(), m.whole_list ? 0 : kMostWanted)
      .number("the bytes that are there", m.from, kMostCopiedBytes);
}
base::Status within_bounds(const CopyProgress& m) { return Bounds("CopyProgress").number("the number of entries", m.made, kMostWanted); }
base::Status within_bounds(const CopyListening& m) {
  return Bounds("CopyListening").outcome(m.outcome).number("the port", m.port, kMostPort);
}
base::Status within_bounds(const CopyPassing& m) { return Bounds("CopyPassing").outcome(m.outcome); }
base::Status within_bounds(const CopyTaken& m) { return Bounds("CopyTaken").number("the number of bytes", m.bytes, kMostCopiedBytes); }
base::Status within_bounds(const CopyDone& m) {
  return Bounds("CopyDone")
      .outcome(m.outcome)
      .text("the path", m.path, kMostPathBytes)
      .number("the files removed", m.removed, kMostWanted)
      .number("the files that stayed", m.stayed, kMostWanted);
}
base::Status within_bounds(const Ask& m) { return Bounds("Ask").within("the grace", m.grace_ms, -1, kDayMs); }
base::Status within_bounds(const RunEnded& m) { return Bounds("RunEnded").number("the exit code", m.exit_code, 255); }
base::Status within_bounds(const Sweep& m) {
  return Bounds("Sweep").within("the length of the run's id", static_cast<int64_t>(m.run_id.size()), 1, 128);
}
base::Status within_bounds(const Swept& m) {
  return Bounds("Swept")
      .number("the number of processes", m.found.size(), kMaxSwept)
      .each(m.found,
            [](Bounds& b, const SweptProcess& p) { b.number("a pid", p.pid, INT32_MAX).text("a command", p.command, kMostSweptBytes); })
      .number("the number of processes that were not seen", m.unseen.size(), kMaxSwept)
      .each(m.unseen, [](Bounds& b, const SweptUnseen& p) { b.number("a pid", p.pid, INT32_MAX); });
}

}  // namespace phalanx::wire
