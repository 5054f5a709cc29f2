#include "os/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/try.h"

namespace phalanx::os {
namespace {

constexpr int kBacklog = 16;

// A name as the kernel takes it, and the folder it may hang on.
struct Name {
  sockaddr_un address{};
  Fd folder;
};

base::Result<Name> name_of(const std::string& folder, const std::string& name) {
  Name out;
  out.address.sun_family = AF_UNIX;
  std::string path = folder + "/" + name;
  if (path.size() >= sizeof(out.address.sun_path)) {
    out.folder = Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!out.folder.valid()) return base::system_error("open", folder);
    path = "/proc/self/fd/" + std::to_string(out.folder.get()) + "/" + name;
  }
  if (path.size() >= sizeof(out.address.sun_path)) return base::system_error("bind", path, ENAMETOOLONG);
  std::memcpy(out.address.sun_path, path.c_str(), path.size() + 1);
  return out;
}

base::Result<Fd> new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::system_error("socket", "AF_UNIX");
  return fd;
}

// This user or root (SO_PEERCRED): of a connection, who has made it, or who listens there.
bool peer_is_trusted(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == ::getuid() || peer.uid == 0);
}

// A message of one byte, with room for a descriptor.
struct OneDescriptor {
  char byte = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  OneDescriptor() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  OneDescriptor(const OneDescriptor&) = delete;
  OneDescriptor& operator=(const OneDescriptor&) = delete;
};

}  // namespace

base::Result<Fd> listen_local(const std::string& folder, const std::string& name) {
  TRY_ASSIGN(Name where, name_of(folder, name));
  TRY_ASSIGN(Fd fd, new_socket());
  ::unlink(where.address.sun_path);
  mode_t before = ::umask(0177);  // one thread: nobody else creates a file meanwhile
  int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where.address), sizeof(where.address));
  int error_number = errno;
  ::umask(before);
  if (bound != 0) return base::system_error("bind", folder + "/" + name, error_number);
  if (::listen(fd.get(), kBacklog) != 0) return base::system_error("listen", folder + "/" + name);
  return fd;
}

base::Result<Fd> connect_local(const std::string& folder, const std::string& name) {
  TRY_ASSIGN(Name where, name_of(folder, name));
  TRY_ASSIGN(Fd fd, new_socket());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where.address), sizeof(where.address)) != 0)
    return base::system_error("connect", folder + "/" + name);
  if (!peer_is_trusted(fd.get()))
    return base::fail(base::ErrorKind::kUnreachable, fmt::format("{} belongs to another user", folder + "/" + name));
  return fd;
}

base::Result<Fd> accept_local(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  bool none = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
  if (!fd.valid() && !none) return base::system_error("accept", std::to_string(listener));
  if (!fd.valid() || !peer_is_trusted(fd.get())) return Fd();
  return fd;
}

bool send_descriptor(int socket, int fd) {
  OneDescriptor one;
  cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fd));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return ::sendmsg(socket, &one.message, MSG_NOSIGNAL) == 1;
}

Fd receive_descriptor(int socket) {
  OneDescriptor one;
  if (::recvmsg(socket, &one.message, MSG_CMSG_CLOEXEC) != 1) return Fd();
  const cmsghdr* header = CMSG_FIRSTHDR(&one.message);
  if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return Fd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return Fd(fd);
}

}  // namespace phalanx::os
