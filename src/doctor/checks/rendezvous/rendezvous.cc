// Where the ranks meet: MASTER_ADDR and MASTER_PORT.
#include "doctor/checks/rendezvous/rendezvous.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rendezvous/random_port.h"
#include "doctor/checks/rows.h"
#include "doctor/views/address_words.h"

namespace phalanx::doctor {
namespace {

bool several(const Situation& s) { return s.hosts.size() > 1; }

std::string kill_command(const machine::PortOwner& owner, const std::string& user) {
  if (owner.pid <= 0) return "";
  return fmt::format("{}kill {}", owner.user == user || user == "root" ? "" : "sudo ", owner.pid);
}

void port_taken(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || s.job.master_port == 0) return;
  const HostView& host = s.hosts[*at];
  for (const machine::PortOwner& owner : host.facts.processes.ports) {
    if (owner.port != s.job.master_port) continue;
    if (!s.job.port_run.empty()) {  // its agent may be another user's, or in a container: the record knows better than the host
      findings.on(*at, tr("{} is used by the run {}, which has not ended", owner.port, s.job.port_run), "phalanx stop " + s.job.port_run);
      continue;
    }
    if (owner.pid == 0) {
      findings.on(*at, tr("{} is taken by a process of {} that is not visible here", owner.port, owner.user),
                  fmt::format("sudo ss -ltnp 'sport = :{}'", owner.port));
      continue;
    }
    std::string age = base::format_duration(std::chrono::seconds(owner.age_s));
    bool orphan = owner.parent == 1;
    findings.on(*at,
                tr("{} is taken by pid {} of {}, {} old, parent {}{}: {}", owner.port, owner.pid, owner.user, age, owner.parent,
                   orphan ? tr(" (its launcher has exited)") : Words{}, owner.command),
                orphan ? kill_command(owner, host.facts.machine.user) : fmt::format("ps -o pid,ppid,user,etime,args -p {}", owner.pid));
  }
}

void master_loopback(const Situation& s, Findings& findings) {
  if (!several(s) || s.job.master_address.empty()) return;
  const std::string& asked = s.job.master_address;
  if (is_loopback(asked)) {
    findings.job(tr("MASTER_ADDR is {}, but there are {} hosts", asked, s.hosts.size()));
    return;
  }
  // A name that the first host's own /etc/hosts sends to 127.0.1.1 is right elsewhere: only a host that is not the store's is lost.
  std::optional<size_t> store = store_host(s);
  for (size_t h = 0; h < s.hosts.size(); ++h) {
    const machine::Resolved* r = resolved(s.hosts[h], asked);
    if (!r || r->addresses.empty() || h == store || !std::all_of(r->addresses.begin(), r->addresses.end(), is_loopback)) continue;
    findings.on(h, tr("{} is {} here", asked, r->addresses[0]));
  }
}

// All addresses that the first host says MASTER_ADDR has.
std::vector<std::string> master_addresses(const Situation& s) {
  if (s.job.master_address.empty() || s.hosts.empty()) return {};
  if (is_numeric(s.job.master_address)) return {s.job.master_address};
  const machine::Resolved* r = resolved(s.hosts[0], s.job.master_address);
  return r ? r->addresses : std::vector<std::string>{};
}

bool has_any(const HostView& h, const std::vector<std::string>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [&](const std::string& a) { return !is_loopback(a) && has_address(h, a); });
}

void master_other(const Situation& s, Findings& findings) {
  std::vector<std::string> addresses = master_addresses(s);
  if (!several(s) || addresses.empty() || !s.hosts[0].probed || has_any(s.hosts[0], addresses) || !s.job.serves_store) return;
  for (size_t h = 1; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && has_any(s.hosts[h], addresses))
      findings.on(h, tr("MASTER_ADDR {} is the address of this host, but rank 0 runs on {}", s.job.master_address, s.hosts[0].name));
}

void master_not_rank0(const Situation& s, Findings& findings) {
  std::vector<std::string> addresses = master_addresses(s);
  if (!several(s) || addresses.empty() || !s.hosts[0].probed || s.hosts[0].facts.network.interfaces.empty()) return;
  if (std::all_of(addresses.begin(), addresses.end(), is_loopback)) return;
  for (const HostView& h : s.hosts)
    if (!h.probed || has_any(h, addresses)) return;
  std::string own;
  for (const machine::Interface& i : s.hosts[0].facts.network.interfaces)
    for (const machine::InterfaceAddressFact& a : i.addresses)
      if (!i.loopback && !a.v6) own += (own.empty() ? "" : ", ") + a.address;
  findings.on(0, tr("MASTER_ADDR {} is not an address of any host; this host has {}", s.job.master_address, own));
}

