// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace examples {
namespace {

constexpr int width = 960, height = 400, margin = 14;

struct Colour {
  double red = 1, green = 1, blue = 1;
};

Colour mix(const Colour& a, const Colour& b, double share) {
  const auto between = [&](double from, double to) { return from + share * (to - from); };
  return {between(a.red, b.red), between(a.green, b.green), between(a.blue, b.blue)};
}

constexpr std::array<Colour, 8> palette{{{0.12, 0.37, 0.62},
                                         {0.94, 0.56, 0.17},
                                         {0.35, 0.65, 0.35},
                                         {0.80, 0.31, 0.33},
                                         {0.55, 0.45, 0.70},
                                         {0.55, 0.40, 0.30},
                                         {0.85, 0.55, 0.75},
                                         {0.55, 0.55, 0.55}}};
constexpr Colour ink{0.25, 0.25, 0.25};

class Canvas {
 public:
  Canvas() : pixels_(static_cast<std::size_t>(width) * height) {}

  void mark(int column, int row, const Colour& colour, double share = 1) {
    if (column < 0 || column >= width || row < 0 || row >= height) return;
    Colour& pixel = pixels_[static_cast<std::size_t>(row) * width + static_cast<std::size_t>(column)];
    pixel = mix(pixel, colour, share);
  }

  void write(const std::string& path) const {
    std::vector<std::uint8_t> bytes;
    for (const Colour& pixel : pixels_)
      for (const double part : {pixel.red, pixel.green, pixel.blue})
        bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(part, 0.0, 1.0))));
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path.c_str(), 0, bytes.data(), 0, nullptr))
      shoal::fail(shoal::ErrorCode::io, fmt::format("cannot write the picture {}: {}", path, image.message));
  }

 private:
  std::vector<Colour> pixels_;
};

struct Frame {
  int left, top, width, height;
};

void draw_frame(Canvas& canvas, const Frame& f) {
  for (int x = f.left - 1; x <= f.left + f.width; ++x)
    for (const int y : {f.top - 1, f.top + f.height}) canvas.mark(x, y, ink, 0.5);
  for (int y = f.top; y < f.top + f.height; ++y)
    for (const int x : {f.left - 1, f.left + f.width}) canvas.mark(x, y, ink, 0.5);
}

Colour colour_of(const Image& image, double value, double low, double high) {
  if (image.colours == Colours::ranks) return palette[static_cast<std::size_t>(std::lround(value)) % 8];
  const double place = std::clamp((value - low) / (high - low), 0.0, 1.0);
  if (image.colours == Colours::grey) return mix({0, 0, 0}, {1, 1, 1}, place);
  const Colour end = place < 0.5 ? Colour{0.10, 0.25, 0.60} : Colour{0.70, 0.08, 0.12};
  return mix({1, 1, 1}, end, std::abs(2 * place - 1));
}

void draw(Canvas& canvas, const Frame& frame, const Image& image) {
  double low = image.low, high = image.high;
  if (low == high) {
    low = *std::ranges::min_element(image.values);
    high = *std::ranges::max_element(image.values);
    if (image.colours == Colours::diverging) high = std::max(-low, high), low = -high;
    if (low == high) high = low + 1;
  }
  const auto value = [&](int row, int column) {
    row = std::clamp(row, 0, image.rows - 1), column = std::clamp(column, 0, image.columns - 1);
    return image.values[static_cast<std::size_t>(row) * static_cast<std::size_t>(image.columns) +
                        static_cast<std::size_t>(column)];
  };
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x) {
      const double row = (y + 0.5) * image.rows / frame.height - 0.5;
      const double column = (x + 0.5) * image.columns / frame.width - 0.5;
      double v;
      if (image.colours == Colours::ranks) {
        v = value(static_cast<int>(std::lround(row)), static_cast<int>(std::lround(column)));
      } else {  // linear between the four around
        const int r = static_cast<int>(std::floor(row)), c = static_cast<int>(std::floor(column));
        v = std::lerp(std::lerp(value(r, c), value(r, c + 1), column - c),
                      std::lerp(value(r + 1, c), value(r + 1, c + 1), column - c), row - r);
      }
      canvas.mark(frame.left + x, frame.top + y, colour_of(image, v, low, high));
    }
}

// For each column of pixels, the part of the polyline above it and a little beside, about 2 pixels thick with
// soft edges.
void draw_line(Canvas& canvas, const Frame& frame, const std::vector<double>& line, double low, double high,
               const Colour& colour) {
  const auto place = [&](double x) {  // row of pixels, of a position in pixels from the left
    const double at = std::clamp(x / (frame.width - 1), 0.0, 1.0) * static_cast<double>(line.size() - 1);
    const std::size_t i = static_cast<std::size_t>(at), next = std::min(i + 1, line.size() - 1);
    const double v = std::lerp(line[i], line[next], at - static_cast<double>(i));
    return frame.top + 8 + (high - v) / (high - low) * (frame.height - 17);
  };
  for (int x = 0; x < frame.width; ++x) {
    double from = place(x), to = from;
    for (const double beside : {x - 0.9, x - 0.45, x + 0.45, x + 0.9}) {
      from = std::min(from, place(beside));
      to = std::max(to, place(beside));
    }
    for (int y = static_cast<int>(from) - 2; y <= static_cast<int>(to) + 2; ++y) {
      const double distance = std::max({0.0, from - y, y - to});
      canvas.mark(frame.left + x, y, colour, std::clamp(1.6 - distance, 0.0, 1.0));
    }
  }
}

void draw(Canvas& canvas, const Frame& frame, const Curves& curves) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto widen = [&](const std::vector<double>& line) {
    for (const double v : line) low = std::min(low, v), high = std::max(high, v);
  };
  widen(curves.reference);
  for (const auto& line : curves.lines) widen(line);
  if (!(low < high)) low -= 1, high += 1;
  if (low < 0 && high > 0) draw_line(canvas, frame, {0.0, 0.0}, low, high, {0.88, 0.88, 0.88});
  if (!curves.reference.empty()) draw_line(canvas, frame, curves.reference, low, high, {0.65, 0.65, 0.65});
  for (std::size_t i = 0; i < curves.lines.size(); ++i)
    draw_line(canvas, frame, curves.lines[i], low, high, palette[i % palette.size()]);
}

}  // namespace

void write_picture(const std::string& path, const std::vector<Panel>& panels) {
  Canvas canvas;
  const int count = static_cast<int>(panels.size());
  const int each = (width - margin * (count + 1)) / count;
  for (int i = 0; i < count; ++i) {
    const Frame frame{margin + i * (each + margin), margin, each, height - 2 * margin};
    std::visit([&](const auto& panel) { draw(canvas, frame, panel); }, panels[static_cast<std::size_t>(i)]);
    draw_frame(canvas, frame);
  }
  canvas.write(path);
}

std::vector<double> transposed(const std::vector<double>& values, int rows, int columns) {
  std::vector<double> result(values.size());
  const std::size_t r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < r; ++i)
    for (std::size_t j = 0; j < c; ++j) result[j * r + i] = values[i * c + j];
  return result;
}

}  // namespace examples
