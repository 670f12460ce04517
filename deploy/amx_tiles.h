/* Read before every C++ file of llama.cpp (deploy/install.py passes it as -include).
 *
 * Up to version 12, GCC's _tile_loadconfig tells the compiler that the instruction reads the first 8 of the 64 bytes
 * of a tile configuration. llama.cpp fills one on the stack; the optimizer then drops most of what was written,
 * and on a processor with AMX the first multiplication of matrices ends with a general protection fault. Here the
 * instruction reads all 64 bytes. Compilers other than GCC have it right. Files that are not compiled for AMX are spared
 * <immintrin.h>, which takes a second to read.
 */
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(const char(*)[64])(config)))
#endif
