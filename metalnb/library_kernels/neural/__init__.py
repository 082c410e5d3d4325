"""Functions of neural networks by the names of ``torch.nn.functional``: activations, attention, convolutions, losses.

Input: arrays in PyTorch's layout, batch first, then channels. Output: arrays; nothing is differentiated. Convolutions,
attention, pooling and softmax have their own kernels in ``metal``; the rest is composed of elementwise ops, products
and reductions. Normalizations are in ``norms``.
"""
