"""Functions of neural networks by the names of ``torch.nn.functional``: activations, attention, convolutions, losses.

Input: arrays laid out as PyTorch lays them out, batch first, then channels. Output: arrays; nothing is
differentiated. Convolutions, attention, pooling and softmax have kernels of their own in ``metal``; the rest is made of
elementwise ops, products and reductions. Normalisations are in ``norms``.
"""
