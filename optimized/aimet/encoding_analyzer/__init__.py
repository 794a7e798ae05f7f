"""Analyzers, which find the range of a grid from what they observe."""

from halfeven.optimized.aimet.encoding_analyzer.base import (
    EncodingAnalyzer,
    StatisticsNotFoundError,
    adjust_min_max,
    flag_extreme_min_max,
)
from halfeven.optimized.aimet.encoding_analyzer.minmax import MinMaxEncodingAnalyzer
from halfeven.optimized.aimet.encoding_analyzer.percentile import PercentileEncodingAnalyzer
from halfeven.optimized.aimet.encoding_analyzer.sqnr import SqnrEncodingAnalyzer, TfEnhancedEncodingAnalyzer

__all__ = [
    "EncodingAnalyzer",
    "MinMaxEncodingAnalyzer",
    "PercentileEncodingAnalyzer",
    "SqnrEncodingAnalyzer",
    "StatisticsNotFoundError",
    "TfEnhancedEncodingAnalyzer",
    "adjust_min_max",
    "flag_extreme_min_max",
]
