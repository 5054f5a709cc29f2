// A connection over which a node joins a run by hand (hosts/join/): what an ssh connection would protect is protected here by the token
// that all nodes share. docs/formats/join.md describes it.
//
//   dialer   → kJoinMagic, nonce
//   listener → nonce, proof                        (challenge.h, Purpose::kJoin)
//   dialer   → proof, then records
//   listener → records
//   record   := u32 length, u8 type, that many bytes (ChaCha20), HMAC-SHA-256 of the record's number, header and bytes
//
// Each direction has keys of its own, derived from the token and both nonces; records are numbered, so none can be changed, left out,
// repeated or sent back. There is no forward secrecy: who learns the token later can read a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/challenge.h"

namespace phalanx::wire {

inline constexpr std::string_view kJoinMagic{"PHALANX-JOIN-1\n"};
inline constexpr size_t kMostRecordBytes = 1 << 20;

enum class RecordType : uint8_t {
  kFacts = 1,    // node → node 0, first: hosts::MemberFacts
  kWaiting = 2,  // node 0 → node: a text to show
  kStart = 3,    // node 0 → node: everyone is there; bytes of the agent follow
  kRefused = 4,  // node 0 → node: a text; the connection ends
  kData = 5,     // bytes of the agent's stdin or stdout
  kNoise = 6,    // node → node 0: the agent's stderr
  kEnd = 7,      // node 0 → node: the agent's stdin is over; node → node 0: the agent has ended, u32 as from waitpid
  kStop = 8,     // node → node 0: Ctrl-C
  kVerdict = 9,  // node 0 → node: u32 exit code of the run, text
};

struct Record {
  RecordType type{};
  std::string payload;
};

// One side of one connection. Pure: bytes in, bytes out.
class SealedStream {
 public:
  // token: of any length. nonce: kNonceBytes that nobody can predict.
  SealedStream(Side side, std::string_view token, std::string nonce);
  // One that goes on where another stopped, in another process (state()). Error kInternal: that is no state.
  static base::Result<SealedStream> resume(std::string_view state);

  // What is to be sent before anything was received: the dialer's greeting.
  std::string greeting() const;
  // Takes what was received. `reply` gets what the handshake answers. Error kUnreachable: the other side has another token. Error
  // kInternal: it does not speak this protocol, or somebody has changed bytes. The stream stays broken.
  base::Status feed(std::string_view bytes, std::string& reply);
  bool open() const { return open_; }  // the other side has proved that it holds the token
  // The next whole record, after open().
  base::Result<std::optional<Record>> next();
  // A record to send; open() must hold. The payload has at most kMostRecordBytes.
  std::string seal(RecordType type, std::string_view payload);

  // Keys, numbers and what was received but not taken. Secret.
  std::string state() const;

 private:
  SealedStream() = default;
  struct Direction {
    std::string cipher, mac;  // keys
    uint64_t number = 0;      // of the next record
  };
  void derive(std::string_view dialers, std::string_view listeners);
  base::Error broken(base::ErrorKind kind, const char* why);

  Side side_ = Side::kDialer;
  std::string key_, nonce_, theirs_;
  std::string buffer_;
  Direction out_, in_;
  bool open_ = false, broken_ = false;
};

}  // namespace phalanx::wire
