// The curve of a training's losses as an SVG picture. Pure.
#pragma once

#include <string>
#include <vector>

namespace phalanx::engine::train {

struct LossPoint {
  double step = 0;
  double loss = 0;
};
struct LossCurves {
  std::string title;
  std::vector<LossPoint> training, validation;  // by step
};

// Training as a thin line of what was measured and a thick one of its moving mean, validation as points; axes from the smallest to the
// largest value, linear. Readable on light and dark ground. Points that are not finite are left out, and counted below the title; of
// many points only as many are drawn as the eye can tell apart (each column's lowest and highest), so a picture has at most 200 KB.
std::string loss_picture(const LossCurves& curves);

// Round numbers that cover [low, high]: about `count` steps of 1, 2 or 5 times a power of ten. low < high, both finite.
std::vector<double> nice_ticks(double low, double high, int count);

}  // namespace phalanx::engine::train
