# Included behind the `project` command of llama-cpp-python, which turns this option on in CMake's cache: a variable
# comes first. The library is that of llama.cpp's own programs, which are not built; it takes half of the build.
set(LLAMA_BUILD_COMMON OFF)
