// How messages are written and read: PHALANX_MESSAGE names the fields of a message once, and a Write or a Read walks them. So writing and
// reading cannot disagree. For messages.cc and its sisters only.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/fields.h"
#include "base/packing.h"
#include "wire/bounds.h"
#include "wire/codec.h"
#include "wire/messages.h"

namespace phalanx::wire {

// An enum is one byte. A value outside its ends is of another build, or of nobody: the frame is refused.
constexpr auto ends(base::ErrorKind) { return std::pair(base::ErrorKind::kUsage, base::ErrorKind::kInternal); }
constexpr auto ends(base::Packing) { return std::pair(base::Packing::kLz4, base::Packing::kDeflate); }
constexpr auto ends(Stream) { return std::pair(Stream::kStdout, Stream::kStderr); }
constexpr auto ends(OutputKind) { return std::pair(OutputKind::kLines, OutputKind::kProgress); }
constexpr auto ends(ExitSign::Kind) { return std::pair(ExitSign::Kind::kCgroupKill, ExitSign::Kind::kOther); }
constexpr auto ends(LinkOutcome) { return std::pair(LinkOutcome::kNone, LinkOutcome::kError); }
constexpr auto ends(PieceKind) { return std::pair(PieceKind::kHookStack, PieceKind::kRasReport); }
constexpr auto ends(Wish) { return std::pair(Wish::kStatus, Wish::kLook); }

// The two offer the same calls: w(name, field). Names do not travel; structs are fields behind fields.
struct Write {
  Encoder e;
  void operator()(const char*, uint8_t& v) { e.u8(v); }
  void operator()(const char*, uint32_t& v) { e.u32(v); }
  void operator()(const char*, uint64_t& v) { e.u64(v); }
  void operator()(const char*, int64_t& v) { e.i64(v); }
  void operator()(const char*, bool& v) { e.flag(v); }
  void operator()(const char*, std::string& v) { e.str(v); }
  void operator()(const char*, std::string_view& v) { e.str(v); }
  template <typename T>
  void operator()(const char* name, std::vector<T>& v) {
    e.u32(static_cast<uint32_t>(v.size()));
    for (T& item : v) (*this)(name, item);
  }
  template <typename T>
  void operator()(const char*, T& v) {
    if constexpr (std::is_enum_v<T>) e.u8(static_cast<uint8_t>(v));
    else fields(*this, v);
  }
};

// What no value of the type is shorter than: one whose strings and lists are empty.
template <typename T>
size_t least_bytes() {
  std::string bytes;
  T empty{};
  Write{Encoder(bytes)}("", empty);
  return bytes.size();
}

struct Read {
  Decoder d;
  void operator()(const char*, uint8_t& v) { v = d.u8(); }
  void operator()(const char*, uint32_t& v) { v = d.u32(); }
  void operator()(const char*, uint64_t& v) { v = d.u64(); }
  void operator()(const char*, int64_t& v) { v = d.i64(); }
  void operator()(const char*, bool& v) { v = d.flag(); }
  void operator()(const char*, std::string& v) { v = d.str(); }
  void operator()(const char*, std::string_view& v) { v = d.view(); }
  template <typename T>
  void operator()(const char* name, std::vector<T>& v) {
    v.resize(d.count(least_bytes<T>()));
    for (T& item : v) (*this)(name, item);
  }
  template <typename T>
  void operator()(const char*, T& v) {
    if constexpr (std::is_enum_v<T>) {
      const uint8_t number = d.u8();
      constexpr auto kEnds = ends(T{});
      if (number < static_cast<uint8_t>(kEnds.first) || number > static_cast<uint8_t>(kEnds.second)) d.refuse();
      else v = static_cast<T>(number);
    } else {
      fields(*this, v);
    }
  }
};

template <typename W>
void fields(W& w, std::pair<std::string, std::string>& v) {
  w("first", v.first);
  w("second", v.second);
}
template <typename W>
void fields(W& w, Outcome& m) {
  w("ok", m.ok);
  w("kind", m.error.kind);
  w("message", m.error.message);
  w("cause", m.error.cause);
  w("hint", m.error.hint);
  if (!is_advice_of_agent(m.error.hint)) m.error.hint.clear();
  w("context", m.error.context);
}

// Straight into `out`: the header is written first and its length filled in afterwards, so no payload is copied twice.
template <typename Message>
base::Status encode(std::string& out, const Message& message) {
  size_t at = out.size();
  out.append(kFrameHeaderBytes, '\0');
  Write w{Encoder(out)};
  Message copy = message;
  fields(w, copy);
  size_t size = out.size() - at - kFrameHeaderBytes;
  if (size > kMaxFrameBytes) {
    out.resize(at);
    return base::fail(base::ErrorKind::kInternal, "a message of type " + std::to_string(static_cast<int>(Message::kType)) + " with " +
                                                      std::to_string(size) + " bytes is larger than a frame may be");
  }
  uint32_t length = static_cast<uint32_t>(size);
  std::memcpy(out.data() + at, &length, 4);
  out[at + 4] = static_cast<char>(Message::kType);
  return base::ok();
}

template <typename Message>
base::Result<Message> decode(std::string_view payload) {
  Message message;
  Read r{Decoder(payload)};
  fields(r, message);
  if (!r.d.done())
    return base::fail(base::ErrorKind::kInternal, "a frame of type " + std::to_string(static_cast<int>(Message::kType)) + " is malformed");
  PHALANX_TRY(within_bounds(message));
  return message;
}

// A message with its fields in the order in which they travel.
#define PHALANX_MESSAGE(M, ...)                           \
  PHALANX_FIELDS(M __VA_OPT__(, ) __VA_ARGS__);           \
  template base::Status encode(std::string&, const M&);   \
  template base::Result<M> decode<M>(std::string_view)

}  // namespace phalanx::wire
