#include "job/look.h"

#include <algorithm>
#include <cmath>

#include "base/json_fields.h"
#include "diagnosis/hang/hang_view.h"

namespace phalanx::job {
namespace {

using base::Json;

constexpr size_t kNative = 6;  // functions of a thread's native stack

Json json_of(const machine::ThreadSample& thread) {
  Json python = Json::array(), native = Json::array();
  for (const machine::PythonFrame& frame : thread.python) python.push_back(base::to_json(frame));
  for (size_t i = 0; i < std::min(kNative, thread.frames.size()); ++i) native.push_back(thread.frames[i]);
  return {{"tid", thread.tid},         {"name", thread.name},         {"state", thread.state},       {"wchan", thread.wchan},
          {"syscall", thread.syscall}, {"waits_on", thread.waits_on}, {"python", std::move(python)}, {"native", std::move(native)}};
}

// Of the last time it was looked at, while the run goes on (job/attempt/slow.cc).
Json json_of(const diagnosis::RankShares& shares) {
  using diagnosis::Spent;
  auto part = [&](Spent spent) { return std::round(shares.of(spent) * 100) / 100; };
  return {{"looks", shares.looks},
          {"computing", part(Spent::kComputing)},
          {"communicating", part(Spent::kCommunicating)},
          {"loading", part(Spent::kLoading)},
          {"saving", part(Spent::kSaving)},
          {"device", part(Spent::kDevice)},
          {"else", part(Spent::kElse)},
          {"place", shares.place}};
}

// Threads that run Python, and the main one; libraries start dozens of others, which always wait.
Json json_of(const machine::ProcessSample& process) {
  Json threads = Json::array();
  size_t others = 0;
  for (const machine::ThreadSample& thread : process.threads) {
    if (thread.tid != process.pid && thread.python.empty()) ++others;
    else threads.push_back(json_of(thread));
  }
  return {{"pid", process.pid},
          {"name", process.name},
          {"state", process.state},
          {"python", process.python},
          {"problem", process.python_problem},
          {"threads", std::move(threads)},
          {"other_threads", others}};
}

}  // namespace

Json look_json(const State& state, const LiveLook& look, os::Mono now) {
  Json hosts = Json::array(), ranks = Json::array();
  for (const auto& [h, why] : look.unanswered) hosts.push_back({{"host", state.job.hosts.at(h).target.name}, {"problem", why}});
  size_t bytes = 0;
  for (const auto& [h, sample] : look.then)
    for (const machine::RankSample& rank : sample.ranks) {
      if (rank.rank < 0 || rank.rank >= static_cast<int64_t>(state.ranks.size())) continue;
      if (state.plan->host_of(static_cast<int>(rank.rank)) != static_cast<int>(h)) continue;  // another host's
      const machine::RankSample* before = nullptr;
      if (auto found = look.first.find(h); found != look.first.end())
        for (const machine::RankSample& one : found->second.ranks)
          if (one.rank == rank.rank) before = &one;
      diagnosis::Activity doing = diagnosis::activity_of(before, rank, static_cast<double>(kBetweenSamples.count()) / 1000);
      Json one = {{"rank", rank.rank},
                  {"host", state.job.hosts.at(h).target.name},
                  {"pid", rank.pid},
                  {"place", diagnosis::place_of(rank)},
                  {"doing", doing.words.english},
                  {"doing_zh", doing.words.chinese},
                  {"waits", doing.doing == diagnosis::Doing::kCollective || doing.doing == diagnosis::Doing::kStore},
                  {"silent_s", rank.silent_ms / 1000}};
      if (std::optional<int64_t> step = state.stall.movement.last_step(static_cast<int>(rank.rank))) one["step"] = *step;
      for (const diagnosis::RankShares& shares : state.slow.shares)
        if (shares.rank == rank.rank) one["shares"] = json_of(shares);
      Json processes = Json::array();
      for (const machine::ProcessSample& process : rank.processes) processes.push_back(json_of(process));
      size_t much = base::to_text(processes).size();
      if (bytes + much <= kMostLookBytes) one["processes"] = std::move(processes);
      else one["cut"] = true;
      bytes += std::min(much, kMostLookBytes);
      ranks.push_back(std::move(one));
    }
  std::sort(ranks.begin(), ranks.end(), [](const Json& a, const Json& b) { return a["rank"] < b["rank"]; });
  Json json = {{"v", 1}, {"hosts", std::move(hosts)}, {"ranks", std::move(ranks)}};
  json["still_s"] = std::chrono::duration_cast<std::chrono::seconds>(state.stall.movement.still(now)).count();
  if (!state.slow.shares.empty())
    json["shares_ago_s"] = std::chrono::duration_cast<std::chrono::seconds>(now - state.slow.shares_deadline).count();
  if (os::nanoseconds step = state.stall.movement.usual_step(); step.count() > 0) json["step_s"] = static_cast<double>(step.count()) / 1e9;
  json["steps_known"] = state.stall.movement.steps_known();
  return json;
}

}  // namespace phalanx::job
