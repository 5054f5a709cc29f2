// The order of a probe: what the command names first (storage looks at it), then all parts side by side, each in a child.
#include "machine/probe.h"

#include <algorithm>

#include "base/json_fields.h"
#include "machine/network/nccl_interface.h"
#include "os/clock.h"
#include "os/guarded.h"

namespace phalanx::machine {
namespace {

constexpr std::chrono::milliseconds kReserve{100};  // for collecting and sending

struct NamedResolved {
  std::vector<Resolved> names;
};
PHALANX_FIELDS(NamedResolved, names);

struct StorageAnswer {
  CommandFacts command;
  StorageFacts storage;
  std::vector<Gap> gaps;
};
PHALANX_FIELDS(StorageAnswer, command, storage, gaps);

// One part: how to ask it in the child, and what to do with its answer here.
struct Part {
  os::Guarded call;
  std::function<void(const base::Json&, Facts&)> take;
};

template <typename T, typename Ask, typename Take>
Part part(std::string name, Ask ask, Take take) {
  return {{std::move(name), [ask] { return base::to_text(base::to_json<T>(ask())); }}, [take](const base::Json& json, Facts& facts) {
            base::Result<T> value = base::from_json<T>(json);
            if (value.ok()) take(facts, std::move(value).value());
          }};
}

std::vector<Part> parts(const ProbeRequest& r) {
  std::vector<Part> all;
  all.push_back(part<Machine>("machine", [&r] { return probe_machine(r); }, [](Facts& f, Machine v) { f.machine = std::move(v); }));
  all.push_back(part<GpuFacts>("gpus", [&r] { return probe_gpus(r); }, [](Facts& f, GpuFacts v) { f.gpus = std::move(v); }));
  all.push_back(part<NetworkFacts>(
      "network", [&r] { return probe_network(r); },
      [](Facts& f, NetworkFacts v) {
        v.names = std::move(f.network.names);
        f.network = std::move(v);
      }));
  all.push_back(part<NamedResolved>(
      "names", [&r] { return NamedResolved{resolve_names(r)}; }, [](Facts& f, NamedResolved v) { f.network.names = std::move(v.names); }));
  all.push_back(part<InfinibandFacts>(
      "infiniband", [&r] { return probe_infiniband(r); }, [](Facts& f, InfinibandFacts v) { f.infiniband = std::move(v); }));
  all.push_back(
      part<SoftwareFacts>("software", [&r] { return probe_software(r); }, [](Facts& f, SoftwareFacts v) { f.software = std::move(v); }));
  all.push_back(part<StorageAnswer>(
      "storage",
      [&r] {
        StorageAnswer answer;
        answer.command = read_command(r);
        answer.storage = probe_storage(r, answer.command.paths, answer.gaps);
        return answer;
      },
      [](Facts& f, StorageAnswer v) {
        f.command = std::move(v.command);
        f.storage = std::move(v.storage);
        std::move(v.gaps.begin(), v.gaps.end(), std::back_inserter(f.gaps));
      }));
  all.push_back(part<LimitsFacts>("limits", [&r] { return probe_limits(r); }, [](Facts& f, LimitsFacts v) { f.limits = std::move(v); }));
  all.push_back(
      part<ProcessFacts>("processes", [&r] { return probe_processes(r); }, [](Facts& f, ProcessFacts v) { f.processes = std::move(v); }));
  return all;
}

// A part whose children move, as storage on slow disks, is waited for.
os::Patience patience(const ProbeRequest& request) {
  os::milliseconds deadline = std::max(request.deadline - kReserve, kReserve);
  return {deadline, deadline * 3 / 4, deadline * 8};
}

}  // namespace

Gap gap_of(std::string part, const base::Error& error) {
  return {std::move(part), error.message, error.kind == base::ErrorKind::kUnreachable};
}

Facts probe(const ProbeRequest& request) {
  os::Mono begin = os::mono_now();
  Facts facts;
  std::vector<Part> all = parts(request);
  std::vector<os::Guarded> calls;
  for (const Part& p : all) calls.push_back(p.call);
  std::vector<base::Result<std::string>> answers = os::run_guarded(calls, patience(request));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!answers[i].ok()) {
      facts.gaps.push_back(gap_of(all[i].call.name, answers[i].error()));
      continue;
    }
    base::Result<base::Json> json = base::parse_json(*answers[i]);
    if (json.ok()) all[i].take(*json, facts);
  }
  int nccl = facts.software.nccl.empty() ? 0 : nccl_version(facts.software.nccl[0].version);
  facts.network.choices = socket_choices(facts.network, request.environment, nccl);
  facts.clock = probe_clock(request);
  facts.probe_ns = (os::mono_now() - begin).count();
  return facts;
}

}  // namespace phalanx::machine
