"""The words of the section of benchmarks/README.md on MatMul + residual."""

SUMMARY = """\
### Bars and results

A figure is solkit's time over another's, so **below 1.00 x solkit is the faster one** (in the
tables above it is the other way round). The fastest peer is the fastest of all that have a right
result in the shape, cublasLt by the best of its eight algorithms included. `stretch` is what the
kernel aims at beyond its bar.

Kernels are timed in turn, in batches of 5 ms that each begin on a rested chip (`--settle burst`).
Products of this size that run on and on reach the power limit, and all of them are slower then.
"""

PEERS = """\
### Peer by peer

The geometric mean of solkit's time over each peer's, in the shapes that both have a time in, and
in how many shapes the peer is the fastest of all peers. Peers that tune themselves compile and time
their configurations for every shape, so they are measured in twelve of them.

- **cublaslt**, **cublaslt_best**: cublasLt called directly, with 64 MiB of workspace and the
  residual as C, with beta = 1 and apart from D: its own choice of algorithm, and the fastest of the
  eight that it proposes, timed with cold inputs at the first call.
- **torch**: `torch.addmm`, so cuBLAS after a copy of the residual into the output. **torch_eager**:
  `x @ w + residual`, a product and then an addition. **cupy**: a copy of the residual, then
  `cublasGemmEx` with beta = 1.
- **quack**, **quack_tuned**: quack's `gemm_add` by its default configuration, and by the fastest of
  all that it has for the card.
- **torch_compile**: Inductor's max-autotune, the fastest of its Triton products and cuBLAS.
  **triton**: a persistent product with TMA descriptors and the residual in its epilogue, by the
  fastest of eight tiles ([peers/parts/triton_calls.py](peers/parts/triton_calls.py)).
"""

TABLES = """\
### Every shape of the product

Times of solkit and of every peer, the fastest peer in bold; `x` is solkit's time over the fastest
peer's, with the 95 % interval of the ratio. `w`: the weight is stored as [K, N] or as [N, K].
"""
