// SPDX-License-Identifier: Apache-2.0
// The kernels beside the products (norm, activation, softmax, attention rows), every set against double
// precision, at lengths around the vector widths; and the choice of the set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/base/half.h"
#include "shoal/tensor/kernels.h"

namespace shoal::tensor {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t lengths[] = {1, 7, 8, 15, 16, 17, 31, 33, 64, 172, 576, 2048};

std::vector<float> normals(std::size_t n, unsigned seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

template <class Check>
void for_all_sets_and_lengths(Check check) {
  for (const KernelSet* set : available_kernels())
    for (const std::size_t n : lengths) {
      SCOPED_TRACE(std::string(set->name) + " n = " + std::to_string(n));
      check(*set, n);
    }
}

TEST(VectorKernels, RmsNorm) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    const std::vector<float> x = normals(n, 1, 2), weight = normals(n, 2);
    std::vector<float> out(n);
    set.rms_norm(x, weight, 1e-5f, out);
    double squares = 0;
    for (const float value : x) squares += double{value} * value;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + double{1e-5f});
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = x[i] * factor * weight[i];
      EXPECT_NEAR(out[i], expected, std::abs(expected) * (static_cast<double>(n) / 8 + 8) * 0x1p-24);
    }
    std::vector<float> bad = x;
    bad[n - 1] = not_a_number;
    set.rms_norm(bad, weight, 1e-5f, out);
    for (const float value : out) EXPECT_TRUE(std::isnan(value));
    std::vector<float> in_place = x;
    set.rms_norm(x, weight, 1e-5f, out);
    set.rms_norm(in_place, weight, 1e-5f, in_place);
    EXPECT_EQ(in_place, out);
  });
}

TEST(VectorKernels, SiluMultiply) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    std::vector<float> gate = normals(n, 3, 8), before = gate;
    const std::vector<float> up = normals(n, 4);
    set.silu_multiply(gate, up);
    for (std::size_t i = 0; i < n; ++i) {
      const double v = before[i], expected = v / (1 + std::exp(-v)) * up[i];
      EXPECT_NEAR(gate[i], expected, std::abs(expected) * 5e-7) << before[i];
    }
  });
}

TEST(VectorKernels, SiluOfExtremeValues) {
  for (const KernelSet* set : available_kernels())
    for (const std::size_t padding : {0u, 15u}) {  // in the vector part and in the rest
      std::vector<float> gate(padding, 1.0f);
      for (const float v :
           {0.0f, -0.0f, 100.0f, 3e38f, -88.0f, -100.0f, -3e38f, 1e-40f, infinity, not_a_number})
        gate.push_back(v);
      const std::vector<float> up(gate.size(), 2.0f);
      set->silu_multiply(gate, up);
      const float* y = gate.data() + padding;
      EXPECT_EQ(y[0], 0);
      EXPECT_EQ(y[1], 0);
      EXPECT_EQ(y[2], 200);
      EXPECT_EQ(y[3], infinity);  // 6e38 is beyond float
      EXPECT_NEAR(y[4], -88 / (1 + std::exp(88.0)) * 2, 1e-42);
      EXPECT_NEAR(y[5], 0, 1e-40);
      EXPECT_EQ(y[6], 0);
      EXPECT_NEAR(y[7], 1e-40f, 1e-44f);
      EXPECT_EQ(y[8], infinity);
      EXPECT_TRUE(std::isnan(y[9]));
      std::vector<float> minus(1, -infinity);  // -inf * 0 has no value: reported, not hidden
      set->silu_multiply(minus, std::vector<float>(1, 1.0f));
      EXPECT_FALSE(std::isfinite(minus[0]));
    }
}

TEST(VectorKernels, Softmax) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    std::vector<float> x = normals(n, 5, 5), before = x;
    set.softmax(x);
    const double maximum = *std::max_element(before.begin(), before.end());
    double sum = 0;
    for (const float value : before) sum += std::exp(value - maximum);
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = std::exp(before[i] - maximum) / sum;
      // 2^-24 * (|x - max| + n): the subtraction's rounding grows through exp, the sum has n roundings.
      const double relative = (std::abs(before[i] - maximum) + static_cast<double>(n) + 8) * 0x1p-23;
      EXPECT_NEAR(x[i], expected, expected * relative + 1e-42);
      total += x[i];
    }
    EXPECT_NEAR(total, 1, (static_cast<double>(n) + 8) * 0x1p-23);
  });
}

