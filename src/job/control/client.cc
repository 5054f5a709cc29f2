#include "job/control/client.h"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <memory>

#include "base/try.h"
#include "job/control/server.h"
#include "os/local_socket.h"

namespace phalanx::job {

base::Result<std::unique_ptr<ControlClient>> ControlClient::connect(os::Loop& loop, const std::string& run_folder,
                                                                    const std::string& run_id, Handlers handlers) {
  std::unique_ptr<ControlClient> client(new ControlClient(loop, std::move(handlers)));
  std::string why;
  for (const SocketPlace& place : socket_places(run_folder, run_id)) {
    base::Result<os::Fd> fd = os::connect_local(place.folder, place.name);
    if (!fd.ok()) {
      if (why.empty()) why = fd.error().message;
      continue;
    }
    client->fd_ = std::move(fd).value();
    break;
  }
  if (!client->fd_.valid())
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("the launcher of {} does not answer", run_id)).because(why);
  ControlClient* self = client.get();
  TRY_ASSIGN(client->watch_, loop.watch(client->fd_.get(), EPOLLIN, [self](uint32_t) { self->read(); }));
  return client;
}

ControlClient::~ControlClient() {
  if (watch_) loop_.unwatch(watch_);
}

void ControlClient::ask(const wire::Ask& ask) {
  std::string frames(greeted_ ? "" : wire::kStreamMagic);
  greeted_ = true;
  (void)wire::encode(frames, ask);
  if (fd_.valid() && !os::write_all(fd_.get(), frames, "the control socket").ok()) finish();
}

void ControlClient::pause(bool paused) {
  if (watch_) loop_.rewatch(watch_, paused ? 0U : static_cast<uint32_t>(EPOLLIN));
}

void ControlClient::read() {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(64 << 10);
  os::IoStep step = os::read_step(fd_.get(), buffer.get(), 64 << 10);
  if (step.kind == os::IoStep::kWouldBlock) return;
  if (step.kind != os::IoStep::kBytes) return finish();
  reader_.feed(std::string_view(buffer.get(), step.bytes));
  while (fd_.valid()) {
    base::Result<std::optional<wire::Frame>> frame = reader_.next();
    if (!frame.ok()) return finish();
    if (!frame->has_value()) return;
    handlers_.frame(**frame);
  }
}

void ControlClient::finish() {
  if (!fd_.valid()) return;
  if (watch_) loop_.unwatch(watch_);
  watch_ = 0;
  fd_.reset();
  handlers_.end();
}

namespace {

// The JSON of the first `Answer`.
template <typename Answer>
base::Result<base::Json> ask_once(wire::Wish wish, const std::string& run_folder, const std::string& run_id, os::milliseconds most) {
  TRY_ASSIGN(std::unique_ptr<os::Loop> loop, os::Loop::create());
  base::Result<base::Json> answer = base::fail(base::ErrorKind::kTimeout, fmt::format("the launcher of {} does not answer", run_id))
                                        .because("the launcher is stopped or very busy");
  ControlClient::Handlers handlers;
  handlers.frame = [&](const wire::Frame& frame) {
    if (frame.type != Answer::kType) return;
    base::Result<Answer> message = wire::decode<Answer>(frame.payload);
    if (message.ok()) answer = base::parse_json(message->json);
    loop->stop();
  };
  handlers.end = [&] { loop->stop(); };
  TRY_ASSIGN(std::unique_ptr<ControlClient> client, ControlClient::connect(*loop, run_folder, run_id, std::move(handlers)));
  client->ask({.wish = wish});
  loop->after(most, [&] { loop->stop(); });
  if (!loop->stopped()) loop->run();
  return answer;
}

}  // namespace

base::Result<base::Json> ask_status(const std::string& run_folder, const std::string& run_id, os::milliseconds most) {
  return ask_once<wire::RunStatus>(wire::Wish::kStatus, run_folder, run_id, most);
}

base::Result<base::Json> ask_look(const std::string& run_folder, const std::string& run_id, os::milliseconds most) {
  return ask_once<wire::Looked>(wire::Wish::kLook, run_folder, run_id, most);
}

}  // namespace phalanx::job
