// Matrix products on raw pointers: the table of one instruction set's functions.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/thresholds.h"
#include "core/problems/matmul.h"

namespace tw {

// So many terms are added up in one chain, then the chains: rounding errors grow with the length of
// a chain, and a run may be as long as the caches like. A break costs a percent of a chain's time.
inline constexpr std::int64_t kMatmulChain = thresholds::kChainTerms;

// How the direct rung reads its operands.
enum class DirectWay {
  tiles,      // rows of B where they lie
  dots,       // contiguous along k on both sides: dot products
  few_terms,  // so short along k that loading and storing is most of the work
};

// Decided once for the whole problem, before it is cut over threads, so that cutting changes no
// bit.
struct MatmulBlocks {
  std::int64_t kc;  // k is added up in runs of at most this
  std::int64_t nc;  // columns of B packed at a time, whole tiles
  std::int64_t mc;  // rows of A packed at a time, where its rows are not contiguous
  bool streams;     // C is too large for the caches, lies on lines and is written once
  DirectWay way = DirectWay::tiles;
  // C is made in parts of so many rows and columns, which stay in L3 from one run along k to the
  // next; 0: whole.
  std::int64_t part_m = 0, part_n = 0;
};

struct MatmulTable {  // filled in by cpu/matmul/loops/matmul.h for each instruction set
  using Run = void (*)(const MatmulProblem& problem, const MatmulBlocks& blocks, void* scratch);
  struct Ladder {
    Run tiled, simd, packed, direct;
    void (*epilogue)(const MatmulProblem& problem);  // on a C that lacks nothing else
  };
  // The sums of Strassen's recursion over rows whose elements are contiguous; strides in elements.
  template <class T> struct Sums {
    using Two = void (*)(std::int64_t rows, std::int64_t n, const T* x, std::int64_t x_row,
                         const T* y, std::int64_t y_row, T* out, std::int64_t out_row);
    Two add, subtract;  // out = x + y, x - y
    void (*join)(std::int64_t rows, std::int64_t n, T* c11, T* c12, T* c21, T* c22,
                 std::int64_t row);
    // c = x + beta * c
    void (*blend)(std::int64_t rows, std::int64_t n, const T* x, std::int64_t x_row, double beta,
                  T* c, std::int64_t c_row);
    bool (*finite)(std::int64_t rows, std::int64_t n, const T* x, std::int64_t row);
  };
  // How complex matrices are rearranged for real products (cpu/matmul/loops/complex.h); rows of the
  // result lie one after the other, strides are in complex numbers.
  struct ComplexParts {
    using Rearrange = void (*)(std::int64_t rows, std::int64_t n, const void* x, std::int64_t row,
                               std::int64_t col, void* out);
    Rearrange twice;  // each row as it is, then times i
    Rearrange rows;   // a copy
    Rearrange apart;  // all real parts, then all imaginary ones
    void (*join)(std::int64_t m, std::int64_t n, const void* products, double alpha, double beta,
                 void* c, std::int64_t c_row, std::int64_t c_col);
    // Of two vectors of k numbers one after the other: adds the products of their parts, re re, im
    // im, re im and im re, to sums[0..3].
    void (*products)(std::int64_t k, const void* a, const void* b, double* sums);
  };
  Run naive[kDTypes];
  Ladder floating[2];       // float32, float64
  ComplexParts complex[2];  // complex64, complex128
  Sums<float> sums32;
  Sums<double> sums64;
  int lanes[2];                 // of a vector
  int tile_rows, tile_vectors;  // of a full tile
  int max_tile_rows;            // of a narrow one
  int long_row_terms;           // few_terms: at most, for rows of more than two full tiles
  int short_row_terms;          // and for rows of at most a vector
  bool masked_access;           // partial vectors cost no more than whole ones
};

// Estimated nanoseconds of the packed rung on one thread: what rungs built on it start from.
double packed_ns(const MatmulProblem& p);
// Solves one whose operands lie in cache, so that packing them does not pay, where it can be read
// as it is: estimates know operands by their sizes alone. False where it cannot.
bool multiply_unpacked(const MatmulProblem& p);

}  // namespace tw
