#include "agent/lease.h"

#include <algorithm>

namespace phalanx::agent {

void Lease::begin(os::milliseconds length, os::Mono now, os::nanoseconds shift) {
  length_ = length;
  last_ = now;
  if (ran_.ns != 0) ran_ = ran_ + shift;
  for (int64_t& trip : trips_) trip += shift.count();
}

void Lease::heard(int64_t sent_ns, os::Mono now) {
  bool steady = ran_.ns == 0 || now - ran_ < kBreak;
  if (steady || trips_.empty()) trips_.push_back(now.ns - sent_ns);
  if (trips_.size() > kTrips) trips_.pop_front();
  os::Mono sent{sent_ns + *std::min_element(trips_.begin(), trips_.end())};
  last_ = std::max(last_, std::min(sent, now));
}

}  // namespace phalanx::agent
