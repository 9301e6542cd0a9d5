// SPDX-License-Identifier: Apache-2.0
// Products of every kernel set that this machine has, in every format: against a reference in double,
// against the scalar set, and bit by bit over batch sizes and row ranges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "shoal/tensor/kernels.h"
#include "tensor/prepared.h"

namespace shoal::tensor {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

// A random matrix and activations. The bytes fill their allocation exactly, so that the address
// sanitizer sees a read past the last row.
struct Problem {
  Problem(Format format, std::int64_t row_count, std::int64_t column_count, std::int64_t token_count)
      : rows(row_count), columns(column_count), tokens(token_count) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const std::int64_t stride = row_bytes(format, columns);
    bytes.resize(static_cast<std::size_t>(rows * stride));
    weights.resize(static_cast<std::size_t>(rows * columns));
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (float& value : row) value = normal(random);
      quantize(format, row, bytes.data() + r * stride);
      dequantize(format, bytes.data() + r * stride,
                 std::span(weights).subspan(static_cast<std::size_t>(r * columns), row.size()));
    }
    x.resize(static_cast<std::size_t>(tokens * columns));
    for (float& value : x) value = 3 * normal(random);
    matrix = {format, rows, columns, bytes.data()};
  }

  std::span<float> activations(std::int64_t token) {
    return std::span(x).subspan(static_cast<std::size_t>(token * columns), static_cast<std::size_t>(columns));
  }

  std::int64_t rows, columns, tokens;
  std::vector<std::byte> bytes;
  std::vector<float> weights;  // decoded
  std::vector<float> x;
  Matrix matrix;
};

std::vector<std::byte> prepare_all(const KernelSet& set, Problem& p) {
  const std::int64_t stride = set.prepared_bytes(p.matrix.format, p.columns);
  std::vector<std::byte> prepared(static_cast<std::size_t>(stride * p.tokens), std::byte{0xee});
  for (std::int64_t t = 0; t < p.tokens; ++t)
    set.prepare(p.matrix.format, p.activations(t), prepared.data() + t * stride);
  return prepared;
}

std::vector<float> multiply_all(const KernelSet& set, Problem& p) {
  const std::vector<std::byte> prepared = prepare_all(set, p);
  std::vector<float> y(static_cast<std::size_t>(p.tokens * p.rows), not_a_number);
  set.multiply(p.matrix, prepared.data(), p.tokens, 0, p.rows, y.data(), p.rows);
  return y;
}

// The activations that a prepared row stands for.
std::vector<double> decode_prepared(Format format, const std::byte* prepared, std::int64_t columns) {
  const Arrangement arrangement = arrangement_of(static_cast<int>(format));
  std::vector<double> x;
  for (std::int64_t i = 0; i < columns; ++i) {
    float value = 0;
    if (arrangement == Arrangement::floats) {
      std::memcpy(&value, prepared + 4 * i, 4);
    } else {
      std::memcpy(&value, prepared + prepared_layout(columns).scale + i / 32 * 4, 4);
      const auto at = arrangement == Arrangement::halves ? halves_position(i) : i;
      value *= static_cast<float>(std::to_integer<std::int8_t>(prepared[at]));
    }
    x.push_back(value);
  }
  return x;
}

std::vector<std::int64_t> test_columns(Format format) {
  if (traits(format).block_elements == 1) return {1, 7, 16, 64, 172, 576, 1100};
  if (traits(format).block_elements == 32) return {32, 64, 160, 512, 576, 1504};
  return {256, 512, 768, 2048};
}

std::string label(const KernelSet& set, const Problem& p) {
  return std::string(set.name) + " " + std::string(traits(p.matrix.format).name) + " " +
         std::to_string(p.rows) + " x " + std::to_string(p.columns) + ", " + std::to_string(p.tokens) +
         " tokens";
}

// For each set, format, shape: calls check(set, problem).
template <class Check>
void for_all(std::initializer_list<std::int64_t> rows, std::initializer_list<std::int64_t> tokens,
             Check check) {
  for (const KernelSet* set : available_kernels())
    for (const Format format : all_formats)
      for (const std::int64_t columns : test_columns(format))
        for (const std::int64_t r : rows)
          for (const std::int64_t t : tokens) {
            Problem problem(format, r, columns, t);
            SCOPED_TRACE(label(*set, problem));
            check(*set, problem);
            if (testing::Test::HasFailure()) return;
          }
}

