# Writes the texts of a folder's CUDA kernels as one source file: -DFOLDER=... -DOUTPUT=...
file(GLOB_RECURSE paths ${FOLDER}/*.cuh)
set(rows "")
foreach(path IN LISTS paths)
  file(RELATIVE_PATH name ${FOLDER} ${path})
  file(READ ${path} text)
  string(APPEND rows "      {\"${name}\", R\"cuda(${text})cuda\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"core/cuda/compiler.h\"

namespace tw::cuda {

const std::vector<Text>& kernel_texts() {
  static const std::vector<Text> kTexts = {
${rows}  };
  return kTexts;
}

}  // namespace tw::cuda
")
