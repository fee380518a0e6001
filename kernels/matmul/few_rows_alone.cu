// The products of few rows by themselves, to be compiled and measured apart from the others.
#include "few_rows.cuh"

using namespace solkit;
