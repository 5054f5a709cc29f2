#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "tune/chat/template.h"

namespace phalanx::tune {
namespace {

using enum Slot::Kind;

Slots text(std::string_view one) { return {{kText, one}}; }
const Slots kBosOnly{{kBos, {}}};

constexpr std::string_view kImSystem = "<|im_start|>system\n{}<|im_end|>\n";
constexpr std::string_view kImUser = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n";
constexpr std::string_view kImAssistant = "{}<|im_end|>\n";

Template im(std::string_view name, std::string_view default_system, std::vector<std::string_view> stop_words, bool reasoning) {
  return {name, {}, text(kImSystem), text(kImUser), text(kImAssistant), default_system, std::move(stop_words), true, false, reasoning};
}

Template gemma(std::string_view name, std::vector<std::string_view> stop_words) {
  return {.name = name,
          .prefix = kBosOnly,
          .system = text("{}\n\n"),
          .user = text("<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n"),
          .assistant = text("{}<end_of_turn>\n"),
          .stop_words = std::move(stop_words),
          .replace_eos = true,
          .system_in_user = true};
}

std::vector<Template> make_table() {
  std::vector<Template> table;
  table.push_back(
      {.name = "alpaca",
       .system = text("{}"),
       .user = text("### Instruction:\n{}\n\n### Response:\n"),
       .assistant = {{kText, "{}"}, {kEos, {}}, {kText, "\n\n"}},
       .default_system = "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"});
  table.push_back(im("chatml", "", {"<|im_end|>", "<|im_start|>"}, false));
  table.push_back({.name = "deepseek",
                   .prefix = kBosOnly,
                   .system = text("{}\n\n"),
                   .user = text("User: {}\n\nAssistant:"),
                   .assistant = {{kText, "{}"}, {kEos, {}}}});
  table.push_back({.name = "default",
                   .system = {{kText, "System: {}"}, {kEos, {}}, {kText, "\n"}},
                   .user = {{kText, "Human: {}"}, {kEos, {}}, {kText, "\nAssistant:"}},
                   .assistant = {{kText, "{}"}, {kEos, {}}, {kText, "\n"}}});
  table.push_back({.name = "empty", .system = text("{}"), .user = text("{}"), .assistant = text("{}")});
  table.push_back({.name = "fewshot", .system = text("{}"), .user = text("{}"), .assistant = text("{}\n\n")});
  table.push_back(gemma("gemma", {"<end_of_turn>"}));
  table.push_back(gemma("gemma2", {"<eos>", "<end_of_turn>"}));
  table.back().replace_eos = false;
  table.back().efficient_eos = true;
  table.push_back(gemma("gemma3", {"<end_of_turn>"}));
  table.push_back({.name = "llama2",
                   .system = text("<<SYS>>\n{}\n<</SYS>>\n\n"),
                   .user = {{kBos, {}}, {kText, "[INST] {} [/INST]"}},
                   .assistant = {{kText, "{}"}, {kEos, {}}},
                   .system_in_user = true});
  table.push_back(
      {.name = "llama3",
       .prefix = kBosOnly,
       .system = text("<|start_header_id|>system<|end_header_id|>\n\n{}<|eot_id|>"),
       .user = text("<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"),
       .assistant = text("{}<|eot_id|>"),
       .stop_words = {"<|eot_id|>", "<|eom_id|>"},
       .replace_eos = true});
  table.push_back({.name = "mistral",
                   .prefix = kBosOnly,
                   .system = text("{}\n\n"),
                   .user = text("[INST] {}[/INST]"),
                   .assistant = {{kText, " {}"}, {kEos, {}}},
                   .system_in_user = true});
  table.push_back({.name = "phi",
                   .system = text("<|system|>\n{}<|end|>\n"),
                   .user = text("<|user|>\n{}<|end|>\n<|assistant|>\n"),
                   .assistant = text("{}<|end|>\n"),
                   .stop_words = {"<|end|>"},
                   .replace_eos = true});
  table.push_back({.name = "phi4",
                   .system = text("<|im_start|>system<|im_sep|>{}<|im_end|>"),
                   .user = text("<|im_start|>user<|im_sep|>{}<|im_end|><|im_start|>assistant<|im_sep|>"),
                   .assistant = text("{}<|im_end|>"),
                   .stop_words = {"<|im_end|>"},
                   .replace_eos = true});
  table.push_back(im("qwen", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", {"<|im_end|>"}, false));
  table.push_back(im("qwen3", "", {"<|im_end|>"}, true));
  table.push_back(im("qwen3_nothink", "", {"<|im_end|>"}, false));
  table.push_back({.name = "vicuna",
                   .system = text("{}"),
                   .user = text("USER: {} ASSISTANT:"),
                   .assistant = {{kText, "{}"}, {kEos, {}}},
                   .default_system = "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
                                     "detailed, and polite answers to the user's questions."});
  return table;
}

}  // namespace

base::Result<const Template*> find_template(std::string_view name) {
  static const std::vector<Template> kTable = make_table();
  std::vector<std::string> names;
  for (const Template& one : kTable) {
    if (one.name == name) return &one;
    names.emplace_back(one.name);
  }
  base::Error error = base::fail(base::ErrorKind::kConfig, fmt::format("unknown template {}", base::quote(name)))
                          .because(fmt::format("the supported ones are {}", base::join(names, ", ")));
  if (auto near = base::closest(name, names)) return std::move(error).with_hint(fmt::format("template: {}", *near));
  return error;
}

}  // namespace phalanx::tune
