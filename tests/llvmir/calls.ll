;;;; calls head
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define void @kernel(ptr %x, ptr %y, ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr T, ptr %x, i32 %t
  %py = getelementptr T, ptr %y, i32 %t
  %a = load T, ptr %px
  %b = load T, ptr %py

;;;; results through pointers
  %e = alloca i32
  %s = alloca double
  %c = alloca double
  %f = call double @__nv_frexp(double %a, ptr %e)
  call void @__nv_sincos(double %a, ptr %s, ptr %c)
  %pair = call {double, i32} @llvm.frexp.f64.i32(double %a)
  %fraction = extractvalue {double, i32} %pair, 0
  %exponent = extractvalue {double, i32} %pair, 1
  %wide = sitofp i32 %exponent to double
  %again = fadd double %fraction, %wide
  %power = load i32, ptr %e
  %sine = load double, ptr %s
  %cosine = load double, ptr %c
  %whole = sitofp i32 %power to double
  %s1 = fadd double %f, %whole
  %s2 = fmul double %sine, %cosine
  %s3 = fadd double %s1, %s2
  %s4 = fadd double %s3, %again
  %to = getelementptr double, ptr %out, i32 %t
  store double %s4, ptr %to
  ret void
}

;;;; half parameter passed as bits
define void @kernel(i16 %h, ptr %out) {
  %p = alloca i16
  %r = alloca i16
  store i16 %h, ptr %p
  %status = call i32 @_ZL6__habs6__half_nbst(ptr %r, ptr %p)
  %bits = load i16, ptr %r
  store i16 %bits, ptr %out
  ret void
}

;;;; helpers
define internal i64 @floor_mod(i64 %a, i64 %b) alwaysinline {
  %r = srem i64 %a, %b
  %other = xor i64 %r, %b
  %differ = icmp slt i64 %other, 0
  %some = icmp ne i64 %r, 0
  %fix = and i1 %differ, %some
  %moved = add i64 %r, %b
  %result = select i1 %fix, i64 %moved, i64 %r
  ret i64 %result
}
define internal i64 @floor_div(i64 %a, i64 %b) alwaysinline {
  %r = call i64 @floor_mod(i64 %a, i64 %b)
  %whole = sub i64 %a, %r
  %result = sdiv i64 %whole, %b
  ret i64 %result
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

;;;; functions of halves
  %pa = alloca i16
  %pb = alloca i16
  %pr = alloca i16
  %flag = alloca i8
  store i16 %a, ptr %pa
  store i16 %b, ptr %pb
  %status = call i32 @NAME(ptr %pr, ptr %pa, ptr %pb)
  %other = call i32 @_ZL5__hlt6__halfS__nbst(ptr %flag, ptr %pa, ptr %pb)
  %r = load i16, ptr %pr
  %less = load i8, ptr %flag
  %negative = icmp ne i8 %less, 0
  %sign = select i1 %negative, i16 -32768, i16 0
  %marked = xor i16 %r, %sign
  %to = getelementptr i16, ptr %out, i32 %t
  store i16 %marked, ptr %to
  ret void
}

;;;; rounding to halves
  %p = alloca float
  %h = alloca i16
  %s = alloca i16
  store float %a, ptr %p
  %status = call i32 @_ZL15__float2half_ROUNDINGf_nbst(ptr %h, ptr %p)
  %other = call i32 @_ZL15__half2short_ROUNDING6__half_nbst(ptr %s, ptr %h)
  %bits = load i16, ptr %h
  %short = load i16, ptr %s
  %low = zext i16 %bits to i32
  %wide = zext i16 %short to i32
  %high = shl i32 %wide, 16
  %both = or i32 %low, %high
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %both, ptr %to
  ret void
}

;;;; rounding of wide integers
  %p = alloca i64
  %h = alloca i16
  store i64 %a, ptr %p
  %status = call i32 @_ZLNAME_nbst(ptr %h, ptr %p)
  %bits = load i16, ptr %h
  %to = getelementptr i16, ptr %out, i32 %t
  store i16 %bits, ptr %to
  ret void
}
