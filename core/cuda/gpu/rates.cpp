#include "core/cuda/gpu/rates.h"

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/base/error.h"
#include "core/cuda/gpu/gpu.h"
#include "core/runtime/registry.h"

namespace tw::cuda {

namespace {

// By the rungs, products a ns and multiprocessor; then launch, memory, up- and download.
constexpr Rates kAmpere = {8, 40, 120, 180, 1000, 0, 0, 3000, 1500, 12, 12};
constexpr Rates kHopper = {20,   34.6, 116,  140, 1100, 2450,
                           2500, 4500, 2890, 11,  10};  // of H100s, docs/notes/gpu.md
constexpr Rates kBlackwell = {8, 40, 120, 180, 1500, 0, 0, 3000, 7000, 25, 25};
constexpr Rates kSmaller = {8, 40, 120, 180, 500, 0, 0, 3000, 700, 12, 12};  // 8.6, 8.9, 12.0

const Rates& guess_for(int capability) {
  switch (capability) {
    case 80: return kAmpere;
    case 90: return kHopper;
    case 100: return kBlackwell;
    default: return kSmaller;
  }
}

struct Named {
  const char *name, *help;
  double Rates::* field;
  double least, most;
};
constexpr Named kRows[] = {
#define TW_RATE(name, least, most, help) {#name, help, &Rates::name, least, most},
#include "core/cuda/gpu/rates.inc"
#undef TW_RATE
};

const Named& row_named(const std::string& name) {
  std::string known;
  for (const Named& row : kRows) {
    if (name == row.name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  fail(ErrorKind::value, "tune: a GPU has no rate '", name, "'; choose from ", known);
}

// Rates in force by GPU, null until they are asked for; those that were replaced may still be read.
constexpr std::size_t kMostGpus = 64;
std::array<std::atomic<const Rates*>, kMostGpus> in_force{};
std::mutex mutex;
std::vector<std::unique_ptr<const Rates>> made;
MeasuredRates measured_rates;

const Rates& rates_of(const Gpu& gpu) {
  auto& place = in_force[static_cast<std::size_t>(gpu.number)];
  if (const Rates* known = place.load(std::memory_order_acquire)) [[likely]]
    return *known;
  const std::string key = rates_key(gpu.number);
  const std::lock_guard lock(mutex);
  auto rates = std::make_unique<Rates>(guess_for(gpu.facts.capability));
  if (const auto found = measured_rates.find(key); found != measured_rates.end())
    for (const auto& [name, value] : found->second) (*rates).*row_named(name).field = value;
  place.store(rates.get(), std::memory_order_release);
  return *made.emplace_back(std::move(rates));
}

}  // namespace

const Rates& rates() { return rates_of(Gpu::current()); }

double waves_ns(double blocks, double products, double products_per_ns) {
  constexpr double kStartNs = 1000;  // of a wave: blocks begin, and end at different times
  const double waves = std::ceil(blocks / Gpu::current().facts.multiprocessors);
  return rates().launch_ns + waves * (kStartNs + products / products_per_ns);
}

std::vector<RateRow> rate_rows(int number) {
  const Gpu& gpu = Gpu::at(number);
  const Rates &now = rates_of(gpu), &guess = guess_for(gpu.facts.capability);
  std::vector<RateRow> rows;
  for (const Named& row : kRows)
    rows.push_back({row.name, row.help, now.*row.field, guess.*row.field, row.least, row.most});
  return rows;
}

std::string rates_key(int number) {
  int version = 0;
  check(driver().driver_version(&version), "the driver's version cannot be asked for");
  return Gpu::at(number).facts.name + ", driver " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

void set_measured_rates(const MeasuredRates& measured) {
  for (const auto& [key, values] : measured)
    for (const auto& [name, value] : values) {
      const Named& row = row_named(name);
      if (!(value >= row.least && value <= row.most))
        fail(ErrorKind::value, "tune: ", name, " must be in [", row.least, ", ", row.most,
             "], got ", value);
    }
  {
    const std::lock_guard lock(mutex);
    measured_rates = measured;
    for (auto& place : in_force) place.store(nullptr, std::memory_order_release);
  }
  forget_choices();
}

}  // namespace tw::cuda
