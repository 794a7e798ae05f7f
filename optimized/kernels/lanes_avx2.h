// AVX2: rows and columns of a job, several places at a time.
//
// Memory answers several streams of loads sooner than one: what is larger than the caches is read at kLanes places in
// turns, a piece at each. Columns take as many rows at once in any case, so that their constants are loaded once for
// all of them.

namespace halfeven::HALFEVEN_ISA {

inline constexpr int kLanes = 4;
inline constexpr int64_t kPiece = 256;  // elements

// The starts of as many rows.
struct Lanes {
  const char* x[kLanes];
  char* out[kLanes];
};

// Calls piece(row, first element, elements) for all of a job, in the order in which memory likes it.
template <int64_t kLength, bool kStream, class F>
[[gnu::always_inline]] inline void by_pieces(const Grid& grid, const Job& job, F&& piece) {
  const int64_t len = kLength ? kLength : job.len;
  int64_t r = 0;
  if (grid.far && len < kPiece) {
    // Streaming stores that leave a page after so few bytes are many times slower than others.
    const int64_t each = kStream ? 0 : job.rows / kLanes;
    for (; r < each; ++r)
      for (int k = 0; k < kLanes; ++k) piece(r + k * each, 0, len);
    r = each * kLanes;
  } else if (grid.far && job.rows >= kLanes) {
    const int64_t each = job.rows / kLanes;
    for (; r < each; ++r)
      for (int64_t i = 0; i < len; i += kPiece)
        for (int k = 0; k < kLanes; ++k) piece(r + k * each, i, std::min(kPiece, len - i));
    r = each * kLanes;
  }
  for (; r < job.rows; ++r) {
    const int64_t each = grid.far && len >= kLanes * kPiece ? len / (kLanes * kPiece) * kPiece : 0;
    for (int64_t i = 0; i < each; i += kPiece)
      for (int k = 0; k < kLanes; ++k) piece(r, k * each + i, kPiece);
    piece(r, each * kLanes, len - each * kLanes);
  }
}

}  // namespace halfeven::HALFEVEN_ISA
