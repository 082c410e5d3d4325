"""Statistics: mean and variance, medians and quantiles, histograms, covariances.

Input: arrays of numbers. Output: arrays; means and variances of integers are float32. The NaN variants ignore NaN.
"""
