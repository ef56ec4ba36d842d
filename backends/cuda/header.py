"""What every kernel begins with: types, and device functions where CUDA's C++ and NumPy differ.

NVRTC compiles the text for devices, without any include; for tests, a C++ compiler of the host does.
"""

PRELUDE = r"""
#if defined(__CUDACC__)
#define ND_FUNCTION __device__ __forceinline__
#define ND_CALLED static __device__ __noinline__
#define ND_KERNEL extern "C" __global__ void __launch_bounds__(256)
#define ND_SHARED __shared__
#define ND_BEGIN { const int nd_thread = threadIdx.x;
#define ND_END } __syncthreads();
#define nd_block_x ((nd_i8)blockIdx.x)
#define nd_block_y ((nd_i8)blockIdx.y)
#define nd_grid_x ((nd_i8)gridDim.x)
#define nd_grid_y ((nd_i8)gridDim.y)
#define ND_ALIGNED(T, address)
#else
#include <cmath>
#include <cstdlib>
using namespace std;
#define ND_FUNCTION inline
#define ND_CALLED static
#define ND_KERNEL static void
#define ND_SHARED static thread_local
#define ND_BEGIN for (int nd_thread = 0; nd_thread < 256; ++nd_thread) {
#define ND_END }
static thread_local long long nd_block_x, nd_block_y, nd_grid_x, nd_grid_y;
extern "C" { long long nd_misaligned = 0; }  // not 0 after an access that a device would refuse
#define ND_ALIGNED(T, address) nd_misaligned |= (address) % (nd_i8)alignof(T);
#endif

typedef bool nd_b1;
typedef signed char nd_i1;
typedef short nd_i2;
typedef int nd_i4;
typedef long long nd_i8;
typedef unsigned char nd_u1;
typedef unsigned short nd_u2;
typedef unsigned int nd_u4;
typedef unsigned long long nd_u8;
typedef float nd_f4;
typedef double nd_f8;
struct nd_f2 { nd_u2 bits; };
struct nd_c8 { float re, im; };
struct nd_c16 { double re, im; };

// A scalar argument lies in one word, or two, of the argument block.
template <class T> union nd_word { nd_i8 words[(sizeof(T) + 7) / 8]; T value; };
template <class T> ND_FUNCTION T nd_scalar(const nd_i8* words) {
  nd_word<T> w;
  for (unsigned k = 0; k < (sizeof(T) + 7) / 8; ++k) w.words[k] = words[k];
  return w.value;
}
// A byte of a bool array may be any number.
template <class T> ND_FUNCTION T nd_load(nd_i8 address) { ND_ALIGNED(T, address) return *(const T*)address; }
template <> ND_FUNCTION nd_b1 nd_load<nd_b1>(nd_i8 address) { return *(const nd_u1*)address != 0; }
template <class T> ND_FUNCTION void nd_store(nd_i8 address, T value) { ND_ALIGNED(T, address) *(T*)address = value; }
// Elements at any address, as fields of packed records: devices read wide values at multiples of their size only.
template <class T> ND_FUNCTION T nd_load_packed(nd_i8 address) {
  union { nd_u1 bytes[sizeof(T)]; T value; } element;
  for (unsigned k = 0; k < sizeof(T); ++k) element.bytes[k] = ((const nd_u1*)address)[k];
  return element.value;
}
template <class T> ND_FUNCTION void nd_store_packed(nd_i8 address, T value) {
  for (unsigned k = 0; k < sizeof(T); ++k) ((nd_u1*)address)[k] = ((const nd_u1*)&value)[k];
}

union nd_bits4 { nd_u4 u; float f; };
union nd_bits8 { nd_u8 u; double f; };
ND_FUNCTION float nd_as_f4(nd_u4 u) { nd_bits4 b; b.u = u; return b.f; }
ND_FUNCTION double nd_as_f8(nd_u8 u) { nd_bits8 b; b.u = u; return b.f; }
ND_FUNCTION nd_u4 nd_bits_of(float f) { nd_bits4 b; b.f = f; return b.u; }
ND_FUNCTION nd_u8 nd_bits_of(double f) { nd_bits8 b; b.f = f; return b.u; }
template <class T> ND_FUNCTION T nd_nan();
template <> ND_FUNCTION float nd_nan<float>() { return nd_as_f4(0x7fc00000u); }
template <> ND_FUNCTION double nd_nan<double>() { return nd_as_f8(0x7ff8000000000000ull); }

// -- half precision: computed in single precision, rounded to nearest even as NumPy does ------------------------------
ND_FUNCTION float nd_single(nd_f2 h) {
  const nd_u4 sign = (nd_u4)(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00u) return nd_as_f4(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x0400u) return nd_as_f4(sign | ((rest + 0x1c000u) << 13));
  return nd_as_f4(nd_bits_of((float)rest * 5.9604644775390625e-08f) | sign);
}
// The significand `m`, whose lowest bit is worth 2**e, as a half.
ND_CALLED nd_u2 nd_rounded_half(nd_u8 m, int e) {
  if (m == 0) return 0;
  int top = 63;
  while (!(m >> top)) --top;
  int lowest = top - 10 + e;
  if (lowest < -24) lowest = -24;
  const int shift = lowest - e;
  nd_u8 kept, rest, half;
  if (shift <= 0) { kept = m << -shift; rest = 0; half = 1; }
  else if (shift > 63) { kept = 0; rest = m; half = ~0ull; }
  else { kept = m >> shift; rest = m & ((1ull << shift) - 1); half = 1ull << (shift - 1); }
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  const nd_u8 bits = kept + ((nd_u8)(lowest + 24) << 10);
  return (nd_u2)(bits > 0x7c00u ? 0x7c00u : bits);
}
ND_FUNCTION nd_f2 nd_half(float f) {
  const nd_u4 u = nd_bits_of(f), rest = u & 0x7fffffffu;
  nd_f2 h;
  h.bits = (nd_u2)(u >> 16 & 0x8000u);
  if (rest > 0x7f800000u) { const nd_u2 m = (nd_u2)(rest >> 13 & 0x3ffu); h.bits |= 0x7c00u | (m ? m : 1); }
  else if (rest >= 0x47800000u) h.bits |= 0x7c00u;
  else if (rest >= 0x00800000u) h.bits |= nd_rounded_half((rest & 0x7fffffu) | 0x800000u, (int)(rest >> 23) - 150);
  return h;
}
ND_FUNCTION nd_f2 nd_half(double f) {
  const nd_u8 u = nd_bits_of(f), rest = u & 0x7fffffffffffffffull;
  nd_f2 h;
  h.bits = (nd_u2)(u >> 48 & 0x8000u);
  if (rest > 0x7ff0000000000000ull) { const nd_u2 m = (nd_u2)(rest >> 42 & 0x3ffu); h.bits |= 0x7c00u | (m ? m : 1); }
  else if (rest >= 0x40f0000000000000ull) h.bits |= 0x7c00u;
  else if (rest >= 0x0010000000000000ull)
    h.bits |= nd_rounded_half((rest & 0xfffffffffffffull) | 0x10000000000000ull, (int)(rest >> 52) - 1075);
  return h;
}

// -- casts: as x86 processors, and so NumPy, convert; not saturated as on devices ------------------------------------
template <class T> ND_FUNCTION nd_i4 nd_to_i4(T x) {
  return x > (T)-2147483649.0 && x < (T)2147483648.0 ? (nd_i4)x : (nd_i4)(-2147483647 - 1);
}
template <> ND_FUNCTION nd_i4 nd_to_i4<float>(float x) {
  return x >= -2147483648.0f && x < 2147483648.0f ? (nd_i4)x : (nd_i4)(-2147483647 - 1);
}
template <class T> ND_FUNCTION nd_i8 nd_to_i8(T x) {
  const T limit = (T)9223372036854775808.0;
  return x >= -limit && x < limit ? (nd_i8)x : (nd_i8)0x8000000000000000ull;
}
template <class T> ND_FUNCTION nd_u8 nd_to_u8(T x) {
  const T limit = (T)9223372036854775808.0;
  return x < limit ? (nd_u8)nd_to_i8(x) : (nd_u8)nd_to_i8(x - limit) ^ 0x8000000000000000ull;
}
"""

