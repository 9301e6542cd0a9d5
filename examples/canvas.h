// SPDX-License-Identifier: Apache-2.0
// Coloured dots, short texts, and a PNG file of them.
#pragma once

#include <string>
#include <vector>

namespace examples {

struct Colour {
  double red = 1, green = 1, blue = 1;
};
Colour mix(const Colour& a, const Colour& b, double share);

class Canvas {
 public:
  Canvas(int width, int height);
  int width() const { return width_; }
  int height() const { return height_; }

  /// Nothing outside the canvas.
  void mark(int column, int row, const Colour& colour, double share = 1);

  /// Of texts, in pixels.
  static constexpr int text_height = 14;
  static int text_width(const std::string& text);
  /// From (left, top) on; upwards: turned to the left, from (left, bottom) on up.
  void write(int left, int top, const std::string& text, const Colour& colour);
  void write_upwards(int left, int bottom, const std::string& text, const Colour& colour);

  /// Throws shoal::Error where the file cannot be written.
  void save(const std::string& path) const;

 private:
  int width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace examples
