"""Norms: of vectors, and the normalisations of neural networks (layer, RMS, batch, group, instance).

Comes in: arrays, with weights and biases. Goes out: arrays; sums are taken in float32. Norms of matrices are in
`metalnb.linalg`.
"""
