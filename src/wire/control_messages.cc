#include "wire/control_messages.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "wire/codec.h"

namespace phalanx::wire {
namespace {

constexpr int64_t kDayMs = 86'400'000;

template <typename Message, typename Write>
base::Status put(std::string& out, Write write) {
  std::string payload;
  Encoder encoder(payload);
  write(encoder);
  return put_frame(out, Message::kType, payload);
}

// read fills the message; false: a field holds what it may not.
template <typename Message, typename Read>
base::Result<Message> get(std::string_view payload, Read read) {
  Decoder decoder(payload);
  Message message;
  bool sensible = read(decoder, message);
  if (sensible && decoder.done()) return message;
  return base::fail(base::ErrorKind::kInternal,
                    base::counted("malformed control frame of type {} with {} bytes", static_cast<int>(Message::kType), payload.size()));
}

}  // namespace

base::Status encode(std::string& out, const Ask& m) {
  return put<Ask>(out, [&](Encoder& e) {
    e.u8(static_cast<uint8_t>(m.wish));
    e.i64(m.grace_ms);
    e.flag(m.kill);
  });
}
template <>
base::Result<Ask> decode<Ask>(std::string_view payload) {
  return get<Ask>(payload, [](Decoder& d, Ask& m) {
    uint8_t wish = d.u8();
    m.wish = static_cast<Wish>(wish);
    m.grace_ms = d.i64();
    m.kill = d.flag();
    return wish >= 1 && wish <= 4 && m.grace_ms >= -1 && m.grace_ms <= kDayMs;
  });
}

base::Status encode(std::string& out, const RunStatus& m) {
  return put<RunStatus>(out, [&](Encoder& e) { e.str(m.json); });
}
template <>
base::Result<RunStatus> decode<RunStatus>(std::string_view payload) {
  return get<RunStatus>(payload, [](Decoder& d, RunStatus& m) {
    m.json = d.str();
    return true;
  });
}

base::Status encode(std::string& out, const Looked& m) {
  return put<Looked>(out, [&](Encoder& e) { e.str(m.json); });
}
template <>
base::Result<Looked> decode<Looked>(std::string_view payload) {
  return get<Looked>(payload, [](Decoder& d, Looked& m) {
    m.json = d.str();
    return true;
  });
}

base::Status encode(std::string& out, const Talk& m) {
  return put<Talk>(out, [&](Encoder& e) { e.str(m.text); });
}
template <>
base::Result<Talk> decode<Talk>(std::string_view payload) {
  return get<Talk>(payload, [](Decoder& d, Talk& m) {
    m.text = d.str();
    return true;
  });
}

base::Status encode(std::string& out, const Dropped& m) {
  return put<Dropped>(out, [&](Encoder& e) { e.u64(m.bytes); });
}
template <>
base::Result<Dropped> decode<Dropped>(std::string_view payload) {
  return get<Dropped>(payload, [](Decoder& d, Dropped& m) {
    m.bytes = d.u64();
    return true;
  });
}

base::Status encode(std::string& out, const RunEnded& m) {
  return put<RunEnded>(out, [&](Encoder& e) { e.u32(m.exit_code); });
}
template <>
base::Result<RunEnded> decode<RunEnded>(std::string_view payload) {
  return get<RunEnded>(payload, [](Decoder& d, RunEnded& m) {
    m.exit_code = d.u32();
    return m.exit_code <= 255;
  });
}

base::Status encode(std::string& out, const Sweep& m) {
  return put<Sweep>(out, [&](Encoder& e) {
    e.str(m.run_id);
    e.u32(m.patience_ms);
  });
}
template <>
base::Result<Sweep> decode<Sweep>(std::string_view payload) {
  return get<Sweep>(payload, [](Decoder& d, Sweep& m) {
    m.run_id = d.str();
    m.patience_ms = d.u32();
    return !m.run_id.empty() && m.run_id.size() <= 128;
  });
}

base::Status encode(std::string& out, const Swept& m) {
  return put<Swept>(out, [&](Encoder& e) {
    e.u32(static_cast<uint32_t>(m.found.size()));
    for (const SweptProcess& p : m.found) {
      e.u32(p.pid);
      e.str(p.command);
      e.flag(p.gone);
    }
    e.u32(m.waited_for);
    e.u32(static_cast<uint32_t>(m.unseen.size()));
    for (const SweptUnseen& u : m.unseen) {
      e.u32(u.pid);
      e.str(u.text);
    }
  });
}
template <>
base::Result<Swept> decode<Swept>(std::string_view payload) {
  return get<Swept>(payload, [](Decoder& d, Swept& m) {
    uint32_t count = d.count(9);
    if (count > kMaxSwept) return false;
    m.found.resize(count);
    for (SweptProcess& p : m.found) {
      p.pid = d.u32();
      p.command = d.str();
      p.gone = d.flag();
      if (p.command.size() > kMostSweptBytes || p.pid > INT32_MAX) return false;
    }
    m.waited_for = d.u32();
    count = d.count(8);
    if (count > kMaxSwept) return false;
    m.unseen.resize(count);
    for (SweptUnseen& u : m.unseen) {
      u.pid = d.u32();
      u.text = d.str();
      if (u.pid > INT32_MAX) return false;
    }
    return true;
  });
}

}  // namespace phalanx::wire
