// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "canvas.h"

namespace examples {
namespace {

constexpr int picture_width = 1280, picture_height = 460, margin = 16;
constexpr int text_line = Canvas::text_height + 6;
constexpr int axis_width = 64;  // of a vertical one

constexpr std::array<Colour, 8> palette{{{0.12, 0.37, 0.62},
                                         {0.94, 0.56, 0.17},
                                         {0.35, 0.65, 0.35},
                                         {0.80, 0.31, 0.33},
                                         {0.55, 0.45, 0.70},
                                         {0.55, 0.40, 0.30},
                                         {0.85, 0.55, 0.75},
                                         {0.55, 0.55, 0.55}}};
constexpr Colour ink{0.25, 0.25, 0.25};

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
  // In steps that the eye hardly sees, and files become much smaller.
  const double place = std::round(64 * std::clamp((value - low) / (high - low), 0.0, 1.0)) / 64;
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

struct Range {
  double low, high;
};
Range range_of(const Curves& curves) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto widen = [&](const std::vector<double>& values) {
    for (const double v : values) low = std::min(low, v), high = std::max(high, v);
  };
  widen(curves.reference);
  for (const auto& values : curves.lines) widen(values);
  return low < high ? Range{low, high} : Range{low - 1, high + 1};
}

void draw(Canvas& canvas, const Frame& frame, const Curves& curves) {
  const auto [low, high] = range_of(curves);
  if (low < 0 && high > 0) draw_line(canvas, frame, {0.0, 0.0}, low, high, {0.88, 0.88, 0.88});
  if (!curves.reference.empty()) draw_line(canvas, frame, curves.reference, low, high, {0.65, 0.65, 0.65});
  for (std::size_t i = 0; i < curves.lines.size(); ++i)
    draw_line(canvas, frame, curves.lines[i], low, high, palette[i % palette.size()]);

  // Their names above, in their colours.
  int left = frame.left;
  const auto name = [&](const std::string& text, const Colour& colour) {
    canvas.write(left, frame.top - text_line, text, colour);
    left += Canvas::text_width(text) + 18;
  };
  for (std::size_t i = 0; i < curves.names.size() && i < curves.lines.size(); ++i)
    name(curves.names[i], palette[i % palette.size()]);
  if (!curves.reference.empty()) name(curves.reference_name, {0.5, 0.5, 0.5});
}

// The axis that runs upwards or downwards, from its value at the top.
Axis vertical(const Image& image) { return image.down; }
Axis vertical(const Curves& curves) {
  const auto [low, high] = range_of(curves);
  return {curves.up, high, low};
}

std::string number(double value) { return fmt::format("{:.3g}", value); }

void write_around(Canvas& canvas, const Frame& f, const std::string& title, const Axis& down,
                  const Axis& right) {
  const auto middle = [](int begin, int length, const std::string& text) {
    return begin + (length - Canvas::text_width(text)) / 2;
  };
  canvas.write(middle(f.left, f.width, title), margin, title, {0, 0, 0});
  if (!right.label.empty()) {
    const int top = f.top + f.height + 6;
    const std::string last = number(right.last);
    canvas.write(f.left, top, number(right.first), ink);
    canvas.write(middle(f.left, f.width, right.label), top, right.label, ink);
    canvas.write(f.left + f.width - Canvas::text_width(last), top, last, ink);
  }
  if (!down.label.empty()) {
    const auto write_number = [&](double value, int top) {
      const std::string text = number(value);
      canvas.write(f.left - 6 - Canvas::text_width(text), top, text, ink);
    };
    write_number(down.first, f.top);
    write_number(down.last, f.top + f.height - Canvas::text_height);
    canvas.write_upwards(f.left - 24, f.top + (f.height + Canvas::text_width(down.label)) / 2, down.label,
                         ink);
  }
}

}  // namespace

void write_picture(const std::string& path, const std::vector<Panel>& panels) {
  Canvas canvas(picture_width, picture_height);
  const auto left_of = [](const Panel& panel) {
    return std::visit([](const auto& p) { return vertical(p).label.empty() ? 0 : axis_width; }, panel);
  };
  int left = margin, room = picture_width - margin;
  for (const Panel& panel : panels) room -= margin + left_of(panel);
  const int each = room / static_cast<int>(panels.size());
  for (const Panel& panel : panels) {
    left += left_of(panel);
    const Frame frame{left, margin + 2 * text_line, each, picture_height - 2 * margin - 3 * text_line};
    std::visit(
        [&](const auto& p) {
          draw(canvas, frame, p);
          draw_frame(canvas, frame);
          write_around(canvas, frame, p.title, vertical(p), p.right);
        },
        panel);
    left += each + margin;
  }
  canvas.save(path);
}

std::vector<double> transposed(const std::vector<double>& values, int rows, int columns) {
  std::vector<double> result(values.size());
  const std::size_t r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < r; ++i)
    for (std::size_t j = 0; j < c; ++j) result[j * r + i] = values[i * c + j];
  return result;
}

}  // namespace examples
