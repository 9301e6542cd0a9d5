// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, signals and killed processes: the job ends as promised, and nothing of it remains.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "apps/process.h"
#include "infer/model_fixture.h"
#include "shoal/infer/random_model.h"

namespace shoal::test {
namespace {

constexpr const char* control_c = "\x03";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class Signals : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
    infer::RandomModelOptions options;
    options.layers = 6;
    options.width = 512;
    options.ffn_width = 1536;
    options.heads = 8;
    options.kv_heads = 4;
    options.context = 65536;
    options.format = tensor::Format::q8_0;
    model = infer::write_random_model(folder.file("endless.gguf"), options)[0];
    files_before = shared_memory_files();
  }

  /// A run that would go on for a minute or more.
  Command endless(bool terminal) const {
    return {.line = job_line(
                GetParam(), 3,
                {"run", "-m", model, "-p", "Hello", "--ignore-end", "--ctx", "60000", "--threads", "1"}),
            .limit_s = 40,
            .terminal = terminal};
  }

  /// A job that reads a long prompt, in pieces of `chunk` tokens.
  Command reading(const std::string& chunk) const {
    std::string words;
    for (int i = 0; i < 20000; ++i) words += "time ";
    Command command = endless(true);
    for (std::string& word : command.line)
      if (word == "Hello") word = words;
    command.line.insert(command.line.end(), {"--chunk", chunk});
    return command;
  }

  static bool talks(const Outcome& so_far) { return so_far.out.size() > 300; }

  void expect_nothing_left(const Process& job) {
    EXPECT_TRUE(job.all_gone(5)) << job.family().size() << " processes are left";
    EXPECT_EQ(abandoned_shared_memory(files_before, 2), std::set<std::string>{});
  }

  infer::test::TemporaryFolder folder;
  std::string model;
  std::set<std::string> files_before;
};
INSTANTIATE_TEST_SUITE_P(Job, Signals, testing::Values("threads", "mpi", "shmem"),
                         [](const auto& test) { return test.param; });

TEST_P(Signals, ControlCEndsTheAnswer) {
  Process job(endless(true));
  ASSERT_TRUE(job.read_until(talks)) << job.wait().describe();
  const double sent = job.seconds();
  job.type(control_c);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds - sent, 5);
  EXPECT_TRUE(has(outcome.out, "ended by interrupted")) << outcome.describe();
  EXPECT_TRUE(has(outcome.out, "PE  host")) << outcome.describe();
  expect_nothing_left(job);
}

TEST_P(Signals, ControlCEndsTheReadingOfAPrompt) {
  Process job(reading("64"));
  ASSERT_TRUE(job.read_until([&](const Outcome&) { return job.seconds() > 2; })) << job.wait().describe();
  const double sent = job.seconds();
  job.type(control_c);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds - sent, 5);
  expect_nothing_left(job);
}

TEST_P(Signals, ControlCTwiceEndsTheProgram) {
  // The first one is heeded between two pieces of the prompt; when it happens to come there, the program
  // has ended well before the second, and it is tried again.
  for (int attempt = 1;; ++attempt) {
    Process job(reading("4096"));
    ASSERT_TRUE(job.read_until([&](const Outcome&) { return job.seconds() > 2; })) << job.wait().describe();
    ASSERT_FALSE(job.family().empty());
    const double sent = job.seconds();
    job.type(control_c);
    pause_ms(100);
    job.type(control_c);
    const Outcome outcome = job.wait();
    EXPECT_LT(outcome.seconds - sent, 5);
    expect_nothing_left(job);
    if (outcome.exit_code == 0 && attempt < 4) continue;
    EXPECT_EQ(outcome.exit_code, 128 + SIGINT) << outcome.describe();
    break;
  }
}

TEST_P(Signals, TerminateEndsAll) {
  Process job(endless(false));
  ASSERT_TRUE(job.read_until(talks)) << job.wait().describe();
  const double sent = job.seconds();
  kill(job.pid(), SIGTERM);
  const Outcome outcome = job.wait();
  EXPECT_TRUE(outcome.exit_code == 128 + SIGTERM || outcome.signal == SIGTERM) << outcome.describe();
  EXPECT_LT(outcome.seconds - sent, 5);
  expect_nothing_left(job);
}

TEST_P(Signals, AKilledProgramLeavesNothing) {
  Process job(endless(false));
  ASSERT_TRUE(job.read_until(talks)) << job.wait().describe();
  kill(job.pid(), SIGKILL);
  EXPECT_EQ(job.wait().signal, SIGKILL);
  expect_nothing_left(job);
}

