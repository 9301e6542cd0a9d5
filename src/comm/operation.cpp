// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/operation.h"

namespace shoal::comm {

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::product: return "product";
    case Reduction::min: return "min";
    case Reduction::max: return "max";
    case Reduction::logical_and: return "logical_and";
    case Reduction::logical_or: return "logical_or";
  }
  return "unknown";
}

const char* to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::barrier: return "barrier";
    case Pattern::broadcast: return "broadcast";
    case Pattern::reduce: return "reduce";
    case Pattern::all_reduce: return "all_reduce";
    case Pattern::reduce_scatter: return "reduce_scatter";
    case Pattern::gather: return "gather";
    case Pattern::all_gather: return "all_gather";
    case Pattern::scatter: return "scatter";
    case Pattern::all_to_all: return "all_to_all";
    case Pattern::scan: return "scan";
    case Pattern::exclusive_scan: return "exclusive_scan";
    case Pattern::exchange: return "exchange";
    case Pattern::send: return "send";
    case Pattern::recv: return "recv";
  }
  return "unknown";
}

}  // namespace shoal::comm
