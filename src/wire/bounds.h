// What a message of an agent may mean. A frame is bounded by its size (frame.h); here its counts, lengths, ids and times are, where they
// enter: decode() refuses what is outside, so nothing behind it has to ask again. The limits are far above what real machines send, and low
// enough that one host can neither take the launcher's memory, nor overflow its arithmetic, nor make it send frames that are too large.
#pragma once

#include "wire/check_messages.h"
#include "wire/control_messages.h"
#include "wire/copy_messages.h"
#include "wire/sample_messages.h"

namespace phalanx::wire {

inline constexpr uint32_t kMostOfAHost = 4096;      // GPUs, CPUs, ranks
inline constexpr uint32_t kMostPeers = 64;          // of a Pulse
inline constexpr size_t kMostAddresses = 256;       // of one host
inline constexpr size_t kMostAddressBytes = 64;     // of an address, and of the name of an interface
inline constexpr size_t kMostNameBytes = 255;       // host, user
inline constexpr size_t kMostTextBytes = 64 << 10;  // of an error, of last words
inline constexpr size_t kMostLinks = 16'384;        // in one Dialed
inline constexpr size_t kMostListened = 16;         // places in one Listening
inline constexpr int64_t kMostMonoNs = 1LL << 60;   // 36 years, either way: the sum of any four fits in 64 bits
inline constexpr int64_t kMostWallNs = 1LL << 62;   // the year 2116

// Error (kInternal): "Hello: 2147483648 GPUs, at most 4096".
base::Status within_bounds(const Hello&);
base::Status within_bounds(const Prepared&);
base::Status within_bounds(const StoreOpened&);
base::Status within_bounds(const Reached&);
base::Status within_bounds(const Started&);
base::Status within_bounds(const Output&);
base::Status within_bounds(const Progress&);
base::Status within_bounds(const Exited&);
base::Status within_bounds(const Connected&);
base::Status within_bounds(const Pong&);
base::Status within_bounds(const Trouble&);
base::Status within_bounds(const Probed&);
base::Status within_bounds(const Listening&);
base::Status within_bounds(const Dialed&);
base::Status within_bounds(const Pulse&);
base::Status within_bounds(const Sampled&);
base::Status within_bounds(const Dug&);
base::Status within_bounds(const CopyWanted&);
base::Status within_bounds(const CopyProgress&);
base::Status within_bounds(const CopyListening&);
base::Status within_bounds(const CopyPassing&);
base::Status within_bounds(const CopyTaken&);
base::Status within_bounds(const CopyDone&);
base::Status within_bounds(const Ask&);
base::Status within_bounds(const RunEnded&);
base::Status within_bounds(const Sweep&);
base::Status within_bounds(const Swept&);
// What an agent advises is printed as a command to type, so only what ours write is taken: "stat <path>", "phalanx explain <CODE>", and
// advice that is no command. Another host could advise anything.
inline constexpr std::string_view kAdviceOnDirectory = "create or mount it on this host, or choose another directory with --workdir";
inline constexpr std::string_view kAdviceOnArrived = "run the same command again; files that have arrived are not sent again";
inline constexpr std::string_view kAdviceOnTarget =
    "choose another directory with --to, or change the owner and the permissions of this one";
inline constexpr std::string_view kAdviceOnOthers =
    "choose another directory with --to; or add --yes: files of the same names are then replaced, the others stay";
inline constexpr std::string_view kAdviceOnKind = "move it away on this host, or choose another directory with --to";
inline constexpr std::string_view kAdviceOnPushedKind = "add --delete if an earlier push has put it there; else move it away on this host";
inline constexpr std::string_view kAdviceOnSpace =
    "free space on that disk, then run the same command again; files that have arrived are not sent again";
inline constexpr std::string_view kAdviceOnMount = "push that directory by itself with --to, or choose another directory";
bool is_advice_of_agent(std::string_view hint);

// Of the launcher, which an agent trusts, and messages that mean nothing more than their bits.
template <typename Message>
base::Status within_bounds(const Message&) {
  return base::ok();
}

}  // namespace phalanx::wire
