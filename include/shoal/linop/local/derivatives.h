// SPDX-License-Identifier: Apache-2.0
// Derivatives by finite differences along any axis of an array that lies on one rank, with the options, the
// stencils and the ends of shoal/linop/derivatives.h. Adjoints are the exact transposes. Each application
// reads and writes memory once.
//
// As blocks they see their own rank's elements alone: a derivative across ranks is shoal::linop's.
#pragma once

#include "shoal/linop/derivatives.h"
#include "shoal/linop/local_operator.h"

namespace shoal::linop::local {

/// Of an array of shape `dims` in C order; a negative axis counts from the end. (pylops: FirstDerivative.)
template <class T>
AnyLocalOperator<T> first_derivative(const Shape& dims, int axis = -1, const FirstDerivative& options = {});

/// (pylops: SecondDerivative.)
template <class T>
AnyLocalOperator<T> second_derivative(const Shape& dims, int axis = -1, const SecondDerivative& options = {});

/// The weighted sum of second derivatives, in one pass. (pylops: Laplacian.)
template <class T>
AnyLocalOperator<T> laplacian(const Shape& dims, const Laplacian& options = {});

/// The first derivatives along all axes, one after the other: [axes, dims]. (pylops: Gradient.)
template <class T>
AnyLocalOperator<T> gradient(const Shape& dims, const Gradient& options = {});

}  // namespace shoal::linop::local
