#include "job/control/server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "hosts/connect/openssh.h"
#include "os/local_socket.h"

namespace phalanx::job {
namespace {
constexpr size_t kReadBytes = 4096;
constexpr size_t kMostQueue = 4 * ControlServer::kQueueBytes;  // of what may not be dropped; a client that lets it come so far is gone

// A message that is too large for a frame, such as the status of a run with very many ranks, is replaced by a line that says so.
template <typename Message>
void put(std::string& out, const Message& message) {
  if (base::Status fits = wire::encode(out, message); !fits.ok())
    (void)wire::encode(out, wire::Talk{"phalanx: " + fmt::format("{}, and was left out", fits.error().message) + "\n"});
}

}  // namespace

std::vector<SocketPlace> socket_places(const std::string& run_folder, const std::string& run_id) {
  std::vector<SocketPlace> places{{run_folder, "control"}};
  if (std::string folder = hosts::control_folder(); !folder.empty()) places.push_back({folder, "run-" + run_id});
  return places;
}

base::Result<std::unique_ptr<ControlServer>> ControlServer::open(os::Loop& loop, const std::string& run_folder, const std::string& run_id,
                                                                 Handlers handlers) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, std::move(handlers)));
  base::Status opened = base::ok();
  for (const SocketPlace& place : socket_places(run_folder, run_id)) {
    base::Result<os::Fd> listener = os::listen_local(place.folder, place.name);
    opened = listener.ok() ? base::ok() : base::Status(listener.error());
    if (!listener.ok()) continue;
    server->place_ = place;
    server->listener_ = std::move(listener).value();
    break;
  }
  TRY(std::move(opened));
  ControlServer* self = server.get();
  TRY_ASSIGN(server->listener_watch_, loop.watch(server->listener_.get(), EPOLLIN, [self](uint32_t) { self->accept(); }));
  self->timer_ = loop.every(kPatience / 2, [self] {
    os::Mono now = os::mono_now();
    std::erase_if(self->clients_, [&](auto& entry) {
      bool idle = !entry.second->wish && now - entry.second->since > kPatience;
      if (idle) self->loop_.unwatch(entry.second->watch);
      return idle;
    });
  });
  return server;
}

ControlServer::~ControlServer() {
  for (auto& [id, client] : clients_) loop_.unwatch(client->watch);
  if (listener_watch_) loop_.unwatch(listener_watch_);
  if (timer_) loop_.cancel(timer_);
  const std::string path = place_.folder + "/" + place_.name;
  if (listener_.valid() && handlers_.remove) handlers_.remove(path);
  else if (listener_.valid()) ::unlink(path.c_str());
}

// Room for one more: who has asked nothing yet goes first.
bool ControlServer::make_room() {
  if (clients_.size() < kMostClients) return true;
  for (auto& [id, client] : clients_)
    if (!client->wish) {
      drop(id);
      return true;
    }
  return false;
}

void ControlServer::accept() {
  base::Result<os::Fd> fd = os::accept_local(listener_.get());
  if (!fd.ok()) return pause_.begin(listener_watch_);
  if (!fd->valid() || !make_room()) return;
  uint64_t id = next_id_++;
  auto client = std::make_unique<Client>();
  client->fd = std::move(fd).value();
  client->since = os::mono_now();
  client->queue = wire::kStreamMagic;
  base::Result<os::WatchId> watch = loop_.watch(client->fd.get(), EPOLLIN, [this, id](uint32_t events) { on_event(id, events); });
  if (!watch.ok()) return;
  client->watch = *watch;
  clients_.emplace(id, std::move(client));
}

void ControlServer::drop(uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  loop_.unwatch(found->second->watch);
  clients_.erase(found);
}

void ControlServer::on_event(uint64_t id, uint32_t events) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = *found->second;
  bool good = true;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) good = read(client);
  if (!good || !write(client)) drop(id);
}

bool ControlServer::read(Client& client) {
  char buffer[kReadBytes];
  os::IoStep step = os::read_step(client.fd.get(), buffer, sizeof(buffer));
  if (step.kind == os::IoStep::kWouldBlock) return true;
  if (step.kind != os::IoStep::kBytes) return false;
  client.reader.feed(std::string_view(buffer, step.bytes));
  for (;;) {
    base::Result<std::optional<wire::Frame>> frame = client.reader.next();
    if (!frame.ok() || !client.reader.noise().empty()) return false;
    if (!frame->has_value()) return client.reader.buffered() <= 2 * wire::kMaxAskBytes;
    if ((*frame)->type != wire::FrameType::kAsk) return false;
    base::Result<wire::Ask> ask = wire::decode<wire::Ask>((*frame)->payload);
    if (!ask.ok() || !obey(client, *ask)) return false;
  }
}

