// Precedes each text of a program: the headers of C, the declarations for kernels, the CUDA runtime.
#pragma once
#define SIMTBED_PROGRAM 1
#pragma clang force_cuda_host_device begin
#include <string.h>
#pragma clang force_cuda_host_device end
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <__algorithm/max.h>
#include <__algorithm/min.h>
#include "simtbed_device.h"
#include "runtime_types.h"
#include "simtbed_runtime.h"
#include "runtime_templates.h"
#include "driver_attributes.h"
#include "driver.h"
#include "cccl.h"
