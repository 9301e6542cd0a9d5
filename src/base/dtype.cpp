// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/dtype.h"

namespace shoal {

static_assert(sizeof(Located<float>) == 16 && sizeof(Located<std::int32_t>) == 16);

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
    case DType::boolean: return 1;
    case DType::int16:
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::int32:
    case DType::uint32:
    case DType::float32: return 4;
    case DType::int64:
    case DType::uint64:
    case DType::float64:
    case DType::complex64: return 8;
    case DType::complex128:
    case DType::located_int32:
    case DType::located_int64:
    case DType::located_float32:
    case DType::located_float64: return 16;
  }
  return 0;
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::int8: return "int8";
    case DType::uint8: return "uint8";
    case DType::int16: return "int16";
    case DType::uint16: return "uint16";
    case DType::int32: return "int32";
    case DType::uint32: return "uint32";
    case DType::int64: return "int64";
    case DType::uint64: return "uint64";
    case DType::float16: return "float16";
    case DType::bfloat16: return "bfloat16";
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::complex64: return "complex64";
    case DType::complex128: return "complex128";
    case DType::boolean: return "bool";
    case DType::located_int32: return "located int32";
    case DType::located_int64: return "located int64";
    case DType::located_float32: return "located float32";
    case DType::located_float64: return "located float64";
  }
  return "unknown";
}

}  // namespace shoal