TEST(Prepare, CodesAreNearestAndTheSameBitsInAllSets) {
  const KernelSet& scalar = *find_kernels("scalar");
  for_all({1}, {5}, [&](const KernelSet& set, Problem& p) {
    const Format format = p.matrix.format;
    const std::int64_t stride = set.prepared_bytes(format, p.columns);
    EXPECT_EQ(stride % 64, 0);
    p.activations(1)[0] = 0x1p-130f;                  // a tiny unit, or one beside large values
    for (float& value : p.activations(2)) value = 0;  // a unit of zeros has no scale
    p.activations(3)[0] = not_a_number;               // such units have no codes, and a scale that says so
    p.activations(4).back() = -infinity;
    const std::vector<std::byte> prepared = prepare_all(set, p);
    const std::vector<std::byte> expected = prepare_all(scalar, p);
    const auto used = static_cast<std::size_t>(prepared_row_bytes(static_cast<int>(format), p.columns));
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      ASSERT_EQ(std::memcmp(prepared.data() + t * stride, expected.data() + t * stride, used), 0);
      if (t >= 3) continue;
      const std::vector<double> decoded = decode_prepared(format, prepared.data() + t * stride, p.columns);
      for (std::int64_t i = 0; i < p.columns; ++i) {
        double largest = 0;
        for (std::int64_t j = i / 32 * 32; j < std::min(p.columns, i / 32 * 32 + 32); ++j)
          largest = std::max(largest, std::abs(double{p.activations(t)[static_cast<std::size_t>(j)]}));
        const double step = traits(format).block_elements == 1 ? 0 : largest / 127;
        EXPECT_NEAR(decoded[static_cast<std::size_t>(i)], p.activations(t)[static_cast<std::size_t>(i)],
                    step * 0.50001);
      }
    }
  });
}

// Every product is a sum of at most (2 a unit) rounded terms, each rounded a few times: the error is
// below (terms + 16) * 2^-24 times the sum of magnitudes. The codes' part of a block with a minimum is
// not larger than twice the block's largest weight.
double tolerance(const Problem& p, const std::vector<double>& x, std::int64_t row) {
  const std::int64_t unit = traits(p.matrix.format).block_elements == 1 ? 1 : 32;
  double magnitude = 0;
  for (std::int64_t begin = 0; begin < p.columns; begin += unit) {
    double largest = 0, sum = 0;
    for (std::int64_t i = begin; i < begin + unit; ++i) {
      largest = std::max(largest, std::abs(double{p.weights[static_cast<std::size_t>(row * p.columns + i)]}));
      sum += std::abs(x[static_cast<std::size_t>(i)]);
    }
    magnitude += 3 * largest * sum;
  }
  return magnitude * (2.0 * static_cast<double>(p.columns) / static_cast<double>(unit) + 16) * 0x1p-24;
}

TEST(Multiply, AgreesWithDoubleReferenceAndScalarTwin) {
  const KernelSet& scalar = *find_kernels("scalar");
  for_all({1, 5, 21}, {1, 3, 19}, [&](const KernelSet& set, Problem& p) {
    const std::vector<std::byte> prepared = prepare_all(set, p);
    const std::vector<float> y = multiply_all(set, p), twin = multiply_all(scalar, p);
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const std::vector<double> x = decode_prepared(
          p.matrix.format, prepared.data() + t * set.prepared_bytes(p.matrix.format, p.columns), p.columns);
      for (std::int64_t r = 0; r < p.rows; ++r) {
        double expected = 0;
        for (std::int64_t c = 0; c < p.columns; ++c)
          expected +=
              double{p.weights[static_cast<std::size_t>(r * p.columns + c)]} * x[static_cast<std::size_t>(c)];
        const double bound = tolerance(p, x, r);
        const auto at = static_cast<std::size_t>(t * p.rows + r);
        ASSERT_NEAR(y[at], expected, bound) << "row " << r << " token " << t;
        ASSERT_NEAR(y[at], twin[at], 2 * bound) << "row " << r << " token " << t;
      }
    }
  });
}

// Codes and scales at the ends of their ranges: where a 16-bit sum could saturate.
TEST(Multiply, ExtremeCodesDoNotSaturate) {
  for (const KernelSet* set : available_kernels())
    for (const Format format : all_formats)
      for (const int byte : {0x00, 0x7f, 0x80, 0xff})
        for (const float sign : {-1.0f, 1.0f}) {
          Problem p(format, 4, 512, 17);
          if (traits(format).block_elements == 1) continue;
          const bool k = traits(format).block_elements == 256;
          const auto block_bytes = static_cast<std::size_t>(traits(format).block_bytes);
          const bool scale_last = format == Format::q6_k;
          const std::size_t header = !k && (format == Format::q4_1 || format == Format::q5_1) ? 4 : k ? 4 : 2;
          for (std::size_t i = 0; i < p.bytes.size(); ++i) {  // all but the scales of a block
            const std::size_t in_block = i % block_bytes;
            if (scale_last ? in_block < block_bytes - 2 : in_block >= header)
              p.bytes[i] = static_cast<std::byte>(byte);
          }
          for (std::int64_t r = 0; r < p.rows; ++r)
            dequantize(format, p.bytes.data() + r * row_bytes(format, 512),
                       std::span(p.weights).subspan(static_cast<std::size_t>(r * 512), 512));
          for (float& value : p.x) value = sign;
          const std::vector<std::byte> prepared = prepare_all(*set, p);
          const std::vector<double> x = decode_prepared(format, prepared.data(), p.columns);
          const std::vector<float> y = multiply_all(*set, p);
          for (std::size_t i = 0; i < y.size(); ++i) {
            const auto r = static_cast<std::int64_t>(i) % p.rows;
            double expected = 0;
            for (std::size_t c = 0; c < 512; ++c)
              expected += double{p.weights[static_cast<std::size_t>(r) * 512 + c]} * x[c];
            ASSERT_NEAR(y[i], expected, 4 * tolerance(p, x, r) + 1e-3)
                << label(*set, p) << " byte " << byte << " sign " << sign;
          }
        }
}

