// The control socket of a run, on the launcher's side: who asks on this machine is told how the run is, follows it, or stops it
// (wire/control_messages.h, docs/formats/control-socket.md).
//
// The run never waits for a client: what one does not take is kept up to kQueueBytes, then its output is dropped, counted, and told
// to it. At most kMostClients; a client that sends anything but a sensible Ask is closed, and one that asks nothing within kPatience.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "os/fd.h"
#include "os/listener_pause.h"
#include "os/loop.h"
#include "wire/control_messages.h"

namespace phalanx::job {

// Where the socket of a run lies: in the run's folder; on a file system without sockets, in a private folder of the user.
struct SocketPlace {
  std::string folder;
  std::string name;
};
std::vector<SocketPlace> socket_places(const std::string& run_folder, const std::string& run_id);

class ControlServer {
 public:
  static constexpr size_t kMostClients = 32;
  static constexpr size_t kQueueBytes = 1 << 20;
  static constexpr os::milliseconds kPatience{10'000};

  struct Handlers {
    std::function<std::string()> status;    // JSON
    std::function<std::string()> catch_up;  // frames that show a new follower where the run stands
    std::function<void(std::optional<os::milliseconds> grace, bool kill)> stop;
    std::function<void()> look;                           // is answered with looked(); none: nobody looks
    std::function<void(const std::string& path)> remove;  // of the socket, without waiting for the disk; none: it is done here
  };

  // The loop must outlive it.
  static base::Result<std::unique_ptr<ControlServer>> open(os::Loop& loop, const std::string& run_folder, const std::string& run_id,
                                                           Handlers handlers);
  ~ControlServer();  // removes the socket
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  void output(const wire::Output& output);
  void progress(const wire::Progress& progress);
  void talk(const std::string& text);
  void status_changed();
  void looked(const std::string& json);  // to those who have asked since the last time
  // Tells everyone who follows that the run has ended, waits at most so long until they have it, and closes.
  void end(uint32_t exit_code, os::milliseconds most);

  size_t clients() const { return clients_.size(); }

 private:
  struct Client {
    os::Fd fd;
    os::WatchId watch = 0;
    wire::FrameReader reader{wire::kMaxAskBytes};
    std::string queue;
    size_t written = 0;  // of queue
    uint64_t dropped = 0;
    std::optional<wire::Wish> wish;
    bool looks = false;  // waits for looked()
    os::Mono since;
    size_t pending() const { return queue.size() - written; }
  };
  ControlServer(os::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)), pause_(loop) {}
  void accept();
  void drop(uint64_t id);
  void on_event(uint64_t id, uint32_t events);
  bool read(Client& client);  // false: it is to be closed
  bool obey(Client& client, const wire::Ask& ask);
  void give(Client& client, std::string_view frames, size_t droppable);
  bool write(Client& client);  // false: it is gone, or takes nothing
  void broadcast(std::string_view frames, size_t droppable, bool to_stoppers);
  bool make_room();

  os::Loop& loop_;
  Handlers handlers_;
  SocketPlace place_;
  os::Fd listener_;
  os::WatchId listener_watch_ = 0;
  os::ListenerPause pause_;
  os::TimerId timer_ = 0;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::unique_ptr<Client>> clients_;
};

}  // namespace phalanx::job
