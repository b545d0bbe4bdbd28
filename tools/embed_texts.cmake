# Writes the texts of a folder's CUDA kernels, and of what they share with the CPU (a list), as one
# source file: -DFOLDER=... -DSHARED=... -DOUTPUT=...
file(GLOB_RECURSE paths ${FOLDER}/*.cuh)
list(APPEND paths ${SHARED})
set(rows "")
foreach(path IN LISTS paths)
  file(RELATIVE_PATH name ${FOLDER} ${path})
  string(REGEX REPLACE "^.*\\.\\./" "" name ${name})
  file(READ ${path} text)
  string(APPEND rows "      {\"${name}\", R\"cuda(${text})cuda\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"core/cuda/driver/compiler.h\"

namespace tw::cuda {

const std::vector<Text>& kernel_texts() {
  static const std::vector<Text> kTexts = {
${rows}  };
  return kTexts;
}

}  // namespace tw::cuda
")
