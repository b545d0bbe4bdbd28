# Files that are compiled as one, which takes 0.4 to 0.8 of the time (docs/notes/build.md). What the files of a
# group name for themselves differs; a file that no group names is compiled alone: ops and cuda with -O1. (So is
# what the BLAS library takes from the core: products, conversions and what they stand on.)
set(TW_CORE_GROUPS
  "ops/pointwise"
  "ops/reduce"
  "ops/apply ops/call_cache ops/copy ops/create ops/in_place ops/index ops/join ops/logsumexp"
  "ops/matmul ops/pointwise_in_place ops/sum_of_products ops/update ops/variance ops/view"
  "autograd/backward autograd/reach autograd/gradient_hooks autograd/replay memory/quota_pool autograd/checkpoint autograd/cycles"
  "autograd/op_node runtime/task_book tensor/tensor memory/heap runtime/scheduler"
  "cpu/convolution cpu/convolution/direct cpu/convolution/winograd_sums cpu/ctc cpu/gather cpu/multinomial cpu/families"
  "cpu/convolution/im2col cpu/convolution/windows cpu/convolution/winograd_weights cpu/nonzero cpu/positions
   cpu/recurrent_backward"
  "cpu/attention cpu/complex cpu/complex_product cpu/convolution/depthwise cpu/convolution/winograd
   cpu/convolution/direct_dots cpu/random"
  "cpu/convolution/naive cpu/recurrent_steps cpu/reduce cpu/repeated_part cpu/short_rows cpu/convolution/direct_pixels"
  "cpu/join cpu/recurrent_products cpu/scatter cpu/convolution/direct_sums"
  "cpu/norm cpu/order cpu/convolution/direct_weights"
  "cpu/pointwise cpu/repeat"
  "cpu/lost_norms cpu/reductions cpu/update"
  "memory/arena base/scalar memory/ledger memory/regions runtime/device autograd/node memory/pool"
  "memory/events runtime/mode_changes autograd/anomaly base/dtype tensor/hooks runtime/op tensor/access"
  "autograd/custom tensor/storage autograd/planner runtime/warning runtime/launch")
# Records, what prepares the launches of a GPU, and what programs ask for now and then: with -O1.
set(TW_COLD_CORE_GROUPS
  "ops/activation ops/arrange ops/attention ops/bilinear ops/bins ops/bitwise ops/class_loss ops/clip ops/complex
   ops/convolution ops/convolution_problem ops/cross"
  "ops/ctc ops/diagonal ops/dropouts ops/embedding ops/gather ops/key_value_cache ops/random ops/random_draws ops/read
   ops/records ops/recurrent ops/recurrent_gradients"
  "ops/local_response ops/loss ops/nonzero ops/norm ops/order ops/pad ops/parts"
  "ops/margin_loss ops/pair_distances ops/pointwise_formulas ops/pointwise_help ops/pointwise_rows ops/pooling ops/product"
  "ops/repeat ops/resample ops/scan ops/scatter ops/shuffle ops/split"
  "ops/sample ops/softmax ops/special ops/view_dtype ops/windows"
  "ops/range ops/total_norm ops/vector_loss"
  "cuda/along cuda/bins cuda/blocks cuda/compiler cuda/convolution cuda/copy"
  "cuda/attention cuda/copier cuda/counters cuda/draws cuda/driver cuda/families"
  "cuda/complex cuda/foreign cuda/gpu cuda/graph cuda/late_faults cuda/launches"
  "cuda/ctc cuda/letters cuda/matmul cuda/matmul/hopper cuda/matmul/rungs cuda/matmul/split"
  "cuda/gather cuda/matmul/tensor cuda/nvtx cuda/pinned cuda/rates cuda/stream"
  "cuda/norm cuda/tiers"
  "memory/spill runtime/job_queues autograd/capture runtime/transfer runtime/signature")
set(TW_BINDING_GROUPS
  "function text record interchange nested_lists buffers spellings types submission"
  "task_type gpu_interchange cycles module_call split"
  "tensor_type transfer dlpack autograd gpu_streams ops")
# What programs ask for now and then, with -O1.
set(TW_COLD_BINDING_GROUPS
  "gpu_rates gpu_comparison pointwise"
  "scheduler_type call_errors graph capture documentation gradient_memory"
  "tensor_methods tensor_spellings memory events ledger cuda")

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
