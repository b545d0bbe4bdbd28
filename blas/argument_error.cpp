#include "blas/argument_error.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace tw::blas {

namespace {

template <class T> T* find(const char* symbol) {
  return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, symbol));
}

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
  using Xerbla = void(const char*, const int*, std::size_t);  // the last: length of the text
  if (auto* const xerbla = find<Xerbla>("xerbla_")) return xerbla(routine, &info, 6);
  std::fprintf(stderr, " ** On entry to %s parameter number %2d had an illegal value\n", routine,
               info);
}

void cblas_error(const char* routine, int info, bool by_rows) noexcept {
  using Xerbla = void(int, const char*, const char*, ...);
  auto* const xerbla = find<Xerbla>("cblas_xerbla");
  // The reference's routine, and those written to replace it, put the places of a call by rows
  // right themselves where this variable of theirs is set.
  auto* const rows_are_told = find<int>("RowMajorStrg");
  if (!xerbla || !rows_are_told) info = by_rows ? place_by_rows(info) : info;
  if (!xerbla) {
    std::fprintf(stderr, "Parameter %d to routine %s was incorrect\n", info, routine);
    return;
  }
  if (rows_are_told) *rows_are_told = by_rows;
  xerbla(info, routine, "");
  if (rows_are_told) *rows_are_told = 0;
}

}  // namespace tw::blas
