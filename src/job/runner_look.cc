// A look at a running job for a person who asks (job/look.h): questions, answers and deadlines.
#include <algorithm>

#include "base/json_fields.h"
#include "job/facts_bounds.h"
#include "job/runner.h"

namespace phalanx::job {

void Runner::look(std::function<void(const std::string& json)> done) {
  look_.asked.push_back(std::move(done));
  if (look_.asked.size() > 1) return;  // one answer for all who ask meanwhile
  look_.first.clear();
  look_.unanswered.clear();
  look_.again = false;
  ask_look();
}

void Runner::ask_look() {
  look_.then.clear();
  look_.waits = false;
  look_.id = wire::kPersonAsks | ((look_.id + 1) & (wire::kPersonAsks - 1));
  look_.awaited.assign(run_ ? state().hosts.size() : 0, false);
  if (run_ && !verdict_ && opener_ && state().phase == Phase::kRunning)
    for (size_t h = 0; h < look_.awaited.size(); ++h) {
      if (!opener_->connection(h)) continue;
      look_.awaited[h] = true;
      send(h, wire::Sample{look_.id, look_.again, false, static_cast<uint32_t>(kSamplePatience.count())});
    }
  bool none = std::none_of(look_.awaited.begin(), look_.awaited.end(), [](bool b) { return b; });
  look_.timer = loop_.after(none ? os::milliseconds(0) : kSamplePatience + kWireReserve, [this] { end_look(); });
}

void Runner::on_looked(size_t host, const wire::Sampled& sampled) {
  if (look_.waits || host >= look_.awaited.size() || !look_.awaited[host]) return;
  look_.awaited[host] = false;
  base::Result<base::Json> json = sampled.outcome.ok ? parse_from_host(sampled.json) : base::Result<base::Json>(sampled.outcome.error);
  base::Result<machine::HostSample> sample = json.ok() ? base::from_json<machine::HostSample>(*json) : std::move(json).error();
  if (sample.ok()) (look_.again ? look_.then : look_.first)[host] = std::move(sample).value();
  else if (look_.again) look_.unanswered[host] = sample.error().message;
  if (std::any_of(look_.awaited.begin(), look_.awaited.end(), [](bool b) { return b; })) return;
  loop_.cancel(look_.timer);
  end_look();
}

// Of one of the two samples: all have answered, or time is up.
void Runner::end_look() {
  look_.timer = 0;
  if (!look_.again) {
    look_.again = look_.waits = true;
    look_.timer = loop_.after(kBetweenSamples, [this] { ask_look(); });
    return;
  }
  for (size_t h = 0; h < look_.awaited.size(); ++h)
    if (look_.awaited[h]) look_.unanswered[h] = "no answer in time";
  const std::string json = base::to_text(run_ && state().plan ? look_json(state(), look_, os::mono_now())
                                                              : base::Json{{"v", 1}, {"ranks", base::Json::array()}});
  for (const auto& done : std::exchange(look_.asked, {})) done(json);
}

}  // namespace phalanx::job
