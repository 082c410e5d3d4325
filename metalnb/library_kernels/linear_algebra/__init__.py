"""Products of matrices and sums of products: matmul, tensordot, einsum, trace. Factorizations are in `metalnb.linalg`.

Input: arrays of numbers. Output: arrays; ``launching.product_launch`` starts the products.
"""
