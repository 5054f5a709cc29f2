#include "hosts/connect/ssh_session.h"

#include <sys/socket.h>

#include <optional>
#include <string_view>

#include "base/try.h"
#include "os/local_socket.h"

namespace phalanx::hosts {
namespace {

constexpr uint32_t kVersion = 4;
constexpr size_t kMostPacket = 64 << 10;  // a refusal with its reason is the longest there is

// PROTOCOL.mux, section 11.
enum Type : uint32_t {
  kHello = 0x00000001,
  kNewSession = 0x10000002,
  kDenied = 0x80000002,
  kFailure = 0x80000003,
  kExitMessage = 0x80000004,
  kSessionOpened = 0x80000006,
};

void put(std::string& packet, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) packet += static_cast<char>(number >> shift & 0xff);
}

void put(std::string& packet, std::string_view text) {
  put(packet, static_cast<uint32_t>(text.size()));
  packet += text;
}

// Takes a number off the front.
std::optional<uint32_t> number_of(std::string_view& packet) {
  if (packet.size() < 4) return std::nullopt;
  uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(packet[static_cast<size_t>(i)]);
  packet.remove_prefix(4);
  return number;
}

std::string request_bytes(const SessionRequest& request) {
  std::string bytes, hello, session;
  put(hello, kHello);
  put(hello, kVersion);
  put(bytes, std::string_view(hello));
  put(session, kNewSession);
  put(session, 0);  // the number of this request
  put(session, std::string_view());
  for (int flag = 0; flag < 4; ++flag) put(session, 0);  // no terminal, no X11, no agent, no subsystem
  put(session, 0xffffffff);                              // no escape character
  put(session, std::string_view());                      // of a terminal
  put(session, std::string_view(request.command));
  for (const std::string& one : request.environment) put(session, std::string_view(one));
  put(bytes, std::string_view(session));
  return bytes;
}

}  // namespace

base::Result<SshSession> SshSession::connect(const SessionRequest& request) {
  TRY_ASSIGN(os::Fd socket, os::connect_local(request.folder, request.socket));
  return SshSession(std::move(socket));
}

base::Status SshSession::ask(const SessionRequest& request, int in, int out, int err) {
  const std::string bytes = request_bytes(request);
  // All of it fits into the socket, or it is not worth waiting for.
  if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    return base::system_error("send", request.folder + "/" + request.socket);
  for (int fd : {in, out, err})
    if (!os::send_descriptor(socket_.get(), fd)) return base::system_error("sendmsg", request.folder + "/" + request.socket);
  return base::ok();
}

SshSession::State SshSession::read() {
  char buffer[1024];
  for (;;) {
    const os::IoStep step = os::read_step(socket_.get(), buffer, sizeof(buffer));
    if (step.kind == os::IoStep::kWouldBlock) return state_;
    if (step.kind != os::IoStep::kBytes) return state_ = state_ == State::kOpen ? State::kEnded : State::kRefused;
    received_.append(buffer, step.bytes);
    for (;;) {
      std::string_view rest = received_;
      const std::optional<uint32_t> size = number_of(rest);
      if (size && *size > kMostPacket) return state_ = state_ == State::kOpen ? State::kEnded : State::kRefused;
      if (!size || rest.size() < *size) break;
      state_ = take(rest.substr(0, *size));
      received_.erase(0, 4 + *size);
      if (state_ == State::kRefused) return state_;
    }
  }
}

SshSession::State SshSession::take(std::string_view packet) {
  const uint32_t type = number_of(packet).value_or(0), number = number_of(packet).value_or(0);
  switch (type) {
    case kHello: return number == kVersion ? state_ : State::kRefused;
    case kSessionOpened: return State::kOpen;
    case kDenied:
    case kFailure: return state_ == State::kOpen ? state_ : State::kRefused;
    case kExitMessage: exit_code_ = static_cast<int>(number_of(packet).value_or(255) & 0xff); return state_;
    default: return state_;
  }
}

}  // namespace phalanx::hosts
