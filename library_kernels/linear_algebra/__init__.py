"""Products of matrices and sums of products: matmul, tensordot, einsum, trace. Factorisations are in `metalnb.linalg`.

Comes in: arrays of numbers. Goes out: arrays; ``launching.product_launch`` starts the products.
"""
