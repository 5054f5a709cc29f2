#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "tune/chat/labels.h"
#include "tune/chat/records.h"

namespace phalanx::tune {
namespace {

using Ids = std::vector<int32_t>;

TEST(Records, ArraysAndLines) {
  for (std::string_view text : {"[\n {\"a\": \"]}\\\"\"},\n {\"a\": \"2\"}\n]\n", "{\"a\": \"]}\\\"\"}\n\n{\"a\": \"2\"}"}) {
    RecordReader reader(text);
    auto first = reader.next();
    ASSERT_TRUE(first.ok() && *first);
    EXPECT_EQ(base::get_string(**first, "a"), "]}\"");
    auto second = reader.next();
    ASSERT_TRUE(second.ok() && *second);
    EXPECT_EQ(reader.record(), 1);
    EXPECT_EQ(reader.line(), 3);
    auto end = reader.next();
    EXPECT_TRUE(end.ok() && !*end);
  }
}

TEST(Records, AMalformedOneIsNamedWithItsLine) {
  auto problem = [](std::string_view text) {
    RecordReader reader(text);
    while (true) {
      auto next = reader.next();
      if (!next.ok()) return next.error().message + ": " + next.error().cause;
      if (!*next) return std::string("none");
    }
  };
  EXPECT_EQ(problem(""), "none");
  EXPECT_EQ(problem("[]"), "none");
  EXPECT_EQ(problem("{\"a\":1}\n\n{\"a\":"), "record 1 (line 3) is malformed: the file ends inside it");
  EXPECT_EQ(problem("[{\"a\":1}\n{\"a\":2}]"), "record 1 (line 1) is malformed: a comma or the end of the list is missing before it");
  EXPECT_EQ(problem("[{\"a\":1},\n 3]"), "record 1 (line 2) is malformed: it is not an object");
  EXPECT_EQ(problem("[{\"a\":1}"), "record 1 (line 1) is malformed: a comma or the end of the list is missing before it");
  EXPECT_EQ(problem("["), "record 0 (line 1) is malformed: it is not an object");
  EXPECT_EQ(problem("[{}] x"), "record 0 (line 1) is malformed: text follows the end of the list");
  EXPECT_NE(problem("{\"a\" 1}"), "none");
}

TEST(DatasetInfo, ColumnsAndWhatIsRefused) {
  const std::string json = R"({"plain": {"file_name": "a.json"},
    "named": {"file_name": "b", "columns": {"prompt": "text"}},
    "hub": {"hf_hub_url": "x/y"}, "rank": {"file_name": "c", "ranking": true}})";
  auto plain = find_dataset(json, "plain");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->columns.prompt, "instruction");
  auto named = find_dataset(json, "named");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->columns.prompt, "text");
  EXPECT_EQ(named->columns.response, "");  // not named, so not read
  EXPECT_EQ(find_dataset(json, "hub").error().cause, "it lies on a hub");
  EXPECT_EQ(find_dataset(json, "rank").error().cause, "ranking is not supported: stage dpo is not");
  EXPECT_EQ(find_dataset(json, "plan").error().hint, "dataset: plain");
}

TEST(DatasetInfo, WrongRecords) {
  DatasetInfo info{.name = "x", .file_name = "x", .formatting = Formatting::kSharegpt, .columns = {}};
  info.columns.messages = "m";
  auto cause = [&](base::Json record) { return to_conversation(record, info).error().cause; };
  EXPECT_EQ(cause({{"n", 1}}), "\"m\" is not a list of messages");
  EXPECT_EQ(cause({{"m", {{{"from", "human"}}}}}), "message 0 lacks \"from\" or \"value\"");
  EXPECT_EQ(cause({{"m", {{{"from", "observation"}, {"value", "x"}}}}}), "message 0 has the role \"observation\": tools are not supported");
}

TEST(Template, UnknownNamesTheNearest) {
  auto wrong = find_template("qwen3_no_think");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().hint, "template: qwen3_nothink");
}

TEST(Labels, CutoffSharesTheRoom) {
  auto lengths = [](int64_t source, int64_t target, int64_t cutoff) {
    Turn turn{Ids(static_cast<size_t>(source), 1), Ids(static_cast<size_t>(target), 2)};
    const Labelled out = label({turn}, {.cutoff_len = cutoff});
    return std::pair<int64_t, int64_t>(std::count(out.ids.begin(), out.ids.end(), 1), std::count(out.labels.begin(), out.labels.end(), 2));
  };
  EXPECT_EQ(lengths(100, 10, 40), (std::pair<int64_t, int64_t>(30, 10)));
  EXPECT_EQ(lengths(10, 100, 40), (std::pair<int64_t, int64_t>(10, 30)));
  EXPECT_EQ(lengths(100, 50, 40), (std::pair<int64_t, int64_t>(27, 13)));
  EXPECT_EQ(lengths(5, 5, 40), (std::pair<int64_t, int64_t>(5, 5)));
}

