// SPDX-License-Identifier: Apache-2.0
// Products and conjugates for real and complex elements alike. The product of complex numbers is the plain
// formula: the one of std::complex recovers infinities by a call for each product, and does not vectorise.
#pragma once

#include <complex>

namespace shoal::linop {

template <class T>
constexpr T conj_of(T a) {
  return a;
}
template <class T>
constexpr std::complex<T> conj_of(std::complex<T> a) {
  return {a.real(), -a.imag()};
}

template <class T>
constexpr T times(T a, T b) {
  return a * b;
}
template <class T>
constexpr std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace shoal::linop
