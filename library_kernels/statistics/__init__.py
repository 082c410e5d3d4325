"""Statistics: mean and variance, medians and quantiles, histograms, covariances.

Comes in: arrays of numbers. Goes out: arrays; means and variances of integers are float32. The NaN variants leave NaN
out.
"""