class Golden {
 public:
  explicit Golden(const std::string& folder) : folder_(folder) {
    for (const char* name : {"golden_alpaca", "golden_sharegpt", "golden_messages"}) {
      auto info = find_dataset(read_text(folder + "/templates/dataset_info.json"), name);
      EXPECT_TRUE(info.ok());
      const std::string text = read_text(folder + "/templates/" + info->file_name);
      RecordReader reader(text);
      while (true) {
        auto record = reader.next();
        EXPECT_TRUE(record.ok());
        if (!record.ok() || !*record) break;
        auto conversation = to_conversation(**record, *info);
        EXPECT_TRUE(conversation.ok());
        conversations_[name].push_back(*conversation);
      }
    }
  }
  const std::optional<Conversation>& at(const base::Json& line) const {
    return conversations_.at(line["dataset"].get<std::string>()).at(line["record"].get<size_t>());
  }

 private:
  std::string folder_;
  std::map<std::string, std::vector<std::optional<Conversation>>> conversations_;
};

Ids spans_to_labels(const Ids& ids, const base::Json& spans) {
  Ids out(ids.size(), kIgnored);
  for (const base::Json& span : spans)
    for (size_t i = span[0].get<size_t>(); i < span[1].get<size_t>(); ++i) out[i] = ids[i];
  return out;
}

void expect_row(const base::Json& line, const std::vector<Turn>& turns) {
  const auto cutoff = line["cutoff_len"].get<int64_t>();
  const Ids ids = line["input_ids"].get<Ids>();
  const Labelled plain = label(turns, {.cutoff_len = cutoff});
  ASSERT_EQ(plain.ids, ids) << line["dataset"] << " " << line["record"];
  ASSERT_EQ(plain.labels, spans_to_labels(ids, line["learned"])) << line["dataset"] << " " << line["record"];
  const Labelled all = label(turns, {.cutoff_len = cutoff, .train_on_prompt = true});
  ASSERT_EQ(all.ids, ids);
  ASSERT_EQ(all.labels, ids);
  const base::Json& masked = line["mask_history"];
  const Ids masked_ids = masked.contains("input_ids") ? masked["input_ids"].get<Ids>() : ids;
  const Labelled last = label(turns, {.cutoff_len = cutoff, .mask_history = true});
  ASSERT_EQ(last.ids, masked_ids) << line["dataset"] << " " << line["record"];
  ASSERT_EQ(last.labels, spans_to_labels(masked_ids, masked["learned"])) << line["dataset"] << " " << line["record"];
}

TEST(Template, GoldenIdsAndLabelsOfTheRealLibrary) {
  PHALANX_NEEDS_GOLDEN;
  const std::string folder = golden_folder();
  const Golden golden(folder);
  auto cases = base::parse_json(read_text(folder + "/templates/templates.json"));
  ASSERT_TRUE(cases.ok());
  int rows = 0, dropped = 0;
  for (const auto& [name, one] : cases->items()) {
    const std::string tokenizer_folder = folder + "/" + one["tokenizer"].get<std::string>();
    auto tokenizer = Tokenizer::parse(read_text(tokenizer_folder + "/tokenizer.json"));
    if (!tokenizer.ok()) continue;  // Qwen 3's own vocabulary is not among the golden files
    auto tokens = parse_special_tokens(read_text(tokenizer_folder + "/tokenizer_config.json"));
    auto chat = find_template(one["template"].get<std::string>());
    ASSERT_TRUE(tokens.ok() && chat.ok()) << name;
    auto encoder = ChatEncoder::make(*chat, &*tokenizer, *tokens, one["enable_thinking"].get<bool>());
    ASSERT_TRUE(encoder.ok()) << name;
    EXPECT_EQ(encoder->eos(), one["eos_id"].get<int32_t>()) << name;
    EXPECT_EQ(encoder->stops(), one["stop_ids"].get<Ids>()) << name;
    for (const base::Json& line : read_json_lines(folder + "/templates/" + name + ".jsonl")) {
      const std::optional<Conversation>& conversation = golden.at(line);
      ASSERT_EQ(!conversation.has_value(), line.value("dropped", false)) << name << " " << line["dataset"] << " " << line["record"];
      if (!conversation) {
        ++dropped;
        continue;
      }
      expect_row(line, encoder->turns(*conversation));
      if (HasFatalFailure()) return;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 9 * 165);
  EXPECT_EQ(dropped, 9 * 15);
}

}  // namespace
}  // namespace phalanx::tune
