// Memory of GPUs shared with other libraries: DLPack's part that knows streams, and the CUDA array
// interface (version 3).
#pragma once
#include <optional>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/tensor/tensor.h"

namespace tw::binding {

// DLPack's kinds of devices that are meant.
inline constexpr std::int32_t kDlCuda = 2, kDlCudaHost = 3, kDlCudaManaged = 13;

// Where DLPack says that a tensor is. Raises BufferError for devices that it has no name for.
std::pair<std::int32_t, std::int32_t> dlpack_place(const Tensor& x);

// A consumer's stream, as DLPack numbers them, that waits for what is exported and that the memory
// waits for when it comes back.
class ForeignUse {
 public:
  ForeignUse() = default;
  // `stream` is the argument of __dlpack__: None stands for the driver's own, -1 for no ordering.
  ForeignUse(const Tensor& x, nb::handle stream);
  ForeignUse(ForeignUse&& other) noexcept;
  ForeignUse& operator=(ForeignUse&&) = delete;
  ~ForeignUse();

 private:
  const Device* device_ = nullptr;
  Block* block_ = nullptr;
  std::uint64_t stream_ = 0;
};

// The `stream` argument for a producer on a GPU: this thread's.
nb::object stream_for_producer(int gpu);
// A producer's deleter runs after this: the GPU is done with its memory.
void finish_use_of_import(const Device* device) noexcept;
const Device* gpu_device(int number);

// The dict of __cuda_array_interface__. Raises AttributeError for tensors that it cannot tell of.
nb::dict cuda_array_interface(const Tensor& x);
bool has_cuda_array_interface(PyObject* object);
// A tensor over the memory of an object that has it.
Tensor tensor_over_cuda_array(PyObject* object);

}  // namespace tw::binding
