# Files that are compiled as one, which takes 0.4 to 0.8 of the time (docs/notes/build.md). What the files of a
# group name for themselves differs; a file that no group names is compiled alone: ops and cuda with -O1. (So is
# what the BLAS library takes from the core: products, conversions and what they stand on.)
set(TW_CORE_GROUPS
  "ops/pointwise/pointwise"
  "ops/reduce/reduce"
  "ops/engine/apply ops/engine/call_cache ops/copy/copy ops/copy/create ops/copy/in_place ops/move/index
   ops/move/join ops/normalization/logsumexp"
  "ops/matmul/matmul ops/pointwise/in_place ops/reduce/sum_of_products ops/optim/steps ops/reduce/variance
   ops/shape/view"
  "autograd/backward autograd/reach autograd/gradient_hooks autograd/replay memory/quota_pool
   autograd/checkpoint autograd/cycles"
  "autograd/op_node runtime/tasks/task_book tensor/tensor memory/heap runtime/tasks/scheduler"
  "cpu/convolution/convolution cpu/convolution/direct cpu/convolution/winograd_sums cpu/sequence/ctc
   cpu/move/gather cpu/random/multinomial cpu/isa/families"
  "cpu/convolution/im2col cpu/convolution/windows/unfold cpu/convolution/winograd_weights cpu/order/nonzero
   cpu/reduce/positions cpu/sequence/recurrent_backward"
  "cpu/sequence/attention cpu/pointwise/complex_functions cpu/reduce/complex_product cpu/convolution/depthwise
   cpu/convolution/winograd cpu/convolution/direct_dots cpu/random/random"
  "cpu/sequence/recurrent_steps cpu/reduce/reduce cpu/pointwise/repeated_operand
   cpu/pointwise/short_rows cpu/convolution/direct_pixels"
  "cpu/move/join cpu/sequence/recurrent_products cpu/move/scatter cpu/convolution/direct_sums"
  "cpu/normalization/norm cpu/order/order cpu/convolution/direct_weights"
  "cpu/pointwise/pointwise cpu/move/repeat"
  "cpu/reduce/overflowing_norms cpu/reduce/lowering cpu/optim/steps"
  "memory/arena base/scalar memory/ledger memory/regions runtime/device autograd/node memory/pool"
  "memory/events runtime/mode_changes autograd/anomaly base/dtype tensor/hooks runtime/op tensor/access"
  "autograd/user_function tensor/storage autograd/planner runtime/warning")
# Records, what prepares the launches of a GPU, and what programs ask for now and then: with -O1.
set(TW_COLD_CORE_GROUPS
  "ops/pointwise/activation ops/shape/rearrange ops/sequence/attention ops/matmul/bilinear ops/order/bins
   ops/pointwise/bitwise ops/losses/class_loss ops/pointwise/clip ops/pointwise/complex
   ops/convolution/convolution problems/convolution ops/matmul/cross"
  "ops/sequence/ctc ops/shape/diagonal ops/random/dropout ops/move/embedding ops/move/gather
   ops/sequence/key_value_cache ops/random/random ops/random/distributions ops/copy/read ops/op_list
   ops/sequence/recurrent ops/sequence/recurrent_gradients"
  "ops/normalization/local_response ops/losses/elementwise_loss ops/order/nonzero ops/normalization/norm
   ops/order/order ops/shape/pad ops/move/masks_and_slices"
  "ops/losses/margin_loss ops/matmul/pair_distances ops/pointwise/gradient_formulas ops/pointwise/help
   problems/pointwise_rows ops/convolution/pooling problems/matmul"
  "ops/move/repeat ops/convolution/resample ops/reduce/scan ops/move/scatter ops/shape/pixel_shuffle
   ops/shape/split"
  "ops/convolution/grid_sample ops/normalization/softmax ops/pointwise/composite ops/shape/view_dtype
   ops/convolution/unfold"
  "ops/copy/arange ops/optim/total_norm ops/losses/vector_loss"
  "cuda/move/scatter cuda/order/bins cuda/memory/blocks cuda/driver/compiler cuda/convolution/convolution
   cuda/copy/copy"
  "cuda/sequence/attention cuda/memory/copier cuda/gpu/block_counters cuda/random/rejection cuda/driver/driver
   cuda/gpu/families"
  "cuda/pointwise/conj cuda/gpu/external_memory cuda/gpu/gpu cuda/gpu/graph cuda/driver/async_errors
   cuda/driver/launch_limits"
  "cuda/sequence/ctc cuda/memory/small_transfers cuda/matmul/matmul cuda/matmul/hopper cuda/matmul/rungs
   cuda/matmul/split"
  "cuda/move/gather cuda/matmul/tensor cuda/driver/nvtx cuda/memory/pinned cuda/gpu/rates cuda/driver/stream"
  "cuda/normalization/norm cuda/memory/spill_tiers"
  "memory/spill runtime/transfers/job_queues autograd/capture runtime/transfers/transfer runtime/signature")
set(TW_BINDING_GROUPS
  "calls/function tensor/text calls/record tensor/interchange tensor/nested_lists tensor/buffers
   calls/spellings tensor/types tasks/submission"
  "tasks/task_type tensor/gpu_interchange tensor/cycles autograd/module_call calls/split_functions"
  "tensor/tensor_type tasks/transfer tensor/dlpack autograd/autograd engine/gpu_streams calls/ops")
# What programs ask for now and then, with -O1.
set(TW_COLD_BINDING_GROUPS
  "engine/gpu_rates engine/gpu_comparison calls/pointwise"
  "tasks/scheduler_type calls/call_errors autograd/graph autograd/capture calls/documentation
   autograd/gradient_memory"
  "tensor/tensor_methods calls/tensor_spellings engine/memory engine/events engine/ledger engine/cuda")

# Replaces, in the list named `sources`, the files of each group by one that includes them; appends that one to
# the list named `written`.
function(tw_compile_as_one folder sources written)
  foreach(group IN LISTS ARGN)
    string(REGEX REPLACE "[ \n]+" ";" names "${group}")
    list(GET names 0 first)
    string(REPLACE "/" "_" first "${first}")
    set(source ${PROJECT_BINARY_DIR}/groups/${folder}_${first}.cpp)
    set(text "")
    foreach(name IN LISTS names)
      string(APPEND text "#include \"${folder}/${name}.cpp\"\n")
      list(REMOVE_ITEM ${sources} ${PROJECT_SOURCE_DIR}/${folder}/${name}.cpp)
    endforeach()
    file(CONFIGURE OUTPUT ${source} CONTENT "${text}")
    # What it warns of in headers is as it should be here: types of one file in its functions.
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
    list(APPEND ${sources} ${source})
    list(APPEND ${written} ${source})
  endforeach()
  set(${sources} ${${sources}} PARENT_SCOPE)
  set(${written} ${${written}} PARENT_SCOPE)
endfunction()
