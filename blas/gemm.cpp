// The four symbols of the drop-in BLAS: arguments checked in the reference's order, then one
// product. Whole numbers have 32 bits (LP64), as in Debian's libblas and most programs.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "blas/argument_error.h"
#include "blas/product.h"
#include "blas/tally.h"

#define TW_BLAS_SYMBOL extern "C" __attribute__((visibility("default")))

namespace tw::blas {

namespace {

// The arguments of a Fortran call, all matrices by columns.
template <class T> struct Gemm {
  char trans_a, trans_b;  // 'N', 'T', or 0 where the flag was none
  std::int32_t m, n, k;
  T alpha;
  const T* a;
  std::int32_t lda;
  const T* b;
  std::int32_t ldb;
  T beta;
  T* c;
  std::int32_t ldc;

  // Place of the first wrong argument in the Fortran call, or 0.
  int wrong_argument() const {
    if (!trans_a) return 1;
    if (!trans_b) return 2;
    if (m < 0) return 3;
    if (n < 0) return 4;
    if (k < 0) return 5;
    if (lda < std::max(1, trans_a == 'N' ? m : k)) return 8;
    if (ldb < std::max(1, trans_b == 'N' ? k : n)) return 10;
    return ldc < std::max(1, m) ? 13 : 0;
  }
  bool changes_nothing() const { return m == 0 || n == 0 || ((alpha == 0 || k == 0) && beta == 1); }
  double flops() const {
    return changes_nothing() || alpha == 0 ? 0 : 2.0 * double(m) * double(n) * double(k);
  }
  MatmulProblem problem() const {
    const bool plain_a = trans_a == 'N', plain_b = trans_b == 'N';
    return {DTypeOf<T>::value,
            1,
            m,
            n,
            k,
            a,
            0,
            plain_a ? 1 : lda,
            plain_a ? lda : 1,
            b,
            0,
            plain_b ? 1 : ldb,
            plain_b ? ldb : 1,
            c,
            0,
            1,
            ldc,
            double(alpha),
            double(beta)};
  }
};

// A flag that is wrong becomes 0. For real matrices the conjugate transpose is the transpose.
char fortran_flag(char flag) {
  switch (flag) {
    case 'n':
    case 'N': return 'N';
    case 't':
    case 'T':
    case 'c':
    case 'C': return 'T';
    default: return 0;
  }
}
enum CblasFlag { kRowMajor = 101, kColMajor = 102, kNoTrans = 111, kTrans = 112, kConjTrans = 113 };
char cblas_flag(int flag) {
  return flag == kNoTrans ? 'N' : flag == kTrans || flag == kConjTrans ? 'T' : '\0';
}

template <class T> void multiply(Symbol symbol, const Gemm<T>& call) {
  count_call(symbol, call.flops());
  if (!call.changes_nothing()) solve(call.problem());
}

template <class T> void fortran_gemm(Symbol symbol, const char* routine, const Gemm<T>& call) {
  if (const int info = call.wrong_argument()) {
    count_call(symbol, 0);
    return fortran_error(routine, info);
  }
  multiply(symbol, call);
}

// By rows, C^T = B^T A^T is a product by columns. Flags are told at the caller's place, sizes at
// Fortran's (see cblas_error).
template <class T>
void cblas_gemm(Symbol symbol, const char* routine, int order, const Gemm<T>& by_caller) {
  const bool by_rows = order == kRowMajor;
  Gemm<T> call = by_caller;
  int info = by_rows || order == kColMajor ? 0 : 1;
  if (!info && !call.trans_a) info = 2;
  if (!info && !call.trans_b) info = 3;
  if (by_rows) {
    std::swap(call.trans_a, call.trans_b);
    std::swap(call.m, call.n);
    std::swap(call.a, call.b);
    std::swap(call.lda, call.ldb);
  }
  if (!info && call.wrong_argument()) info = call.wrong_argument() + 1;
  if (info) {
    count_call(symbol, 0);
    return cblas_error(routine, info, by_rows);
  }
  multiply(symbol, call);
}

}  // namespace

}  // namespace tw::blas

using namespace tw::blas;

#define TW_FORTRAN_GEMM(name, routine, T)                                                         \
  TW_BLAS_SYMBOL void name##_(                                                                    \
      const char* trans_a, const char* trans_b, const std::int32_t* m, const std::int32_t* n,     \
      const std::int32_t* k, const T* alpha, const T* a, const std::int32_t* lda, const T* b,     \
      const std::int32_t* ldb, const T* beta, T* c, const std::int32_t* ldc) {                    \
    fortran_gemm<T>(Symbol::name, routine,                                                        \
                    {fortran_flag(*trans_a), fortran_flag(*trans_b), *m, *n, *k, *alpha, a, *lda, \
                     b, *ldb, *beta, c, *ldc});                                                   \
  }
#define TW_CBLAS_GEMM(name, T)                                                                     \
  TW_BLAS_SYMBOL void name(int order, int trans_a, int trans_b, std::int32_t m, std::int32_t n,    \
                           std::int32_t k, T alpha, const T* a, std::int32_t lda, const T* b,      \
                           std::int32_t ldb, T beta, T* c, std::int32_t ldc) {                     \
    cblas_gemm<T>(                                                                                 \
        Symbol::name, #name, order,                                                                \
        {cblas_flag(trans_a), cblas_flag(trans_b), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}); \
  }

TW_FORTRAN_GEMM(sgemm, "SGEMM ", float)
TW_FORTRAN_GEMM(dgemm, "DGEMM ", double)
TW_CBLAS_GEMM(cblas_sgemm, float)
TW_CBLAS_GEMM(cblas_dgemm, double)
