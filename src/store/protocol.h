// The wire protocol of PyTorch's TCPStore: bytes in, operations out, and how answers are written. Pure: no I/O, no clock.
// All numbers are little-endian; a string is a u64 length and that many bytes. There is no version field; the client
// speaks first, and its first bytes tell which dialect it speaks (docs/formats/store-protocol.md has the tables):
//
//   modern  PyTorch 2.2 and later: the byte 0 (VALIDATE), then CE F7 85 3C. Codes as in OpCode below, VALIDATE = 0.
//   legacy  everything older: no greeting, codes start at SET = 0. Up to 2.0 the codes 7 and 8 are WATCH_KEY and DELETE_KEY;
//           2.1 dropped WATCH_KEY, so there 7 is DELETE_KEY, 8 APPEND, 9 MULTI_GET, 10 MULTI_SET, 11 CANCEL_WAIT. For a while
//           in 2023 CE F7 85 3C stood before each of these requests.
//   probe   ours: "PHLX" and a nonce; after the answer, the proof of wire/challenge.h.
//
// Source: torch/csrc/distributed/c10d/TCPStore{,Backend,LibUvBackend}.{hpp,cpp}, and byte dumps of 1.13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::store {

enum class Dialect : uint8_t { kUnknown, kLegacy, kModern, kProbe };

// With the modern dialect's codes, up to kBarrier. kWatchKey is legacy only, kProbe and kProof ours.
// clang-format off
enum class OpCode : uint8_t {
  kValidate, kSet, kCompareSet, kGet, kAdd, kCheck, kWait, kNumKeys, kDeleteKey, kAppend, kMultiGet, kMultiSet, kCancelWait,
  kPing, kQueuePush, kQueuePop, kQueueLen, kListKeys, kBarrier, kWatchKey, kProbe,
  kProof,
};
// clang-format on

// One request. `parts` are views into the bytes given to Parser::next: its keys and values, in wire order.
struct Op {
  OpCode code = OpCode::kValidate;
  std::vector<std::string_view> parts;
  int64_t number = 0;  // kAdd: what to add. kBarrier: world size. kPing: the nonce (PyTorch sends its pid)
};

// The first three are PyTorch's own. max_op bounds what has to be buffered for one request.
struct Limits {
  size_t max_key = 8 << 10;
  size_t max_value = 8 << 20;
  size_t max_keys = 128 << 10;
  size_t max_op = 32 << 20;  // below 4 GiB
};

inline constexpr std::string_view kProbeMagic = "PHLX";
inline constexpr std::string_view kProbeAnswer = "OK\n";
inline constexpr std::string_view kModernGreeting{"\x00\xCE\xF7\x85\x3C", 5};

// Answers of WAIT, CANCEL_WAIT and BARRIER; of CHECK; and the first byte of what a watching legacy client is sent.
enum class WaitAnswer : uint8_t { kStopWaiting, kCanceled };
enum class CheckAnswer : uint8_t { kReady, kNotReady };
enum class WatchAnswer : uint8_t { kUpdated, kCreated, kDeleted, kRegistered, kAppended };

// One connection's parser. The caller keeps the bytes that are not consumed yet and gives them again, with what came
// after them; no byte of a large request is looked at twice.
class Parser {
 public:
  struct Step {
    enum Kind { kOp, kMore, kBad } kind;
    size_t consumed = 0;   // of kOp
    const char* why = "";  // of kBad: what is wrong with the bytes; the connection cannot go on
  };
  explicit Parser(const Limits& limits) : limits_(&limits) {}  // limits must outlive the parser
  Step next(std::string_view bytes, Op& op);
  Dialect dialect() const { return dialect_; }

 private:
  struct Span {
    uint32_t offset, size;
  };
  Step begin(std::string_view bytes);
  Step legacy_code(uint8_t byte);
  Step fields(std::string_view bytes);
  Step string_field(std::string_view bytes, bool is_key);
  char field() const;

  const Limits* limits_;
  std::vector<Span> spans_;      // of the request under way; empty between requests
  const char* shape_ = nullptr;  // null between requests
  size_t cursor_ = 0;            // bytes of the request already understood
  int64_t number_ = 0;
  uint32_t rounds_ = 0;  // how often the repeated fields are still to come
  uint8_t field_ = 0;
  Dialect dialect_ = Dialect::kUnknown;
  OpCode code_ = OpCode::kValidate;
  bool spoke_ = false;     // a request has been read
  bool watching_ = false;  // every request so far was WATCH_KEY
  bool v2_1_ = false;      // a legacy client that used what only 2.1 has
  bool tagged_ = false;    // and puts the magic before each request
};

void put_u8(std::string& out, uint8_t value);
void put_u32(std::string& out, uint32_t value);
void put_u64(std::string& out, uint64_t value);
void put_string(std::string& out, std::string_view bytes);

}  // namespace phalanx::store
