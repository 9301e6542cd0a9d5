// SPDX-License-Identifier: Apache-2.0
// The transform of an array of one axis that is split over the ranks: of length rows times columns, seen as a
// matrix. Columns are transformed, multiplied by roots of unity, and then the rows, whose transposition is
// the result (D. H. Bailey, FFTs in external or hierarchical memory, 1990). With j = j1 columns + j2 and
// k = k1 + rows k2: exp(-2 pi i j k / n) = exp(-2 pi i (j1 k1 / rows + j2 k1 / n + j2 k2 / columns)).
#include <cmath>
#include <numbers>
#include <numeric>

#include "linop/fft_steps.h"
#include "linop/scalar_math.h"

namespace shoal::linop {
namespace {

using array::Rank;
using array::Real;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Below this the gathered transform takes no longer than three exchanges.
constexpr Index shortest_split_line = 4096;
constexpr Index fewest_columns = 16;

/// exp(-2 pi i e / n) for any 0 <= e < n, from two tables of about sqrt(n).
class Roots {
 public:
  explicit Roots(Index n) {
    while (Index{1} << (2 * bits_) < n) ++bits_;
    const Index low = Index{1} << bits_;
    for (Index e = 0; e < low; ++e) low_.push_back(root(e, n));
    for (Index e = 0; e < n; e += low) high_.push_back(root(e, n));
  }
  std::complex<double> operator()(Index e) const {
    return times(high_[at(e >> bits_)], low_[at(e & ((Index{1} << bits_) - 1))]);
  }

 private:
  static std::complex<double> root(Index e, Index n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(e) / static_cast<double>(n);
    return {std::cos(angle), -std::sin(angle)};
  }
  Index bits_ = 0;
  std::vector<std::complex<double>> low_, high_;
};

// [rows, own columns] times exp(-2 pi i row column / n), with a factor.
template <class R>
class RootsStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  RootsStep(Index n, const array::Block& block, bool scales)
      : FftStep<R>(bytes_of<C>(block.size()), bytes_of<C>(block.size())),
        roots_(n),
        block_(block),
        scales_(scales) {}
  void forward(const void* in, void* out, SpectrumScale<R> scale) override { run(in, out, scale, false); }
  void backward(const void* in, void* out, SpectrumScale<R> scale) override { run(in, out, scale, true); }

 private:
  void run(const void* in, void* out, SpectrumScale<R> scale, bool conjugated) const {
    const C* x = static_cast<const C*>(in);
    C* y = static_cast<C*>(out);
    const double factor = scales_ ? static_cast<double>(scale.inner) : 1;
    for (Index row = 0; row < block_.extent[0]; ++row)
      for (Index c = 0; c < block_.extent[1]; ++c) {
        const std::complex<double> root = roots_(row * (block_.begin[1] + c)) * factor;
        *y++ = times(*x++, C(conjugated ? std::conj(root) : root));
      }
  }
  Roots roots_;
  array::Block block_;
  bool scales_;
};

// Rows [own, columns] are transformed and transposed to [kept, own].
template <class R>
class RowsStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  RowsStep(Index own, Index columns, Index kept)
      : FftStep<R>(bytes_of<C>(own * columns), bytes_of<C>(kept * own)),
        own_(own),
        columns_(columns),
        kept_(kept),
        tile_(at(columns * tile_rows)) {
    for (const Index rows : {tile_rows, own % tile_rows}) {
      there_.push_back(FftPlan<R>::complex_forward({{columns, 1, rows}}, {{rows, columns, 1}}));
      back_.push_back(FftPlan<R>::complex_backward({{columns, rows, 1}}, {{rows, 1, columns}}));
    }
  }
  void forward(const void* in, void* out, SpectrumScale<R>) override {
    for (Index row = 0; row < own_; row += tile_rows) {
      const Index rows = std::min(tile_rows, own_ - row);
      plan(there_, rows).run(static_cast<const C*>(in) + row * columns_, tile_.data());
      C* to = static_cast<C*>(out) + row;
      for (Index k = 0; k < kept_; ++k, to += own_) std::copy_n(tile_.data() + k * rows, rows, to);
    }
  }
  void backward(const void* in, void* out, SpectrumScale<R>) override {
    for (Index row = 0; row < own_; row += tile_rows) {
      const Index rows = std::min(tile_rows, own_ - row);
      const C* from = static_cast<const C*>(in) + row;
      for (Index k = 0; k < kept_; ++k, from += own_) std::copy_n(from, rows, tile_.data() + k * rows);
      std::fill_n(tile_.data() + kept_ * rows, (columns_ - kept_) * rows, C(0));
      plan(back_, rows).run(tile_.data(), static_cast<C*>(out) + row * columns_);
    }
  }