bool ControlServer::obey(Client& client, const wire::Ask& ask) {
  if (client.pending() > kQueueBytes) return false;  // it asks and asks and takes nothing
  std::string frames;
  put(frames, wire::RunStatus{handlers_.status()});
  if (ask.wish == wire::Wish::kFollow) frames += handlers_.catch_up();
  client.queue += frames;
  if (ask.wish == wire::Wish::kLook && !handlers_.look) return false;
  if (ask.wish == wire::Wish::kLook) client.looks = true;
  // Who has asked to follow or to stop goes on hearing.
  if (!client.wish || (ask.wish != wire::Wish::kStatus && ask.wish != wire::Wish::kLook)) client.wish = ask.wish;
  if (ask.wish == wire::Wish::kLook) handlers_.look();
  if (ask.wish == wire::Wish::kStop)
    handlers_.stop(ask.grace_ms < 0 ? std::nullopt : std::optional<os::milliseconds>(ask.grace_ms), ask.kill);
  return true;
}

// droppable: bytes of output in the frames; 0 for what must arrive.
void ControlServer::give(Client& client, std::string_view frames, size_t droppable) {
  if (droppable > 0 && client.pending() + frames.size() > kQueueBytes) {
    client.dropped += droppable;
    return;
  }
  if (client.dropped > 0 && client.pending() < kQueueBytes / 2) {
    put(client.queue, wire::Dropped{client.dropped});
    client.dropped = 0;
  } else if (client.dropped > 0 && droppable > 0) {
    client.dropped += droppable;  // nothing in between: what is missing is missing in one piece
    return;
  }
  client.queue += frames;
}

// False: the client is gone.
bool ControlServer::write(Client& client) {
  while (client.pending() > 0) {
    os::IoStep step = os::write_step(client.fd.get(), client.queue.data() + client.written, client.pending());
    if (step.kind == os::IoStep::kBytes) {
      client.written += step.bytes;
      continue;
    }
    if (step.kind != os::IoStep::kWouldBlock) return false;
    break;
  }
  if (client.pending() == 0 && client.dropped > 0) {
    put(client.queue, wire::Dropped{client.dropped});
    client.dropped = 0;
  }
  if (client.written == client.queue.size()) {
    client.queue.clear();
    client.written = 0;
  } else if (client.written > kQueueBytes) {
    client.queue.erase(0, client.written);
    client.written = 0;
  }
  loop_.rewatch(client.watch, client.pending() > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
  return client.pending() <= kMostQueue;
}

void ControlServer::broadcast(std::string_view frames, size_t droppable, bool to_stoppers) {
  for (auto& [id, client] : clients_) {
    bool hears = client->wish == wire::Wish::kFollow || (to_stoppers && client->wish == wire::Wish::kStop);
    if (!hears) continue;
    give(*client, frames, droppable);
    // This may be inside a call for that very client: it is dropped by the loop, which sees the end of the socket.
    if (!write(*client)) ::shutdown(client->fd.get(), SHUT_RDWR);
  }
}

void ControlServer::output(const wire::Output& output) {
  if (clients_.empty()) return;
  std::string frame;
  put(frame, output);
  broadcast(frame, output.data.size(), false);
}

void ControlServer::progress(const wire::Progress& progress) {
  if (clients_.empty()) return;
  std::string frame;
  put(frame, progress);
  broadcast(frame, frame.size(), false);
}

void ControlServer::talk(const std::string& text) {
  std::string frame;
  put(frame, wire::Talk{text});
  broadcast(frame, 0, true);
}

void ControlServer::status_changed() {
  if (clients_.empty()) return;
  std::string frame;
  put(frame, wire::RunStatus{handlers_.status()});
  broadcast(frame, 0, true);
}

void ControlServer::looked(const std::string& json) {
  std::string frame;
  put(frame, wire::Looked{json});
  for (auto& [id, client] : clients_) {
    if (!std::exchange(client->looks, false)) continue;
    give(*client, frame, 0);
    if (!write(*client)) ::shutdown(client->fd.get(), SHUT_RDWR);
  }
}

void ControlServer::end(uint32_t exit_code, os::milliseconds most) {
  for (auto& [id, client] : clients_) {
    if (client->dropped > 0) put(client->queue, wire::Dropped{client->dropped});
    client->dropped = 0;
  }
  std::string frame;
  put(frame, wire::RunEnded{exit_code});
  broadcast(frame, 0, true);
  os::Mono deadline = os::mono_now() + most;
  for (;;) {
    std::vector<pollfd> waiting;
    for (auto& [id, client] : clients_)
      if (client->pending() > 0) waiting.push_back({client->fd.get(), POLLOUT, 0});
    int64_t left = (deadline - os::mono_now()).count() / 1'000'000;
    if (waiting.empty() || left <= 0) break;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
    std::vector<uint64_t> gone;
    for (auto& [id, client] : clients_)
      if (!write(*client)) gone.push_back(id);
    for (uint64_t id : gone) drop(id);
  }
  while (!clients_.empty()) drop(clients_.begin()->first);
}

}  // namespace phalanx::job
