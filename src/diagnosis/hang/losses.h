// Which host loses packets while the ranks train: the kernel's own counts of what each host has sent again, laid beside each other. Pure.
//
// Every pair of hosts that loses packets touches the host that is at fault, and pairs without it lose none. With one pair alone, what its
// hosts exchange with other machines decides: the launcher's, for one. Where nothing does, the pair is told.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "wire/sample_messages.h"

namespace phalanx::diagnosis {

class Losses {
 public:
  // The host of the job that has this address; nothing: another machine.
  using HostOf = std::function<std::optional<size_t>(const std::string& address)>;
  // A pulse of one host.
  void take(size_t host, const wire::Pulse& pulse, const HostOf& host_of);
  void forget() { *this = {}; }
  // When it holds and matters; told once for a host. hosts: names.
  std::optional<Diagnosis> look(const std::vector<std::string>& hosts);

 private:
  static constexpr size_t kOutside = SIZE_MAX;
  struct Counts {
    uint64_t sent = 0, resent = 0, looks = 0, recovering = 0;
    int lossy_windows = 0;
  };
  struct Pair {  // of hosts that talk to each other; second may be kOutside
    size_t first, second;
    Counts counts;
    bool lossy() const;
    bool clean() const;
  };
  struct Window {
    uint32_t ms = 0;
    std::map<size_t, Counts> peers;
  };
  struct Blamed {
    std::optional<size_t> host;  // none: the pair
    std::vector<const Pair*> pairs;
  };
  std::vector<Pair> pairs() const;
  std::optional<Blamed> blame(const std::vector<Pair>& all) const;
  bool loses_outside(size_t host, const std::vector<Pair>& all, bool& known) const;

  std::map<size_t, std::deque<Window>> hosts_;
  int undecided_ = 0;  // looks at a pair of which both hosts may be at fault
  std::vector<std::optional<size_t>> told_;
};

}  // namespace phalanx::diagnosis
