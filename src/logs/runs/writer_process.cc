// The other end of a Writer: one command after the other, at the pace of the disk.
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "base/json.h"
#include "logs/runs/disk_files.h"
#include "logs/runs/writer.h"
#include "logs/runs/writer_words.h"

namespace phalanx::logs {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr const char* kBehind = "the disk could not keep up";

uint64_t number_in(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Process {
 public:
  Process(int socket, const std::string& reserve, const std::string& here)
      : socket_(socket), files_([this](const std::string& text) { say({{"warn", text}}); }, reserve, here) {}

  void work() {
    const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
    std::string pending;
    for (;;) {
      const ssize_t n = ::recv(socket_, buffer.get(), kReadBytes, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      pending.append(buffer.get(), static_cast<size_t>(n));
      pending.erase(0, carry_out(pending));
    }
    files_.mark();
  }

 private:
  // Every whole command; returns their bytes.
  size_t carry_out(std::string_view bytes) {
    size_t done = 0;
    CommandHeader header;
    while (bytes.size() - done >= sizeof(header)) {
      std::memcpy(&header, bytes.data() + done, sizeof(header));
      if (bytes.size() - done - sizeof(header) < header.size) break;
      const std::string_view body = bytes.substr(done + sizeof(header), header.size);
      carry_out(header, body.substr(0, header.head), body.substr(header.head));
      done += sizeof(header) + header.size;
    }
    return done;
  }

  void carry_out(const CommandHeader& header, std::string_view head, std::string_view rest) {
    switch (static_cast<Command>(header.kind)) {
      case Command::kLog: files_.log(std::string(head), static_cast<Form>(rest[0]), number_in(rest.substr(1))); break;
      case Command::kAppend: append(header.file, head, rest); break;
      case Command::kReplace: files_.replace(std::string(head), rest); break;
      case Command::kRemove: files_.remove(std::string(head)); break;
      case Command::kMissing: files_.missing(header.file, number_in(rest), kBehind); break;
      case Command::kSync:
        files_.mark();
        say({{"synced", number_in(rest)}, {"lost", files_.lost_bytes()}});
        break;
    }
  }

  void append(FileId file, std::string_view times, std::string_view bytes) {
    times_.resize(times.size() / sizeof(TimeMark));
    if (!times_.empty()) std::memcpy(times_.data(), times.data(), times_.size() * sizeof(TimeMark));
    files_.append_timed(file, bytes, times_);
  }

  // Never waits for the launcher: what it does not hear is only a warning.
  void say(const base::Json& word) {
    const std::string line = base::to_text(word) + "\n";
    (void)::send(socket_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  int socket_;
  DiskFiles files_;
  std::vector<TimeMark> times_;
};

}  // namespace

void write_what_comes(int socket, const std::string& reserve, const std::string& here) { Process(socket, reserve, here).work(); }

}  // namespace phalanx::logs
