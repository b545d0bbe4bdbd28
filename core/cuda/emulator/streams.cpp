// Streams and events of the stand-in driver. Work is done as late as a program can notice: when it
// waits for its stream or for an event behind it, and then no other stream moves but as far as a
// wait for an event says. So what forgot to wait finds values of before.
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

#include "state.h"

namespace emulated {

struct Moment;
struct Item {
  Work work;
  Kind kind = Kind::other;
  std::shared_ptr<Moment> awaited = nullptr;  // that other streams must come to first
  int kernels = 0;                            // that ran beside it
};
struct Stream {
  std::deque<Item> waiting;
  std::vector<Work>* captured = nullptr;
  Result fault = kSuccess;
  int priority = 0;
};

// One recording of an event.
struct Moment {
  Stream* stream;
  bool done = false;
  int asked = 0;
  std::chrono::steady_clock::time_point time{};
};

namespace {

struct Event {
  std::shared_ptr<Moment> moment;  // the latest; none before the first
  bool timed;
};

std::vector<Stream*> streams;

// The driver's own streams have small numbers for handles, all of them here one stream.
Stream& stream_of(void* handle) {
  static auto* const legacy = streams.emplace_back(new Stream);
  return reinterpret_cast<std::uintptr_t>(handle) <= 2 ? *legacy : *static_cast<Stream*>(handle);
}

void step(Stream& stream);

// Lets other streams go on to their next copy, or until they wait.
void go_to_copies(const Stream& running) {
  for (Stream* stream : streams)
    while (stream != &running && !stream->waiting.empty()) {
      const Item& next = stream->waiting.front();
      if (next.kind != Kind::other || (next.awaited && !next.awaited->done)) break;
      step(*stream);
    }
}

// A kernel that has run was as long as half a copy.
void end_copies(const Stream& running) {
  constexpr int kKernelsOfCopy = 2;
  for (Stream* stream : streams)
    if (stream != &running && !stream->waiting.empty()) {
      Item& next = stream->waiting.front();
      if (next.kind == Kind::copy && ++next.kernels >= kKernelsOfCopy) step(*stream);
    }
  go_to_copies(running);
}

// The first of a stream's work.
void step(Stream& stream) {
  static const bool beside = setting("TW_EMULATED_BESIDE", 0) != 0;
  const Item item = std::move(stream.waiting.front());
  stream.waiting.pop_front();
  const bool is_kernel = beside && item.kind == Kind::kernel;
  if (is_kernel) go_to_copies(stream);
  const Work& work = item.work;
  const Result result = lost ? lost : stream.fault ? stream.fault : work();
  if (!stream.fault) stream.fault = result;
  if (result == kIllegalAddress) lost = result;
  if (is_kernel) end_copies(stream);
}

Result reach(Moment& moment) {
  const Opened opened;
  while (!moment.done && !moment.stream->waiting.empty()) step(*moment.stream);
  return lost ? lost : moment.stream->fault;
}

// A program that asks again and again is answered in the end.
Result ask(int& asked, bool done) { return done || ++asked > 2 ? kSuccess : kNotReady; }

Result finish(Stream& stream) {
  if (!stream.waiting.empty()) {
    const Opened opened;
    while (!stream.waiting.empty()) step(stream);
  }
  return lost ? lost : stream.fault;
}

Work move_bytes(Address to, const void* from, std::size_t bytes) {
  return [=] {
    std::memmove(reinterpret_cast<void*>(to), from, bytes);
    return kSuccess;
  };
}

}  // namespace

void enqueue(void* handle, Work work, Kind kind) {
  Stream& stream = stream_of(handle);
  if (stream.captured)
    stream.captured->push_back(std::move(work));
  else
    stream.waiting.push_back({std::move(work), kind});
}
std::vector<Work>*& captured_work(void* stream) { return stream_of(stream).captured; }
Result finish(void* handle) {
  Stream& stream = stream_of(handle);
  return stream.captured ? kNotInCapture : finish(stream);
}
Result finish_all() {
  Result result = kSuccess;
  for (Stream* stream : streams)
    if (const Result own = finish(*stream)) result = own;
  return result;
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, kSuccess;
}
Result cuStreamCreateWithPriority(void** stream, unsigned, int priority) {
  const std::lock_guard lock(mutex);
  streams.push_back(new Stream);
  streams.back()->priority = priority;
  *stream = streams.back();
  return kSuccess;
}
// Its work is still done, by whoever waits for all.
Result cuStreamDestroy_v2(void*) { return kSuccess; }
Result cuStreamSynchronize(void* stream) {
  const std::lock_guard lock(mutex);
  return finish(stream);
}
Result cuStreamQuery(void* handle) {
  const std::lock_guard lock(mutex);
  static int asked = 0;
  Stream& stream = stream_of(handle);
  if (ask(asked, stream.waiting.empty())) return kNotReady;
  asked = 0;
  return finish(stream);
}
Result cuCtxSynchronize() {
  const std::lock_guard lock(mutex);
  return finish_all();
}

Result cuEventCreate(void** event, unsigned flags) {
  return *event = new Event{nullptr, (flags & 2) == 0}, kSuccess;
}
Result cuEventDestroy_v2(void* event) { return delete static_cast<Event*>(event), kSuccess; }
Result cuEventRecord(void* handle, void* stream) {
  const std::lock_guard lock(mutex);
  if (lost) return lost;
  if (captured_work(stream)) return kNotInCapture;
  const auto moment = std::make_shared<Moment>(Moment{&stream_of(stream)});
  static_cast<Event*>(handle)->moment = moment;
  enqueue(stream, [moment] {
    moment->done = true;
    moment->time = std::chrono::steady_clock::now();
    return kSuccess;
  });
  return kSuccess;
}
Result cuEventQuery(void* handle) {
  const std::lock_guard lock(mutex);
  const auto moment = static_cast<Event*>(handle)->moment;
  if (!moment) return kSuccess;
  return ask(moment->asked, moment->done) ? kNotReady : reach(*moment);
}
Result cuEventSynchronize(void* handle) {
  const std::lock_guard lock(mutex);
  const auto moment = static_cast<Event*>(handle)->moment;
  return moment ? reach(*moment) : kSuccess;
}
Result cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  const std::lock_guard lock(mutex);
  const Event &begin = *static_cast<Event*>(from), &end = *static_cast<Event*>(to);
  if (!begin.moment || !end.moment || !begin.timed || !end.timed) return kInvalid;
  if (!begin.moment->done || !end.moment->done) return kNotReady;
  const std::chrono::duration<float, std::milli> passed = end.moment->time - begin.moment->time;
  return *milliseconds = passed.count(), kSuccess;
}
// For the latest recording before this call; those that follow do not matter.
Result cuStreamWaitEvent(void* stream, void* handle, unsigned) {
  const std::lock_guard lock(mutex);
  if (captured_work(stream)) return kNotInCapture;
  const auto moment = static_cast<Event*>(handle)->moment;
  if (moment)
    stream_of(stream).waiting.push_back({[moment] { return reach(*moment); }, Kind::other, moment});
  return kSuccess;
}

// Calls that ask for a copy, for tests.
unsigned long long tw_emulated_copies = 0;

// Memory of the program that is not pinned is read before the call returns, and written before it
// returns; all else happens when the stream comes to it.
Result cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  const std::lock_guard lock(mutex);
  ++tw_emulated_copies;
  if (lost) return lost;
  const auto* const source = reinterpret_cast<const char*>(from);
  if (captured_work(stream) &&
      (place_of(from) == Place::pageable || place_of(to) == Place::pageable))
    return kNotInCapture;
  if (place_of(from) == Place::pageable) {
    const auto staged = std::make_shared<std::string>(source, bytes);
    enqueue(
        stream, [to, staged] { return move_bytes(to, staged->data(), staged->size())(); },
        Kind::copy);
  } else {
    enqueue(stream, move_bytes(to, source, bytes), Kind::copy);
  }
  return place_of(to) == Place::pageable ? finish(stream) : kSuccess;
}

}  // extern "C"
