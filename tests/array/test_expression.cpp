// SPDX-License-Identifier: Apache-2.0
// Element-wise algebra: types, values, aliases, layouts.
#include <cmath>
#include <limits>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::value;

using Float = DistributedArray<float>;
using Double = DistributedArray<double>;
using ComplexFloat = DistributedArray<std::complex<float>>;
using ComplexDouble = DistributedArray<std::complex<double>>;

template <class E>
using ValueOf = typename E::value_type;
template <class A, class B>
using SumOf = ValueOf<decltype(std::declval<A>() + std::declval<B>())>;

// Types, as the heading of expression.h says.
static_assert(std::is_same_v<SumOf<Float, double>, float>);
static_assert(std::is_same_v<SumOf<Float, int>, float>);
static_assert(std::is_same_v<SumOf<Float, Double>, double>);
static_assert(std::is_same_v<SumOf<Float, std::complex<double>>, std::complex<float>>);
static_assert(std::is_same_v<SumOf<std::complex<float>, Double>, std::complex<double>>);
static_assert(std::is_same_v<SumOf<Double, ComplexFloat>, std::complex<double>>);
static_assert(std::is_same_v<SumOf<ComplexFloat, ComplexFloat>, std::complex<float>>);
static_assert(std::is_same_v<ValueOf<decltype(abs(std::declval<ComplexFloat>()))>, float>);
static_assert(std::is_same_v<ValueOf<decltype(conj(std::declval<Double>()))>, double>);
static_assert(std::is_same_v<ValueOf<decltype(imag(std::declval<ComplexDouble>()))>, double>);
// Complex does not become real, in silence or otherwise.
static_assert(!std::is_constructible_v<Double, ComplexDouble>);
static_assert(!std::is_assignable_v<Double&, decltype(std::declval<Double>() * std::complex<double>())>);
static_assert(std::is_assignable_v<ComplexDouble&, Float>);

// Compares with what the same formula gives for the elements, one by one, to the precision of the largest
// terms (20).
template <class R, class Formula>
void expect_elements(const DistributedArray<R>& result, const Formula& formula) {
  const std::vector<R> full = result.to_full();
  constexpr Real<R> tolerance = 40 * std::numeric_limits<Real<R>>::epsilon();
  for (std::size_t i = 0; i < full.size(); ++i) {
    const R expected = formula(static_cast<Index>(i));
    ASSERT_LE(std::abs(full[i] - expected), tolerance * (1 + std::abs(expected))) << i;
  }
}

TEST(Expression, ValuesInEveryTypeAndLayout) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      using R = Real<T>;
      const R half = R(0.5);
      const auto shifted = [](Index i) { return value<T>(i + 1) + T(20); };
      for (const Layout& layout : testing::layouts({13, 5, 3}, world.size())) {
        SCOPED_TRACE(layout.describe());
        const auto x = filled<T>(world, layout);
        std::vector<T> other;
        for (Index i = 0; i < layout.size(); ++i) other.push_back(shifted(i));
        const auto y = DistributedArray<T>::from_full(world, layout, other);
        expect_elements(DistributedArray<T>(x + y), [&](Index i) { return value<T>(i) + shifted(i); });
        expect_elements(DistributedArray<T>(2 * x - y / 4.0),
                        [&](Index i) { return R(2) * value<T>(i) - shifted(i) / R(4); });
        expect_elements(DistributedArray<T>(x * y), [&](Index i) { return value<T>(i) * shifted(i); });
        expect_elements(DistributedArray<T>(x / y), [&](Index i) { return value<T>(i) / shifted(i); });
        expect_elements(DistributedArray<T>(0.5 + -x - 1),
                        [&](Index i) { return half - value<T>(i) - R(1); });
        expect_elements(DistributedArray<T>(1 / y + (3 - conj(x))), [&](Index i) {
          const T v = value<T>(i);
          return R(1) / shifted(i) + R(3) -
                 (v + T(std::real(v)) - v + T(std::real(v)) - v);  // conj(v) = 2 re - v
        });
        expect_elements(DistributedArray<R>(abs(x) + real(y) * imag(x)), [&](Index i) {
          return std::abs(value<T>(i)) + std::real(shifted(i)) * R(std::imag(value<T>(i)));
        });
      }
    });
  });
}

