# Writes the texts of CUDA kernels and of what they include (a list), under their paths from the root, as one
# source file: -DROOT=... -DTEXTS=... -DOUTPUT=...
set(rows "")
foreach(path IN LISTS TEXTS)
  file(RELATIVE_PATH name ${ROOT} ${path})
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
