#include "cli/by_hand/manual_nodes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/agent_image.h"
#include "cli/make_job.h"
#include "cli/records/runs.h"
#include "hosts/join/member.h"
#include "machine/probe.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/net.h"
#include "words/message.h"
#include "words/said.h"

namespace phalanx::cli {
namespace {

using base::ErrorKind;

constexpr uint16_t kDefaultPort = 29'500;  // torchrun's
constexpr size_t kLeastTokenBytes = 16;    // less could be guessed from a recorded handshake
constexpr size_t kMostTokenBytes = 4096;
constexpr size_t kMostHostsFile = 1 << 20;
constexpr os::milliseconds kBetweenLooks{500};

base::Result<std::string> checked(std::string_view text, const std::string& where) {
  const std::string_view token = base::trim(text);
  if (token.size() >= kLeastTokenBytes && token.size() <= kMostTokenBytes) return std::string(token);
  return base::fail(ErrorKind::kConfig, fmt::format("{}: a token has {} to {} characters", where, kLeastTokenBytes, kMostTokenBytes))
      .with_hint("head -c 32 /dev/urandom | sha256sum | cut -c 1-64 > FILE");
}

base::Result<std::string> token_in(const std::string& path) {
  TRY_ASSIGN(const os::Fd file, os::open_regular(path));
  TRY_ASSIGN(const struct stat status, os::stat_of(file, path));
  if ((status.st_uid != ::geteuid() && status.st_uid != 0) || (status.st_mode & 077) != 0)
    return base::fail(ErrorKind::kConfig, fmt::format("{}: others may read or own this token", path))
        .with_hint("chmod 600 " + base::shell_quote({path}));
  TRY_ASSIGN(const std::string text, os::read_rest(file, path, kMostTokenBytes + 2));
  return checked(text, path);
}

base::Result<std::string> default_token_file() {
  const std::string folder = os::environment_value("XDG_CONFIG_HOME"), home = os::environment_value("HOME");
  if (folder.starts_with('/')) return folder + "/phalanx/token";
  if (home.starts_with('/')) return home + "/.config/phalanx/token";
  return base::fail(ErrorKind::kConfig, "HOME is not set, so there is no place for the token that the nodes share")
      .with_hint("phalanx run --token-file FILE ...");
}

// Machines with a common home directory get the same one; the first makes it.
base::Status make_token(const std::string& path) {
  unsigned char bytes[32];
  if (::getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) return base::system_error("getrandom", "32 bytes");
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  TRY(os::make_folders(path.substr(0, path.rfind('/'))));
  const std::string fresh = fmt::format("{}.{}.{}", path, text.substr(0, 16), ::getpid());
  text = text.substr(16) + text.substr(0, 16) + "\n";
  TRY(os::write_file_atomic(fresh, text, 0600));
  const bool made = ::link(fresh.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int error = errno;
  ::unlink(fresh.c_str());
  return made ? base::ok() : base::Status(base::system_error("link", path, error));
}

std::vector<std::string> addresses_of(const std::string& name) {
  in6_addr bytes;
  if (::inet_pton(AF_INET, name.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, name.c_str(), &bytes) == 1) return {name};
  machine::ProbeRequest request;
  request.names = {name};
  for (const machine::Resolved& one : machine::resolve_names(request))
    if (one.name == name) return one.addresses;
  return {};
}

uint16_t port_of(const RunOptions& options) { return static_cast<uint16_t>(options.master_port.value_or(kDefaultPort)); }

std::string ranks_text(const RunOptions& options) {
  if (!options.ranks_per_host) return "";
  switch (options.ranks_per_host->kind) {
    case RanksPerHost::Kind::kAuto: return "auto";
    case RanksPerHost::Kind::kGpu: return "gpu";
    case RanksPerHost::Kind::kCpu: return "cpu";
    case RanksPerHost::Kind::kCount: return std::to_string(options.ranks_per_host->count);
  }
  return "";
}

base::Result<hosts::MemberFacts> own_facts(const RunOptions& options) {
  hosts::MemberFacts facts;
  facts.node_rank = static_cast<uint32_t>(*options.node_rank);
  facts.nodes = static_cast<uint32_t>(*options.nnodes);
  facts.build = agent_image().build;
  facts.hostname = detect_terminal().hostname;
  facts.ranks = ranks_text(options);
  facts.command = options.command;
  TRY(hosts::fits_a_record(facts));
  return facts;
}

std::function<void(const std::string&)> teller(bool quiet) {
  return [quiet, language = language_here()](const std::string& text) {
    if (!quiet) std::fputs(("phalanx: " + words::said_in(language, text) + "\n").c_str(), stderr);
  };
}

// The master's address on this machine: there, and nowhere else, node 0 listens.
base::Result<os::Endpoint> own_endpoint(const RunOptions& options) {
  const std::vector<std::string> wanted = addresses_of(options.master_addr);
  TRY_ASSIGN(const std::vector<os::InterfaceAddress> own, os::interface_addresses());
  for (const std::string& address : wanted)
    for (const os::InterfaceAddress& one : own)
      if (one.address == address) return os::Endpoint{address, port_of(options)};
  if (wanted.empty())
    return base::fail(ErrorKind::kUnreachable, fmt::format("--master-addr {}: the name has no address", options.master_addr))
        .with_hint("getent ahosts " + base::shell_quote({options.master_addr}));
  return base::fail(ErrorKind::kUsage, fmt::format("{} is no address of this machine, but this is node 0", wanted.front()))
      .because(fmt::format("node 0 listens at --master-addr {}", options.master_addr))
      .with_hint("give --node-rank 0 on the machine of the master address, or the address of this one: ip -brief address");
}

// The name of a pod gets its address in DNS some time after the pod has started.
base::Result<os::Endpoint> awaited_endpoint(const RunOptions& options) {
  base::Result<os::Endpoint> endpoint = own_endpoint(options);
  if (endpoint.ok() || endpoint.error().kind != ErrorKind::kUnreachable || !options.in_pod) return endpoint;
  TRY_ASSIGN(const std::unique_ptr<os::Loop> loop, os::Loop::create());
  bool over = false;
  loop->after(options.join_timeout, [&over] { over = true; });
  while (!over && !endpoint.ok() && endpoint.error().kind == ErrorKind::kUnreachable) {
    bool again = false;
    loop->after(kBetweenLooks, [&again] { again = true; });
    while (!again) loop->poll(kBetweenLooks);
    endpoint = own_endpoint(options);
  }
  return endpoint;
}

}  // namespace

Pod this_pod() {
  Pod pod{[](const char* name) { return os::environment_value(name); }, "", ""};
  if (pod.variable("KUBERNETES_SERVICE_HOST").empty()) return pod;
  pod.hostname = detect_terminal().hostname;
  if (base::Result<std::string> text = os::read_file("/etc/hosts", kMostHostsFile); text.ok()) pod.hosts_file = std::move(*text);
  return pod;
}

void tell_pod_place(const RunOptions& options) {
  if (!options.in_pod || options.quiet) return;
  const std::string port = options.master_port ? fmt::format(" --master-port {}", *options.master_port) : "";
  std::fputs(words::tr(language_here(), "phalanx: this pod is node {} of {}: --nnodes {} --node-rank {} --master-addr {}{}\n",
                       *options.node_rank, *options.nnodes, *options.nnodes, *options.node_rank, options.master_addr, port)
                 .c_str(),
             stderr);
}

base::Result<std::string> shared_token(const RunOptions& options) {
  const std::string variable = os::environment_value("PHALANX_TOKEN");
  ::unsetenv("PHALANX_TOKEN");  // the ranks need not know it
  if (!options.token_file.empty()) return token_in(options.token_file);
  if (!variable.empty()) return checked(variable, "PHALANX_TOKEN");
  TRY_ASSIGN(const std::string path, default_token_file());
  TRY_ASSIGN(const bool there, os::is_present(path));
  if (!there) TRY(make_token(path));
  base::Result<std::string> token = token_in(path);
  if (!token.ok()) return std::move(token).error().within("reading the token that the nodes share");
  return token;
}

base::Result<std::unique_ptr<hosts::JoinedNodes>> gather_nodes(const RunOptions& options) {
  hosts::GatherOptions gathering;
  TRY_ASSIGN(gathering.token, shared_token(options));
  TRY_ASSIGN(gathering.listen, awaited_endpoint(options));
  TRY_ASSIGN(gathering.own, own_facts(options));
  gathering.patience = options.join_timeout;
  gathering.say = teller(options.quiet);
  TRY_ASSIGN(std::vector<hosts::JoinedNode> nodes, hosts::gather(gathering));
  return std::make_unique<hosts::JoinedNodes>(std::move(nodes));
}

void add_joined(const hosts::JoinedNodes& joined, job::Job& job) {
  for (const hosts::JoinedNode& node : joined.nodes()) {
    const bool taken =
        std::any_of(job.hosts.begin(), job.hosts.end(), [&](const job::HostRequest& host) { return host.target.name == node.hostname; });
    job::HostRequest request = job.hosts.front();
    request.target = {.name = taken ? fmt::format("{}-node{}", node.hostname, node.node_rank) : node.hostname,
                      .destination = node.hostname,
                      .node_rank = node.node_rank};
    job.hosts.push_back(std::move(request));
  }
}

hosts::JoinVerdict verdict_for_nodes(const base::Result<int>& code) {
  if (!code.ok()) return {static_cast<uint32_t>(base::exit_code(code.error().kind)), code.error().message};
  if (*code == 0) return {0, "the run has ended well"};
  return {static_cast<uint32_t>(*code) & 0xff, fmt::format("the run ended with exit code {}; node 0 says why", *code)};
}

base::Result<int> take_part(const RunOptions& options) {
  hosts::MemberOptions member;
  TRY_ASSIGN(member.token, shared_token(options));
  member.master = options.master_addr;
  member.addresses = [&options] { return addresses_of(options.master_addr); };
  member.port = port_of(options);
  TRY_ASSIGN(member.own, own_facts(options));
  member.patience = options.join_timeout;
  member.say = teller(options.quiet);
  TRY_ASSIGN(const hosts::JoinVerdict verdict, hosts::join_run(member));
  if (!verdict.text.empty()) teller(options.quiet && verdict.exit_code == 0)(verdict.text);
  return static_cast<int>(verdict.exit_code);
}

}  // namespace phalanx::cli
