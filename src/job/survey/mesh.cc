// The mesh test: over the best network that all hosts share, every planned pair connects, all at once. Where that does not hold the next
// network is tried, and the one that failed least is kept. `check` then sends bursts over the links that hold, in rounds in which no
// host is busy twice; a run does that while its program starts (job/survey/speed.cc), since nothing it can find refuses the run.
#include <algorithm>

#include "job/survey/step.h"
#include "wire/challenge.h"

namespace phalanx::job {
namespace {

int failures(const hosts::Mesh& mesh) {
  return static_cast<int>(
      std::count_if(mesh.links.begin(), mesh.links.end(), [](const hosts::Link& link) { return link.outcome != wire::LinkOutcome::kOk; }));
}

hosts::Link* find_link(Survey& c, size_t from, size_t to, bool master_port) {
  auto found = c.link_places.find({from, to, master_port});
  return found == c.link_places.end() || found->second >= c.mesh.links.size() ? nullptr : &c.mesh.links[found->second];
}

// The networks of the hosts that answered; the others have no address in them.
std::vector<Network> networks_of(const doctor::Situation& all, const std::string& wanted) {
  bool whole = std::all_of(all.hosts.begin(), all.hosts.end(), [](const doctor::HostView& h) { return h.probed; });
  if (whole) return shared_networks(all, wanted);  // as nearly always, without a copy of what is known of every host
  doctor::Situation probed;
  probed.job = all.job;
  std::vector<size_t> at;
  for (size_t h = 0; h < all.hosts.size(); ++h) {
    if (!all.hosts[h].probed) continue;
    probed.hosts.push_back(all.hosts[h]);
    at.push_back(h);
  }
  if (probed.hosts.empty()) return {};
  std::vector<Network> networks = shared_networks(probed, wanted);
  for (Network& network : networks) {
    std::vector<std::string> addresses(all.hosts.size()), interfaces(all.hosts.size());
    for (size_t i = 0; i < at.size(); ++i) {
      addresses[at[i]] = network.addresses[i];
      interfaces[at[i]] = network.interfaces[i];
    }
    network.addresses = std::move(addresses);
    network.interfaces = std::move(interfaces);
  }
  return networks;
}

}  // namespace

bool SurveyStep::in_mesh(size_t h) const {
  return alive(h) && !hosts[h].silent && c.situation.hosts[h].probed && !c.networks[c.network].addresses[h].empty();
}

void SurveyStep::begin_mesh() {
  c.networks = networks_of(c.situation, job.wish.interface);
  auto probed = std::count_if(c.situation.hosts.begin(), c.situation.hosts.end(), [](const doctor::HostView& h) { return h.probed; });
  if (probed < 2 || c.networks.empty()) return ask_firewalls();
  listen_on_network();
}

void SurveyStep::listen_on_network() {
  c.stage = Survey::Stage::kListening;
  c.ports.assign(hosts.size(), {});
  const std::string key = wire::key_for(wire::Purpose::kMesh, job.token);
  std::vector<bool> asked(hosts.size());
  for (size_t h = 0; h < hosts.size(); ++h) {
    asked[h] = in_mesh(h);
    if (!asked[h]) continue;
    wire::Listen listen;
    listen.key = key;
    listen.places.push_back({c.networks[c.network].addresses[h], 0});
    if (h == 0 && job.master_port != 0)
      listen.places.push_back({c.networks[c.network].addresses[h], static_cast<uint32_t>(job.master_port)});
    send(h, std::move(listen));
  }
  await(asked, kListenPatience);
  progress();
}

void SurveyStep::take(size_t h, const wire::Listening& m) {
  if (!asking() || c.stage != Survey::Stage::kListening || c.answered[h]) return;
  answered(h);
  for (const wire::ListenedPlace& place : m.places) c.ports[h].push_back(place.outcome.ok ? place.port : 0);
  progress();
}

// Round 0: everything, side by side. Later rounds: one burst per pair, over links that hold.
void SurveyStep::dial_round() {
  if (c.stage != Survey::Stage::kMeasuring) c.stage = Survey::Stage::kDialing;
  const Network& network = c.networks[c.network];
  std::vector<wire::Dial> dials(hosts.size());
  auto add = [&](size_t from, size_t to, size_t place) {
    if (!in_mesh(from) || !in_mesh(to) || c.ports[to].size() <= place || c.ports[to][place] == 0) return;
    dials[from].targets.push_back({static_cast<uint32_t>(to), network.addresses[to], c.ports[to][place], place == 1});
    if (c.round > 0) return;
    hosts::Link link;
    link.from = static_cast<int64_t>(from);
    link.to = static_cast<int64_t>(to);
    link.address = network.addresses[to];
    link.port = c.ports[to][place];
    link.master_port = place == 1;
    link.outcome = wire::LinkOutcome::kSilent;  // until its dialer has said better
    c.link_places[{from, to, link.master_port}] = c.mesh.links.size();
    c.mesh.links.push_back(std::move(link));
  };
  if (c.round == 0) {
    c.mesh = {};
    c.link_places.clear();
    for (const std::vector<hosts::Pair>& round : c.rounds)
      for (const auto& [from, to] : round) add(static_cast<size_t>(from), static_cast<size_t>(to), 0);
    c.mesh.complete = c.mesh.links.size() == hosts.size() * (hosts.size() - 1);
    for (size_t h = 1; h < hosts.size(); ++h) add(h, 0, 1);
  } else {
    for (const hosts::Pair& pair : c.rounds[c.round - 1]) {
      auto from = static_cast<size_t>(pair.first), to = static_cast<size_t>(pair.second);
      const hosts::Link* link = find_link(c, from, to, false);
      if (link && link->outcome == wire::LinkOutcome::kOk) add(from, to, 0);
    }
  }
  os::milliseconds burst = job.burst;
  if (burst.count() == 0 && !c.rounds.empty())
    burst = std::clamp(kAllBursts / static_cast<int64_t>(c.rounds.size()), kShortestBurst, kLongestBurst);
  const std::string key = wire::key_for(wire::Purpose::kMesh, job.token);
  std::vector<bool> asked(hosts.size());
  for (size_t h = 0; h < hosts.size(); ++h) {
    wire::Dial& dial = dials[h];
    asked[h] = !dial.targets.empty();
    if (!asked[h]) continue;
    dial.round = static_cast<uint32_t>(c.round);
    dial.key = key;
    dial.echoes = c.round == 0 && !measures_first() ? 0 : kMeshEchoes;
    dial.payload_bytes = c.round > 0 ? 0 : measures_first() ? kMeshPayload : kPathPayload;
    dial.burst_ms = c.round == 0 ? 0 : static_cast<uint32_t>(burst.count());
    dial.timeout_ms = static_cast<uint32_t>(kDialTimeout.count());
    send(h, std::move(dial));
  }
  await(asked, c.round == 0 ? kDialPatience : burst + kDialTimeout);
  progress();
}

void SurveyStep::take(size_t h, const wire::Dialed& m) {
  bool awaited = c.stage == Survey::Stage::kDialing || measuring();
  if (!awaited || c.answered[h] || m.round != c.round) return;
  answered(h);
  for (const wire::DialedLink& said : m.links) {
    hosts::Link* link = find_link(c, h, said.to, said.master_port);
    if (!link) continue;
    if (c.round == 0) {
      link->outcome = said.outcome;
      link->error_number = said.error_number;
      link->connect_ns = said.connect_ns;
      link->round_trip_ns = said.round_trip_ns;
      link->local_address = said.local_address;
      link->segments = said.segments;
      link->retransmits = said.retransmits;
    } else if (said.outcome == wire::LinkOutcome::kOk) {
      link->bytes_per_second = said.bytes_per_second;
      link->round_trip_ns = link->round_trip_ns == 0 ? said.round_trip_ns : std::min(link->round_trip_ns, said.round_trip_ns);
      link->segments += said.segments;
      link->retransmits += said.retransmits;
    }
  }
  progress();
}

void SurveyStep::end_round() {
  if (c.round == 0) {
    int failed = failures(c.mesh);
    if (!c.best || failed < failures(c.best_mesh)) {
      c.best = c.network;
      c.best_mesh = c.mesh;
    }
    if (failed > 0 && c.network + 1 < std::min(c.networks.size(), kMostNetworks)) {
      ++c.network;
      return listen_on_network();
    }
    if (c.network != *c.best || !measures_first()) return end_mesh();  // of another network the listeners are gone
  }
  if (++c.round > c.rounds.size()) return c.stage == Survey::Stage::kMeasuring ? end_speed() : end_mesh();
  dial_round();
}

void SurveyStep::end_mesh() {
  bool listening = c.network == *c.best;
  c.situation.mesh = listening ? c.mesh : std::move(c.best_mesh);
  c.network = *c.best;
  if (!listening) c.ports.clear();
  if (!measures_first() && !measures_later()) stop_listening();  // else at the end of the measurement, or of the check
  ask_firewalls();
}

void SurveyStep::stop_listening() {
  c.ports.clear();
  for (size_t h = 0; h < hosts.size(); ++h)
    if (alive(h)) send(h, wire::Listen{});
}

// Reading a packet filter's rules takes a program of the host, and only says more about links that failed or could not be tried: where
// all links hold, nobody waits for it. `check` has asked at once.
void SurveyStep::ask_firewalls() {
  c.mesh_over = true;
  bool wanted = hosts.size() > 1 && (c.situation.mesh.links.empty() || failures(c.situation.mesh) > 0);
  if (c.firewall_asked || !wanted) {
    c.stage = Survey::Stage::kSurveyed;
    return;
  }
  c.firewall_asked = true;
  c.stage = Survey::Stage::kProbing;
  std::vector<bool> asked(hosts.size());
  for (size_t h = 0; h < hosts.size(); ++h) {
    asked[h] = alive(h) && !hosts[h].silent && c.situation.hosts[h].probed;
    if (asked[h]) probe(h);
  }
  await(asked, job.probe_deadline + kProbeGrace);
  progress();
}

}  // namespace phalanx::job
