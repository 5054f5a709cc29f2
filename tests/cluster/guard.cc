#include "guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "base/try.h"
#include "cgroup.h"
#include "host_init.h"
#include "state.h"
#include "tool.h"

namespace phalanx::testbed {

namespace {

class Guard {
 public:
  explicit Guard(const Options& options) : options_(options) {}
  base::Status make();
  void serve();   // until the owner ends, `down` is asked, or SIGTERM
  void unmake();  // all processes first, then what they stood on

 private:
  struct Host {
    HostPlan plan;
    os::Fd netns;
    pid_t init = -1;
    std::string said;  // by its pid 1, when it is ready
  };
  base::Status make_state();
  base::Status make_keys();
  base::Status make_hosts_text();
  base::Status make_switch();
  base::Status plug(Host& host);
  base::Status start(std::vector<Host*> hosts);
  base::Status spawn(Host& host, int ready);
  base::Status power_off(Host& host, bool silently);
  base::Status boot(Host& host);
  base::Status answer(const std::string& request, bool& down);
  void accept_request(bool& down);
  void reap();
  Host* find(const std::string& name);
  std::string file(const std::string& name) const { return state_path(options_.name, name); }

  Options options_;
  os::Fd owner_, signals_, control_, lock_, switch_;
  std::string client_key_, client_public_, host_key_, known_hosts_, hosts_file_;
  UserKeys worker_;
  std::vector<Host> hosts_;  // ctl first
};

base::Status Guard::make_state() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = os::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (options_.owner > 0) {
    owner_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, options_.owner, 0)));
    if (!owner_.valid()) return base::system_error("pidfd_open", "owner");
  }
  {
    TRY_ASSIGN(os::Fd all, lock_all_states());
    if (::access(file({}).c_str(), F_OK) == 0) return base::fail(base::ErrorKind::kUsage, "cluster " + options_.name + " is up already");
    TRY(make_folder(file({}), 0700));
    TRY_ASSIGN(lock_, lock_state(options_.name));
  }
  TRY(write_text(file("guard"), std::to_string(::getpid())));
  control_ = os::Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(address.sun_path, sizeof address.sun_path - 1, "{}", file("control"));
  if (::bind(control_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(control_.get(), 64) != 0) {
    return base::system_error("bind", address.sun_path);
  }
  return base::ok();
}

