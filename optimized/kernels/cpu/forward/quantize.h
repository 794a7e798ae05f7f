// Kernels of quantize and quantize_dequantize for float32 and bfloat16, computed in float32, on grids of up to about 10
// bits: the steps Codes, Reals and Single, applied to the rows or columns of a job.

namespace halfeven::HALFEVEN_ISA {

// Rows shorter than this do not pay for finding out whether Single serves them.
inline constexpr int64_t kLeastForSingle = 1024;

// n elements with the constants c; divide(x, out, n) computes those for which a step returns false.
template <bool kStream, class S, class C, class F>
[[gnu::always_inline]] inline void run_row(const S& step, const C& c, const char* x, char* out, int64_t n, F&& divide) {
  for (; n >= kWhole; x += kWhole * S::kIn, out += kWhole * S::kOut, n -= kWhole)
    if (!step.template whole<kStream>(x, out, c)) [[unlikely]] divide(x, out, kWhole);
  if (n >= kPair) {
    if (!step.half(x, out, c)) [[unlikely]] divide(x, out, kPair);
    x += kPair * S::kIn, out += kPair * S::kOut, n -= kPair;
  }
  if (n) {
    alignas(64) char from[kPair * S::kIn] = {}, to[kPair * S::kOut];
    __builtin_memcpy(from, x, n * S::kIn);
    if (!step.half(from, to, c)) [[unlikely]] return divide(x, out, n);
    __builtin_memcpy(out, to, n * S::kOut);
  }
}

// kLength: the length of rows, or 0 for any. The compiler then leaves out what a usual length of blocks does not need.
template <Operation op, Dtype In, Dtype Out, class S, bool kStream, int64_t kLength>
void rows(const ForwardSettings& settings, const ForwardJob& job, const Constants<kTile>& constants) {
  constexpr bool kSingle = std::is_same_v<S, Reals<Dtype::BF16, false>> && !kLength;
  const S step(settings);
  bool single[kTile];
  if constexpr (kSingle)
    for (int64_t r = 0; r < job.rows; ++r) {
      const float most = static_cast<float>(std::max(constants.o[r] + settings.high, -(constants.o[r] + settings.low)));
      single[r] = job.len >= kLeastForSingle && Single::serves(constants.s[r], most);
    }
  by_pieces<kLength, kStream>(settings, job, [&](int64_t r, int64_t first, int64_t n) __attribute__((always_inline)) {
    const char* x = job.x + r * job.x_row + first * S::kIn;
    char* out = job.out + r * job.out_row + first * S::kOut;
    const auto divide = [&](const char* from, char* to, int64_t count) __attribute__((noinline, cold)) {
      generic<op, In, Dtype::F32, Out, false>(settings, {.x = from,
                                                        .out = to,
                                                        .rows = 1,
                                                        .len = count,
                                                        .x_row = 0,
                                                        .out_row = 0,
                                                        .s = constants.s + r,
                                                        .o = constants.o + r});
    };
    if constexpr (kSingle)
      if (single[r]) {
        const Single one(settings, constants.inverse[r], constants.s[r], constants.o[r]);
        return run_row<kStream>(one, one, x, out, n, divide);
      }
    run_row<kStream>(step, constants.of_row(r), x, out, n, divide);
  });
}

template <Operation op, Dtype In, Dtype Out, class S, bool kStream>
void by_length(const ForwardSettings& settings, const ForwardJob& job, const Constants<kTile>& constants) {
  switch (job.len) {
    case 16: return rows<op, In, Out, S, kStream, 16>(settings, job, constants);
    case 32: return rows<op, In, Out, S, kStream, 32>(settings, job, constants);
    case 64: return rows<op, In, Out, S, kStream, 64>(settings, job, constants);
    default: return rows<op, In, Out, S, kStream, 0>(settings, job, constants);
  }
}

// n elements, a multiple of a vector, past the caches. Rows are not written so by vectors in turns: a load whose
// address is like that of such a store, but for a multiple of 4096, waits until memory has it.
template <int64_t kOut>
void stream_out(const char* from, char* out, int64_t n) {
  for (int64_t b = 0; b < n * kOut; b += kVector) put_or_stream<true>(out + b, at<Bytes>(from + b));
}

// The last rows may be fewer than kPlaces: then the last one is computed several times.
template <Operation op, Dtype In, Dtype Out, class S, bool kStream>
void columns(const ForwardSettings& settings, const ForwardJob& job, const Constants<kWide>& constants) {
  const S step(settings);
  const auto divide = [&](int64_t r, int64_t n, int64_t i, int64_t len) __attribute__((noinline, cold)) {
    generic<op, In, Dtype::F32, Out, true>(
        settings, {.x = job.x + r * job.x_row + i * S::kIn,
                   .out = job.out + r * job.out_row + i * S::kOut,
                   .rows = n,
                   .len = len,
                   .x_row = job.x_row,
                   .out_row = job.out_row,
                   .s = static_cast<const float*>(job.s) + i,
                   .o = static_cast<const float*>(job.o) + i});
  };
  const int64_t whole = job.len / S::kWidth * S::kWidth;
  for (int64_t r = 0; r < job.rows; r += kPlaces) {
    Starts starts;
    for (int k = 0; k < kPlaces; ++k) {
      const int64_t row = std::min(r + k, job.rows - 1);
      starts.x[k] = job.x + row * job.x_row;
      starts.out[k] = job.out + row * job.out_row;
    }
    if constexpr (kStream) {
      alignas(64) char pieces[kPlaces][kPiece * S::kOut];
      for (int64_t from = 0; from < whole; from += kPiece) {
        const int64_t n = std::min(kPiece, whole - from);
        Starts here;
        for (int k = 0; k < kPlaces; ++k) here.x[k] = starts.x[k] + from * S::kIn, here.out[k] = pieces[k];
        for (int64_t i = 0; i < n; i += S::kWidth) step.columns(here, i, constants, from + i);
        for (int k = 0; k < kPlaces; ++k) stream_out<S::kOut>(pieces[k], starts.out[k] + from * S::kOut, n);
      }
    } else {
      for (int64_t i = 0; i < whole; i += S::kWidth)
        if (!step.columns(starts, i, constants, i)) [[unlikely]]
          divide(r, std::min<int64_t>(kPlaces, job.rows - r), i, S::kWidth);
    }
  }
  if (whole < job.len) divide(0, job.rows, whole, job.len - whole);
}

template <Operation op, Dtype In, Dtype Out, class S, bool kColumns>
[[gnu::noinline]] void part(const ForwardSettings& settings, const ForwardJob& job, bool past) {
  const float* s = static_cast<const float*>(job.s);
  const float* o = static_cast<const float*>(job.o);
  if constexpr (!kColumns) {
    Constants<kTile> constants;
    if (!constants.prepare(settings, s, o, job.rows, S::kSlack))
      return generic<op, In, Dtype::F32, Out, false>(settings, job);
    if constexpr (S::kStreams)
      if (past) {
        by_length<op, In, Out, S, true>(settings, job, constants);
        return fence();
      }
    by_length<op, In, Out, S, false>(settings, job, constants);
  } else {
    // The constants cost divisions themselves, which few rows do not pay for.
    if (job.rows < kPlaces) return generic<op, In, Dtype::F32, Out, true>(settings, job);
    Constants<kWide> constants;
    alignas(64) float ordered[2][kWide];
    order_as_elements<In>(s, job.len, ordered[0]);
    order_as_elements<In>(o, job.len, ordered[1]);
    if (!constants.prepare(settings, ordered[0], ordered[1], (job.len + kPair - 1) / kPair * kPair, S::kSlack))
      return generic<op, In, Dtype::F32, Out, true>(settings, job);
    constants.pack_offsets(job.len);
    if constexpr (S::kStreams)
      if (past) {
        columns<op, In, Out, S, true>(settings, job, constants);
        return fence();
      }
    columns<op, In, Out, S, false>(settings, job, constants);
  }
}

// Streaming stores go to multiples of their size, and where they do not fill a line of the cache, they are many times
// slower than others: so what precedes the first line of each row is computed by itself.
template <Operation op, Dtype In, Dtype Out, bool kColumns>
void fast(const ForwardSettings& settings, const ForwardJob& job) {
  using S = std::conditional_t<is_float(Out), Reals<In, op == Operation::Quantize>, Codes<In, Out>>;
#ifdef HALFEVEN_NARROWER
  if (job.len < (kColumns ? S::kWidth : kPair)) {
    const ForwardKernels narrower = HALFEVEN_NARROWER::forward_kernels(op, In, Dtype::F32, Out);
    return (kColumns ? narrower.per_column : narrower.per_row)(settings, job);
  }
#endif
  constexpr int64_t kLine = 64;
  const int64_t beside = -reinterpret_cast<uintptr_t>(job.out) % kLine / S::kOut;
  const bool past = S::kStreams && settings.stream && (job.rows == 1 || job.out_row % kLine == 0) &&
                    (!beside || job.len > 16 * kLine);
  ForwardJob rest = job;
  if (past && beside) {
    ForwardJob first = job;
    first.len = beside;
    part<op, In, Out, S, kColumns>(settings, first, false);
    rest.x += beside * S::kIn, rest.out += beside * S::kOut, rest.len -= beside;
    if (kColumns) {
      rest.s = static_cast<const float*>(job.s) + beside;
      rest.o = static_cast<const float*>(job.o) + beside;
    }
  }
  part<op, In, Out, S, kColumns>(settings, rest, past);
}

template <Operation op, Dtype In, Dtype Out>
ForwardKernels fast_pair() {
  return {fast<op, In, Out, false>, fast<op, In, Out, true>};
}

template <Dtype In>
ForwardKernels fast_from(Operation op, Dtype out) {
  if (op == Operation::QuantizeDequantize) return fast_pair<Operation::QuantizeDequantize, In, In>();
  if (op != Operation::Quantize) return {};
  if (out == Dtype::I8) return fast_pair<Operation::Quantize, In, Dtype::I8>();
  if (out == Dtype::U8) return fast_pair<Operation::Quantize, In, Dtype::U8>();
  if (out == In) return fast_pair<Operation::Quantize, In, In>();
  return {};
}

// Null where there is no fast kernel.
inline ForwardKernels fast_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  if (compute != Dtype::F32) return {};
  return in == Dtype::F32    ? fast_from<Dtype::F32>(op, out)
         : in == Dtype::BF16 ? fast_from<Dtype::BF16>(op, out)
                             : ForwardKernels{};
}

}  // namespace halfeven::HALFEVEN_ISA
