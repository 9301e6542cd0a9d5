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

bool is_defined(Reduction reduction, DType dtype) {
  enum class Kind { integer, real, complex, located };
  const Kind kind = [dtype] {
    switch (dtype) {
      case DType::float16:
      case DType::bfloat16:
      case DType::float32:
      case DType::float64: return Kind::real;
      case DType::complex64:
      case DType::complex128: return Kind::complex;
      case DType::located_int32:
      case DType::located_int64:
      case DType::located_float32:
      case DType::located_float64: return Kind::located;
      default: return Kind::integer;
    }
  }();
  switch (reduction) {
    case Reduction::sum:
    case Reduction::product: return kind != Kind::located;
    case Reduction::min:
    case Reduction::max: return kind != Kind::complex;
    case Reduction::logical_and:
    case Reduction::logical_or: return kind == Kind::integer;
  }
  return false;
}

bool is_collective(Pattern pattern) {
  return pattern != Pattern::send && pattern != Pattern::recv && pattern != Pattern::exchange;
}

bool has_root(Pattern pattern) {
  return pattern == Pattern::broadcast || pattern == Pattern::reduce || pattern == Pattern::gather ||
         pattern == Pattern::scatter;
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
