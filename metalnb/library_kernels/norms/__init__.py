"""Norms: of vectors, and the normalizations of neural networks (layer, RMS, batch, group, instance).

Input: arrays, with weights and biases. Output: arrays; sums are taken in float32. Norms of matrices are in
`metalnb.linalg`.
"""