base::Status Guard::make_keys() {
  for (const char* key : {"client", "worker", "server", "other"}) {
    TRY(run_tool({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", file(key)}));
  }
  TRY_ASSIGN(client_key_, read_text(file("client")));
  TRY_ASSIGN(client_public_, read_text(file("client.pub")));
  TRY_ASSIGN(worker_.client_key, read_text(file("worker")));
  TRY_ASSIGN(worker_.client_public, read_text(file("worker.pub")));
  TRY_ASSIGN(host_key_, read_text(file("server")));
  return base::ok();
}

base::Status Guard::make_hosts_text() {
  TRY_ASSIGN(std::string server, read_text(file("server.pub")));
  TRY_ASSIGN(std::string other, read_text(file("other.pub")));
  std::string list;
  hosts_file_ = "127.0.0.1 localhost\n::1 localhost\n";
  for (const Host& host : hosts_) {
    const auto& plan = host.plan;
    hosts_file_ += fmt::format("{} {}\n", plan.address, plan.options.name);
    list += fmt::format("{} {}\n", plan.options.name, plan.address);
    if (plan.options.host_key == HostKey::kUnknown) continue;
    auto key = base::split_words(plan.options.host_key == HostKey::kKnown ? server : other);
    known_hosts_ += fmt::format("{0},{1},{0}-v6,fd77::{2:x} {3} {4}\n", plan.options.name, plan.address, plan.index, key[0], key[1]);
  }
  for (const Host& host : hosts_) {
    if (host.plan.index > 0) hosts_file_ += fmt::format("fd77::{:x} {}-v6\n", host.plan.index, host.plan.options.name);
  }
  return write_text(file("hosts"), list);
}

// The neighbour table is shared by all network namespaces; its default limits are met by 64 hosts that all talk to each other.
void raise_neighbour_limits() {
  for (auto [name, least] : {std::pair("3", 16384), {"2", 8192}, {"1", 4096}}) {
    std::string path = std::string("/proc/sys/net/ipv4/neigh/default/gc_thresh") + name;
    auto now = read_text(path);
    if (!now.ok() || std::atoi(now->c_str()) >= least) continue;
    if (!write_text(path, std::to_string(least)).ok()) return;
  }
}

base::Status Guard::make_switch() {
  if (options_.hosts > 16) raise_neighbour_limits();
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", "network");
  switch_ = os::Fd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  TRY(run_tool({"ip", "-batch", "-"}, "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n"));
  // Ports named in `mute` are not heard, those in `deaf` hear nothing, pairs in `apart` do not hear each other.
  TRY(run_tool({"nft", "-f", "-"}, R"(table bridge testbed {
    set mute { type ifname; }
    set deaf { type ifname; }
    set apart { type ifname . ifname; }
    chain lossy { }
    chain forward {
      type filter hook forward priority 0;
      iifname @mute drop
      oifname @deaf drop
      iifname . oifname @apart drop
      jump lossy
    }
  })"));
  return base::ok();
}

// A fresh network namespace for the host, plugged into the switch.
base::Status Guard::plug(Host& host) {
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare", "network");
  host.netns = os::Fd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (::setns(switch_.get(), CLONE_NEWNET) != 0) return base::system_error("setns", "switch");
  if (!host.netns.valid()) return base::system_error("open", "/proc/self/ns/net");
  return base::ok();
}

base::Status Guard::spawn(Host& host, int ready) {
  TRY(make_cgroup(host.plan.cgroup));
  long pid = ::syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return base::system_error("clone", host.plan.options.name);
  if (pid == 0) run_host(host.plan, host.netns.get(), ready);
  host.init = static_cast<pid_t>(pid);
  return base::ok();
}

base::Status Guard::start(std::vector<Host*> hosts) {
  std::string batch;
  for (Host* host : hosts) {
    TRY(plug(*host));
    // A host keeps its hardware address over a boot, so that its neighbours need not learn it again.
    batch += fmt::format(
        "link add p-{0} type veth peer name eth0 address 02:00:00:00:00:{0:02x} netns /proc/{1}/fd/{2}\n"
        "link set p-{0} master br0 up\n",
        host->plan.index, ::getpid(), host->netns.get());
  }
  TRY(run_tool({"ip", "-batch", "-"}, batch));
  std::vector<os::Fd> ready;
  std::vector<pollfd> fds;
  for (Host* host : hosts) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", "ready");
    os::Fd read_end(ends[0]), write_end(ends[1]);
    TRY(spawn(*host, write_end.get()));
    fds.push_back({read_end.get(), POLLIN, 0});
    ready.push_back(std::move(read_end));
  }
  size_t waiting = hosts.size();
  while (waiting > 0) {
    if (::poll(fds.data(), fds.size(), 30'000) == 0) return base::fail(base::ErrorKind::kTimeout, "hosts did not come up in 30 s");
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char said[2048];
      ssize_t n = ::read(fds[i].fd, said, sizeof said);
      std::string word(said, n > 0 ? static_cast<size_t>(n) : 0);
      if (word != "ok") return base::fail(base::ErrorKind::kUnfit, hosts[i]->plan.options.name + " did not come up").because(word);
      TRY(write_text(file(hosts[i]->plan.options.name + ".pid"), std::to_string(hosts[i]->init)));
      fds[i].fd = -1;
      --waiting;
    }
  }
  return base::ok();
}

base::Status Guard::make() {
  TRY(make_state());
  if (options_.hosts < 1 || options_.hosts > 250) return base::fail(base::ErrorKind::kUsage, "a cluster has 1 to 250 hosts");
  TRY(make_keys());
  hosts_.resize(static_cast<size_t>(options_.hosts) + 1);
  for (size_t i = 0; i < hosts_.size(); ++i) {
    HostPlan& plan = hosts_[i].plan;
    if (i == 0) plan.options = options_.ctl;
    if (i > 0 && i <= options_.host.size()) plan.options = options_.host[i - 1];
    if (i == 0) plan.options.name = "ctl";
    if (plan.options.name.empty()) plan.options.name = fmt::format("h{}", i);
    plan.ssh_as_it_comes = options_.ssh_as_it_comes;
    plan.index = static_cast<int>(i);
    plan.address = host_address(plan.index);
    plan.visible = {TESTBED_SOURCE_DIR, TESTBED_BINARY_DIR};
    plan.renamed = {{TESTBED_SOURCE_DIR, TESTBED_PROJECT}, {TESTBED_BINARY_DIR, TESTBED_BUILD}};
    TRY_ASSIGN(plan.cgroup, host_cgroup(options_.name, plan.options.name));
  }
  TRY(make_hosts_text());
  std::vector<Host*> all;
  for (Host& host : hosts_) {
    host.plan.client_key = client_key_;
    host.plan.client_public = client_public_;
    host.plan.host_key = host_key_;
    host.plan.hosts_file = hosts_file_;
    host.plan.known_hosts = worker_.known_hosts = known_hosts_;
    host.plan.worker = worker_;
    all.push_back(&host);
  }
  TRY(make_switch());
  return start(all);
}

Guard::Host* Guard::find(const std::string& name) {
  auto found = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) { return host.plan.options.name == name; });
  return found == hosts_.end() ? nullptr : &*found;
}

// silently: the link goes down first and the network stack goes with the processes, so that no FIN or RST leaves.
base::Status Guard::power_off(Host& host, bool silently) {
  std::string port = fmt::format("p-{}", host.plan.index);
  if (silently) TRY(run_tool({"ip", "link", "set", port, "down"}));
  ::unlink(file(host.plan.options.name + ".pid").c_str());
  TRY(kill_cgroup(host.plan.cgroup));
  if (!silently) return base::ok();
  TRY(run_tool({"ip", "link", "del", port}));
  host.netns.reset();
  return base::ok();
}

base::Status Guard::boot(Host& host) {
  if (::access(file(host.plan.options.name + ".pid").c_str(), F_OK) == 0) {
    return base::fail(base::ErrorKind::kUsage, host.plan.options.name + " is up");
  }
  if (host.netns.valid()) {
    TRY(run_tool({"ip", "link", "del", fmt::format("p-{}", host.plan.index)}));
    host.netns.reset();
  }
  return start({&host});
}

base::Status Guard::answer(const std::string& request, bool& down) {
  auto parts = base::split_words(request);
  if (parts.size() == 1 && parts[0] == "down") {
    down = true;
    return base::ok();
  }
  Host* host = parts.size() == 2 ? find(std::string(parts[1])) : nullptr;
  if (host == nullptr) return base::fail(base::ErrorKind::kUsage, "no such host: " + request);
  if (parts[0] == "power-off") return power_off(*host, true);
  if (parts[0] == "kill-all") return power_off(*host, false);
  if (parts[0] == "boot") return boot(*host);
  return base::fail(base::ErrorKind::kUsage, "no such request: " + request);
}

// One request, one answer ("ok" or why not), one connection. `down` is answered by closing once all is gone.
void Guard::accept_request(bool& down) {
  os::Fd peer(::accept4(control_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  char text[512];
  ssize_t n = ::recv(peer.get(), text, sizeof text, 0);
  if (n <= 0) return;
  auto done = answer(std::string(text, static_cast<size_t>(n)), down);
  if (down) unmake();
  std::string reply = done.ok() ? "ok" : done.error().message + ": " + done.error().cause;
  ::send(peer.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
}

void Guard::reap() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) > 0) {
    if (info.ssi_signo != SIGCHLD) owner_ = os::Fd();
  }
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    for (Host& host : hosts_) {
      if (host.init != pid) continue;
      host.init = -1;
      ::unlink(file(host.plan.options.name + ".pid").c_str());
    }
  }
}

