// SPDX-License-Identifier: Apache-2.0
// Computing expressions: the end of distributed_array.h.
//
// Elements are computed in blocks of fixed length into memory on the stack, and moved from there to the
// destination. A loop of fixed length over memory of its own is what compilers vectorise also at -O2 and
// without proof that arrays do not overlap; and the move can go past the caches, which saves reading what a
// large result overwrites.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>

#include "shoal/array/distributed_array.h"

namespace shoal::array {
namespace expressions {

inline constexpr std::size_t block_bytes = 512;

/// memcpy past the caches where the memory is aligned for it; end_streaming() makes the stores visible in
/// order.
void stream(void* to, const void* from, std::size_t bytes);
void end_streaming();
/// Results of at least so many bytes are better written past the caches.
inline constexpr std::size_t streaming_bytes = std::size_t{4} << 20;

template <class T, class Element>
void compute(T* out, std::size_t count, bool streaming, const Element& element) {
  constexpr std::size_t block = block_bytes / sizeof(T);
  alignas(64) T values[block];
  std::size_t begin = 0;
  for (; begin + block <= count; begin += block) {
    for (std::size_t i = 0; i < block; ++i) values[i] = element(begin + i);
    if (streaming)
      stream(out + begin, values, block_bytes);
    else
      std::memcpy(static_cast<void*>(out + begin), values, block_bytes);
  }
  for (; begin < count; ++begin) out[begin] = element(begin);
  if (streaming) end_streaming();
}

/// out = a x + b y by kernels for the processor at hand, with the same rounding as element by element. A and
/// B are T or its real type.
template <class A, class B, class T>
void linear(A a, const T* x, B b, const T* y, T* out, std::size_t n, bool streaming);

/// An operand that is an array's elements times a factor.
template <class F, class T>
struct Term {
  F factor;
  const T* x;
};
template <class T>
Term<Real<T>, T> term(const Elements<T>& e) {
  return {Real<T>(1), e.data()};
}
template <class T>
Term<Real<T>, T> term(const Unary<Negate, Elements<T>>& e) {
  return {Real<T>(-1), e.operand().data()};
}
template <class F, class A, class T>
Term<F, T> term(const Binary<Multiply, Constant<F, A>, Elements<T>>& e) {
  return {e.left().at(0), e.right().data()};
}
template <class F, class A, class T>
Term<F, T> term(const Binary<Multiply, Elements<T>, Constant<F, A>>& e) {
  return {e.right().at(0), e.left().data()};
}

/// A sum or a difference of two such operands, all of type T: what iterative methods consist of.
template <class E, class T>
concept IsLinear = requires(const E& e) {
  requires std::same_as<std::remove_cvref_t<decltype(*term(e.left()).x)>, T>;
  requires std::same_as<std::remove_cvref_t<decltype(*term(e.right()).x)>, T>;
  requires E::is_sum;
};

/// out = expression, of which `out` may be an operand: an element is read before it is written, and no other
/// element's value depends on it.
template <class T, class E>
void assign(std::span<T> out, const E& e) {
  const bool streaming = out.size_bytes() >= streaming_bytes && !e.reads(out.data());
  if constexpr (IsLinear<E, T>) {
    const auto a = term(e.left());
    const auto b = term(e.right());
    linear(a.factor, a.x, E::subtracts ? -b.factor : b.factor, b.x, out.data(), out.size(), streaming);
  } else {
    compute(out.data(), out.size(), streaming, [e](std::size_t i) { return converted<T>(e.at(i)); });
  }
}

}  // namespace expressions

template <class T>
template <class E>
requires FitsInto<typename E::value_type, T> DistributedArray<T>::DistributedArray(
    const Expression<E>& expression)
    : DistributedArray(expressions::node(expression.self()).prototype().communicator(),
                       expressions::node(expression.self()).layout(), uninitialised) {
  const auto& e = expressions::node(expression.self());
  share_mask(e.prototype());
  expressions::assign(local(), e);
}

template <class T>
template <class E>
requires FitsInto<typename E::value_type, T> DistributedArray<T>
&DistributedArray<T>::operator=(const Expression<E>& expression) {
  const auto& e = expressions::node(expression.self());
  if (layout_ == e.layout())
    expressions::assign(local(), e);
  else
    *this = DistributedArray(expression);
  return *this;
}

template <class T>
template <class E>
requires FitsInto<typename E::value_type, T> DistributedArray<T>
&DistributedArray<T>::operator+=(const Expression<E>& expression) {
  return *this = *this + expression.self();
}

template <class T>
template <class E>
requires FitsInto<typename E::value_type, T> DistributedArray<T>
&DistributedArray<T>::operator-=(const Expression<E>& expression) {
  return *this = *this - expression.self();
}

}  // namespace shoal::array
