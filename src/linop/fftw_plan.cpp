// SPDX-License-Identifier: Apache-2.0
#include "linop/fftw_plan.h"

#include <fftw3.h>

#include <algorithm>
#include <mutex>

#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

// Making and dropping plans is the only part of FFTW that threads must not do at the same time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

// FFTW's names for one precision.
template <class Real>
struct Fftw;
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  using Dim = fftw_iodim64;
  static constexpr auto plan_complex = fftw_plan_guru64_dft;
  static constexpr auto plan_r2c = fftw_plan_guru64_dft_r2c;
  static constexpr auto plan_c2r = fftw_plan_guru64_dft_c2r;
  static constexpr auto run_complex = fftw_execute_dft;
  static constexpr auto run_r2c = fftw_execute_dft_r2c;
  static constexpr auto run_c2r = fftw_execute_dft_c2r;
  static constexpr auto destroy = fftw_destroy_plan;
  static constexpr auto alignment_of = fftw_alignment_of;
  static constexpr auto allocate = fftw_alloc_complex;
  static constexpr auto release = fftw_free;
};
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  using Dim = fftwf_iodim64;
  static constexpr auto plan_complex = fftwf_plan_guru64_dft;
  static constexpr auto plan_r2c = fftwf_plan_guru64_dft_r2c;
  static constexpr auto plan_c2r = fftwf_plan_guru64_dft_c2r;
  static constexpr auto run_complex = fftwf_execute_dft;
  static constexpr auto run_r2c = fftwf_execute_dft_r2c;
  static constexpr auto run_c2r = fftwf_execute_dft_c2r;
  static constexpr auto destroy = fftwf_destroy_plan;
  static constexpr auto alignment_of = fftwf_alignment_of;
  static constexpr auto allocate = fftwf_alloc_complex;
  static constexpr auto release = fftwf_free;
};

}  // namespace

// A plan for aligned memory, and one for any.
template <class Real>
struct FftPlan<Real>::Handle {
  using Lib = Fftw<Real>;

  Handle(Kind kind, const std::vector<FftAxis>& axes, const std::vector<FftAxis>& batch) : kind_(kind) {
    empty = std::any_of(axes.begin(), axes.end(), [](const FftAxis& a) { return a.length == 0; }) ||
            std::any_of(batch.begin(), batch.end(), [](const FftAxis& a) { return a.length == 0; });
    if (empty) return;
    const std::lock_guard lock(planner());
    aligned = make(axes, batch, FFTW_ESTIMATE);
    any = make(axes, batch, FFTW_ESTIMATE | FFTW_UNALIGNED);
    if (!aligned || !any) {
      destroy_plans();
      fail(ErrorCode::unsupported, "FFTW has no plan for this transform");
    }
  }
  ~Handle() {
    const std::lock_guard lock(planner());
    destroy_plans();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  typename Lib::Plan plan_for(const void* in, const void* out) const {
    const auto is_aligned = [](const void* p) {
      return Lib::alignment_of(const_cast<Real*>(static_cast<const Real*>(p))) == 0;
    };
    return is_aligned(in) && is_aligned(out) ? aligned : any;
  }

  bool empty = false;
  typename Lib::Plan aligned = nullptr;
  typename Lib::Plan any = nullptr;

 private:
  // With FFTW_ESTIMATE the memory named while planning is not touched: its alignment is what matters.
  typename Lib::Plan make(const std::vector<FftAxis>& axes, const std::vector<FftAxis>& batch,
                          unsigned flags) const {
    const auto convert = [](const std::vector<FftAxis>& from) {
      std::vector<typename Lib::Dim> to;
      for (const FftAxis& a : from) {
        typename Lib::Dim d;
        d.n = a.length;
        d.is = a.in_stride;
        d.os = a.out_stride;
        to.push_back(d);
      }
      return to;
    };
    const auto dims = convert(axes), loops = convert(batch);
    const int rank = static_cast<int>(dims.size()), loop_rank = static_cast<int>(loops.size());
    const std::unique_ptr<typename Lib::Complex, decltype(Lib::release)> in(Lib::allocate(1), Lib::release),
        out(Lib::allocate(1), Lib::release);
    auto* real_in = reinterpret_cast<Real*>(in.get());
    auto* real_out = reinterpret_cast<Real*>(out.get());
    switch (kind_) {
      case Kind::forward:
      case Kind::backward:
        return Lib::plan_complex(rank, dims.data(), loop_rank, loops.data(), in.get(), out.get(),
                                 kind_ == Kind::forward ? FFTW_FORWARD : FFTW_BACKWARD,
                                 flags | FFTW_PRESERVE_INPUT);
      case Kind::real_forward:
        return Lib::plan_r2c(rank, dims.data(), loop_rank, loops.data(), real_in, out.get(),
                             flags | FFTW_PRESERVE_INPUT);
      case Kind::real_backward:
        return Lib::plan_c2r(rank, dims.data(), loop_rank, loops.data(), in.get(), real_out,
                             flags | (rank == 1 ? FFTW_PRESERVE_INPUT : FFTW_DESTROY_INPUT));
    }
    return nullptr;
  }
  void destroy_plans() {
    if (aligned) Lib::destroy(aligned);
    if (any) Lib::destroy(any);
  }
  Kind kind_;
};

template <class Real>
FftPlan<Real>::FftPlan(Kind kind, std::vector<FftAxis> axes, std::vector<FftAxis> batch)
    : handle_(std::make_shared<const Handle>(kind, axes, batch)) {}

template <class Real>
FftPlan<Real> FftPlan<Real>::complex_forward(std::vector<FftAxis> axes, std::vector<FftAxis> batch) {
  return {Kind::forward, std::move(axes), std::move(batch)};
}
template <class Real>
FftPlan<Real> FftPlan<Real>::complex_backward(std::vector<FftAxis> axes, std::vector<FftAxis> batch) {
  return {Kind::backward, std::move(axes), std::move(batch)};
}
template <class Real>
FftPlan<Real> FftPlan<Real>::real_forward(std::vector<FftAxis> axes, std::vector<FftAxis> batch) {
  return {Kind::real_forward, std::move(axes), std::move(batch)};
}
template <class Real>
FftPlan<Real> FftPlan<Real>::real_backward(std::vector<FftAxis> axes, std::vector<FftAxis> batch) {
  return {Kind::real_backward, std::move(axes), std::move(batch)};
}

// FFTW's types are layout-compatible with std::complex by its documentation; inputs are not written to
// (FFTW_PRESERVE_INPUT), though its calls take them without const.
template <class Real>
void FftPlan<Real>::run(const Complex* in, Complex* out) const {
  using C = typename Fftw<Real>::Complex;
  if (handle_->empty) return;
  Fftw<Real>::run_complex(handle_->plan_for(in, out), reinterpret_cast<C*>(const_cast<Complex*>(in)),
                          reinterpret_cast<C*>(out));
}
template <class Real>
void FftPlan<Real>::run(const Real* in, Complex* out) const {
  using C = typename Fftw<Real>::Complex;
  if (handle_->empty) return;
  Fftw<Real>::run_r2c(handle_->plan_for(in, out), const_cast<Real*>(in), reinterpret_cast<C*>(out));
}
template <class Real>
void FftPlan<Real>::run(Complex* in, Real* out) const {
  using C = typename Fftw<Real>::Complex;
  if (handle_->empty) return;
  Fftw<Real>::run_c2r(handle_->plan_for(in, out), reinterpret_cast<C*>(in), out);
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace shoal::linop
