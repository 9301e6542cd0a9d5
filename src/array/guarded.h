// SPDX-License-Identifier: Apache-2.0
// Redistribution for callers who want trouble on one rank, such as too little memory, to be an error on all.
#pragma once

#include <functional>

#include "shoal/array/distributed_array.h"

namespace shoal::array {

/// Runs what a rank does alone before it communicates. comm::agree() makes an error of it everyone's.
using Guard = std::function<void(const std::function<void()>&)>;

template <class T>
DistributedArray<T> redistribute(const DistributedArray<T>& x, const Layout& to, const Guard& guard);
template <class T>
DistributedArray<T> reshape(const DistributedArray<T>& x, const Layout& to, const Guard& guard);

/// Adds no communication: an error is this rank's own.
inline void unguarded(const std::function<void()>& local) { local(); }

}  // namespace shoal::array
