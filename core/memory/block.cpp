#include "core/memory/block.h"

namespace tw {

#ifdef __GLIBC__
thread_local BlockSource* block_source __attribute__((tls_model("initial-exec"))) = nullptr;
#else
thread_local BlockSource* block_source = nullptr;
#endif

}  // namespace tw
