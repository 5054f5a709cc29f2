#include "hosts/connect/openssh.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "hosts/connect/container_start.h"
#include "hosts/connect/ssh_environment.h"
#include "os/apart.h"
#include "os/files.h"

namespace phalanx::hosts {
namespace {

using base::ErrorKind;

// What ssh says on stderr → what to say to the user. Searched in order; texts from OpenSSH 7.4 to 9.9 (ssh.c, sshconnect.c,
// sshconnect2.c, packet.c).
struct Row {
  const char* pattern;
  const char* message;
  const char* hint;  // {0}: host name, {1}: destination and port as ssh arguments
};
constexpr std::array kRows = {
    Row{"REMOTE HOST IDENTIFICATION HAS CHANGED", "{0}: the host key differs from the one in known_hosts",
        "ssh-keygen -F {0}   # compare with the key of the host; remove it with ssh-keygen -R only if the host was reinstalled"},
    Row{"Host key verification failed", "{0}: the host key is unknown", "ssh {1} true"},
    Row{"No ED25519 host key is known", "{0}: the host key is unknown", "ssh {1} true"},
    Row{"Permission denied", "{0}: authentication was refused", "ssh-copy-id {1}"},
    Row{"Too many authentication failures", "{0}: authentication was refused", "ssh -o IdentitiesOnly=yes {1} true"},
    Row{"Could not resolve hostname", "{0}: the host name cannot be resolved", "getent hosts {0}"},
    Row{"Connection refused", "{0}: nothing listens on the ssh port", "ssh -v {1} true"},
    Row{"No route to host", "{0}: no route to the host", "ip route get $(getent ahosts {0} | cut -d' ' -f1 | head -n 1)"},
    Row{"Network is unreachable", "{0}: no route to the host", "ip route"},
    Row{"Connection timed out", "{0}: the host does not answer", "ssh -v {1} true"},
    Row{"Operation timed out", "{0}: the host does not answer", "ssh -v {1} true"},
};

std::string last_lines(const std::string& text) {
  std::string trimmed(base::trim(text));
  if (trimmed.empty()) return "ssh printed no message";
  return (trimmed.starts_with("ssh: ") ? "" : "ssh: ") + base::replace_all(trimmed, "\n", "\n          ");
}

}  // namespace

std::string control_folder() {
  constexpr size_t kMostBytes = 108 - 1 - 1 - kSocketNameBytes - 18;  // NUL, '/', the name, the suffix ssh adds while it creates the socket
  std::string runtime = os::environment_value("XDG_RUNTIME_DIR"), home = os::environment_value("HOME");
  std::string cache = os::environment_value("XDG_CACHE_HOME", home.empty() ? "" : home + "/.cache");
  std::vector<std::string> candidates;
  if (!runtime.empty()) candidates.push_back(runtime + "/phalanx");
  if (!cache.empty()) candidates.push_back(cache + "/phalanx/ssh");
  candidates.push_back(fmt::format("/tmp/phalanx-ssh-{}", ::getuid()));
  for (const std::string& folder : candidates)
    if (folder.size() <= kMostBytes && os::private_folder(folder)) return folder;
  return "";
}

Launch OpensshTransport::launch(const Target& target, int attempt) const {
  Launch launch;
  launch.deploys = true;
  std::vector<std::string>& a = launch.argv;
  a = {options_.program, "-T"};
  auto option = [&](const std::string& text) {
    a.push_back("-o");
    a.push_back(text);
  };
  for (const std::string& text : options_.extra) option(text);
  option("BatchMode=yes");
  option(fmt::format("ConnectTimeout={}", login_time(std::chrono::seconds(options_.connect_timeout_s), attempt).count() / 1000));
  option("ServerAliveInterval=5");
  option("ServerAliveCountMax=3");
  option("ClearAllForwardings=yes");
  // These three are not among what it clears: root of a host could use the user's keys or display, as long as the connection lives.
  option("ForwardAgent=no");
  option("ForwardX11=no");
  option("Tunnel=no");
  option("PermitLocalCommand=no");
  bool share = attempt == 0 && !options_.control_folder.empty();
  // The shared connection led nowhere. Its socket may lie in a home directory that hangs just now, so its removal is not waited for.
  if (attempt > 0) (void)os::fork_apart("phalanx-copy", {}, [&] { forget(target); });
  std::string socket = share ? control_socket(target) : "none";
  launch.warm = share && os::exists(socket);
  option(share ? "ControlMaster=auto" : "ControlMaster=no");
  option("ControlPath=" + socket);
  if (share) option("ControlPersist=300");
  if (target.port > 0) {
    a.push_back("-p");
    a.push_back(std::to_string(target.port));
  }
  a.push_back("--");
  a.push_back(target.destination);
  // Another program than ssh is used every time.
  const bool ours = launch.warm && options_.program == "ssh";
  const Offered offered = ours ? offered_environment(socket) : Offered{};
  a.push_back(far_command(target, options_.build));
  if (ours && !offered.known) learn_environment(socket, a);
  if (offered.environment)
    launch.session =
        SessionRequest{options_.control_folder, socket.substr(options_.control_folder.size() + 1), a.back(), *offered.environment};
  return launch;
}

void OpensshTransport::forget(const Target& target) const {
  if (options_.control_folder.empty()) return;
  ::unlink(control_socket(target).c_str());  // its master ends by itself
  forget_environment(control_socket(target));
}

// Named by everything that decides where the connection goes.
std::string OpensshTransport::control_socket(const Target& target) const {
  std::string key = fmt::format("{}\n{}\n{}\n{}", options_.place, target.destination, target.port, base::join(options_.extra, "\n"));
  return options_.control_folder + "/" + base::sha256_hex(key).substr(0, kSocketNameBytes);
}

base::Error OpensshTransport::explain(const Target& target, const Death& death) const {
  std::string arguments = target.port > 0 ? fmt::format("-p {} {}", target.port, target.destination) : target.destination;
  for (const Row& row : kRows) {
    if (death.stderr_text.find(row.pattern) == std::string::npos) continue;
    return base::fail(ErrorKind::kUnreachable, fmt::format(fmt::runtime(row.message), target.name))
        .because(last_lines(death.stderr_text))
        .with_hint(fmt::format(fmt::runtime(row.hint), target.name, arguments));
  }
  int code = WIFEXITED(death.status) ? WEXITSTATUS(death.status) : 128 + WTERMSIG(death.status);
  if (code == 255)
    return base::fail(ErrorKind::kUnreachable, fmt::format("{}: the ssh connection failed", target.name))
        .because(last_lines(death.stderr_text))
        .with_hint(fmt::format("ssh -v {} true", arguments));
  return base::fail(ErrorKind::kUnreachable, fmt::format("{}: the agent could not be started (exit code {})", target.name, code))
      .because(last_lines(death.stderr_text));
}

// sshd drops logins at random once MaxStartups of them are unauthenticated, before it says who it is.
bool OpensshTransport::may_retry(const Death& death) const {
  for (const char* pattern :
       {"kex_exchange_identification", "Connection reset by", "Connection closed by remote host", "ssh_exchange_identification",
        // A kept connection whose other end went away while it was being asked: mux_client_request_session, _request_alive,
        // _hello_exchange (OpenSSH mux.c). No session was open yet, so nothing was started.
        "mux_client_", "Session open refused", "Control socket connect", "Exceeded MaxStartups",
        // A program that somebody has open for writing cannot be started: a scanner, or a backup that restores it.
        "Text file busy"})
    if (death.stderr_text.find(pattern) != std::string::npos) return true;
  return false;
}

}  // namespace phalanx::hosts
