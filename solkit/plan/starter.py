"""The file that `solkit new shapes` writes: short, commented, and ready to run."""

SHAPES = """\
# A sweep for solkit: which operators to measure, at which shapes.
#   solkit plan --shapes FILE --gpu h200    what each case costs at best, with no GPU
#   solkit run --shapes FILE                measure, score and report
version: 1

# What a sweep does not say itself: dtype (fp32, fp16, bf16, fp64) and kernels.
# Without any dtype an operator takes its first; without kernels, all that run on the device.
defaults: {dtype: [bf16, fp32]}

sweeps:                                  # `solkit list` shows operators, their axes and params
  - operator: matmul_add
    params: {weight: [kn, nk]}           # a list sweeps; a param left out has its first value
    shapes:                              # explicit points, with every axis
      - {M: 256, N: 1024, K: 1024}
      - {M: 1024, N: 2560, K: 2560}

  - operator: add_rmsnorm
    # kernels: [solkit]                  # name kernels to compare or to leave out
    grid:                                # the product of lists and ranges
      rows: {from: 16, to: 1024, factor: 8}   # 16, 128, 1024; `step: 16` adds instead
      cols: [2560]

  - operator: softmax
    dtype: fp32                          # this sweep's own dtype
    grid: {rows: [64, 1024], cols: 4096}
"""