TEST(VectorKernels, SoftmaxOfExtremeValues) {
  for (const KernelSet* set : available_kernels())
    for (const std::size_t n : {2u, 21u, 64u}) {
      std::vector<float> equal(n, 3e38f);
      set->softmax(equal);
      for (const float value : equal) EXPECT_NEAR(value, 1.0f / static_cast<float>(n), 1e-6f);

      std::vector<float> one_large(n, -3e38f);
      one_large[n - 1] = 3e38f;
      set->softmax(one_large);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(one_large[i], i == n - 1 ? 1.0f : 0.0f);

      std::vector<float> masked(n, -infinity);
      masked[0] = -1000;
      set->softmax(masked);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(masked[i], i == 0 ? 1.0f : 0.0f);

      for (const float bad : {not_a_number, infinity})
        for (const std::size_t at : {std::size_t{0}, n - 1}) {
          std::vector<float> x(n, 1.0f);
          x[at] = bad;
          set->softmax(x);
          EXPECT_TRUE(std::isnan(x[at]));
        }
      std::vector<float> nothing(n, -infinity);
      set->softmax(nothing);
      for (const float value : nothing) EXPECT_TRUE(std::isnan(value));
      set->softmax({});
    }
}

TEST(VectorKernels, Add) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    std::vector<float> x = normals(n, 6), expected = x;
    const std::vector<float> y = normals(n, 7);
    for (std::size_t i = 0; i < n; ++i) expected[i] += y[i];
    set.add(x, y);
    EXPECT_EQ(x, expected);
  });
}

TEST(VectorKernels, DotProducts) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    const std::vector<float> q = normals(n, 8), k = normals(n, 9);
    std::vector<std::uint16_t> k16(n);
    double expected = 0, expected16 = 0, magnitude = 0;
    for (std::size_t i = 0; i < n; ++i) {
      k16[i] = float16_bits(k[i]);
      expected += double{q[i]} * k[i];
      expected16 += double{q[i]} * float16_value(k16[i]);
      magnitude += std::abs(double{q[i]} * k[i]);
    }
    const double bound = magnitude * (static_cast<double>(n) + 2) * 0x1p-24;
    EXPECT_NEAR(set.dot_f32(q.data(), k.data(), static_cast<std::int64_t>(n)), expected, bound);
    EXPECT_NEAR(set.dot_f16(q.data(), k16.data(), static_cast<std::int64_t>(n)), expected16, bound);
    k16[n - 1] = float16_bits(not_a_number);
    EXPECT_TRUE(std::isnan(set.dot_f16(q.data(), k16.data(), static_cast<std::int64_t>(n))));
  });
}

TEST(VectorKernels, Accumulate) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    const std::vector<float> v = normals(n, 10), start = normals(n, 11);
    std::vector<std::uint16_t> v16(n);
    for (std::size_t i = 0; i < n; ++i) v16[i] = float16_bits(v[i]);
    std::vector<float> out = start, out16 = start;
    out.push_back(42);  // one past the end stays
    out16.push_back(42);
    set.accumulate_f32(0.7f, v.data(), out.data(), static_cast<std::int64_t>(n));
    set.accumulate_f16(0.7f, v16.data(), out16.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const double a = double{0.7f} * v[i], b = double{0.7f} * float16_value(v16[i]);
      EXPECT_NEAR(out[i], start[i] + a, (std::abs(start[i]) + std::abs(a)) * 0x1p-23);
      EXPECT_NEAR(out16[i], start[i] + b, (std::abs(start[i]) + std::abs(b)) * 0x1p-23);
    }
    EXPECT_EQ(out[n], 42);
    EXPECT_EQ(out16[n], 42);
  });
}

TEST(VectorKernels, ToHalfRoundsToNearestEven) {
  for_all_sets_and_lengths([](const KernelSet& set, std::size_t n) {
    std::vector<float> x = normals(n, 12, 100);
    const float special[] = {0.0f,     -0.0f, 65504.0f,       65519.0f,       65520.0f, -1e6f,    0x1p-24f,
                             0x1p-25f, 3e-8f, 1.00048828125f, 1.00146484375f, infinity, -infinity};
    for (std::size_t i = 0; i < std::min(n, std::size(special)); ++i) x[n - 1 - i] = special[i];
    std::vector<std::uint16_t> out(n + 1, 0x1234);
    set.to_f16(x.data(), out.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], float16_bits(x[i])) << x[i];
    EXPECT_EQ(out[n], 0x1234);
    set.to_f16(std::vector<float>(n, not_a_number).data(), out.data(), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(std::isnan(float16_value(out[i])));
  });
}

TEST(KernelChoice, ScalarIsAlwaysThereAndFirst) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_EQ(available_kernels().front()->name, "scalar");
  for (const KernelSet* set : available_kernels()) EXPECT_EQ(find_kernels(set->name), set);
  EXPECT_EQ(find_kernels("sse9"), nullptr);
}

TEST(KernelChoice, FollowsTheEnvironment) {
  ASSERT_EQ(unsetenv("SHOAL_KERNELS"), 0);
  EXPECT_EQ(&default_kernels(), available_kernels().back());
  ASSERT_EQ(setenv("SHOAL_KERNELS", "scalar", 1), 0);
  EXPECT_EQ(default_kernels().name, "scalar");
  ASSERT_EQ(setenv("SHOAL_KERNELS", "sse9", 1), 0);
  try {
    default_kernels();
    ADD_FAILURE() << "sse9 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("sse9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos);
  }
  unsetenv("SHOAL_KERNELS");
}

}  // namespace
}  // namespace shoal::tensor