 private:
  static constexpr Index tile_rows = 8;
  static const FftPlan<R>& plan(const std::vector<FftPlan<R>>& plans, Index rows) {
    return plans[rows == tile_rows ? 0 : 1];
  }
  Index own_, columns_, kept_;
  CacheBuffer<C> tile_;
  std::vector<FftPlan<R>> there_, back_;
};

// Reals as complex numbers, and the real part back.
template <class R>
class EmbeddingStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  explicit EmbeddingStep(Index size) : FftStep<R>(bytes_of<R>(size), bytes_of<C>(size)), size_(size) {}
  void forward(const void* in, void* out, SpectrumScale<R>) override {
    std::copy_n(static_cast<const R*>(in), size_, static_cast<C*>(out));
  }
  void backward(const void* in, void* out, SpectrumScale<R>) override {
    const C* from = static_cast<const C*>(in);
    std::transform(from, from + size_, static_cast<R*>(out), [](const C& z) { return z.real(); });
  }

 private:
  Index size_;
};

// The first elements of this rank's part, with the factors of a halved spectrum of n.
template <class R>
class HalfStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  HalfStep(Index part, Index kept, Index begin, Index n)
      : FftStep<R>(bytes_of<C>(part), bytes_of<C>(kept)), part_(part), kept_(kept), begin_(begin), n_(n) {}
  void forward(const void* in, void* out, SpectrumScale<R> scale) override {
    scaled(static_cast<const C*>(in), static_cast<C*>(out), scale);
  }
  void backward(const void* in, void* out, SpectrumScale<R> scale) override {
    scaled(static_cast<const C*>(in), static_cast<C*>(out), scale);
    std::fill_n(static_cast<C*>(out) + kept_, part_ - kept_, C(0));
  }

 private:
  void scaled(const C* from, C* to, SpectrumScale<R> scale) const {
    for (Index i = 0; i < kept_; ++i)
      to[i] = from[i] * (begin_ + i == 0 || 2 * (begin_ + i) == n_ ? scale.edge : scale.inner);
  }
  Index part_, kept_, begin_, n_;
};

// Every other element negated: a shift of the other side by half of an even length.
template <class R>
class SignStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  SignStep(Index size, bool first_negative)
      : FftStep<R>(bytes_of<C>(size), bytes_of<C>(size)), size_(size), first_negative_(first_negative) {}
  void forward(const void* in, void* out, SpectrumScale<R>) override {
    for (Index i = 0; i < size_; ++i) {
      const C value = static_cast<const C*>(in)[i];
      static_cast<C*>(out)[i] = (i % 2 == 1) != first_negative_ ? -value : value;
    }
  }
  void backward(const void* in, void* out, SpectrumScale<R> scale) override { forward(in, out, scale); }

 private:
  Index size_;
  bool first_negative_;
};

Layout times_extents(std::vector<Index> rows, Index columns) {
  Index n = 0;
  for (Index& part : rows) n += part *= columns;
  return Layout::split_unevenly({n}, std::move(rows));
}

// The parts in whole rows, or none where they are not.
std::optional<std::vector<Index>> whole_rows(std::span<const Index> parts, Index columns) {
  std::vector<Index> rows;
  for (const Index part : parts) {
    if (part % columns != 0) return std::nullopt;
    rows.push_back(part / columns);
  }
  return rows;
}

// A line's parts as rows of a matrix; and the line whose parts are whole rows.
struct RowParts {
  std::vector<Index> rows;
  Layout line;
  static RowParts of(const Layout& line, Index rows, Index columns) {
    if (line.size() == rows * columns)
      if (auto whole = whole_rows(line.extents(0), columns)) return {std::move(*whole), line};
    std::vector<Index> balanced = array::balanced_extents(rows, line.ranks());
    return {balanced, times_extents(balanced, columns)};
  }
};

}  // namespace

