#include "store/protocol.h"

#include <algorithm>
#include <array>

#include "wire/challenge.h"

namespace phalanx::store {
namespace {

using Step = Parser::Step;

// The fields of each request by OpCode, one letter each: k key, v value, i i64, u u32, t nonce, r proof, n how often the rest is
// repeated, d a value that may be missing (legacy_code), m and p what is left of a magic that begin() has compared.
constexpr std::array kShapes = {
    "m",    // kValidate
    "kv",   // kSet
    "kvv",  // kCompareSet
    "k",    // kGet
    "ki",   // kAdd
    "nk",   // kCheck
    "nk",   // kWait
    "",     // kNumKeys
    "k",    // kDeleteKey
    "kv",   // kAppend
    "nk",   // kMultiGet
    "nkv",  // kMultiSet
    "",     // kCancelWait
    "u",    // kPing
    "kv",   // kQueuePush
    "k",    // kQueuePop
    "k",    // kQueueLen
    "",     // kListKeys
    "ki",   // kBarrier
    "k",    // kWatchKey
    "pt",   // kProbe
    "r",    // kProof
};
const char* shape_of(OpCode code) { return kShapes[static_cast<size_t>(code)]; }

constexpr const char* kDeleteOrAppend = "kd";
size_t fixed_size(char field) {
  switch (field) {
    case 'i':
    case 'n': return 8;
    case 'u':
    case 'm': return 4;
    case 'p': return kProbeMagic.size() - 1;
    case 't': return wire::kNonceBytes;
    case 'r': return wire::kProofBytes;
    default: return 0;
  }
}

constexpr Step kMore{Step::kMore};
constexpr Step kGoOn{Step::kOp};
Step bad(const char* why) { return {Step::kBad, 0, why}; }

uint64_t read_number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

constexpr std::string_view kTag = kModernGreeting.substr(1);

// How far `bytes` agree with `pattern`: all of it, a part that may still grow, or not.
enum class Match { kWhole, kPart, kNo };
Match match(std::string_view bytes, std::string_view pattern) {
  size_t size = std::min(bytes.size(), pattern.size());
  if (bytes.substr(0, size) != pattern.substr(0, size)) return Match::kNo;
  return size == pattern.size() ? Match::kWhole : Match::kPart;
}

}  // namespace

void put_u8(std::string& out, uint8_t value) { out.push_back(static_cast<char>(value)); }
void put_u32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i) put_u8(out, static_cast<uint8_t>(value >> (8 * i)));
}
void put_u64(std::string& out, uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  out.append(bytes, sizeof(bytes));
}
void put_string(std::string& out, std::string_view bytes) {
  put_u64(out, bytes.size());
  out.append(bytes);
}

Step Parser::next(std::string_view bytes, Op& op) {
  if (!shape_) {
    if (Step step = begin(bytes); step.kind != Step::kOp) return step;
  }
  if (Step step = fields(bytes); step.kind != Step::kOp) return step;
  op.code = code_;
  op.number = number_;
  op.parts.clear();
  for (Span span : spans_) op.parts.push_back(bytes.substr(span.offset, span.size));
  size_t consumed = cursor_;
  if (spans_.capacity() > 64) spans_ = {};
  else spans_.clear();
  watching_ = code_ == OpCode::kWatchKey;
  spoke_ = true;
  shape_ = nullptr;
  return {Step::kOp, consumed};
}

