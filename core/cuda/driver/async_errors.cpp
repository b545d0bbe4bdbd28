#include "core/cuda/driver/async_errors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cuda/gpu/gpu.h"
#include "core/memory/events.h"

namespace tw::cuda {

namespace {

constexpr char kRemedy[] = "TILEWRIGHT_CUDA_SYNC=1 waits for each launch and names the one";

// Equal launches in a row, as a loop makes them.
struct Run {
  std::string text;
  int times = 1;
};

std::string text_of(const Gpu& gpu, const LaunchLog::Launch& launch) {
  const Function kernel = launch.kernel.load(std::memory_order_relaxed);
  const std::string op = launch.op.load(std::memory_order_relaxed);
  const std::string line = launch.line.load(std::memory_order_relaxed);
  std::string text = op;
  if (!kernel)
    text = "a captured step";
  else if (op.empty())
    text = gpu.name_of(kernel);
  else
    text += " (kernel " + gpu.name_of(kernel) + ")";
  return line.empty() ? text : text + " at " + line;
}

std::string joined(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    if (!text.empty()) text += ", ";
    text += run.text;
    if (run.times > 1) text += " (" + std::to_string(run.times) + " times)";
  }
  return text;
}

}  // namespace

void LaunchLog::add(Function kernel, bool reports) {
  const std::uint64_t place = count();
  Launch& launch = latest_[place % kRemembered];
  launch.op.store(current_op(), std::memory_order_relaxed);
  launch.line.store(current_line(), std::memory_order_relaxed);
  launch.kernel.store(kernel, std::memory_order_relaxed);
  launch.reports.store(reports, std::memory_order_relaxed);
  count_.store(place + 1, std::memory_order_release);
}

void LaunchLog::end_well(std::uint64_t launches) {
  std::uint64_t known = ended_well();
  while (known < launches && !well_.compare_exchange_weak(known, launches)) {
  }
}

// Illegal address, time limit, failed assertion, and from the stack to the launch: what leaves a
// context unusable.
bool is_late(Result result) {
  return result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
}

std::string suspects() {
  const Gpu* const gpu = Gpu::entered();
  if (!gpu) return "";
  std::uint64_t count = 0;
  std::vector<Run> runs;
  gpu->each_stream([&](const GpuStream& stream) {
    const std::uint64_t first = stream.log.ended_well();
    const std::uint64_t asked = stream.log.count() - first;
    std::uint64_t told = 0;
    std::vector<Run> own;
    stream.log.each_since(first, [&](const LaunchLog::Launch& launch) {
      std::string text = text_of(*gpu, launch);
      ++told;
      if (!own.empty() && own.back().text == text)
        ++own.back().times;
      else
        own.push_back({std::move(text)});
    });
    if (told < asked) runs.push_back({std::to_string(asked - told) + " older ones"});
    runs.insert(runs.end(), own.begin(), own.end());
    count += asked;
  });
  constexpr char kEnd[] = "; the GPU takes no more work from this process";
  if (count == 0) return std::string("; no launch of tilewright was in flight") + kEnd;
  if (count == 1) return "; the launch that failed: " + joined(runs) + kEnd;
  return "; kernels fail after the call that launches them: it was one of the " +
         std::to_string(count) +
         " launches since all was last known to be well, oldest first: " + joined(runs) + "; " +
         kRemedy + kEnd;
}

std::string reporting_lines(const Gpu& gpu) {
  std::vector<std::string> lines;
  gpu.each_stream([&](const GpuStream& stream) {
    stream.log.each_since(stream.log.checked(), [&](const LaunchLog::Launch& launch) {
      std::string line = launch.line.load(std::memory_order_relaxed);
      if (!launch.reports.load(std::memory_order_relaxed) || line.empty()) return;
      if (std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    });
  });
  if (lines.empty()) return "";
  if (lines.size() == 1) return "; asked for at " + lines[0];
  std::string text = "; asked for at one of ";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i ? ", " : "") + lines[i];
  return text + "; " + kRemedy;
}

}  // namespace tw::cuda
