// What the kernels compute, element by element.
#pragma once

#include <cstdint>

namespace halfeven {

enum class Operation : int8_t { Quantize, QuantizeDequantize, QuantizeDequantizeShifted, Dequantize };

enum class Gradient : int8_t { Quantize, Dequantize, QuantizeDequantize };

}  // namespace halfeven
