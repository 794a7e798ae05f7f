// Rows and columns of a job, several places at a time.
//
// Memory answers several streams of loads sooner than one: what is larger than the caches is read at kPlaces places
// in turns, a piece at each. Columns take as many rows at once in any case, so that their constants are loaded once for
// all of them.

namespace halfeven::HALFEVEN_ISA {

inline constexpr int kPlaces = 4;
inline constexpr int64_t kPiece = 256;  // elements

// Where as many rows start.
struct Starts {
  const char* x[kPlaces];
  char* out[kPlaces];
};

// Calls piece(row, first element, elements) for all of a job, a piece at each of the places in turns.
template <int64_t kLength, bool kStream, class F>
[[gnu::always_inline]] inline void by_pieces(const ForwardSettings& settings, const ForwardJob& job, F&& piece) {
  const int64_t len = kLength ? kLength : job.len;
  int64_t r = 0;
  // Streaming stores that leave a page after fewer bytes than a piece are many times slower than others.
  const int64_t of_each = settings.far && !(kStream && len < kPiece) ? job.rows / kPlaces : 0;
  for (; r < of_each; ++r)
    for (int64_t i = 0; i < len; i += kPiece)
      for (int k = 0; k < kPlaces; ++k) piece(r + k * of_each, i, std::min(kPiece, len - i));
  r = of_each * kPlaces;
  for (; r < job.rows; ++r) {
    const int64_t each = settings.far && len >= kPlaces * kPiece ? len / (kPlaces * kPiece) * kPiece : 0;
    for (int64_t i = 0; i < each; i += kPiece)
      for (int k = 0; k < kPlaces; ++k) piece(r, k * each + i, kPiece);
    piece(r, each * kPlaces, len - each * kPlaces);
  }
}

}  // namespace halfeven::HALFEVEN_ISA