TEST(Expression, MixedTypes) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({1001}, 2);
    const auto f = filled<float>(world, layout);
    const auto d = filled<double>(world, layout);
    const auto c = filled<std::complex<float>>(world, layout);
    expect_elements(Double(f / 3 + d / 3), [](Index i) {
      return static_cast<double>(static_cast<float>(value<float>(i) / 3)) + value<double>(i) / 3;
    });
    expect_elements(ComplexDouble(c * d), [](Index i) {
      return std::complex<double>(value<std::complex<float>>(i)) * value<double>(i);
    });
    expect_elements(ComplexFloat(f * std::complex<double>(0, 1)),
                    [](Index i) { return std::complex<float>(0, value<float>(i)); });
    // 0.1 does not make a float array's sum double: it is rounded to float first.
    expect_elements(Float(f * 0.1), [](Index i) { return value<float>(i) * 0.1F; });
    Float narrow = d;
    expect_elements(narrow, [](Index i) { return value<float>(i); });
    narrow += d * 2;
    expect_elements(narrow, [](Index i) { return 3 * value<float>(i); });
  });
}

TEST(Expression, TheDestinationMayBeAnOperand) {
  comm::run_threads(3, [](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const Layout layout = Layout::split({5000}, 3);
      const auto x = filled<T>(world, layout);
      auto y = x;
      const T* memory = y.local().data();
      y = T(2) * x - y * T(3);
      y += x;
      y -= y * T(2);
      y *= T(4);
      y /= T(2);
      EXPECT_EQ(y.local().data(), memory);
      // 2 - 3 = -1, + 1 = 0, and nothing is left of it
      EXPECT_EQ(norm(y, norm_max), 0);
      y = x;
      y += y * y;
      conjugate(y);
      expect_elements(y, [](Index i) {
        const T v = value<T>(i) + value<T>(i) * value<T>(i);
        if constexpr (is_complex<T>)
          return std::conj(v);
        else
          return v;
      });
    });
  });
}

TEST(Expression, LargeResultsGoPastTheCaches) {
  comm::run_threads(1, [](comm::Communicator& world) {
    const Index n = static_cast<Index>(expressions::streaming_bytes / sizeof(double)) + 777;
    const Layout layout = Layout::split({n}, 1);
    const auto x = filled<double>(world, layout);
    Double y(world, layout);
    y = x + x;
    expect_elements(y, [](Index i) { return 2 * value<double>(i); });
    // Memory that is not aligned for it, or only for a part of a line; and a destination that is read.
    const auto count = static_cast<std::size_t>(n);
    std::vector<double> memory(count + 3);
    for (std::size_t first = 0; first < 3; ++first) {
      auto view = Double::adopt(world, layout, std::span(memory).subspan(first, count));
      view = x + x;
      expect_elements(view, [](Index i) { return 2 * value<double>(i); });
      view = x * 3;
      view = view + x;
      expect_elements(view, [](Index i) { return 4 * value<double>(i); });
    }
    ComplexDouble complex = x * std::complex<double>(1, 2);
    expect_elements(complex, [](Index i) { return value<double>(i) * std::complex<double>(1, 2); });
  });
}

TEST(Expression, NothingPoisonsAResultThatIsNotRead) {
  comm::run_threads(2, [](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const Layout layout = Layout::split({1000}, 2);
      const auto x = filled<T>(world, layout);
      DistributedArray<T> y(world, layout, uninitialised);
      y.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
      y = x * T(2);
      expect_elements(y, [](Index i) { return T(2) * value<T>(i); });
      y.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
      axpby(T(2), x, T(0), y);
      expect_elements(y, [](Index i) { return T(2) * value<T>(i); });
    });
  });
}

TEST(Expression, LayoutsMustBeEqual) {
  on_ranks([](comm::Communicator& world) {
    const Double a(world, Layout::split({4}, world.size()));
    const Double b(world, Layout::replicated({4}, world.size()));
    expect_error(ErrorCode::invalid_argument, "replicated on", [&] { Double c = a + b; });
    expect_error(ErrorCode::invalid_argument,
                 "element-wise algebra: the layouts differ: 4 split along axis 0",
                 [&] { Double c = 2.0 * a * (b - 1.0); });
    Double c = a;
    expect_error(ErrorCode::invalid_argument, "layouts differ", [&] { c += b; });
    expect_error(ErrorCode::invalid_argument, "layouts differ", [&] { axpby(1.0, a, 1.0, c = b); });
  });
}

TEST(Expression, EmptyArrays) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      for (const Index n : {0, 1, world.size() - 1}) {
        const auto x = filled<T>(world, Layout::split({n}, world.size()));
        DistributedArray<T> y = x + x * T(2);
        y -= x;
        expect_elements(y, [](Index i) { return T(2) * value<T>(i); });
      }
    });
  });
}

}  // namespace
}  // namespace shoal::array
