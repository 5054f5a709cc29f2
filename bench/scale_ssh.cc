// The stand-in for ssh of `bench/scale.sh`: hands its stdin and stdout to the process that plays all agents, by a message over the Unix
// socket that PHALANX_SCALE_AGENTS names, with the destination and the command, and ends when that process says so: with the code it is
// sent, with 255 as ssh does when the socket just closes. A thousand of them run beside each other, so it is linked statically and uses
// nothing of C++ that has to be set up.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr int kFailed = 255;

// The words behind "--": where ssh would go, and what it would run there.
char** words(int argc, char** argv) {
  for (int i = 1; i + 2 < argc; ++i)
    if (std::strcmp(argv[i], "--") == 0) return argv + i + 1;
  return nullptr;
}

bool hand_over(int socket, char* name, char* command) {
  int fds[2] = {STDIN_FILENO, STDOUT_FILENO};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {};
  iovec text[2] = {{name, std::strlen(name) + 1}, {command, std::strlen(command)}};
  msghdr message{};
  message.msg_iov = text;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fds));
  std::memcpy(CMSG_DATA(header), fds, sizeof(fds));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text[0].iov_len + text[1].iov_len);
}

}  // namespace

int main(int argc, char** argv) {
  char** remote = words(argc, argv);
  const char* path = ::getenv("PHALANX_SCALE_AGENTS");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!remote || !path || std::strlen(path) >= sizeof(address.sun_path)) return kFailed;
  std::memcpy(address.sun_path, path, std::strlen(path));
  int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (socket < 0 || ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return kFailed;
  if (!hand_over(socket, remote[0], remote[1])) return kFailed;
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  unsigned char code = kFailed;
  return ::read(socket, &code, 1) == 1 ? code : kFailed;
}
