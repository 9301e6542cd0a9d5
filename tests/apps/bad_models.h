// SPDX-License-Identifier: Apache-2.0
// A small random model, and what can be wrong with it, in a folder that goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "apps/process.h"
#include "infer/model_fixture.h"
#include "shoal/infer/random_model.h"

namespace shoal::test {

/// The rule for every error: it ends soon and without a signal, with one line that names the thing.
inline void expect_one_line(const Outcome& outcome, const std::vector<std::string>& names) {
  EXPECT_FALSE(outcome.timed_out) << outcome.describe();
  EXPECT_GT(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.exit_code, 128) << "ended by a signal\n" << outcome.describe();
  EXPECT_TRUE(outcome.err.starts_with("shoal: ")) << outcome.describe();
  EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << "not one line\n" << outcome.describe();
  for (const std::string& name : names)
    EXPECT_NE(outcome.err.find(name), std::string::npos) << "does not name " << name << "\n"
                                                         << outcome.describe();
}

class BadModels {
 public:
  BadModels() : good_(infer::write_random_model(file("good.gguf"))[0]) {}

  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string folder() const { return std::filesystem::path(file("x")).parent_path().string(); }
  const std::string& good() const { return good_; }

  std::string text(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

  /// The good model with `bytes` at `offset`.
  std::string patched(const std::string& name, std::size_t offset, const std::string& bytes) const {
    std::string content = read();
    content.replace(offset, bytes.size(), bytes);
    return text(name, content);
  }

  std::string truncated(std::uintmax_t length) const {
    return text("cut-" + std::to_string(length) + ".gguf", read().substr(0, length));
  }

  template <class Change>
  std::string changed(const std::string& name, const Change& change) const {
    infer::GgufWriter writer = infer::random_model({});
    change(writer);
    writer.write(file(name));
    return file(name);
  }

  /// A tensor in a format that nobody knows.
  std::string unknown_format() const {
    const std::string content = read();
    const std::string name = "token_embd.weight";
    // After the name: number of dimensions (4 bytes), two dimensions (8 each), the type.
    return patched("quant.gguf", content.find(name + std::string("\2\0\0\0", 4)) + name.size() + 20,
                   std::string("\x63\0\0\0", 4));
  }

  std::string without_bos() const {
    return changed("no-bos.gguf", [](auto& writer) { writer.set("tokenizer.ggml.add_bos_token", false); });
  }

  std::string not_finite() const {
    return changed("nan.gguf", [](auto& writer) {
      std::vector<float> norm(64, 1.0f);
      norm[7] = std::numeric_limits<float>::quiet_NaN();
      writer.remove_tensor("output_norm.weight");
      writer.add_tensor("output_norm.weight", {64}, tensor::Format::f32, norm);
    });
  }

 private:
  std::string read() const {
    std::ifstream file(good_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  infer::test::TemporaryFolder folder_;
  std::string good_;
};

}  // namespace shoal::test
