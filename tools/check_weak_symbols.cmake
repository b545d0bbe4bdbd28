# Fails when a kernel object has a weak symbol (see CMakeLists.txt).
execute_process(COMMAND ${NM} -C ${OBJECTS} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} failed on the kernel objects")
endif()
# A pointer to the C++ run time's own function, in unoptimised code that calls back: no code.
string(REGEX REPLACE "[^\n]* V DW\\.ref\\.__gxx_personality_v0" "" symbols "${symbols}")
string(REGEX MATCH "[^\n]* [WVu] [^\n]*" weak "${symbols}")
if(weak)
  message(FATAL_ERROR "weak symbol in a kernel object: ${weak}")
endif()
