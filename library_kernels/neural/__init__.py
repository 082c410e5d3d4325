"""Functions of neural networks by the names of ``torch.nn.functional``: convolutions, norms, losses, attention.

Comes in: arrays laid out as PyTorch lays them out, batch first, then channels. Goes out: arrays; nothing is
differentiated. Each is a row under the decorator `op`. Convolutions, attention and pooling have kernels of their own in
``metal``, and the rest is made of elementwise ops and reductions. A new file is named in ``MODULES`` of ``table.py``.
"""
