#include "fit/model.h"

#include <gtest/gtest.h>

namespace phalanx::fit {
namespace {

base::Json json(std::string_view text) {
  base::Result<base::Json> parsed = base::parse_json(text);
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? *parsed : base::Json();
}

struct Published {
  const char* name;
  const char* config;
  int64_t parameters;
};
// Counts: "Total params" of the models' safetensors indexes on the Hugging Face hub (buffers such as GPT-2's masks left out).
constexpr Published kPublished[] = {
    {"gpt2", R"({"model_type":"gpt2","n_embd":768,"n_head":12,"n_layer":12,"n_positions":1024,"vocab_size":50257})", 124'439'808},
    {"gpt2-medium", R"({"model_type":"gpt2","n_embd":1024,"n_head":16,"n_layer":24,"n_positions":1024,"vocab_size":50257})", 354'823'168},
    {"gpt2-large", R"({"model_type":"gpt2","n_embd":1280,"n_head":20,"n_layer":36,"n_positions":1024,"vocab_size":50257})", 774'030'080},
    {"gpt2-xl", R"({"model_type":"gpt2","n_embd":1600,"n_head":25,"n_layer":48,"n_positions":1024,"vocab_size":50257})", 1'557'611'200},
    {"Llama-2-7b", R"({"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"num_hidden_layers":32,
      "num_key_value_heads":32,"tie_word_embeddings":false,"vocab_size":32000})",
     6'738'415'616},
    {"Llama-2-13b", R"({"model_type":"llama","hidden_size":5120,"intermediate_size":13824,"num_attention_heads":40,"num_hidden_layers":40,
      "num_key_value_heads":40,"tie_word_embeddings":false,"vocab_size":32000})",
     13'015'864'320},
    {"Llama-2-70b", R"({"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_attention_heads":64,"num_hidden_layers":80,
      "num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":32000})",
     68'976'648'192},
    {"Llama-3-8B", R"({"model_type":"llama","attention_bias":false,"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,
      "num_hidden_layers":32,"num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":128256})",
     8'030'261'248},
    {"Llama-3-70B", R"({"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_attention_heads":64,"num_hidden_layers":80,
      "num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":128256})",
     70'553'706'496},
    {"Llama-3.2-1B", R"({"model_type":"llama","head_dim":64,"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,
      "num_hidden_layers":16,"num_key_value_heads":8,"tie_word_embeddings":true,"vocab_size":128256})",
     1'235'814'400},
    {"Mistral-7B-v0.1",
     R"({"model_type":"mistral","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_hidden_layers":32,
      "num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":32000})",
     7'241'732'096},
    {"Qwen2-0.5B", R"({"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,"num_attention_heads":14,"num_hidden_layers":24,
      "num_key_value_heads":2,"tie_word_embeddings":true,"vocab_size":151936})",
     494'032'768},
    {"Qwen2-1.5B", R"({"model_type":"qwen2","hidden_size":1536,"intermediate_size":8960,"num_attention_heads":12,"num_hidden_layers":28,
      "num_key_value_heads":2,"tie_word_embeddings":true,"vocab_size":151936})",
     1'543'714'304},
    {"Qwen2-7B", R"({"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,"num_attention_heads":28,"num_hidden_layers":28,
      "num_key_value_heads":4,"tie_word_embeddings":false,"vocab_size":152064})",
     7'615'616'512},
    {"Qwen2-72B", R"({"model_type":"qwen2","hidden_size":8192,"intermediate_size":29568,"num_attention_heads":64,"num_hidden_layers":80,
      "num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":152064})",
     72'706'203'648},
    {"Qwen3-8B", R"({"model_type":"qwen3","attention_bias":false,"head_dim":128,"hidden_size":4096,"intermediate_size":12288,
      "num_attention_heads":32,"num_hidden_layers":36,"num_key_value_heads":8,"tie_word_embeddings":false,"vocab_size":151936})",
     8'190'735'360},
};

TEST(Model, ParametersAreCountedToTheLastOne) {
  for (const Published& p : kPublished) {
    base::Result<Model> model = model_from_config(json(p.config));
    ASSERT_TRUE(model.ok()) << p.name << ": " << model.error().render();
    EXPECT_EQ(model->parameters, p.parameters) << p.name;
    EXPECT_GT(model->largest_layer, 0) << p.name;
    EXPECT_LE(model->largest_layer, model->parameters) << p.name;
  }
}

TEST(Model, LargestLayerIsTheEmbeddingOfAWideVocabulary) {
  base::Result<Model> model = model_from_config(json(kPublished[7].config));  // Llama-3-8B
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->largest_layer, 128256 * 4096);
}

TEST(Model, BadConfigurationsAreRefusedByName) {
  struct Bad {
    const char* config;
    const char* says;
  };
  for (const Bad& bad :
       {Bad{R"({})", "no model_type"}, Bad{R"({"model_type":"t5"})", "t5"}, Bad{R"({"model_type":"llama"})", "num_hidden_layers"},
        Bad{R"({"model_type":"gpt2","n_layer":-1})", "n_layer"}, Bad{R"({"model_type":"gpt2","n_embd":"768"})", "n_embd"},
        Bad{R"({"model_type":"gpt2","n_layer":99999999})", "n_layer"},
        Bad{R"({"model_type":"gpt2","n_layer":9999,"n_embd":4194304,"n_head":1})", "10^16"},
        Bad{R"({"model_type":"gpt2","n_embd":2147483648})", "from 1 to 4194304"}, Bad{R"([])", "not a JSON object"}}) {
    base::Result<Model> model = model_from_config(json(bad.config));
    ASSERT_FALSE(model.ok()) << bad.config;
    EXPECT_NE(model.error().message.find(bad.says), std::string::npos) << model.error().message;
    EXPECT_EQ(model.error().kind, base::ErrorKind::kConfig);
  }
}

TEST(Model, CountsAsPeopleWriteThem) {
  for (auto [text, count] : {std::pair{"7B", 7'000'000'000},
                             {"1.3b", 1'300'000'000},
                             {"350M", 350'000'000},
                             {"124439808", 124'439'808},
                             {"0.5B", 500'000'000}}) {
    base::Result<int64_t> parsed = parse_parameter_count(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, count) << text;
  }
  for (const char* text : {"", "B", "7X", "-7B", "0", "1.2.3B", "7e9", "99999999999T", ".B", "1.5"})
    EXPECT_FALSE(parse_parameter_count(text).ok()) << text;
}

}  // namespace
}  // namespace phalanx::fit
