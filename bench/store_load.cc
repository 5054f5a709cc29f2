// The two ends of `bench/store.sh`.
//
//   store_load serve                               our store on a free port of the loopback; prints the port; ends with its stdin
//   store_load load PORT CLIENTS legacy|modern     that many clients at once, as PyTorch's are while a process group starts:
//     connect (legacy: two connections each, as PyTorch up to 2.0), [VALIDATE, PING,] ADD, SET of 128 bytes, WAIT for a key that is
//     set when all have ADDed, GET of 128 bytes. Prints the seconds from the first connect to the last answer.
//     All of them are connected together at the end; on the way there at most 1024 have not had their first answer yet. More at
//     once overflow the kernel's backlog (4096 by default), and what is measured then is TCP's retransmission timer.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "os/clock.h"
#include "os/loop.h"
#include "os/net.h"
#include "store/server.h"
#include "wire/challenge.h"

using namespace phalanx;

namespace {

using store::OpCode;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "error: store_load: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int serve() {
  auto loop = os::Loop::create();
  auto listener = os::listen_tcp({"127.0.0.1", 0});
  if (!loop.ok() || !listener.ok()) die("listen");
  store::ServerOptions options;
  options.key = std::string(wire::kKeyBytes, '0');
  options.allow_everybody = true;
  auto server = store::Server::start(**loop, std::move(*listener), options);
  if (!server.ok()) die("start");
  std::printf("%d\n", (*server)->endpoint().port);
  std::fflush(stdout);
  auto end = (*loop)->watch(STDIN_FILENO, EPOLLIN, [&](uint32_t) { (*loop)->stop(); });
  if (!end.ok()) die("watch stdin");
  (*loop)->run();
  return 0;
}

constexpr size_t kMostAtOnce = 1024;

class Load {
 public:
  Load(int port, size_t clients, bool modern) : modern_(modern), clients_(clients), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address_.sin_addr);
  }

  double run() {
    os::Mono begin = os::mono_now();
    while (done_ < clients_.size()) {
      while (opened_ < clients_.size() && opened_ - answered_ < kMostAtOnce) {
        open(opened_, 0);
        if (!modern_) open(opened_, 1);
        if (++opened_ % 16 == 0) turn(0);
      }
      if (os::mono_now() - begin > std::chrono::seconds(300)) {
        errno = ETIMEDOUT;
        die(std::to_string(done_) + " of " + std::to_string(clients_.size()) + " clients done");
      }
      turn(1000);
    }
    return static_cast<double>((os::mono_now() - begin).count()) / 1e9;
  }

 private:
  enum class Step { kConnect, kPing, kAdd, kWait, kGet, kDone };
  struct Client {
    int fd[2] = {-1, -1};
    unsigned connected = 0;  // one bit for each connection
    Step step = Step::kConnect;
    bool answered = false;
    size_t expected = 0;  // bytes of the answer under way
    std::string answer;
  };

  void open(size_t index, int which) {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) die("socket");
    int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    linger at_once{1, 0};  // closing leaves no TIME_WAIT behind for the next round
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    // From several addresses: the kernel searches long for a port once half of those towards one address are taken.
    ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<uint32_t>(index / 2048));
    if (::bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof(from)) != 0) die("bind");
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)) != 0 && errno != EINPROGRESS) die("connect");
    clients_[index].fd[which] = fd;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = index * 2 + static_cast<size_t>(which);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
  }

  void turn(int milliseconds) {
    epoll_event events[256];
    int n = ::epoll_wait(epoll_.get(), events, 256, milliseconds);
    for (int i = 0; i < n; ++i) {
      size_t which = events[i].data.u64 % 2;
      Client& client = clients_[events[i].data.u64 / 2];
      if (events[i].events & (EPOLLERR | EPOLLHUP)) {
        errno = os::connect_outcome(client.fd[which]);
        die("connection lost");
      }
      if (client.step == Step::kConnect) {
        if (events[i].events & EPOLLOUT) client.connected |= 1u << which;
        if (client.connected == (modern_ ? 1u : 3u)) connected(client);
      } else if (which == 0 && (events[i].events & EPOLLIN)) {
        hear(client);
      }
    }
  }

  void connected(Client& client) {
    if (!modern_) return add(client);
    say(client, std::string(store::kModernGreeting));
    std::string ping;
    store::put_u8(ping, static_cast<uint8_t>(OpCode::kPing));
    store::put_u32(ping, static_cast<uint32_t>(::getpid()));
    say(client, ping);
    expect(client, Step::kPing, 4);
  }

  void add(Client& client) {
    std::string add = request(OpCode::kAdd, "init/");
    store::put_u64(add, 1);
    say(client, add);
    expect(client, Step::kAdd, 8);
  }

  void hear(Client& client) {
    char buffer[1024];
    ssize_t n = ::recv(client.fd[0], buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) die("recv");
    client.answer.append(buffer, static_cast<size_t>(n));
    if (client.answer.size() < client.expected) return;
    if (!client.answered) ++answered_;
    client.answered = true;
    switch (client.step) {
      case Step::kPing: return add(client);
      case Step::kAdd: {
        size_t index = static_cast<size_t>(&client - clients_.data());
        if (++added_ == clients_.size()) say(client, set("/go", value_));
        say(client, set("/rank/" + std::to_string(index), value_));
        std::string wait;
        store::put_u8(wait, code(OpCode::kWait));
        store::put_u64(wait, 1);
        store::put_string(wait, "/go");
        say(client, wait);
        return expect(client, Step::kWait, 1);
      }
      case Step::kWait: say(client, request(OpCode::kGet, "/go")); return expect(client, Step::kGet, 8 + value_.size());
      default:
        if (client.answer.substr(8) != value_) die("a wrong answer");
        client.step = Step::kDone;
        ++done_;
    }
  }

  uint8_t code(OpCode op) const { return static_cast<uint8_t>(static_cast<int>(op) - (modern_ ? 0 : 1)); }
  std::string request(OpCode op, std::string_view key) const {
    std::string out;
    store::put_u8(out, code(op));
    store::put_string(out, key);
    return out;
  }
  std::string set(std::string_view key, std::string_view value) const {
    std::string out = request(OpCode::kSet, key);
    store::put_string(out, value);
    return out;
  }
  void say(Client& client, const std::string& bytes) {
    if (::send(client.fd[0], bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) die("send");
  }
  void expect(Client& client, Step step, size_t bytes) {
    client.step = step;
    client.expected = bytes;
    client.answer.clear();
  }

  bool modern_;
  std::vector<Client> clients_;
  os::Fd epoll_;
  sockaddr_in address_{};
  std::string value_ = std::string(128, 'v');
  size_t opened_ = 0, answered_ = 0, added_ = 0, done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "serve" && argc == 2) return serve();
  if (verb != "load" || argc != 5) {
    std::fprintf(stderr, "usage: store_load serve | store_load load PORT CLIENTS legacy|modern\n");
    return 2;
  }
  Load load(std::atoi(argv[2]), static_cast<size_t>(std::atoi(argv[3])), std::string(argv[4]) == "modern");
  std::printf("%.4f\n", load.run());
  return 0;
}
