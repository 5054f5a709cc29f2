#include "tune/chat/dataset_info.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

using base::Json;

base::Error bad(const std::string& name, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("cannot use data set {} of dataset_info.json", base::quote(name)))
      .because(std::move(why));
}

struct Refused {
  const char* key;
  const char* reason;
};
constexpr std::array kRefusedKeys{Refused{"hf_hub_url", "it lies on a hub"},
                                  Refused{"ms_hub_url", "it lies on a hub"},
                                  Refused{"om_hub_url", "it lies on a hub"},
                                  Refused{"script_url", "it is made by a Python script"},
                                  Refused{"cloud_file_name", "it lies in a cloud"},
                                  Refused{"num_samples", "num_samples is not supported; max_samples takes the first ones"}};
constexpr std::array<const char*, 5> kRefusedColumns{"images", "videos", "audios", "tools", "kto_tag"};

base::Status read_text(const Json& object, const char* key, const std::string& name, std::string* out) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return base::ok();
  if (!found->is_string()) return bad(name, fmt::format("{} is not a text", key));
  *out = found->get<std::string>();
  return base::ok();
}

// If columns are given, one that they do not name is not read; the defaults hold only where none are given.
base::Status read_columns(const Json& entry, const std::string& name, DatasetInfo* out) {
  Columns& columns = out->columns;
  auto given = entry.find("columns");
  if (given == entry.end() || given->is_null()) {
    columns.prompt = "instruction";
    columns.query = "input";
    columns.response = "output";
    columns.messages = "conversations";
    return base::ok();
  }
  if (!given->is_object()) return bad(name, "columns is not a mapping");
  for (const char* column : kRefusedColumns)
    if (given->contains(column)) return bad(name, fmt::format("column {} is not supported", column));
  TRY(read_text(*given, "prompt", name, &columns.prompt));
  TRY(read_text(*given, "query", name, &columns.query));
  TRY(read_text(*given, "response", name, &columns.response));
  TRY(read_text(*given, "history", name, &columns.history));
  TRY(read_text(*given, "messages", name, &columns.messages));
  TRY(read_text(*given, "chosen", name, &columns.chosen));
  TRY(read_text(*given, "rejected", name, &columns.rejected));
  return read_text(*given, "system", name, &columns.system);
}

base::Status read_tags(const Json& entry, const std::string& name, DatasetInfo* out) {
  auto given = entry.find("tags");
  if (given == entry.end() || given->is_null()) return base::ok();
  if (!given->is_object()) return bad(name, "tags is not a mapping");
  Columns& columns = out->columns;
  // A tag that is not named keeps its default, but system_tag: LLaMA-Factory sets every tag that the mapping lacks to none, and a message
  // can lack neither its role nor its content.
  columns.system_tag.clear();
  TRY(read_text(*given, "role_tag", name, &columns.role_tag));
  TRY(read_text(*given, "content_tag", name, &columns.content_tag));
  TRY(read_text(*given, "user_tag", name, &columns.user_tag));
  TRY(read_text(*given, "assistant_tag", name, &columns.assistant_tag));
  TRY(read_text(*given, "observation_tag", name, &columns.observation_tag));
  TRY(read_text(*given, "function_tag", name, &columns.function_tag));
  return read_text(*given, "system_tag", name, &columns.system_tag);
}

base::Status read_formatting(const Json& entry, const std::string& name, DatasetInfo* out) {
  std::string formatting = "alpaca";
  TRY(read_text(entry, "formatting", name, &formatting));
  if (formatting == "sharegpt") out->formatting = Formatting::kSharegpt;
  else if (formatting != "alpaca") return bad(name, fmt::format("formatting {} is not supported", base::quote(formatting)));
  out->ranking = base::get_bool(entry, "ranking").value_or(false);
  return base::ok();
}

}  // namespace

base::Result<DatasetInfo> find_dataset(std::string_view json, const std::string& name) {
  TRY_ASSIGN(const Json all, base::parse_json(json));
  if (!all.is_object()) return base::fail(base::ErrorKind::kConfig, "dataset_info.json is not a mapping of names");
  auto found = all.find(name);
  if (found == all.end()) {
    std::vector<std::string> names;
    for (const auto& [key, value] : all.items()) names.push_back(key);
    base::Error error = bad(name, "it has no entry of this name");
    if (auto near = base::closest(name, names)) return std::move(error).with_hint(fmt::format("dataset: {}", *near));
    return error;
  }
  if (!found->is_object()) return bad(name, "its entry is not a mapping");
  for (const Refused& refused : kRefusedKeys)
    if (found->contains(refused.key) && !(*found)[refused.key].is_null())
      return bad(name, refused.reason).with_hint("download it, and give its entry the file_name instead");
  DatasetInfo out;
  out.name = name;
  TRY(read_text(*found, "file_name", name, &out.file_name));
  if (out.file_name.empty()) return bad(name, "its entry has no file_name");
  TRY(read_formatting(*found, name, &out));
  TRY(read_columns(*found, name, &out));
  TRY(read_tags(*found, name, &out));
  if (out.ranking && (out.columns.chosen.empty() || out.columns.rejected.empty()))
    return bad(name, "ranking needs the columns chosen and rejected");
  return out;
}

}  // namespace phalanx::tune
