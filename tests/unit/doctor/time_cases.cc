#include "cases.h"

namespace phalanx::doctor::test {

namespace {
constexpr int64_t kSecond = 1'000'000'000;
void offset(Situation& s, size_t h, int64_t ns) { s.hosts[h].clock_offset_ns = *s.hosts[h].clock_offset_ns + ns; }
}  // namespace

std::vector<Case> time_cases() {
  return {
      hit("TIME-SKEW", "30 s", plain_ethernet, [](Situation& s) { offset(s, 2, 30 * kSecond); }),
      hit("TIME-SKEW", "an hour behind, two hosts", docker_host_network, [](Situation& s) { offset(s, 1, -3600 * kSecond); }),
      miss("TIME-SKEW", "ours is wrong, theirs agree", plain_ethernet,
           [](Situation& s) {
             for (size_t h = 0; h < 4; ++h) offset(s, h, 30 * kSecond);
           }),
      miss("TIME-SKEW", "the measurement may err by that much", plain_ethernet,
           [](Situation& s) { offset(s, 2, 7 * kSecond), s.hosts[2].clock_error_ns = 3 * kSecond; }),
      hit("TIME-SKEW-SMALL", "400 ms", plain_ethernet, [](Situation& s) { offset(s, 1, 400'000'000); }),
      miss("TIME-SKEW-SMALL", "60 ms", plain_ethernet, [](Situation& s) { offset(s, 1, 60'000'000); }),
      miss("TIME-SKEW-SMALL", "a slow answer", plain_ethernet,
           [](Situation& s) { offset(s, 1, 400'000'000), s.hosts[1].clock_error_ns = 350'000'000; }),
      miss("TIME-SKEW-SMALL", "30 s is the other row's", plain_ethernet, [](Situation& s) { offset(s, 1, 30 * kSecond); }),
      hit("TIME-UNSYNCED", "no time service", plain_ethernet,
          [](Situation& s) { s.hosts[1].facts.clock.synchronized = false, s.hosts[1].facts.clock.daemon.clear(); }),
      miss("TIME-UNSYNCED", "kept from outside the container", plain_ethernet, [](Situation& s) { s.hosts[1].facts.clock.daemon.clear(); }),
      miss("TIME-UNSYNCED", "not found out", plain_ethernet, [](Situation& s) { s.hosts[1].facts.clock.synchronized.reset(); }),
      hit("TIME-ZONE-DIFFERS", "Shanghai among UTC", plain_ethernet,
          [](Situation& s) { s.hosts[3].facts.clock.time_zone = "Asia/Shanghai", s.hosts[3].facts.clock.utc_offset_s = 8 * 3600; }),
      miss("TIME-ZONE-DIFFERS", "another name for the same time", plain_ethernet,
           [](Situation& s) { s.hosts[3].facts.clock.time_zone = "Etc/UTC"; }),
      hit("TIME-WRONG-YEAR", "1970", plain_ethernet, [](Situation& s) { s.hosts[0].facts.clock.wall_ns = 86'400 * kSecond; }),
      miss("TIME-WRONG-YEAR", "2026", plain_ethernet, [](Situation& s) { s.hosts[0].facts.clock.wall_ns = 1'795'000'000 * kSecond; }),
  };
}

}  // namespace phalanx::doctor::test