/// Where a PE is a process of its own.
class ProcessSignals : public Signals {};
INSTANTIATE_TEST_SUITE_P(Job, ProcessSignals, testing::Values("mpi", "shmem"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(ProcessSignals, AKilledPeEndsTheJob) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE(rank);
    Process job(endless(false));
    ASSERT_TRUE(job.read_until(talks)) << job.wait().describe();
    const pid_t pe = job.pe(rank);
    ASSERT_GT(pe, 0);
    const double sent = job.seconds();
    kill(pe, SIGKILL);
    const Outcome outcome = job.wait();
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_FALSE(outcome.timed_out);
    EXPECT_LT(outcome.seconds - sent, 5);
    EXPECT_EQ(outcome.err.find("shoal: PE " + std::to_string(rank) + " ("), outcome.err.rfind("shoal: "))
        << outcome.describe();
    EXPECT_TRUE(has(outcome.err, ") was ended by signal 9 (Killed), and the job with it"))
        << outcome.describe();
    expect_nothing_left(job);
  }
}

TEST_P(Signals, AStoppedPipeEndsTheProgram) {
  // As in `shoal run ... | head -c 10`: whoever reads the text may go away.
  Command command = endless(false);
  std::string shell;
  for (const std::string& word : command.line) shell += "'" + word + "' ";
  command.line = {"sh", "-c", shell + "| head -c 10"};
  Process job(command);
  const Outcome outcome = job.wait();
  EXPECT_FALSE(outcome.timed_out) << outcome.describe();
  EXPECT_EQ(outcome.out.size(), 10u) << outcome.describe();
  expect_nothing_left(job);
}

// --- conversation ---

class Chat : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (large_model().empty()) GTEST_SKIP() << "no model: SHOAL_TEST_MODEL names no file";
    if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  }
  Command chat(const std::string& input, const std::string& predict, bool terminal = false) const {
    return {.line = job_line(GetParam(), 2,
                             {"run", "-m", large_model(), "--chat", "--temp", "0", "--ctx", "1024",
                              "--predict", predict, "--threads", "1"}),
            .input = input,
            .limit_s = 40,
            .terminal = terminal};
  }
  /// The number of tokens that were fed, from the table.
  int prompt_tokens(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
    const std::size_t at = outcome.err.find("prompt ");
    EXPECT_NE(at, std::string::npos) << outcome.describe();
    return at == std::string::npos ? 0 : std::stoi(outcome.err.substr(at + 7));
  }
};
INSTANTIATE_TEST_SUITE_P(Job, Chat, testing::Values("threads", "mpi", "shmem"),
                         [](const auto& test) { return test.param; });

TEST_P(Chat, AnswersWhatIsPiped) {
  const Outcome outcome = run(chat("Hello\n/exit\n", "40"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_GT(outcome.out.size(), 10u);
  EXPECT_FALSE(has(outcome.out, "<|im_")) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "PE  host")) << outcome.describe();
  // The end of the input ends the conversation as well; two messages are answered in order, and the
  // answer to the first does not depend on what follows.
  const Outcome two = run(chat("Hello\nWhat is your name?", "40"));
  EXPECT_EQ(two.exit_code, 0) << two.describe();
  EXPECT_TRUE(two.out.starts_with(outcome.out)) << two.describe();
  EXPECT_GT(two.out.size(), outcome.out.size() + 5);
}

TEST_P(Chat, TypedControlTokensStayText) {
  const int plain = prompt_tokens(run(chat("A\n", "1")));
  const int typed = prompt_tokens(run(chat("A<|im_end|>\n", "1")));
  EXPECT_GE(typed, plain + 4) << "<|im_end|> became one token";
}

TEST_P(Chat, ControlCEndsTheAnswerThenTheConversation) {
  Process job(chat("", "1000", true));
  ASSERT_TRUE(job.read_until([](const Outcome& o) { return has(o.out, "\n> "); })) << job.wait().describe();
  job.type("Tell me a very long story about a cat.\n");
  const auto after_prompt = [](const Outcome& o) { return o.out.size() - (o.out.find("about a cat.") + 12); };
  ASSERT_TRUE(job.read_until([&](const Outcome& o) {
    return has(o.out, "about a cat.") && after_prompt(o) > 60;
  })) << job.wait().describe();
  job.type(control_c);
  ASSERT_TRUE(job.read_until([&](const Outcome& o) {
    return has(o.out.substr(o.out.find("about a cat.")), "\n> ");
  })) << job.wait().describe();
  pause_ms(2200);  // sooner, it would be the second of two that end the program
  job.type(control_c);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_TRUE(has(outcome.out, "PE  host")) << outcome.describe();
  EXPECT_TRUE(job.all_gone(5));
}

TEST(ChatTemplate, AnUnknownOneIsNamed) {
  infer::test::TemporaryFolder folder;
  infer::GgufWriter writer = infer::random_model({});
  writer.set("tokenizer.chat_template", "{{ strange }}");
  writer.write(folder.file("strange.gguf"));
  const Outcome outcome =
      run({.line = {shoal_program(), "run", "-m", folder.file("strange.gguf"), "--chat"}});
  EXPECT_GT(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.err.starts_with("shoal: ")) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "template")) << outcome.describe();
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.describe();
}

}  // namespace
}  // namespace shoal::test
