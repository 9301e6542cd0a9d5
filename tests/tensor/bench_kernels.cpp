// SPDX-License-Identifier: Apache-2.0
// How fast the products are. For each kernel set and format: bytes of weights a second for one token
// (bound by memory; beside the read bandwidth measured in the same run) and operations a second for 64
// tokens (bound by the multipliers; a multiply and an add are two). Each timed product is compared with
// the scalar set first. Arguments: names of sets and formats to restrict the run to (avx512 Q4_1).
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "shoal/base/thread_team.h"
#include "shoal/tensor/kernels.h"

namespace {

using namespace shoal::tensor;
using Clock = std::chrono::steady_clock;

struct Shape {
  const char* name;
  std::int64_t rows, columns, layers;  // layers 0: as many as make 400 MB, beyond the caches
};
constexpr Shape shapes[] = {
    {"1536x576 x30", 1536, 576, 30}, {"2048x5632", 2048, 5632, 0}, {"5632x2048", 5632, 2048, 0}};
constexpr std::int64_t large_bytes = 400'000'000;

struct Timing {
  double median_s, spread;  // (slowest - fastest) / median of the middle half
};

template <class Work>
Timing time(Work work) {
  std::vector<double> seconds;
  const Clock::time_point begin = Clock::now();
  while (seconds.size() < 3 ||
         (seconds.size() < 25 && std::chrono::duration<double>(Clock::now() - begin).count() < 0.15)) {
    const Clock::time_point start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const double median = seconds[n / 2];
  return {median, (seconds[n - 1 - n / 4] - seconds[n / 4]) / median};
}

std::pair<std::int64_t, std::int64_t> part(std::int64_t n, int member, int members) {
  return {n * member / members, n * (member + 1) / members};
}

// Adds up a large buffer, fetching ahead as the kernels do: what a core can read at best.
std::uint64_t sum_words(const std::uint64_t* p, const std::uint64_t* end) {
  std::uint64_t sums[4] = {};
  for (; p + 8 <= end; p += 8) {
    __builtin_prefetch(p + 256);
    for (int i = 0; i < 8; ++i) sums[i % 4] += p[i];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

double read_bandwidth(shoal::ThreadTeam& team) {
  static const std::vector<std::uint64_t> buffer(static_cast<std::size_t>(large_bytes / 8), 1);
  const Timing timing = time([&] {
    team.run([&](int member) {
      const auto [begin, end] = part(large_bytes / 64, member, team.size());
      if (sum_words(buffer.data() + begin * 8, buffer.data() + end * 8) !=
          static_cast<std::uint64_t>((end - begin) * 8))
        std::abort();
    });
  });
  return static_cast<double>(large_bytes) / timing.median_s * 1e-9;
}

// The layers of one shape, all with the same content, and prepared activations.
struct Problem {
  Problem(const KernelSet& kernels, Format format, const Shape& shape, std::int64_t token_count)
      : set(kernels), tokens(token_count) {
    const std::int64_t stride = row_bytes(format, shape.columns);
    layers = shape.layers > 0 ? shape.layers : large_bytes / (stride * shape.rows) + 1;
    const auto layer_bytes = static_cast<std::size_t>(stride * shape.rows);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(shape.columns));
    weights.resize(layer_bytes * static_cast<std::size_t>(layers));
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      if (row < 16) {  // then they repeat: encoding is slow and its values do not matter
        for (float& value : values) value = normal(random);
        quantize(format, values, weights.data() + row * stride);
      } else {
        std::memcpy(weights.data() + row * stride, weights.data() + row % 16 * stride,
                    static_cast<std::size_t>(stride));
      }
    }
    for (std::size_t layer = 1; layer < static_cast<std::size_t>(layers); ++layer)
      std::memcpy(weights.data() + layer * layer_bytes, weights.data(), layer_bytes);
    matrix = {format, shape.rows, shape.columns, weights.data()};
    const std::int64_t x_stride = set.prepared_bytes(format, shape.columns);
    x.resize(static_cast<std::size_t>(x_stride * tokens));
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (float& value : values) value = normal(random);
      set.prepare(format, values, x.data() + token * x_stride);
    }
    y.resize(static_cast<std::size_t>(shape.rows * tokens));
  }

  void multiply(shoal::ThreadTeam& team, std::int64_t layer_count) {
    for (std::int64_t layer = 0; layer < layer_count; ++layer) {
      Matrix w = matrix;
      w.data += layer * row_bytes(w.format, w.columns) * w.rows;
      team.run([&](int member) {
        const auto [begin, end] = part(w.rows, member, team.size());
        set.multiply(w, x.data(), tokens, begin, end, y.data(), w.rows);
      });
    }
  }

  void verify(shoal::ThreadTeam& team) {
    multiply(team, 1);
    const std::int64_t rows = std::min<std::int64_t>(16, matrix.rows);
    std::vector<float> expected(y.size());
    find_kernels("scalar")->multiply(matrix, x.data(), tokens, 0, rows, expected.data(), matrix.rows);
    const double bound = 1e-4 * std::sqrt(static_cast<double>(matrix.columns));
    for (std::int64_t token = 0; token < tokens; ++token)
      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        const auto at = static_cast<std::size_t>(token * matrix.rows + row);
        const auto twin = static_cast<std::size_t>(token * matrix.rows + row % 16);
        if (std::abs(y[at] - expected[twin]) <= bound) continue;
        fmt::print(stderr, "wrong product: row {} token {}: {} instead of {}\n", row, token, y[at],
                   expected[twin]);
        std::exit(1);
      }
  }

