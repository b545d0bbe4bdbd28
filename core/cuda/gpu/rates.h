// How fast a GPU is taken to be.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tw::cuda {

struct Rates {
#define TW_RATE(name, least, most, help) double name;
#include "core/cuda/gpu/rates.inc"
#undef TW_RATE
};
// Of this thread's GPU.
const Rates& rates();
// What so many blocks take that run a wave of multiprocessors at a time, each of so many products
// at a rate of products a ns.
double waves_ns(double blocks, double products, double products_per_ns);

struct RateRow {
  const char *name, *help;
  double value, guess, least, most;
};
// Of a GPU, in the order of rates.inc. A rate of 0 is of a rung that the GPU does not have.
std::vector<RateRow> rate_rows(int number);

// What was measured belongs to a GPU's name and driver: "NVIDIA H200, driver 13.0".
std::string rates_key(int number);
// By such keys: replaces all that was measured before; what is not named stays a guess. Opens no
// GPU. Raises ValueError for a name or value that is none, and changes nothing then.
using MeasuredRates = std::map<std::string, std::map<std::string, double>>;
void set_measured_rates(const MeasuredRates& measured);

}  // namespace tw::cuda