TEST(Multiply, BatchGivesTheBitsOfSingleTokens) {
  for_all({1, 13}, {2, 7, 16, 31, 67}, [](const KernelSet& set, Problem& p) {
    const std::vector<std::byte> prepared = prepare_all(set, p);
    const std::vector<float> y = multiply_all(set, p);
    const std::int64_t stride = set.prepared_bytes(p.matrix.format, p.columns);
    std::vector<float> single(static_cast<std::size_t>(p.rows));
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      set.multiply(p.matrix, prepared.data() + t * stride, 1, 0, p.rows, single.data(), p.rows);
      ASSERT_EQ(std::memcmp(single.data(), y.data() + t * p.rows, single.size() * sizeof(float)), 0)
          << "token " << t;
    }
  });
}

TEST(Multiply, RowRangesGiveTheSameBitsAndTouchNothingElse) {
  for_all({1, 2, 35}, {1, 5, 20}, [](const KernelSet& set, Problem& p) {
    const std::vector<std::byte> prepared = prepare_all(set, p);
    const std::vector<float> whole = multiply_all(set, p);
    const std::int64_t y_stride = p.rows + 3;
    std::vector<float> y(static_cast<std::size_t>(p.tokens * y_stride), -77.0f);
    std::int64_t begin = 0;
    for (std::int64_t length = 1; begin < p.rows; length += 5) {
      const std::int64_t end = std::min(p.rows, begin + length);
      set.multiply(p.matrix, prepared.data(), p.tokens, begin, end, y.data(), y_stride);
      ASSERT_EQ(y[static_cast<std::size_t>(end)], -77.0f) << "row " << end << " written early";
      set.multiply(p.matrix, prepared.data(), p.tokens, end, end, y.data(), y_stride);
      begin = end;
    }
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      ASSERT_EQ(std::memcmp(y.data() + t * y_stride, whole.data() + t * p.rows,
                            static_cast<std::size_t>(p.rows) * sizeof(float)),
                0)
          << "token " << t;
      for (std::int64_t r = p.rows; r < y_stride; ++r)
        ASSERT_EQ(y[static_cast<std::size_t>(t * y_stride + r)], -77.0f);
    }
  });
}

TEST(Multiply, NonFiniteActivationsShowInTheirTokenOnly) {
  for (const float bad : {not_a_number, infinity, -infinity})
    for_all({9}, {1, 18}, [bad](const KernelSet& set, Problem& p) {
      const std::int64_t bad_token = p.tokens / 2;
      p.activations(bad_token)[static_cast<std::size_t>(p.columns * 2 / 3)] = bad;
      const std::vector<float> y = multiply_all(set, p);
      for (std::int64_t t = 0; t < p.tokens; ++t)
        for (std::int64_t r = 0; r < p.rows; ++r)
          ASSERT_EQ(std::isfinite(y[static_cast<std::size_t>(t * p.rows + r)]), t != bad_token)
              << "row " << r << " token " << t;
    });
}

// Rows are read in groups that reach into the next row, whose scales may be anything.
TEST(Multiply, RowsDoNotLeakIntoEachOther) {
  for_all({12}, {1, 18}, [](const KernelSet& set, Problem& p) {
    const std::vector<float> expected = multiply_all(set, p);
    const std::int64_t stride = row_bytes(p.matrix.format, p.columns);
    for (std::int64_t r = 1; r < p.rows; r += 2)  // every bit set: NaN as a float and as a half
      std::memset(p.bytes.data() + r * stride, 0xff, static_cast<std::size_t>(stride));
    const std::vector<float> y = multiply_all(set, p);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool spoilt = static_cast<std::int64_t>(i) % p.rows % 2 == 1;
      ASSERT_TRUE(spoilt ? std::isnan(y[i]) : y[i] == expected[i]) << "product " << i << " " << y[i];
    }
  });
}

TEST(Multiply, NoTokensAndNoRowsDoNothing) {
  for (const KernelSet* set : available_kernels()) {
    Problem p(Format::q4_1, 4, 64, 1);
    const std::vector<std::byte> prepared = prepare_all(*set, p);
    float y = 5;
    set->multiply(p.matrix, prepared.data(), 0, 0, 4, &y, 4);
    set->multiply(p.matrix, prepared.data(), 1, 2, 2, &y, 4);
    EXPECT_EQ(y, 5);
  }
}

}  // namespace
}  // namespace shoal::tensor
