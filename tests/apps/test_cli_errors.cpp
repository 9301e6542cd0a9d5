// SPDX-License-Identifier: Apache-2.0
// What a user does wrong is told in one line that names the thing, with an exit code and no core dump.
// Here one process; jobs of several are in test_cli_job_errors.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bad_models.h"
#include "apps/process.h"

namespace shoal::test {
namespace {

class Refusal : public testing::Test {
 protected:
  /// `arguments` must be refused with one line in which each of `names` stands.
  void expect(const std::vector<std::string>& arguments, const std::vector<std::string>& names,
              std::vector<std::pair<std::string, std::string>> environment = {}, std::string input = {}) {
    std::string shown;
    for (const std::string& word : arguments) shown += word.substr(0, 60) + " ";
    SCOPED_TRACE("shoal " + shown);
    Command command{.line = {shoal_program()},
                    .environment = std::move(environment),
                    .input = std::move(input),
                    .limit_s = 20};
    command.line.insert(command.line.end(), arguments.begin(), arguments.end());
    expect_one_line(run(command), names);
  }

  /// The same for `shoal run -m MODEL -p Hello OPTIONS` on one PE, and on three of the threads transport.
  void expect_model(const std::string& model, const std::vector<std::string>& names,
                    const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"run", "-m", model, "-p", "Hello"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect(arguments, names);
    arguments.insert(arguments.end(), {"-n", "3", "--transport", "threads"});
    expect(arguments, names);
  }

