// The folder of compiled kernels. What lies in it is run, so nothing is read that another user
// could have written.
#pragma once
#include <string>

namespace tw::cuda {

// The cubin kept under a key, or nothing. Files and folders that belong to others than this user
// and root, that others may write to, that are links or are damaged count as none, and are told
// once.
std::string kept_kernel(const std::string& key);
// Keeps one, whole or not at all; a folder that cannot be written to costs time alone.
void keep_kernel(const std::string& key, const std::string& cubin);

}  // namespace tw::cuda