INTEGERS = r"""
// -- integers: division by zero is zero, shifts beyond the width drop everything, everything wraps -------------------
template <class T> ND_FUNCTION bool nd_is_signed() { return (T)-1 < (T)1; }
template <class T> ND_FUNCTION T nd_negative(T a) { return (T)(0 - (nd_u8)a); }
template <class T> ND_FUNCTION T nd_floor_divide(T a, T b) {
  if (b == 0) return 0;
  if (nd_is_signed<T>() && b == (T)-1) return nd_negative(a);
  const T q = (T)(a / b);
  return (T)(nd_is_signed<T>() && (a % b != 0) && ((a < 0) != (b < 0)) ? q - 1 : q);
}
template <class T> ND_FUNCTION T nd_fmod(T a, T b) {
  if (b == 0 || (nd_is_signed<T>() && b == (T)-1)) return 0;
  return (T)(a % b);
}
template <class T> ND_FUNCTION T nd_remainder(T a, T b) {
  const T r = nd_fmod(a, b);
  return (T)(nd_is_signed<T>() && r != 0 && ((r < 0) != (b < 0)) ? r + b : r);
}
template <class T> ND_FUNCTION T nd_left_shift(T a, T b) {
  return (nd_u8)b < 8 * sizeof(T) ? (T)((nd_u8)a << (nd_u8)b) : (T)0;
}
template <class T> ND_FUNCTION T nd_right_shift(T a, T b) {
  if ((nd_u8)b < 8 * sizeof(T)) return (T)(a >> b);
  return nd_is_signed<T>() && a < 0 ? (T)-1 : (T)0;
}
template <class T> ND_FUNCTION T nd_absolute(T a) { return nd_is_signed<T>() && a < 0 ? nd_negative(a) : a; }
template <class T> ND_FUNCTION T nd_sign(T a) { return (T)(a > 0 ? 1 : a == 0 ? 0 : -1); }
template <class T> ND_FUNCTION T nd_gcd(T a, T b) {
  nd_u8 x = (nd_u8)(nd_is_signed<T>() && a < 0 ? 0 - (nd_u8)a : (nd_u8)a);
  nd_u8 y = (nd_u8)(nd_is_signed<T>() && b < 0 ? 0 - (nd_u8)b : (nd_u8)b);
  while (x) { const nd_u8 r = y % x; y = x; x = r; }
  return (T)y;
}
template <class T> ND_FUNCTION T nd_lcm(T a, T b) {
  const T x = nd_absolute(a), y = nd_absolute(b), g = nd_gcd(a, b);
  return g == 0 ? (T)0 : (T)((nd_u8)(x / g) * (nd_u8)y);
}
template <class T> ND_FUNCTION nd_u1 nd_bitwise_count(T a) {
  nd_u8 x = (nd_u8)(nd_is_signed<T>() && a < 0 ? 0 - (nd_u8)a : (nd_u8)a);
  if (sizeof(T) < 8) x &= (1ull << (8 * sizeof(T) % 64)) - 1;
  nd_u1 count = 0;
  for (; x; x &= x - 1) ++count;
  return count;
}
// Exponents are not negative: NumPy raises for those, which is found out before.
template <class T> ND_FUNCTION T nd_power(T a, T b) {
  nd_u8 result = 1, base = (nd_u8)a, left = (nd_u8)b;
  for (; left; left >>= 1) { if (left & 1) result *= base; base *= base; }
  return (T)result;
}
template <class T> ND_FUNCTION T nd_min_int(T a, T b) { return a < b ? a : b; }
template <class T> ND_FUNCTION T nd_max_int(T a, T b) { return a > b ? a : b; }
// Comparisons of signed with unsigned numbers are exact.
ND_FUNCTION bool nd_less(nd_i8 a, nd_u8 b) { return a < 0 || (nd_u8)a < b; }
ND_FUNCTION bool nd_less(nd_u8 a, nd_i8 b) { return b > 0 && a < (nd_u8)b; }
ND_FUNCTION bool nd_equal(nd_i8 a, nd_u8 b) { return a >= 0 && (nd_u8)a == b; }
ND_FUNCTION bool nd_equal(nd_u8 a, nd_i8 b) { return b >= 0 && a == (nd_u8)b; }
"""