  BadModels models;
};

TEST_F(Refusal, FilesThatAreNoModels) {
  expect_model(models.file("nowhere.gguf"), {"nowhere.gguf", "No such file"});
  expect_model(models.folder(), {models.folder(), "directory"});
  expect_model(models.text("letter.txt", "Dear Sir or Madam,\n"), {"letter.txt", "GGUF"});
  expect_model(
      models.text("pointer.gguf",
                  "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 1234\n"),
      {"pointer.gguf", "pointer"});
  expect_model(models.text("empty.gguf", ""), {"empty.gguf"});
  expect_model(models.patched("magic.gguf", 0, "FUGG"), {"magic.gguf", "46 55 47 47"});
  expect_model(models.patched("version.gguf", 4, std::string("\x09\0\0\0", 4)),
               {"version.gguf", "version 9"});
}

TEST_F(Refusal, TruncatedModels) {
  const std::uintmax_t size = std::filesystem::file_size(models.good());
  for (const std::uintmax_t length :
       {std::uintmax_t{3}, std::uintmax_t{20}, std::uintmax_t{1000}, size / 2, size - 1})
    expect_model(models.truncated(length), {models.truncated(length)});
}

TEST_F(Refusal, ModelsOfAnotherKind) {
  expect_model(models.changed("bert.gguf", [](auto& w) { w.set("general.architecture", "bert"); }),
               {"bert.gguf", "architecture 'bert'"});
  expect_model(
      models.changed("heads.gguf", [](auto& w) { w.set("llama.attention.head_count", std::uint32_t{0}); }),
      {"heads.gguf", "llama.attention.head_count"});
  expect_model(models.changed("missing.gguf", [](auto& w) { w.remove_tensor("blk.1.ffn_up.weight"); }),
               {"missing.gguf", "blk.1.ffn_up.weight"});
  expect_model(models.unknown_format(), {"quant.gguf", "token_embd.weight", "type"});
  expect_model(models.changed("tokens.gguf", [](auto& w) { w.remove("tokenizer.ggml.tokens"); }),
               {"tokens.gguf", "tokenizer.ggml.tokens"});
}

TEST_F(Refusal, OptionsThatMakeNoSense) {
  const std::string& good = models.good();
  const std::vector<std::vector<std::string>> options = {{"-n", "0"},
                                                         {"-n", "x"},
                                                         {"-n", "-2"},
                                                         {"--temp", "-1"},
                                                         {"--temp", "nan"},
                                                         {"--top-p", "2"},
                                                         {"--top-k", "-1"},
                                                         {"--min-p", "-1"},
                                                         {"--ctx", "0"},
                                                         {"--ctx", "257"},
                                                         {"--ctx", "1e9"},
                                                         {"--kv", "f8"},
                                                         {"--chunk", "0"},
                                                         {"--memory", "12Q"},
                                                         {"--memory", "-1"},
                                                         {"--memory", "x"},
                                                         {"--threads", "0"},
                                                         {"--predict", "-5"},
                                                         {"--predict", "many"},
                                                         {"--seed", "x"},
                                                         {"--seed", "-1"},
                                                         {"--transport", "ib"},
                                                         {"--repeat-penalty", "0"},
                                                         {"--repeat-window", "-1"}};
  for (const std::vector<std::string>& option : options) {
    std::vector<std::string> arguments = {"run", "-m", good, "-p", "Hello"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    expect(arguments, {option[0] == "-n" ? "--pes" : option[0]});
  }
  expect({"run", "-m", good, "-p", "Hello", "--frobnicate"}, {"--frobnicate"});
  expect({"run", "-p", "Hello"}, {"--model"});
  expect({"run", "-m", good, "-p", "Hello", "--hostfile", "hosts"}, {"--hostfile"});
  expect({"frobnicate"}, {"frobnicate"});
  expect({}, {"subcommand"});
}

TEST_F(Refusal, TransportsThatAreUnknownInTheEnvironment) {
  expect({"run", "-m", models.good(), "-p", "Hello"}, {"SHOAL_TRANSPORT", "pigeon"},
         {{"SHOAL_TRANSPORT", "pigeon"}});
  // What the command line says goes first, so the variable does not matter.
  const Outcome outcome = run({.line = {shoal_program(), "run", "-m", models.good(), "-p", "Hello",
                                        "--predict", "2", "--transport", "threads"},
                               .environment = {{"SHOAL_TRANSPORT", "pigeon"}}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
}

TEST_F(Refusal, Prompts) {
  const std::string& good = models.good();
  expect({"run", "-m", good}, {"-p", "--file", "--chat"});
  expect({"run", "-m", good, "-p", "Hello", "--chat"}, {"--chat", "-p"});
  expect({"run", "-m", good, "-p", "Hello", "--file", models.text("prompt.txt", "Hello")}, {"-p", "--file"});
  expect({"run", "-m", good, "--chat", "--json"}, {"--json", "--chat"});
  expect({"run", "-m", good, "--file", models.file("no.txt")}, {"--file", "no.txt", "No such file"});
  expect({"run", "-m", good, "--file", models.folder()}, {"--file", "directory"});
  expect({"run", "-m", good, "-p", "cut \xE6\xAD"}, {"-p", "byte 4", "UTF-8"});
  expect({"run", "-m", good, "-p", "\xED\xA0\x80"}, {"-p", "byte 0", "UTF-8"});
  expect({"run", "-m", good, "--file", models.text("bad.txt", "ab\xFF")}, {"bad.txt", "byte 2", "UTF-8"});
  expect({"run", "-m", good, "--file", "-"}, {"UTF-8", "byte 3"}, {}, "abc\xC0\x80");
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word ";
  expect({"run", "-m", good, "-p", words, "--ctx", "32"}, {"the prompt has", "32 positions", "--ctx"});
  expect({"run", "-m", models.without_bos(), "-p", ""}, {"prompt is empty"});
  expect({"run", "-m", good, "--chat"}, {"chat", "template"});
}

TEST_F(Refusal, PlansThatDoNotFit) {
  expect_model(models.good(), {"PE", "--memory"}, {"--memory", "100K"});
  expect({"plan", models.good(), "-n", "2", "--memory", "100K"}, {"PE"});
  expect({"plan", models.good(), "-n", "0"}, {"--pes"});
  expect({"plan", models.good(), "-n", "3", "--memory", "1G,1G"}, {"memory"});
  expect({"plan", models.file("nowhere.gguf")}, {"nowhere.gguf"});
  expect({"plan"}, {"model"});
  expect({"info", models.file("nowhere.gguf")}, {"nowhere.gguf"});
  expect({"info", models.truncated(1000)}, {models.truncated(1000)});
  expect({"info"}, {"model"});
}

TEST_F(Refusal, AMatrixThatIsNotFinite) {
  expect_model(models.not_finite(), {"non-finite logits at position"});
}

}  // namespace
}  // namespace shoal::test
