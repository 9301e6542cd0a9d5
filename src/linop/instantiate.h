// SPDX-License-Identifier: Apache-2.0
// The element types that operators are compiled for.
#pragma once

#include <complex>

#define SHOAL_LINOP_ELEMENTS(apply) \
  apply(float) apply(double) apply(std::complex<float>) apply(std::complex<double>)

/// Domain and range of operators: one type, or a real and its complex.
#define SHOAL_LINOP_PAIRS(apply)                                                            \
  apply(float, float) apply(double, double) apply(std::complex<float>, std::complex<float>) \
      apply(std::complex<double>, std::complex<double>) apply(float, std::complex<float>)   \
          apply(double, std::complex<double>) apply(std::complex<float>, float)             \
              apply(std::complex<double>, double)
