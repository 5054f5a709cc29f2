#include "engine/data/item_source.h"

#include <fmt/format.h>

#include <exception>

#include "base/unicode.h"

namespace phalanx::engine::data {

base::Result<Sample> ItemSource::load(const Ticket& ticket, uint64_t seed, int64_t epoch) const {
  auto reading = [&] { return fmt::format("reading item {} of {}", ticket.number, base::quote(name())); };
  auto thrown = [&](std::string_view what) {
    const std::string_view first_line = what.substr(0, what.find('\n'));  // torch appends a stack
    return base::fail(base::ErrorKind::kJobFailed, "cannot read a data item")
        .because(fmt::format("the dataset threw an exception: {}", base::printable(first_line, 400)))
        .within(reading());
  };
  ItemRandom random(seed, epoch, ticket.number);
  try {
    auto sample = set_ ? set_->get(ticket.number, random) : stream_->load(ticket, random);
    if (!sample.ok()) return std::move(sample).error().within(reading());
    return sample;
  } catch (const std::exception& failure) { return thrown(failure.what()); } catch (...) {
    return thrown("an exception that is not a std::exception");
  }
}

}  // namespace phalanx::engine::data
