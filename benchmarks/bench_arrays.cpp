// SPDX-License-Identifier: Apache-2.0
// Algebra and reductions of arrays of 10^7 elements, in float and double: bound by memory alone.
#include <cmath>
#include <string>

#include "measure.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace {

using namespace shoal;
using array::DistributedArray, array::Index, array::Layout;

constexpr Index elements = 10'000'000;

void expect(bool right, const std::string& name) {
  if (!right) fail(ErrorCode::numeric, name + ": the result is wrong");
}

// Small integers: the sum of their squares is 14 for each four.
template <class T>
DistributedArray<T> counted(const comm::Communicator& communicator) {
  const Layout layout = Layout::split({elements}, communicator.size());
  DistributedArray<T> x(communicator, layout);
  const Index first = layout.block(communicator.rank()).begin[0];
  for (std::size_t i = 0; i < x.local().size(); ++i)
    x[i] = static_cast<T>((first + static_cast<Index>(i)) % 4);
  return x;
}
constexpr double squares = elements / 4 * 14;

// Whether y is `factor` times x, by its last element.
template <class T>
bool is_multiple(const DistributedArray<T>& y, T factor, const DistributedArray<T>& x) {
  return y.local().empty() || y.local().back() == factor * x.local().back();
}

template <class T>
void algebra(bench::Bench& bench, const std::string& type) {
  constexpr double bytes = 3.0 * elements * sizeof(T);
  const DistributedArray<T> x = counted<T>(bench.communicator);
  DistributedArray<T> y = x, z = x;
  if (const std::string name = "add " + type; bench.wanted(name)) {
    bench.memory_case(name, bytes, [&] { z = x + y; });
    expect(is_multiple(z, T(2), x), name);
  }
  if (const std::string name = "axpy " + type; bench.wanted(name)) {
    T factor = 1;  // and -1 in turn
    bench.memory_case(name, bytes, [&] {
      y += factor * x;
      factor = -factor;
    });
    expect(is_multiple(y, factor < 0 ? T(2) : T(1), x), name);
  }
}

template <class T>
void reductions(bench::Bench& bench, const std::string& type) {
  constexpr double bytes = 1.0 * elements * sizeof(T);
  const DistributedArray<T> x = counted<T>(bench.communicator);
  const DistributedArray<T> y = x;
  if (const std::string name = "dot " + type; bench.wanted(name)) {
    double result = 0;
    bench.memory_case(name, 2 * bytes, [&] { result = double{dot(x, y)}; });
    expect(std::abs(result - squares) < 1e-5 * squares, name);
  }
  if (const std::string name = "norm " + type; bench.wanted(name)) {
    double result = 0;
    bench.memory_case(name, bytes, [&] { result = double{norm(x)}; });
    expect(std::abs(result * result - squares) < 1e-5 * squares, name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, std::size_t{16} << 20, [](bench::Bench& bench) {
    algebra<float>(bench, "float");
    algebra<double>(bench, "double");
    reductions<float>(bench, "float");
    reductions<double>(bench, "double");
  });
}