  const KernelSet& set;
  std::int64_t tokens, layers = 0;
  std::vector<std::byte> weights, x;
  std::vector<float> y;
  Matrix matrix;
};

void bench(const KernelSet& set, Format format, const Shape& shape, shoal::ThreadTeam& team,
           double bandwidth) {
  Problem single(set, format, shape, 1);
  single.verify(team);
  const Timing generate = time([&] { single.multiply(team, single.layers); });
  const double gb_s = static_cast<double>(single.weights.size()) / generate.median_s * 1e-9;

  const Shape few = {shape.name, shape.rows, shape.columns, 2};
  Problem batch(set, format, few, 64);
  batch.verify(team);
  const Timing prompt = time([&] { batch.multiply(team, batch.layers); });
  const double operations =
      2.0 * static_cast<double>(shape.rows * shape.columns * batch.tokens * batch.layers);
  fmt::print(
      "{:7} {:5} {:13} {:2}  {:6.1f} GB/s ({:3.0f} % of read, spread {:2.0f} %)  {:6.0f} Gop/s (spread "
      "{:2.0f} %)\n",
      set.name, traits(format).name, shape.name, team.size(), gb_s, 100 * gb_s / bandwidth,
      100 * generate.spread, operations / prompt.median_s * 1e-9, 100 * prompt.spread);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  const auto selected = [&](std::string_view name, auto is_of_kind) {
    bool any = false;
    for (const std::string& word : wanted) {
      if (word == name) return true;
      any = any || is_of_kind(word);
    }
    return !any;
  };
  const auto is_set = [](const std::string& word) { return find_kernels(word) != nullptr; };
  const auto is_format = [](const std::string& word) {
    return std::any_of(std::begin(all_formats), std::end(all_formats),
                       [&](Format format) { return traits(format).name == word; });
  };
  for (const int threads : {1, 2}) {
    shoal::ThreadTeam team(threads);
    const double bandwidth = read_bandwidth(team);
    fmt::print("{} thread{}: reads {:.1f} GB/s\n", threads, threads == 1 ? "" : "s", bandwidth);
    for (const KernelSet* set : available_kernels()) {
      if (!selected(set->name, is_set) || (set->name == "scalar" && wanted.empty())) continue;
      for (const Format format : all_formats)
        if (selected(traits(format).name, is_format))
          for (const Shape& shape : shapes)
            if (shape.columns % traits(format).block_elements == 0)
              bench(*set, format, shape, team, bandwidth);
    }
    fmt::print("{} thread{}: reads {:.1f} GB/s afterwards\n", threads, threads == 1 ? "" : "s",
               read_bandwidth(team));
  }
}
