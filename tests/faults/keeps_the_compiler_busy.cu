// Ten thousand conditions inside each other: the compiler's work grows with their square.

#define IF10                \
  if (x[1])                 \
    if (x[2])               \
      if (x[3])             \
        if (x[4])           \
          if (x[5])         \
            if (x[6])       \
              if (x[7])     \
                if (x[8])   \
                  if (x[9]) \
                    if (x[10])
#define IF100 IF10 IF10 IF10 IF10 IF10 IF10 IF10 IF10 IF10 IF10
#define IF1000 IF100 IF100 IF100 IF100 IF100 IF100 IF100 IF100 IF100 IF100
#define IF10000 IF1000 IF1000 IF1000 IF1000 IF1000 IF1000 IF1000 IF1000 IF1000 IF1000

extern "C" __global__ void deep(const float* x, float* y, long long rows, long long cols) {
  IF10000 y[0] = x[0];
}
