// Error routines of the program or its libraries, found as weak references; else standard error.
#include "blas/argument_error.h"

#include <cstddef>
#include <cstdio>

// Null unless the program or a library of its own has them. The references make the linker show a
// program's own routines to this library.
extern "C" {
[[gnu::weak]] void xerbla_(const char* routine, const int* info, std::size_t routine_length);
[[gnu::weak]] void cblas_xerbla(int info, const char* routine, const char* form, ...);
// Where set, cblas_xerbla puts the places of a call by rows right itself.
[[gnu::weak]] extern int RowMajorStrg;
}

namespace tw::blas {

namespace {

// m and n, lda and ldb change places between a call by rows and its Fortran call.
int place_by_rows(int info) {
  switch (info) {
    case 4: return 5;
    case 5: return 4;
    case 9: return 11;
    case 11: return 9;
    default: return info;
  }
}

}  // namespace

// The reference stops the program here; like most other libraries this one returns, C untouched.
void fortran_error(const char* routine, int info) noexcept {
  if (xerbla_) return xerbla_(routine, &info, 6);
  std::fprintf(stderr, " ** On entry to %s parameter number %2d had an illegal value\n", routine,
               info);
}

void cblas_error(const char* routine, int info, bool by_rows) noexcept {
  const bool rows_are_told = cblas_xerbla && &RowMajorStrg;
  if (by_rows && !rows_are_told) info = place_by_rows(info);
  if (!cblas_xerbla) {
    std::fprintf(stderr, "Parameter %d to routine %s was incorrect\n", info, routine);
    return;
  }
  if (rows_are_told) RowMajorStrg = by_rows;
  cblas_xerbla(info, routine, "");
  if (rows_are_told) RowMajorStrg = 0;
}

}  // namespace tw::blas
