// Thrust declares the types of halves as structs; in `device.h` they are types of the compiler.
#define __half simtbed_thrust_half
#define __half2 simtbed_thrust_half2
#include_next <thrust/type_traits/is_trivially_relocatable.h>
#undef __half
#undef __half2