void Guard::serve() {
  bool down = false, asked_to_end = false;
  while (!down && !asked_to_end) {
    pollfd fds[3] = {{owner_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {control_.get(), POLLIN, 0}};
    ::poll(fds, 3, -1);
    if (fds[0].revents != 0) asked_to_end = true;
    bool had_owner = owner_.valid();
    if (fds[1].revents != 0) reap();
    if (had_owner && !owner_.valid()) asked_to_end = true;
    if (fds[2].revents != 0) accept_request(down);
  }
  if (!down) unmake();
}

void Guard::unmake() {
  for (Host& host : hosts_) {
    if (!kill_cgroup(host.plan.cgroup).ok() && host.init > 0) ::kill(host.init, SIGKILL);
  }
  auto folder = host_cgroup(options_.name, {});
  if (folder.ok()) remove_cgroup(*folder);
  if (lock_.valid()) remove_folder(file({}));
}

}  // namespace

base::Status start_guard(const Options& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", "guard");
  os::Fd read_end(ends[0]), write_end(ends[1]);
  pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", "guard");
  if (pid == 0) {
    // A grandchild of the owner: nobody has to reap it, and it hears no terminal's Ctrl-C.
    if (::fork() != 0) ::_exit(0);
    ::setsid();
    ::prctl(PR_SET_NAME, "testbed-guard");
    int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(null, fd);
    os::Fd ready(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, 100));
    ::close_range(3, static_cast<unsigned>(ready.get()) - 1, 0);
    ::close_range(static_cast<unsigned>(ready.get()) + 1, ~0U, 0);
    ::signal(SIGPIPE, SIG_IGN);
    Guard guard(options);
    auto made = guard.make();
    std::string word = made.ok() ? "ok" : made.error().message + ": " + made.error().cause;
    bool told = ::write(ready.get(), word.data(), word.size()) > 0;
    ready.reset();
    if (made.ok() && told) guard.serve();
    else guard.unmake();
    ::_exit(0);
  }
  write_end.reset();
  ::waitpid(pid, nullptr, 0);
  std::string said;
  char text[4096];
  for (ssize_t n; (n = ::read(read_end.get(), text, sizeof text)) != 0;) {
    if (n > 0) said.append(text, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  if (said == "ok") return base::ok();
  return base::fail(base::ErrorKind::kUnfit, "the test cluster did not come up").because(said.empty() ? "its guard died" : said);
}

}  // namespace phalanx::testbed
