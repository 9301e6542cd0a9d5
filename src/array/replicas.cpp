// SPDX-License-Identifier: Apache-2.0
// Whether replicas are still the same everywhere.
#include <cstring>

#include <fmt/format.h>

#include "array/local_parts.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

constexpr Index none = -1;

// By bits, so that a NaN equals itself and 0 does not equal -0.
template <class T>
Index first_difference(std::span<const T> a, std::span<const T> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return static_cast<Index>(i);
  return none;
}

}  // namespace

template <class T>
void check_replicas(const DistributedArray<T>& x) {
  comm::Communicator communicator = x.communicator();
  constexpr std::size_t piece = std::size_t{1} << 16;  // elements that are compared at a time
  std::vector<T> of_root;
  for_each_part(x.layout(), x.rank(), [&](const Layout& part, std::size_t first, std::size_t count) {
    if (!part.is_replicated()) return;
    Index different = none;
    for (std::size_t begin = 0; begin < count; begin += piece) {
      const std::span<const T> mine = x.local().subspan(first + begin, std::min(piece, count - begin));
      of_root.assign(mine.begin(), mine.end());
      communicator.broadcast(of_root, 0);
      if (different == none)
        if (const Index i = first_difference<T>(mine, of_root); i != none)
          different = static_cast<Index>(begin) + i;
    }
    const int ranks = communicator.size();
    const Rank who =
        communicator.all_reduce(different == none ? ranks : communicator.rank(), comm::Reduction::min);
    if (who == ranks) return;
    communicator.broadcast(std::span<Index>(&different, 1), who);
    fail(ErrorCode::invalid_argument,
         fmt::format("the replicas of {} differ: rank {} has another value at index {} than rank 0",
                     part.describe(), who, different));
  });
}

template void check_replicas(const DistributedArray<float>&);
template void check_replicas(const DistributedArray<double>&);
template void check_replicas(const DistributedArray<std::complex<float>>&);
template void check_replicas(const DistributedArray<std::complex<double>>&);

}  // namespace shoal::array
