// One function per message names its fields once; an Encoder or a Decoder walks them. So writing and reading a message
// cannot disagree.
#include "wire/messages.h"

#include "wire/check_messages.h"
#include "wire/codec.h"

namespace wire {
namespace {

// The two walkers offer the same calls: w(field).
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

template <typename W>
void fields(W& w, std::pair<std::string, std::string>& v) {
  w(v.first);
  w(v.second);
}
template <typename W>
void fields(W& w, Address& m) {
  w(m.interface);
  w(m.address);
}
template <typename W>
void fields(W& w, Outcome& m) {
  w(m.ok);
  uint8_t kind = static_cast<uint8_t>(m.error.kind);
  w(kind);
  m.error.kind = kind <= static_cast<uint8_t>(base::ErrorKind::kInternal) ? static_cast<base::ErrorKind>(kind) : base::ErrorKind::kInternal;
  w(m.error.message);
  w(m.error.cause);
  w(m.error.hint);
  w(m.error.context);
}
template <typename W>
void fields(W& w, Hello& m) {
  w(m.build);
  w(m.hostname);
  w(m.user);
  w(m.pid);
  w(m.cpus);
  w(m.gpus);
  w.each(m.addresses, 8);
  w(m.ssh_server);
  w(m.ssh_client);
  w(m.now_ns);
  w(m.wall_ns);
}
template <typename W>
void fields(W& w, Prepared& m) {
  fields(w, m.outcome);
  w(m.program);
}
template <typename W>
void fields(W& w, StoreOpened& m) {
  fields(w, m.outcome);
  w(m.port);
}
template <typename W>
void fields(W& w, Reached& m) {
  fields(w, m.outcome);
  w(m.interface);
}
template <typename W>
void fields(W& w, Started& m) {
  fields(w, m.outcome);
  w(m.rank);
  w(m.pid);
}
template <typename W>
void fields(W& w, Output& m) {
  w(m.rank);
  uint8_t stream = static_cast<uint8_t>(m.stream), kind = static_cast<uint8_t>(m.kind);
  w(stream);
  w(kind);
  m.stream = stream == 2 ? Stream::kStderr : Stream::kStdout;
  m.kind = kind == 1 ? OutputKind::kProgress : OutputKind::kLines;
  w(m.at_ns);
  w(m.data);
}
template <typename W>
void fields(W& w, Progress& m) {
  w(m.rank);
  w(m.at_ns);
  w(m.line);
}
template <typename W>
void fields(W& w, Exited& m) {
  w(m.rank);
  w(m.status);
  w(m.at_ns);
  w(m.stopped_by_us);
  w(m.error_file);
}
template <typename W>
void fields(W& w, Connected& m) {
  w(m.rank);
}
template <typename W>
void fields(W& w, Pong& m) {
  w(m.nonce);
  w(m.now_ns);
}
template <typename W>
void fields(W& w, Finished& m) {
  w(m.killed);
  w(m.left);
}
template <typename W>
void fields(W& w, Trouble& m) {
  w(m.text);
}
template <typename W>
void fields(W& w, Prepare& m) {
  w(m.run_id);
  w(m.token);
  w(m.lease_ms);
  w(m.directory);
  w(m.argv);
  w.each(m.set, 8);
  w(m.unset);
  w(m.path_prefix);
}
template <typename W>
void fields(W& w, OpenStore& m) {
  w(m.address);
  w(m.port);
  w(m.serve);
}
template <typename W>
void fields(W& w, Reach& m) {
  w(m.address);
  w(m.port);
  w(m.timeout_ms);
}
template <typename W>
void fields(W& w, RankSpec& m) {
  w(m.rank);
  w(m.local_rank);
  w.each(m.set, 8);
  w(m.cpus);
}
template <typename W>
void fields(W& w, Start& m) {
  w(m.store_address);
  w(m.store_port);
  w.each(m.defaults, 8);
  w.each(m.ranks, 16);
}
template <typename W>
void fields(W& w, Signal& m) {
  w(m.signal);
}
template <typename W>
void fields(W& w, Ping& m) {
  w(m.nonce);
}
template <typename W>
void fields(W&, Finish&) {}
template <typename W>
void fields(W& w, Probed& m) {
  fields(w, m.outcome);
  w(m.json);
}
template <typename W>
void fields(W& w, ListenedPlace& m) {
  fields(w, m.outcome);
  w(m.port);
}
template <typename W>
void fields(W& w, Listening& m) {
  w.each(m.places, 22);
}
template <typename W>
void fields(W& w, DialedLink& m) {
  w(m.to);
  w(m.master_port);
  w(m.outcome);
  w(m.error_number);
  w(m.connect_ns);
  w(m.round_trip_ns);
  w(m.bytes_per_second);
  w(m.segments);
  w(m.retransmits);
  w(m.local_address);
}
template <typename W>
void fields(W& w, Dialed& m) {
  w(m.round);
  w.each(m.links, 57);
}
template <typename W>
void fields(W& w, ProbePeer& m) {
  w(m.name);
  w(m.addresses);
}
template <typename W>
void fields(W& w, Probe& m) {
  w(m.argv);
  w(m.directory);
  w.each(m.set, 8);
  w(m.unset);
  w(m.path_prefix);
  w.each(m.peers, 8);
  w(m.ports);
  w(m.names);
  w(m.paths);
  w(m.deadline_ms);
}
template <typename W>
void fields(W& w, Place& m) {
  w(m.address);
  w(m.port);
}
template <typename W>
void fields(W& w, Listen& m) {
  w(m.token);
  w.each(m.places, 8);
}
template <typename W>
void fields(W& w, DialTarget& m) {
  w(m.to);
  w(m.address);
  w(m.port);
  w(m.master_port);
}
template <typename W>
void fields(W& w, Dial& m) {
  w(m.round);
  w(m.token);
  w(m.payload_bytes);
  w(m.burst_ms);
  w(m.timeout_ms);
  w.each(m.targets, 13);
}

// Straight into `out`: the header is written first and its length filled in afterwards, so no payload is copied twice.
template <typename Message>
void put(std::string& out, const Message& message) {
  size_t at = out.size();
  out.append(kFrameHeaderBytes, '\0');
  Write w{Encoder(out)};
  Message copy = message;
  fields(w, copy);
  size_t size = out.size() - at - kFrameHeaderBytes;
  CHECK(size <= kMaxFrameBytes);
  uint32_t length = static_cast<uint32_t>(size);
  std::memcpy(out.data() + at, &length, 4);
  out[at + 4] = static_cast<char>(Message::kType);
}

}  // namespace

template <typename Message>
base::Result<Message> decode(std::string_view payload) {
  Message message;
  Read r{Decoder(payload)};
  fields(r, message);
  if (!r.d.done())
    return base::fail(base::ErrorKind::kInternal, "a frame of type " + std::to_string(static_cast<int>(Message::kType)) + " is malformed");
  return message;
}

#define PHALANX_MESSAGE(M)                                               \
  void encode(std::string& out, const M& message) { put(out, message); } \
  template base::Result<M> decode<M>(std::string_view payload)
PHALANX_MESSAGE(Hello);
PHALANX_MESSAGE(Prepared);
PHALANX_MESSAGE(StoreOpened);
PHALANX_MESSAGE(Reached);
PHALANX_MESSAGE(Started);
PHALANX_MESSAGE(Output);
PHALANX_MESSAGE(Progress);
PHALANX_MESSAGE(Exited);
PHALANX_MESSAGE(Connected);
PHALANX_MESSAGE(Pong);
PHALANX_MESSAGE(Finished);
PHALANX_MESSAGE(Trouble);
PHALANX_MESSAGE(Prepare);
PHALANX_MESSAGE(OpenStore);
PHALANX_MESSAGE(Reach);
PHALANX_MESSAGE(Start);
PHALANX_MESSAGE(Signal);
PHALANX_MESSAGE(Ping);
PHALANX_MESSAGE(Finish);
PHALANX_MESSAGE(Probed);
PHALANX_MESSAGE(Listening);
PHALANX_MESSAGE(Dialed);
PHALANX_MESSAGE(Probe);
PHALANX_MESSAGE(Listen);
PHALANX_MESSAGE(Dial);
#undef PHALANX_MESSAGE

}  // namespace wire