// Reads the code of the next request, and before the first one finds the dialect.
Step Parser::begin(std::string_view bytes) {
  if (bytes.empty()) return kMore;
  cursor_ = 1;
  number_ = 0;
  field_ = 0;
  rounds_ = 0;
  if (dialect_ == Dialect::kUnknown) {
    // A legacy SET also begins with 0, but as the length of a key CE F7 85 3C is far over the limit.
    Match modern = match(bytes, kModernGreeting), probe = match(bytes, kProbeMagic), tag = match(bytes, kTag);
    if (modern == Match::kPart || probe == Match::kPart || tag == Match::kPart) return kMore;
    dialect_ = modern == Match::kWhole ? Dialect::kModern : probe == Match::kWhole ? Dialect::kProbe : Dialect::kLegacy;
    tagged_ = v2_1_ = tag == Match::kWhole;
  }
  if (tagged_) {
    cursor_ = kTag.size() + 1;
    Match tag = match(bytes, kTag);
    if (tag == Match::kNo) return bad("a request without its tag");
    if (tag == Match::kPart || bytes.size() < cursor_) return kMore;
  }
  auto byte = static_cast<uint8_t>(bytes[cursor_ - 1]);
  if (dialect_ == Dialect::kLegacy) return legacy_code(byte);
  if (dialect_ == Dialect::kProbe) {
    if (code_ == OpCode::kProof) return bad("bytes after a probe");
    code_ = spoke_ ? OpCode::kProof : OpCode::kProbe;
    if (spoke_) cursor_ = 0;  // a proof has no code before it
  } else if (byte > static_cast<uint8_t>(OpCode::kBarrier) || (byte == 0) == spoke_) {
    return bad("unknown request code");
  } else {
    code_ = static_cast<OpCode>(byte);
  }
  shape_ = shape_of(code_);
  return kGoOn;
}

// Two tables share the codes 7 and 8. WATCH_KEY (up to 2.0) is only ever sent on a connection of its own, DELETE_KEY (2.1)
// hardly ever comes first. DELETE_KEY (up to 2.0) waits for its answer, so nothing follows it; APPEND (2.1) arrives with its value,
// written by one send(). Once a connection has used a code that only 2.1 has, there is nothing to guess.
Step Parser::legacy_code(uint8_t byte) {
  if (byte > 11) return bad("unknown request code");
  if (byte <= 6) code_ = static_cast<OpCode>(byte + 1);
  else if (byte == 7) code_ = !v2_1_ && (!spoke_ || watching_) ? OpCode::kWatchKey : OpCode::kDeleteKey;
  else if (byte == 8) code_ = v2_1_ ? OpCode::kAppend : OpCode::kDeleteKey;
  else code_ = static_cast<OpCode>(byte + 1);
  shape_ = byte == 8 && !v2_1_ ? kDeleteOrAppend : shape_of(code_);
  if (byte > 8 || (byte == 7 && code_ == OpCode::kDeleteKey)) v2_1_ = true;
  return kGoOn;
}

// The field that comes next, 0 when the request is whole.
char Parser::field() const { return shape_[field_]; }

Step Parser::fields(std::string_view bytes) {
  while (char kind = field()) {
    size_t size = fixed_size(kind);
    if (bytes.size() < cursor_ + size) return kMore;
    switch (kind) {
      case 'd':
        if (bytes.size() == cursor_ && code_ != OpCode::kAppend) return kGoOn;
        code_ = OpCode::kAppend;
        v2_1_ = true;
        [[fallthrough]];
      case 'k':
      case 'v': {
        Step step = string_field(bytes, kind == 'k');
        if (step.kind != Step::kOp) return step;
        break;
      }
      case 't':
      case 'r': spans_.push_back({static_cast<uint32_t>(cursor_), static_cast<uint32_t>(size)}); break;
      case 'n': {
        uint64_t count = read_number(bytes, cursor_, size);
        if (count > limits_->max_keys) return bad("too many keys in one request");
        cursor_ += size;
        if (count == 0) return kGoOn;
        rounds_ = static_cast<uint32_t>(count);
        ++field_;
        continue;
      }
      case 'i':
      case 'u': number_ = static_cast<int64_t>(read_number(bytes, cursor_, size)); break;
      default: break;
    }
    cursor_ += size;
    ++field_;
    if (field() == 0 && rounds_ > 1) {
      --rounds_;
      field_ = 1;
    }
  }
  return kGoOn;
}

Step Parser::string_field(std::string_view bytes, bool is_key) {
  if (bytes.size() < cursor_ + 8) return kMore;
  uint64_t size = read_number(bytes, cursor_, 8);
  if (size > (is_key ? limits_->max_key : limits_->max_value)) return bad(is_key ? "key too long" : "value too long");
  if (cursor_ + 8 + size > limits_->max_op) return bad("request too long");
  if (bytes.size() < cursor_ + 8 + size) return kMore;
  spans_.push_back({static_cast<uint32_t>(cursor_ + 8), static_cast<uint32_t>(size)});
  cursor_ += 8 + size;
  return kGoOn;
}

}  // namespace phalanx::store