// "8080,50000-50010" of ip_local_reserved_ports.
bool reserved(const std::string& list, int port) {
  for (std::string_view part : base::split(list, ',')) {
    size_t dash = part.find('-');
    base::Result<int64_t> low = base::parse_int(base::trim(part.substr(0, dash)), 0, 65535);
    base::Result<int64_t> high = dash == std::string_view::npos ? low : base::parse_int(base::trim(part.substr(dash + 1)), 0, 65535);
    if (low.ok() && high.ok() && port >= *low && port <= *high) return true;
  }
  return false;
}

void port_ephemeral(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || s.job.master_port == 0) return;
  const machine::NetworkFacts& n = s.hosts[*at].facts.network;
  int port = s.job.master_port;
  if (n.port_range_high == 0 || port < n.port_range_low || port > n.port_range_high || reserved(n.reserved_ports, port)) return;
  findings.on(*at, tr("{} is in the range {}–{} that the kernel uses for outgoing connections", port, n.port_range_low, n.port_range_high),
              fmt::format("sudo sysctl net.ipv4.ip_local_reserved_ports={}", port));
}

void port_random(const Situation& s, Findings& findings) {
  std::set<std::string> told;
  for (const HostView& h : s.hosts) {
    if (!h.probed) continue;
    for (const machine::CommandFile& file : h.facts.command.files) {
      std::optional<RandomPort> port = random_port(file.text);
      if (!port || !told.insert(file.path).second) continue;
      const machine::NetworkFacts& n = h.facts.network;
      bool inside = n.port_range_high > 0 && port->low <= n.port_range_high && port->high >= n.port_range_low;
      if (!inside && !several(s)) continue;
      Words range = inside ? tr("; the kernel uses {}–{} for outgoing connections", n.port_range_low, n.port_range_high) : Words{};
      Words each = several(s) ? tr("; each host chooses its own") : Words{};
      findings.job(tr("{}:{}: {} is a port from {} to {}{}{}", file.path, port->line, port->text, port->low, port->high, range, each));
    }
  }
}

void init_localhost(const Situation& s, Findings& findings) {
  if (!several(s)) return;
  std::set<std::string> told;
  for (const HostView& h : s.hosts) {
    if (!h.probed) continue;
    for (const machine::CommandFile& file : h.facts.command.files) {
      if (file.role != "script" && file.role != "shell") continue;
      int line_number = 0;
      for (std::string_view line : base::split_lines(file.text)) {
        ++line_number;
        std::string_view code = base::trim(line);
        if (code.empty() || code[0] == '#') continue;
        if (code.find("tcp://localhost") == std::string_view::npos && code.find("tcp://127.0.0.1") == std::string_view::npos) continue;
        if (told.insert(file.path).second) findings.job(tr("{}:{}: {}", file.path, line_number, base::shell_quote(code.substr(0, 100))));
      }
    }
  }
}

void somaxconn(const Situation& s, Findings& findings) {
  std::optional<size_t> at = store_host(s);
  if (!at || !s.hosts[*at].probed) return;
  int64_t backlog = s.hosts[*at].facts.network.somaxconn;
  if (backlog <= 0 || backlog >= s.job.world) return;
  findings.on(*at, tr("somaxconn is {}, {} ranks connect at once", backlog, s.job.world), "sudo sysctl net.core.somaxconn=4096");
}

void hand_set(const Situation& s, Findings& findings) {
  static constexpr std::string_view kOurs[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"};
  std::string names;
  for (const auto& [name, value] : s.job.set)
    if (std::find(std::begin(kOurs), std::end(kOurs), name) != std::end(kOurs))
      names += fmt::format("{}{}={}", names.empty() ? "" : " ", name, value);
  if (!names.empty()) findings.job(tr("{}: replaced for every rank", names));
}

constexpr Row kMeetingRows[] = {
    {"RDZV-PORT-TAKEN", Severity::kError, port_taken},
    {"RDZV-MASTER-LOOPBACK", Severity::kError, master_loopback},
    {"RDZV-MASTER-OTHER-HOST", Severity::kError, master_other},
    {"RDZV-MASTER-NOT-RANK0", Severity::kWarning, master_not_rank0},
    {"RDZV-PORT-EPHEMERAL", Severity::kWarning, port_ephemeral},
    {"RDZV-PORT-RANDOM", Severity::kWarning, port_random},
    {"RDZV-INIT-LOCALHOST", Severity::kWarning, init_localhost},
    {"RDZV-SOMAXCONN", Severity::kWarning, somaxconn},
    {"RDZV-HAND-SET", Severity::kNote, hand_set},
};

}  // namespace

std::optional<size_t> store_host(const Situation& s) {
  if (s.hosts.empty()) return std::nullopt;
  for (size_t h = 0; h < s.hosts.size(); ++h)
    if (s.hosts[h].probed && has_any(s.hosts[h], master_addresses(s))) return h;
  return 0;
}

const machine::Resolved* resolved(const HostView& host, const std::string& name) {
  for (const machine::Resolved& r : host.facts.network.names)
    if (r.name == name) return &r;
  return nullptr;
}

std::span<const Row> meeting_rows() { return kMeetingRows; }

}  // namespace phalanx::doctor