std::optional<LineFactors> line_factors(const Layout& domain, const Layout& range) {
  const Index n = domain.size();
  if (n < shortest_split_line) return std::nullopt;
  const Index fewest = std::max<Index>(domain.ranks(), fewest_columns);
  std::optional<LineFactors> best;
  double best_cost = 0;
  for (Index a = fewest; a * a <= n; ++a)
    if (n % a == 0)
      for (const LineFactors f : {LineFactors{a, n / a}, LineFactors{n / a, a}}) {
        // A realignment is an exchange more; else the squarer the better.
        const double cost = (whole_rows(domain.extents(0), f.columns) ? 0 : 100) +
                            (whole_rows(range.extents(0), f.rows) ? 0 : 100) +
                            std::abs(std::log(static_cast<double>(f.rows) / static_cast<double>(f.columns)));
        if (!best || cost < best_cost) {
          best = f;
          best_cost = cost;
        }
      }
  return best;
}

template <class D>
FftSteps<Real<D>> line_steps(const comm::Communicator& communicator, const Layout& domain,
                             const Layout& range, LineFactors f, bool shift_before, bool shift_after) {
  using R = Real<D>;
  using C = std::complex<R>;
  constexpr bool halved = !array::is_complex<D>;
  const Index n = domain.size(), kept = halved ? f.columns / 2 + 1 : f.columns;
  const Rank me = communicator.rank();
  const int ranks = communicator.size();
  FftSteps<R> steps;
  const auto move = [&](const Layout& from, const Layout& to) {
    if (!(from == to)) steps.push_back(std::make_unique<RedistributionStep<C>>(communicator, from, to));
  };
  const auto negate = [&](const Layout& line, Index origin) {
    steps.push_back(
        std::make_unique<SignStep<R>>(line.local_size(me), (line.block(me).begin[0] - origin) % 2 != 0));
  };

  if constexpr (halved) steps.push_back(std::make_unique<EmbeddingStep<R>>(domain.local_size(me)));
  if (shift_after) negate(domain, 0);
  const RowParts in = RowParts::of(domain, f.rows, f.columns);
  move(domain, in.line);
  const Layout by_rows = Layout::split_unevenly({f.rows, f.columns}, in.rows, 0);
  const Layout by_columns = Layout::split({f.rows, f.columns}, ranks, 1);
  move(by_rows, by_columns);
  const array::Block columns = by_columns.block(me);
  steps.push_back(
      std::make_unique<TransformStep<C>>(columns.extent, columns.extent, std::vector<int>{0}, -1, false));
  steps.push_back(std::make_unique<RootsStep<R>>(n, columns, !halved));
  const Layout by_rows_again = Layout::split({f.rows, f.columns}, ranks, 0);
  move(by_columns, by_rows_again);
  steps.push_back(std::make_unique<RowsStep<R>>(by_rows_again.block(me).extent[0], f.columns, kept));
  const Layout transposed = Layout::split({kept, f.rows}, ranks, 1);
  // The range with what is beyond it behind the last part.
  std::vector<Index> parts(range.extents(0).begin(), range.extents(0).end());
  parts.back() += kept * f.rows - range.size();
  const Layout wide = Layout::split_unevenly({kept * f.rows}, parts);
  const RowParts out = RowParts::of(wide, kept, f.rows);
  move(transposed, Layout::split_unevenly({kept, f.rows}, out.rows, 0));
  move(out.line, wide);
  if constexpr (halved)
    steps.push_back(std::make_unique<HalfStep<R>>(wide.local_size(me), range.local_size(me),
                                                  range.block(me).begin[0], n));
  if (shift_before) negate(range, shift_after ? n / 2 : 0);
  return steps;
}

template FftSteps<float> line_steps<float>(const comm::Communicator&, const Layout&, const Layout&,
                                           LineFactors, bool, bool);
template FftSteps<double> line_steps<double>(const comm::Communicator&, const Layout&, const Layout&,
                                             LineFactors, bool, bool);
template FftSteps<float> line_steps<std::complex<float>>(const comm::Communicator&, const Layout&,
                                                         const Layout&, LineFactors, bool, bool);
template FftSteps<double> line_steps<std::complex<double>>(const comm::Communicator&, const Layout&,
                                                           const Layout&, LineFactors, bool, bool);

}  // namespace shoal::linop