REALS = r"""
// -- real numbers: division and modulo with Python's signs, NaN kept by minima and maxima ---------------------------
template <class T> ND_FUNCTION bool nd_isnan(T a) { return a != a; }
template <class T> ND_FUNCTION bool nd_isinf(T a) { return a - a != a - a && a == a; }
template <class T> ND_FUNCTION bool nd_isfinite(T a) { return a - a == a - a; }
ND_FUNCTION bool nd_signbit(float a) { return nd_bits_of(a) >> 31; }
ND_FUNCTION bool nd_signbit(double a) { return nd_bits_of(a) >> 63; }
template <class T> ND_FUNCTION T nd_maximum(T a, T b) { return a >= b || nd_isnan(a) ? a : b; }
template <class T> ND_FUNCTION T nd_minimum(T a, T b) { return a <= b || nd_isnan(a) ? a : b; }
template <class T> ND_FUNCTION T nd_fmax(T a, T b) { return a >= b || nd_isnan(b) ? a : b; }
template <class T> ND_FUNCTION T nd_fmin(T a, T b) { return a <= b || nd_isnan(b) ? a : b; }
template <class T> ND_FUNCTION T nd_sign_real(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a; }
template <class T> ND_FUNCTION T nd_heaviside(T a, T b) {
  return nd_isnan(a) ? nd_nan<T>() : a == 0 ? b : a < 0 ? (T)0 : (T)1;
}
template <class T> ND_FUNCTION T nd_divmod_real(T a, T b, T* modulo) {
  T m = fmod(a, b);
  if (b == 0) { *modulo = m; return a / b; }
  T quotient = (a - m) / b;
  if (m != 0) {
    if ((b < 0) != (m < 0)) { m += b; quotient -= (T)1; }
  } else {
    m = copysign((T)0, b);
  }
  T whole;
  if (quotient != 0) {
    whole = floor(quotient);
    if (quotient - whole > (T)0.5) whole += (T)1;
  } else {
    whole = copysign((T)0, a / b);
  }
  *modulo = m;
  return whole;
}
template <class T> ND_FUNCTION T nd_floor_divide_real(T a, T b) { T m; return nd_divmod_real(a, b, &m); }
template <class T> ND_FUNCTION T nd_remainder_real(T a, T b) { T m; nd_divmod_real(a, b, &m); return m; }
template <class T> ND_FUNCTION T nd_fraction(T a) {
  return nd_isnan(a) ? a : copysign(nd_isinf(a) ? (T)0 : a - trunc(a), a);
}
template <class T> ND_FUNCTION T nd_logaddexp(T a, T b) {
  if (a == b) return a + (T)0.693147180559945309417232121458176568;
  const T d = a - b;
  if (d > 0) return a + log1p(exp(-d));
  if (d <= 0) return b + log1p(exp(d));
  return d;
}
template <class T> ND_FUNCTION T nd_logaddexp2(T a, T b) {
  if (a == b) return a + (T)1;
  const T d = a - b, scale = (T)1.442695040888963407359924681001892137;
  if (d > 0) return a + scale * log1p(exp2(-d));
  if (d <= 0) return b + scale * log1p(exp2(d));
  return d;
}
"""

