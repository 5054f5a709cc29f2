#include "engine/data/saved_position.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/unicode.h"

namespace phalanx::engine::data {
namespace {

constexpr int64_t kVersion = 1;

base::Error cannot_go_on(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "the training cannot resume at its saved position in the data").because(std::move(why));
}

base::Json describe(const DataIdentity& identity, const PlanOptions& options) {
  return {{"kind", identity.kind},
          {"size", identity.size},
          {"fingerprint", fmt::format("{:016x}", identity.fingerprint)},
          {"seed", fmt::format("{}", options.seed)},
          {"shuffle", options.shuffle},
          {"remainder", std::string(to_text(options.remainder))}};
}

std::string_view meaning(std::string_view key) {
  if (key == "kind") return "the reading mode (data.streaming)";
  if (key == "size") return "the number of items";
  if (key == "fingerprint") return "the content of the data";
  if (key == "seed") return "the seed";
  return key == "shuffle" ? "data.shuffle" : "data.remainder";
}

}  // namespace

base::Json save_position(const DataPosition& position, const DataIdentity& identity, const PlanOptions& options) {
  base::Json state{{"version", kVersion}, {"epoch", position.epoch}, {"places", position.places}};
  state.update(describe(identity, options));
  if (position.mark) state["mark"] = position.mark();
  return state;
}

base::Result<SavedPosition> read_position(const base::Json& state, const DataIdentity& identity, const PlanOptions& options) {
  if (!state.is_object() || base::get_int(state, "version") != kVersion)
    return cannot_go_on(fmt::format("the position does not have version {}: {}", kVersion, base::printable(base::to_text(state))));
  const base::Json now = describe(identity, options);
  for (const auto& item : now.items()) {
    auto saved = state.find(item.key());
    const std::string then = saved == state.end() ? "missing" : base::to_text(*saved);
    if (saved == state.end() || *saved != item.value())
      return cannot_go_on(fmt::format("{} was {} and is {}", meaning(item.key()), base::printable(then), base::to_text(item.value())))
          .with_hint("resume with the data and settings of the checkpoint, or restart in another `out` folder");
  }
  const auto epoch = base::get_int(state, "epoch"), places = base::get_int(state, "places");
  if (!epoch || !places || *epoch < 0 || *places < 0) return cannot_go_on("its epoch or its positions are not numbers from 0");
  const int64_t step = options.rows * options.world;
  if (*places % step != 0)
    return cannot_go_on(base::counted("{} items of epoch {} are done, but a step now takes {} ({} ranks × {})", *places, *epoch, step,
                                      options.world, options.rows))
        .with_hint("keep the total batch (train.batch), on any number of ranks that divides it");
  SavedPosition position{*epoch, *places, {}};
  if (identity.kind == "stream") {
    if (!state.contains("mark")) return cannot_go_on("the position in the stream is missing");
    position.mark = state["mark"];
  }
  return position;
}

}  // namespace phalanx::engine::data
