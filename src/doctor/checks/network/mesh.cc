// What the mesh test found: connections that were really tried between the hosts.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "doctor/checks/rows.h"
#include "doctor/views/mesh_view.h"
#include "doctor/views/network_view.h"

namespace phalanx::doctor {
namespace {

std::string no_fix(size_t, const hosts::Link&) { return ""; }

void dropped(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kTimeout,
      [](const std::string& ways, const hosts::Link& link) -> Words {
        return tr("{}: no answer for {}; the packets are dropped on the way", ways, seconds(link.connect_ns));
      },
      [&](size_t host, const hosts::Link&) { return open_firewall(s, host); });
}

void refused(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kRefused,
      [](const std::string& ways, const hosts::Link&) -> Words {
        return tr("{}: refused at once, although the agent was listening; a firewall answers with a TCP reset", ways);
      },
      [&](size_t host, const hosts::Link&) { return open_firewall(s, host); });
}

void rejected(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kRejected,
      [](const std::string& ways, const hosts::Link& link) -> Words {
        return tr("{}: refused after {}; a firewall rejects (port unreachable)", ways, seconds(link.connect_ns));
      },
      [&](size_t host, const hosts::Link&) { return open_firewall(s, host); });
}

void prohibited(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kProhibited,
      [](const std::string& ways, const hosts::Link& link) -> Words {
        return tr("{}: \"No route to host\" (errno 113) after {}, sent by a firewall, not by a router", ways, seconds(link.connect_ns));
      },
      [&](size_t host, const hosts::Link&) { return open_firewall(s, host); });
}

// A route that refuses is told by the error of its look-up (linux net/ipv4/fib_semantics.c, fib_props).
std::string refusing_route(const Situation& s, const hosts::Link& link) {
  const std::vector<machine::Route>& routes = s.hosts[static_cast<size_t>(link.from)].facts.network.routes;
  auto route = std::find_if(routes.begin(), routes.end(), [&](const machine::Route& r) { return r.to == link.address; });
  if (route == routes.end()) return "";
  for (int error : {EHOSTUNREACH, EACCES, EINVAL})
    if (route->error == std::strerror(error)) return error == EHOSTUNREACH ? "unreachable" : error == EACCES ? "prohibit" : "blackhole";
  return "";
}

void no_route(const Situation& s, Findings& f) {
  for (const Blame& b : blame(s, [](const hosts::Link& link) { return link.outcome == wire::LinkOutcome::kNoRoute; })) {
    std::vector<size_t> senders;
    for (const hosts::Link* link : b.links)
      if (auto from = static_cast<size_t>(link->from); std::find(senders.begin(), senders.end(), from) == senders.end())
        senders.push_back(from);
    if (senders.size() > 1) senders = b.hosts;
    const hosts::Link& first = *b.links[0];
    std::string text = ways(s, b), type = refusing_route(s, first);
    if (!type.empty()) {
      f.on(senders, tr("{}: refused by a route of type \"{}\" in the sender's own table", text, type),
           fmt::format("sudo ip route del $(ip route show type {} match {} | tail -n 1)", type, first.address));
      continue;
    }
    const char* error = std::strerror(static_cast<int>(first.error_number));
    f.on(senders, tr("{}: {} (errno {}); the sender's routing table has no route to it", text, error, first.error_number),
         "ip route get " + first.address);
  }
}

void unreachable(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kUnreachable,
      [](const std::string& ways, const hosts::Link& link) -> Words {
        return tr("{}: \"No route to host\" (errno 113) after {}; no host answers ARP for that address", ways, seconds(link.connect_ns));
      },
      [&](size_t, const hosts::Link& link) { return "ip neigh show " + link.address; });
}

void mtu_hole(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kStalled,
      [](const std::string& ways, const hosts::Link&) -> Words {
        return tr("{}: connects, but larger packets never arrive; a device on the way has a smaller MTU and does not report it", ways);
      },
      [&](size_t host, const hosts::Link&) -> std::string {
        const machine::Interface* i = chosen_interface(s.hosts[host]);
        if (!i) return "";
        return fmt::format("sudo ip link set dev {} mtu {}", i->name, i->mtu > 1500 ? 1500 : 1400);
      });
}

void stranger(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kStranger,
      [](const std::string& ways, const hosts::Link&) -> Words {
        return tr("{}: another program answers; another machine has the same address, or another program uses the port", ways);
      },
      [&](size_t host, const hosts::Link& link) -> std::string {
        const machine::Interface* i = chosen_interface(s.hosts[host]);
        return i ? fmt::format("sudo arping -D -I {} -c 3 {}", i->name, link.address) : "";
      });
}

// a → b fails while b → a passes: neither cable nor address, but a filter or a return path.
void one_way(const Situation& s, Findings& f) {
  std::vector<const hosts::Link*> links = links_of(s);
  auto failed = [&](const hosts::Link& link) {
    if (link.outcome == wire::LinkOutcome::kOk || link.outcome == wire::LinkOutcome::kNone || link.outcome == wire::LinkOutcome::kStranger)
      return false;
    return std::any_of(links.begin(), links.end(), [&](const hosts::Link* back) {
      return back->from == link.to && back->to == link.from && back->master_port == link.master_port &&
             back->outcome == wire::LinkOutcome::kOk;
    });
  };
  for (const Blame& b : blame(s, failed)) {
    std::string text = ways(s, b);
    f.on(b.hosts, tr("{} fails, while the opposite direction works", text));
  }
}

void other_error(const Situation& s, Findings& f) {
  report_links(
      s, f, wire::LinkOutcome::kError,
      [](const std::string& ways, const hosts::Link& link) -> Words { return tr("{}: errno {}", ways, link.error_number); }, no_fix);
}

constexpr Row kNetworkMeshRows[] = {
    {"NET-PORT-DROPPED", Severity::kError, dropped},   {"NET-PORT-REFUSED", Severity::kError, refused},
    {"NET-PORT-REJECTED", Severity::kError, rejected}, {"NET-PROHIBITED", Severity::kError, prohibited},
    {"NET-NO-ROUTE", Severity::kError, no_route},      {"NET-UNREACHABLE", Severity::kError, unreachable},
    {"NET-MTU-HOLE", Severity::kError, mtu_hole},      {"NET-STRANGER", Severity::kError, stranger},
    {"NET-ONE-WAY", Severity::kNote, one_way},         {"NET-CONNECT-ERROR", Severity::kError, other_error},
};

}  // namespace

std::span<const Row> network_mesh_rows() { return kNetworkMeshRows; }

}  // namespace phalanx::doctor
