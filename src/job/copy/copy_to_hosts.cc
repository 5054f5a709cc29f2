#include "job/copy/copy_to_hosts.h"

#include <signal.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"

namespace phalanx::job {
namespace {

using base::ErrorKind;

constexpr os::milliseconds kTick{1000};
constexpr os::milliseconds kSilence{120'000};  // nothing was taken or said for so long
constexpr size_t kPiece = 256 << 10;

}  // namespace

CopyToHosts::CopyToHosts(os::Loop& loop, const std::vector<hosts::Target>& targets, const std::vector<const hosts::Transport*>& transports,
                         hosts::Payload& payload, hosts::OpenerOptions options, CopyRequest request)
    : loop_(loop),
      request_(std::move(request)),
      hosts_(targets.size()),
      opener_(loop, payload, hosts::Opener::with_transports(targets, transports), options,
              hosts::Opener::Handlers{[this](size_t h, const wire::Frame& frame) { on_frame(h, frame); },
                                      [this](size_t h, base::Error error, std::optional<wire::GuardEnd>) {
                                        if (hosts_[h].over) return;
                                        hosts_[h].copied.unreachable = !hosts_[h].said_hello;
                                        fail(h, std::move(error));
                                      }},
              0) {
  if (request_.manifest) list_ = sync::encode(*request_.manifest);
  if (request_.manifest && !request_.last_list.empty()) changes_ = sync::changes_since(request_.last_list, list_);
  for (size_t h = 0; h < targets.size(); ++h) {
    hosts_[h].copied.name = targets[h].name;
    hosts_[h].whole_list = changes_.bytes.empty();
  }
}

base::Result<std::vector<CopiedHost>> CopyToHosts::run() {
  TRY(loop_.on_child([this](pid_t pid, int status) { opener_.on_child(pid, status); }));
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP})
    TRY(loop_.on_signal(signal_number, [this](const signalfd_siginfo&) { loop_.stop(); }));
  const os::Mono now = os::mono_now();
  for (Host& host : hosts_) host.began = host.heard = now;
  const os::TimerId timer = loop_.every(kTick, [this] { tick(); });
  // Contents that are not those of the files have something to do also in the directory itself.
  if (request_.manifest && !request_.target.path.empty() && !request_.aside) mark_.make(request_.root);
  opener_.start();
  if (!hosts_.empty()) loop_.run();
  mark_.remove();
  loop_.cancel(timer);
  loop_.cancel(gathering_);
  for (Host& host : hosts_) {
    if (host.over) continue;
    host.copied.unreachable = !host.said_hello;
    host.copied.error =
        base::fail(ErrorKind::kInterrupted, request_.target.path.empty() ? "interrupted while the code was copied; nothing has been started"
                                                                         : "interrupted before everything was in its place");
  }
  const bool any = std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.copied.error; });
  if (request_.manifest && any) sync::keep_list(request_.last_list, list_);
  std::vector<CopiedHost> copied;
  for (Host& host : hosts_) copied.push_back(std::move(host.copied));
  return copied;
}

