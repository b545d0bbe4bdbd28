// Wrong arguments of a BLAS call: told through the program's own error routine where it has one.
#pragma once

namespace tw::blas {

// `routine` is "SGEMM " or "DGEMM "; `info` the place of the first wrong argument, from 1.
void fortran_error(const char* routine, int info) noexcept;
// `routine` is "cblas_sgemm" or "cblas_dgemm". A call by rows is checked as the Fortran call that
// it stands for, with A and B exchanged; `info` is that call's place plus one (for the order).
void cblas_error(const char* routine, int info, bool by_rows) noexcept;

}  // namespace tw::blas
