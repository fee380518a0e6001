"""PyTorch's scaled dot-product attention by its cuDNN and its flash backend.

Grouped queries are left to the backend (enable_gqa); pages are gathered first.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer
from peers.parts.shapes import whole_pages

BACKENDS = {"cudnn_sdpa": "CUDNN_ATTENTION", "flash_sdpa": "FLASH_ATTENTION"}
KERNELS = tuple(
    peer(
        name,
        "attention_decode",
        later("attention", "decode", backend),
        refuse=whole_pages,
        dtypes=("bf16", "fp16"),
        summary=f"F.scaled_dot_product_attention, {backend}",
    )
    for name, backend in BACKENDS.items()
)