void CopyToHosts::on_frame(size_t h, const wire::Frame& frame) {
  Host& host = hosts_[h];
  if (host.over) return;
  host.heard = os::mono_now();
  if (frame.type == wire::FrameType::kHello) {
    base::Result<wire::Hello> hello = wire::decode<wire::Hello>(frame.payload);
    if (hello.ok() && host.said_hello)
      hello = base::fail(ErrorKind::kInternal, fmt::format("{}: protocol error: the agent began twice", host.copied.name));
    if (!hello.ok()) return fail(h, std::move(hello).error());
    host.said_hello = true;
    for (const wire::Address& one : hello->addresses)
      if (one.address == hello->ssh_server) host.address = one.address;
    std::string frames;
    const PushTarget& to = request_.target;
    if (request_.manifest)
      (void)wire::encode(frames, wire::CopyBegin{request_.name, list_.size(), h >= request_.first_spare, to.path, to.mode, to.remove,
                                                 to.among_others, changes_.bytes.size(), changes_.digest, mark_.name()});
    else (void)wire::encode(frames, wire::CopyRelease{request_.name});
    hosts::Connection* connection = opener_.connection(h);
    connection->on_drained([this, h] { pump(h); });
    connection->send(frames);
    return pump(h);
  }
  if (frame.type == wire::FrameType::kCopyWanted) {
    base::Result<wire::CopyWanted> wanted = wire::decode<wire::CopyWanted>(frame.payload);
    base::Status taken = wanted.ok() ? take_wanted(h, std::move(*wanted)) : base::Status(wanted.error());
    if (!taken.ok()) return fail(h, std::move(taken).error());
    return pump(h);
  }
  if (on_chain_frame(h, frame)) return;
  if (frame.type != wire::FrameType::kCopyDone) return;
  base::Result<wire::CopyDone> done = wire::decode<wire::CopyDone>(frame.payload);
  if (!done.ok()) return fail(h, std::move(done).error());
  if (!done->outcome.ok) {
    base::Error error = std::move(done->outcome.error);
    error.message = host.copied.name + ": " + error.message;
    return fail(h, std::move(error));
  }
  if (!done->path.starts_with('/') || (request_.target.path.empty() && !done->path.ends_with("/copies/" + request_.name + "/tree")))
    return fail(h,
                base::fail(ErrorKind::kInternal, fmt::format("{}: protocol error: the agent named a wrong directory", host.copied.name)));
  host.copied.path = done->path;
  host.copied.kept = done->kept;
  host.copied.removed = done->removed;
  host.copied.stayed = done->stayed;
  host.copied.is_source = done->is_source;
  settle(h);
}

base::Status CopyToHosts::take_wanted(size_t h, wire::CopyWanted wanted) {
  Host& host = hosts_[h];
  const base::Error refused = base::fail(
      ErrorKind::kInternal, fmt::format("{}: protocol error: the agent asked for files that are not in the list", host.copied.name));
  if (!request_.manifest || host.asked || (wanted.whole_list && host.whole_list)) return refused;
  if (wanted.whole_list) {
    host.whole_list = true;
    host.list_sent = 0;
    return base::ok();
  }
  host.asked = true;
  if (all_asked()) mark_.remove();
  const std::vector<sync::Entry>& entries = request_.manifest->entries;
  for (size_t i = 0; i < wanted.entries.size(); ++i) {
    const uint32_t entry = wanted.entries[i];
    if (entry >= entries.size() || !entries[entry].is_file() || (i > 0 && entry <= wanted.entries[i - 1])) return refused;
    host.total += entries[entry].size;
  }
  if (wanted.from > 0) {
    if (!std::binary_search(wanted.entries.begin(), wanted.entries.end(), wanted.partial) || wanted.from >= entries[wanted.partial].size)
      return refused;
    host.total -= wanted.from;
  }
  host.contents = contents_for({std::move(wanted.entries), wanted.partial, wanted.from});
  hold(h);
  return base::ok();
}

std::shared_ptr<ContentStream> CopyToHosts::contents_for(Wanted wanted) {
  for (const Host& other : hosts_)
    if (other.contents && other.contents->holds(0) && other.contents->wanted() == wanted) return other.contents;
  return stream_from(std::move(wanted), {});
}

std::shared_ptr<ContentStream> CopyToHosts::stream_from(Wanted wanted, ContentStream::Place place) {
  return std::make_shared<ContentStream>(request_.root, *request_.manifest, request_.aside, packers_, std::move(wanted), place);
}

bool CopyToHosts::all_asked() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.asked || host.over; });
}

// One frame of what is to be sent next. False: nothing is, for now.
bool CopyToHosts::next_piece(size_t h, std::string& frames) {
  Host& host = hosts_[h];
  const std::string& list = host.whole_list ? list_ : changes_.bytes;
  if (host.list_sent < list.size()) {
    const std::string_view piece = std::string_view(list).substr(host.list_sent, kPiece);
    host.list_sent += piece.size();
    host.copied.list_bytes += piece.size();
    return wire::encode(frames, wire::CopyBytes{piece}).ok();
  }
  if (!host.contents || host.held) return false;
  if (host.chain && (!host.chain->ready() || host.chain->fed(h) || !host.chain->may_send(h))) return false;
  return next_block(h, frames);
}