COMPLEX = r"""
// -- complex numbers, as NumPy has them (Smith's division; ordered by real, then imaginary part) ----------------------
template <class C, class T> ND_FUNCTION C nd_complex(T re, T im) { C z; z.re = re; z.im = im; return z; }
template <class C> ND_FUNCTION C nd_cadd(C a, C b) { a.re += b.re; a.im += b.im; return a; }
template <class C> ND_FUNCTION C nd_csubtract(C a, C b) { a.re -= b.re; a.im -= b.im; return a; }
// As NumPy's loops do it on x86 with vectors: contracted in this place, whatever the compiler's setting.
template <class C> ND_FUNCTION C nd_cmultiply(C a, C b) {
  C z; z.re = fma(a.re, b.re, -(a.im * b.im)); z.im = fma(a.re, b.im, a.im * b.re); return z;
}
template <class C> ND_FUNCTION C nd_cdivide(C a, C b) {
  C z;
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0 && b.im == 0) { z.re = a.re / fabs(b.re); z.im = a.im / fabs(b.re); return z; }
    const auto ratio = b.im / b.re;
    const auto scale = 1 / (b.re + b.im * ratio);
    z.re = (a.re + a.im * ratio) * scale; z.im = (a.im - a.re * ratio) * scale;
  } else {
    const auto ratio = b.re / b.im;
    const auto scale = 1 / (b.im + b.re * ratio);
    z.re = (a.re * ratio + a.im) * scale; z.im = (a.im * ratio - a.re) * scale;
  }
  return z;
}
template <class C> ND_FUNCTION C nd_creciprocal(C a) {
  C z;
  if (fabs(a.im) <= fabs(a.re)) {
    const auto r = a.im / a.re, d = a.re + a.im * r;
    z.re = 1 / d; z.im = -r / d;
  } else {
    const auto r = a.re / a.im, d = a.re * r + a.im;
    z.re = r / d; z.im = -1 / d;
  }
  return z;
}
template <class C> ND_FUNCTION C nd_cnegative(C a) { a.re = -a.re; a.im = -a.im; return a; }
template <class C> ND_FUNCTION C nd_cconjugate(C a) { a.im = -a.im; return a; }
ND_FUNCTION float nd_cabs(nd_c8 a) { return hypot(a.re, a.im); }
ND_FUNCTION double nd_cabs(nd_c16 a) { return hypot(a.re, a.im); }
template <class C> ND_FUNCTION bool nd_cisnan(C a) { return nd_isnan(a.re) || nd_isnan(a.im); }
template <class C> ND_FUNCTION bool nd_cisinf(C a) { return nd_isinf(a.re) || nd_isinf(a.im); }
template <class C> ND_FUNCTION bool nd_cisfinite(C a) { return nd_isfinite(a.re) && nd_isfinite(a.im); }
template <class C> ND_FUNCTION bool nd_cequal(C a, C b) { return a.re == b.re && a.im == b.im; }
template <class C> ND_FUNCTION bool nd_cless(C a, C b) {
  return (a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im < b.im);
}
template <class C> ND_FUNCTION bool nd_cless_equal(C a, C b) {
  return (a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im <= b.im);
}
template <class C> ND_FUNCTION bool nd_ctrue(C a) { return a.re != 0 || a.im != 0; }
template <class C> ND_FUNCTION C nd_cmaximum(C a, C b) {
  return nd_cisnan(a) || (!nd_cisnan(b) && nd_cless_equal(b, a)) ? a : b;
}
template <class C> ND_FUNCTION C nd_cminimum(C a, C b) {
  return nd_cisnan(a) || (!nd_cisnan(b) && nd_cless_equal(a, b)) ? a : b;
}
template <class C> ND_FUNCTION C nd_cfmax(C a, C b) {
  return nd_cisnan(b) || (!nd_cisnan(a) && nd_cless_equal(b, a)) ? a : b;
}
template <class C> ND_FUNCTION C nd_cfmin(C a, C b) {
  return nd_cisnan(b) || (!nd_cisnan(a) && nd_cless_equal(a, b)) ? a : b;
}
"""

HEADER = PRELUDE + INTEGERS + REALS + COMPLEX
