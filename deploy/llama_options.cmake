# Included behind the `project` command of llama-cpp-python, which turns this option on in CMake's cache: a variable
# comes first. The library is that of llama.cpp's own programs, which are not built; it takes half of the build.
set(LLAMA_BUILD_COMMON OFF)

# What builds graphs, reads files or serves several devices is compiled with -O1: it does not take part in the arithmetic.
# Samplers, grammars, vocabularies, batches and the cache have loops of their own and stay as they are.
function(compile_cheaply)
    target_compile_options(llama PRIVATE -O1)
    foreach(name sampler grammar vocab batch kv-cache kv-cache-iswa graph)
        list(APPEND loops "${CMAKE_SOURCE_DIR}/vendor/llama.cpp/src/llama-${name}.cpp")
    endforeach()
    set_source_files_properties(${loops} "${CMAKE_SOURCE_DIR}/vendor/llama.cpp/src/unicode.cpp"
        TARGET_DIRECTORY llama PROPERTIES COMPILE_OPTIONS -O3)
    foreach(name ggml-backend-meta ggml-opt gguf)
        list(APPEND others "${CMAKE_SOURCE_DIR}/vendor/llama.cpp/ggml/src/${name}.cpp")
    endforeach()
    set_source_files_properties(${others} TARGET_DIRECTORY ggml-base PROPERTIES COMPILE_OPTIONS -O1)
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL compile_cheaply)