bool CopyToHosts::next_block(size_t h, std::string& frames) {
  Host& host = hosts_[h];
  if (!host.contents->holds(host.block)) {
    host.contents = stream_from(host.contents->wanted(), host.place);
    host.block = 0;
  }
  const ContentStream::Block* block = host.contents->block(host.block);
  if (!block) return false;
  if (host.block == 0) opener_.connection(h)->widen();
  frames += block->frames;
  host.copied.bytes += block->bytes;
  host.copied.files += block->files;
  host.place = block->after;
  if (host.chain) host.chain->sent(h, block->bytes, os::mono_now());
  ++host.block;
  size_t needed = host.block;
  for (size_t other = 0; other < hosts_.size(); ++other)
    if (hosts_[other].contents == host.contents && !(hosts_[other].chain && hosts_[other].chain->fed(other)))
      needed = std::min(needed, hosts_[other].block);
  // A host may yet ask for the same from its beginning.
  if (all_asked()) host.contents->forget_before(needed);
  return true;
}

// At most about kPiece bytes wait in the connection: the next come when the transport has taken these.
void CopyToHosts::pump(size_t h) {
  hosts::Connection* connection = opener_.connection(h);
  Host& host = hosts_[h];
  while (connection && !host.over && connection->pending() == 0) {
    std::string frames;
    while (frames.size() < kPiece && next_piece(h, frames)) {}
    if (frames.empty()) return;
    host.heard = os::mono_now();
    connection->send(frames);
  }
}

void CopyToHosts::fail(size_t h, base::Error error) {
  hosts_[h].copied.error = std::move(error);
  if (hosts::Connection* connection = opener_.connection(h)) connection->kill(SIGKILL);
  settle(h);
}

void CopyToHosts::settle(size_t h) {
  Host& host = hosts_[h];
  if (host.over) return;
  host.over = true;
  if (all_asked()) mark_.remove();
  host.copied.took = os::mono_now() - host.began;
  if (host.chain && !host.copied.error && host.chain->fed(h)) host.copied.files = host.contents->wanted().entries.size();
  host.contents.reset();
  host.held = false;
  if (host.chain) host.chain->on_over(h, host.copied.error.has_value(), os::mono_now());
  finish_those_over();
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const Host& one) { return one.over; })) loop_.stop();
  else if (gathering_) make_chains_if_all_asked();
}

// Says goodbye to hosts that are over. One that passes on to another stays until that one has everything.
void CopyToHosts::finish_those_over() {
  for (size_t h = 0; h < hosts_.size(); ++h) {
    Host& host = hosts_[h];
    if (!host.over || host.finished || (host.chain && !host.copied.error && host.chain->needed(h))) continue;
    host.finished = true;
    hosts::Connection* connection = opener_.connection(h);
    if (!connection) continue;
    std::string frames;
    (void)wire::encode(frames, wire::Finish{});
    connection->send(frames);
  }
}

void CopyToHosts::tick() {
  const os::Mono now = os::mono_now();
  std::vector<CopyState> states;
  for (size_t h = 0; h < hosts_.size(); ++h) {
    Host& host = hosts_[h];
    states.push_back({host.copied.name, std::min(host.copied.bytes, host.total), host.total, host.over, host.copied.error.has_value()});
    hosts::Connection* connection = opener_.connection(h);
    if (host.over || !connection || !host.said_hello) continue;
    if (connection->pending() != host.pending) host.heard = now;
    host.pending = connection->pending();
    if (now - host.heard > kSilence)
      fail(h, base::fail(ErrorKind::kTimeout,
                         fmt::format("{}: no data was taken and nothing was heard for 2 minutes while files were copied", host.copied.name))
                  .with_hint("run the same command again; files that have arrived are not sent again"));
  }
  for (size_t h = 0; h < hosts_.size(); ++h)
    if (hosts_[h].chain && hosts_[h].chain->leads(h)) hosts_[h].chain->tick(now);
  pump_all();
  finish_those_over();
  if (request_.progress) request_.progress(states);
}

}  // namespace phalanx::job
