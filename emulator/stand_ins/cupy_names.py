"""Names of CuPy that are NumPy's, as texts of words."""

METHODS = """
all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten item max mean min nonzero prod ptp
put ravel repeat reshape round sort squeeze std sum swapaxes take tobytes tolist trace transpose var view
"""
"""Methods of arrays."""
OPERATORS = """
add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror xor rxor lshift
rlshift rshift rrshift neg pos abs invert eq ne lt le gt ge
"""
"""Operators of arrays."""
IN_PLACE = """
iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift
"""
"""Operators that change an array."""
CONVERSIONS = """
bool int float complex index
"""
"""Conversions of arrays with one element."""
FUNCTIONS = """
abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
argsort argwhere around array_equal array_split atleast_1d atleast_2d atleast_3d average bincount bitwise_and bitwise_or
bitwise_xor broadcast_arrays broadcast_to cbrt ceil clip column_stack concatenate conj conjugate convolve copysign copyto corrcoef
correlate cos cosh count_nonzero cov cross cumprod cumsum deg2rad degrees diag diagonal diff digitize divide divmod dot dstack
einsum empty empty_like equal exp exp2 expand_dims expm1 eye fabs fill_diagonal flip fliplr flipud floor floor_divide fmax fmin
fmod frexp full full_like gradient greater greater_equal histogram hstack hypot identity imag in1d indices inner interp invert
isclose isfinite isin isinf isnan isreal kron ldexp left_shift less less_equal linspace log log10 log1p log2 logaddexp logical_and
logical_not logical_or logical_xor logspace matmul max maximum mean median meshgrid min minimum mod moveaxis multiply nan_to_num
nanmax nanmean nanmin nansum negative nonzero not_equal ones ones_like outer packbits pad percentile positive power prod ptp
quantile rad2deg radians ravel real reciprocal remainder repeat reshape right_shift rint roll rollaxis rot90 round searchsorted
sign signbit sin sinc sinh sort split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot
tile trace transpose trapezoid tri tril triu true_divide trunc unique unravel_index var vdot vsplit vstack where zeros zeros_like
apply_along_axis argpartition array_equiv bartlett bitwise_count blackman broadcast_shapes choose compress delete diag_indices diagflat
dsplit ediff1d extract fix flatnonzero float_power gcd hamming hanning heaviside histogram2d histogramdd hsplit i0 intersect1d
iscomplex iscomplexobj isneginf isposinf isrealobj ix_ kaiser lcm lexsort logaddexp2 may_share_memory modf nanargmax nanargmin
nancumprod nancumsum nanmedian nanprod nanstd nanvar nextafter partition piecewise place poly polyadd polyfit polymul polysub polyval
put put_along_axis putmask ravel_multi_index resize result_type roots select setdiff1d setxor1d shape shares_memory size tril_indices
tril_indices_from trim_zeros triu_indices triu_indices_from union1d unpackbits unwrap vander
"""
"""Functions of arrays."""
CONSTANTS = """
bool_ byte complex128 complex64 complexfloating double dtype e euler_gamma finfo float16 float32 float64 floating iinfo inf int16
int32 int64 int8 intc int_ integer intp nan newaxis pi promote_types single uint uint16 uint32 uint64 uint8 uintc uintp issubdtype
"""
"""Types, numbers and functions of types."""
RANDOM = """
beta binomial chisquare choice dirichlet exponential gamma geometric gumbel integers laplace logistic lognormal multinomial
multivariate_normal normal pareto permutation poisson rand randint randn random random_sample rayleigh seed
shuffle standard_exponential standard_normal triangular uniform weibull
"""
"""Functions of `cupy.random`."""
LINALG = """
cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr slogdet solve svd tensorinv tensorsolve
"""
"""Functions of `cupy.linalg`."""
FFT = """
fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
"""
"""Functions of `cupy.fft`."""
TESTING = """
assert_allclose assert_array_almost_equal assert_array_almost_equal_nulp assert_array_equal assert_array_less assert_array_max_ulp
"""
"""Functions of `cupy.testing`."""
