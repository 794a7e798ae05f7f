// Floats as integers that have their order, and the lesser and greater of two. Compiled once per instruction set, like
// arith.h, which comes before.
//
// The key of the bits b of a float32 is b ^ (b >> 31 & 0x7fffffff), and likewise of other widths. Keys order -0.0 below
// +0.0, and every NaN beyond the infinity of its sign. Magnitudes are b & 0x7fffffff.

namespace halfeven::HALFEVEN_ISA::reduce {

template <class K, bool kMagnitudes>
K key(K bits) {
  constexpr int kSign = 8 * sizeof(K) - 1;
  constexpr K kRest = static_cast<K>(~(K(1) << kSign));
  return static_cast<K>(kMagnitudes ? bits & kRest : bits ^ ((bits >> kSign) & kRest));
}

// By value: of std::min and std::max, which take references, the loops are an eighth slower.
template <class K>
K less(K a, K b) {
  return a < b ? a : b;
}

template <class K>
K more(K a, K b) {
  return a < b ? b : a;
}

}  // namespace halfeven::HALFEVEN_ISA::reduce
