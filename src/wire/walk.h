// How messages are written and read: one function `fields(W&, Message&)` per message names its fields once, and a Write or a Read walks
// them. So writing and reading cannot disagree. For messages.cc and its sisters only.
#pragma once

#include "wire/bounds.h"
#include "wire/codec.h"
#include "wire/messages.h"

namespace phalanx::wire {

// The two offer the same calls: w(field).
struct Write {
  Encoder e;
  void operator()(const uint8_t& v) { e.u8(v); }
  void operator()(const uint32_t& v) { e.u32(v); }
  void operator()(const uint64_t& v) { e.u64(v); }
  void operator()(const int64_t& v) { e.i64(v); }
  void operator()(const bool& v) { e.flag(v); }
  void operator()(const std::string& v) { e.str(v); }
  void operator()(const std::string_view& v) { e.str(v); }
  void operator()(const std::vector<std::string>& v) { e.strs(v); }
  void operator()(const std::vector<uint32_t>& v) {
    e.u32(static_cast<uint32_t>(v.size()));
    for (uint32_t n : v) e.u32(n);
  }
  template <typename T>
  void each(const std::vector<T>& v, size_t) {
    e.u32(static_cast<uint32_t>(v.size()));
    for (const T& item : v) fields(*this, const_cast<T&>(item));
  }
};

struct Read {
  Decoder d;
  void operator()(uint8_t& v) { v = d.u8(); }
  void operator()(uint32_t& v) { v = d.u32(); }
  void operator()(uint64_t& v) { v = d.u64(); }
  void operator()(int64_t& v) { v = d.i64(); }
  void operator()(bool& v) { v = d.flag(); }
  void operator()(std::string& v) { v = d.str(); }
  void operator()(std::string_view& v) { v = d.view(); }
  void operator()(std::vector<std::string>& v) { v = d.strs(); }
  void operator()(std::vector<uint32_t>& v) {
    v.resize(d.count(4));
    for (uint32_t& n : v) n = d.u32();
  }
  template <typename T>
  void each(std::vector<T>& v, size_t least) {
    v.resize(d.count(least));
    for (T& item : v) fields(*this, item);
  }
};

// An enum is one byte. A value outside [least, most] is of another build, or of nobody: the frame is refused.
template <typename E>
void one_of(Write& w, E& v, E, E) {
  w(static_cast<uint8_t>(v));
}
template <typename E>
void one_of(Read& r, E& v, E least, E most) {
  const uint8_t number = r.d.u8();
  if (number < static_cast<uint8_t>(least) || number > static_cast<uint8_t>(most)) r.d.refuse();
  else v = static_cast<E>(number);
}

template <typename W>
void fields(W& w, std::pair<std::string, std::string>& v) {
  w(v.first);
  w(v.second);
}
template <typename W>
void fields(W& w, Outcome& m) {
  w(m.ok);
  one_of(w, m.error.kind, base::ErrorKind::kUsage, base::ErrorKind::kInternal);
  w(m.error.message);
  w(m.error.cause);
  w(m.error.hint);
  if (!is_advice_of_agent(m.error.hint)) m.error.hint.clear();
  w(m.error.context);
}
// Straight into `out`: the header is written first and its length filled in afterwards, so no payload is copied twice.
template <typename Message>
base::Status put(std::string& out, const Message& message) {
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

#define PHALANX_MESSAGE(M)                                               \
  base::Status encode(std::string& out, const M& message) { return put(out, message); } \
  template base::Result<M> decode<M>(std::string_view payload)

}  // namespace phalanx::wire
