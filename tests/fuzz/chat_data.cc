// Any bytes as a data file, as dataset_info.json and as tokenizer_config.json: answers within the limits, or errors.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tune/chat/labels.h"
#include "tune/chat/records.h"

using namespace phalanx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto tokens = tune::parse_special_tokens(bytes);
  if (!tokens.ok()) PHALANX_CHECK(!tokens.error().message.empty());
  tune::DatasetInfo info;
  if (auto found = tune::find_dataset(bytes, "a"); found.ok()) info = *found;
  info.columns.messages = "m";
  info.columns.chosen = "c";
  info.columns.rejected = "r";
  for (tune::Formatting formatting : {tune::Formatting::kAlpaca, tune::Formatting::kSharegpt}) {
    info.formatting = formatting;
    tune::RecordReader reader(bytes);
    while (true) {
      auto next = reader.next();
      if (!next.ok() || !*next) break;
      auto conversation = tune::to_conversation(**next, info);
      if (conversation.ok() && *conversation) PHALANX_CHECK((*conversation)->messages.size() % 2 == 0);
      auto preference = tune::to_preference(**next, info);
      if (preference.ok() && *preference) PHALANX_CHECK((*preference)->prompt.messages.size() % 2 == 1);
    }
  }
  return 0;
}
