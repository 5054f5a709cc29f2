#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "tune/chat/labels.h"
#include "tune/chat/numpy_order.h"
#include "tune/chat/packing.h"
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
  EXPECT_EQ(find_dataset(json, "rank").error().cause, "ranking needs the columns chosen and rejected");
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

TEST(Preferences, OfBothFormattings) {
  DatasetInfo info{.name = "x", .file_name = "x", .ranking = true, .columns = {}};
  info.columns.prompt = "q";
  info.columns.chosen = "good";
  info.columns.rejected = "bad";
  auto alpaca = to_preference({{"q", "why?"}, {"good", "so"}, {"bad", "no"}}, info);
  ASSERT_TRUE(alpaca.ok() && *alpaca);
  EXPECT_EQ((*alpaca)->prompt.messages, std::vector<std::string>{"why?"});
  EXPECT_EQ((*alpaca)->chosen + (*alpaca)->rejected, "sono");
  EXPECT_FALSE(*to_preference({{"q", "why?"}, {"good", "so"}}, info));
  info.formatting = Formatting::kSharegpt;
  info.columns.messages = "m";
  const auto message = [](const char* role, const char* text) { return base::Json{{"from", role}, {"value", text}}; };
  base::Json record = {{"m", {message("system", "s"), message("human", "a")}}, {"good", message("gpt", "b")}, {"bad", message("gpt", "c")}};
  auto sharegpt = to_preference(record, info);
  ASSERT_TRUE(sharegpt.ok() && *sharegpt);
  EXPECT_EQ((*sharegpt)->prompt.system, "s");
  EXPECT_EQ((*sharegpt)->rejected, "c");
  record["m"].push_back(message("gpt", "x"));  // ends with the assistant
  EXPECT_FALSE(*to_preference(record, info));
}

TEST(Labels, PairsAreCutAlike) {
  const Turn good{{1, 2, 3}, {4, 5, 6, 7, 8, 9}}, bad{{1, 2, 3}, {4, 4}};
  const LabelledPair whole = label_pair({good}, {bad}, {.cutoff_len = 100});
  EXPECT_EQ(whole.chosen.ids, (Ids{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(whole.rejected.labels, (Ids{kIgnored, kIgnored, kIgnored, 4, 4}));
  const LabelledPair cut = label_pair({good}, {bad}, {.cutoff_len = 6});
  EXPECT_EQ(cut.chosen.ids, (Ids{1, 2, 4, 5, 6, 7}));  // 6 of 9: the answer gets 6 * 6/9
  EXPECT_EQ(cut.rejected.ids, (Ids{1, 2, 4, 4}));
  const LabelledPair turns = label_pair({{{1}, {2}}, {{3}, {4}}}, {{{1}, {2}}, {{3}, {5}}}, {.ending = 0});
  EXPECT_EQ(turns.rejected.ids, (Ids{1, 2, 3, 5, 0}));
  EXPECT_EQ(turns.rejected.labels, (Ids{kIgnored, kIgnored, kIgnored, 5, 0}));
}

TEST(Labels, AnEndOfTextBetweenTurns) {
  const std::vector<Turn> turns{{{1, 2}, {3}}, {{4, 5}, {6}}};
  const Labelled out = label(turns, {.cutoff_len = 100, .ending = 9});
  EXPECT_EQ(out.ids, (Ids{1, 2, 3, 4, 5, 6, 9}));
  EXPECT_EQ(out.labels, (Ids{kIgnored, kIgnored, 3, 9, kIgnored, 6, 9}));
  EXPECT_EQ(label(turns, {.cutoff_len = 4, .ending = 9}).ids, (Ids{1, 2, 3, 9}));  // it has its place
}

TEST(Packing, TheLongestThatFitsComesNext) {
  using Sequences = std::vector<std::vector<size_t>>;
  EXPECT_EQ(pack({3, 9, 5, 3, 2, 20, 0}, 10), (Sequences{{1}, {2, 3, 4}, {0}}));  // of equal ones the last
  EXPECT_EQ(pack({4, 4, 4}, 8), (Sequences{{2, 1}, {0}}));
  EXPECT_TRUE(pack({}, 8).empty());
  using Groups = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(packing_groups(7, 2, 3), (Groups{{0, 3}, {3, 4}, {4, 7}}));
  EXPECT_EQ(packing_groups(2, 16, 1000), (Groups{{0, 1}, {1, 2}}));
  EXPECT_TRUE(packing_groups(0, 2, 3).empty());
}

TEST(NumpyOrder, IsNumpys) {
  using Order = std::vector<int64_t>;
  EXPECT_EQ(numpy_permutation(42, 10), (Order{5, 6, 0, 7, 3, 2, 4, 9, 1, 8}));
  EXPECT_EQ(numpy_permutation(0, 12), (Order{9, 2, 7, 4, 5, 11, 0, 3, 6, 10, 8, 1}));
  EXPECT_EQ(numpy_permutation(uint64_t{1} << 33, 6), (Order{5, 2, 0, 1, 4, 3}));
  const Order far = numpy_permutation(42, 3'000'001);
  EXPECT_EQ(Order(far.begin(), far.begin() + 3), (Order{950644, 2942658, 634067}));
  EXPECT_EQ(far.back(), 1648264);
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
