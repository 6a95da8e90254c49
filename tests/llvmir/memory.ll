;;;; memory head
@first = addrspace(3) global [32 x i32] undef
@dynamic = external addrspace(3) global [0 x float]
@more = external addrspace(3) global [0 x float]
@table = constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.nvvm.barrier0.popc(i32)
declare double @__nv_frexp(double, ptr)
declare i32 @vprintf(ptr, ptr)
define void @kernel(%s) {
entry:
  %%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()

;;;; pointer into one of two arrays
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %p = phi ptr [ %x, %entry ], [ %q, %loop ]
  %q = phi ptr [ %y, %entry ], [ %p, %loop ]
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  %even = icmp eq i32 %n, 0
  %r = select i1 %even, ptr %q, ptr %p
  %to = getelementptr i32, ptr %r, i32 %t
  %old = load i32, ptr %to
  %new = add i32 %old, %n
  store i32 %new, ptr %to
  %ignored = atomicrmw add ptr %q, i32 1 monotonic

;;;; items of a structure are parameters
%n = extractvalue { i32, float } %pair, 0
%f = extractvalue { i32, float } %pair, 1
%fi = fptosi float %f to i32
%sum = add i32 %n, %fi
%to = getelementptr i32, ptr %out, i32 %t
store i32 %sum, ptr %to

;;;; fields of records are views
%record = getelementptr {i32, double}, ptr %x, i32 %t
%field = getelementptr {i32, double}, ptr %record, i32 0, i32 1
%a = load i32, ptr %record
%b = load double, ptr %field
%wide = sitofp i32 %a to double
%sum = fadd double %wide, %b
%to = getelementptr double, ptr %out, i32 %t
store double %sum, ptr %to

;;;; local memory with several sizes
%memory = alloca [4 x i32]
%from = getelementptr double, ptr %x, i32 %t
%value = load double, ptr %from
%second = getelementptr i32, ptr %memory, i32 2
store double %value, ptr %second
%odd = and i32 %t, 1
%place = add i32 %odd, 2
%half = getelementptr i32, ptr %memory, i32 %place
%word = load i32, ptr %half
%again = load double, ptr %second
%same = fcmp oeq double %again, %value
%result = select i1 %same, i32 %word, i32 -1
%to = getelementptr i32, ptr %out, i32 %t
store i32 %result, ptr %to

;;;; shared memory with several sizes
  %from = getelementptr double, ptr %x, i32 %t
  %value = load double, ptr %from
  %even = and i32 %t, 1
  %slot = lshr i32 %t, 1
  %own = getelementptr double, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %slot
  %first_lane = icmp eq i32 %even, 0
  br i1 %first_lane, label %write, label %join
write:
  store double %value, ptr %own
  br label %join
join:
  call void @llvm.nvvm.barrier0()
  %word = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %t
  %old = atomicrmw add ptr %word, i32 1 monotonic
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %old, ptr %to

;;;; copies of records
%memory = alloca [3 x i32]
%from = getelementptr [3 x i32], ptr %x, i32 %t
%to = getelementptr [3 x i32], ptr %out, i32 %t
call void @llvm.memcpy.p0.p0.i64(ptr align 4 %memory, ptr align 4 %from, i64 12, i1 false)
call void @llvm.memmove.p0.p0.i64(ptr align 8 %to, ptr align 4 %memory, i64 12, i1 false)

;;;; shared and constant memory and collectives
%from = getelementptr i32, ptr %x, i32 %t
%value = load i32, ptr %from
%own = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %t
store i32 %value, ptr %own
call void @llvm.nvvm.barrier0()
%mirror = sub i32 31, %t
%other = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %mirror
%a = load i32, ptr %other
%pair = call {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %a, i32 1, i32 31)
%below = extractvalue {i32, i1} %pair, 0
%big = icmp sgt i32 %value, 15
%lanes = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %big)
%count = call i32 @llvm.nvvm.barrier0.popc(i32 %t)
%index = and i32 %t, 3
%cell = getelementptr double, ptr @table, i32 %index
%constant = load double, ptr %cell
%whole = fptosi double %constant to i32
%s1 = add i32 %below, %lanes
%s2 = add i32 %s1, %count
%s3 = add i32 %s2, %whole
%to = getelementptr i32, ptr %out, i32 %t
store i32 %s3, ptr %to

;;;; dynamic shared arrays are one memory
%own = getelementptr float, ptr addrspacecast (ptr addrspace(3) @dynamic to ptr), i32 %t
%value = sitofp i32 %t to float
store float %value, ptr %own
call void @llvm.nvvm.barrier0()
%mirror = sub i32 31, %t
%other = getelementptr float, ptr addrspacecast (ptr addrspace(3) @more to ptr), i32 %mirror
%a = load float, ptr %other
%bytes = call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()
%size = sitofp i32 %bytes to float
%sum = fadd float %a, %size
%to = getelementptr float, ptr %out, i32 %t
store float %sum, ptr %to

;;;; addresses and parameters
store i32 1, ptr %none
%number = ptrtoint ptr %x to i64
%low = trunc i64 %number to i32
%wide = zext i32 %u to i64
%half = trunc i64 %size to i32
%s1 = add i32 %low, %half
%null = icmp eq ptr %x, null
%s2 = select i1 %null, i32 -1, i32 %s1
%s3 = lshr i32 %u, 31
%own = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 2
%second = ptrtoint ptr %own to i64
%distance = sub i64 %second, ptrtoint (ptr addrspace(3) @first to i64)
%between = trunc i64 %distance to i32
%s5 = add i32 %s3, %between
%s4 = add i32 %s2, %s5
%to = getelementptr i32, ptr %out, i32 %t
store i32 %s4, ptr %to

;;;; printf
%buffer = alloca {i32, double}
store i32 %t, ptr %buffer
%second = getelementptr {i32, double}, ptr %buffer, i32 0, i32 1
store double 2.5, ptr %second
%printed = call i32 @vprintf(ptr @format, ptr %buffer)
store i32 0, ptr %out

;;;; threads that returned wait at no barrier
  %inside = icmp ult i32 %t, 20
  br i1 %inside, label %next, label %leave
leave:
  br label %end
next:
  %odd = icmp eq i32 %t, 7
  br i1 %odd, label %skip, label %work
skip:
  br label %end
work:
  call void @llvm.nvvm.barrier0()
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %t, ptr %to
  br label %end
end:

;;;; bits of a vector of i1 and addresses in shared memory
  %place = shl i32 %t, 3
  %own = getelementptr i8, ptr addrspace(3) @first8, i32 %place
  %from = getelementptr i32, ptr %x, i32 %t
  %number = ptrtoint ptr %from to i64
  store i64 %number, ptr addrspace(3) %own, align 8
  call void @llvm.nvvm.barrier0()
  %other = xor i32 %place, 8
  %at = getelementptr i8, ptr addrspace(3) @first8, i32 %other
  %read = load i64, ptr addrspace(3) %at, align 8
  %back = inttoptr i64 %read to ptr
  %value = load i32, ptr %back
  call void @llvm.nvvm.barrier0()
  store i32 %value, ptr addrspace(3) %own, align 4
  %bits = load <32 x i1>, ptr addrspace(3) %own, align 4
  %first = extractelement <32 x i1> %bits, i64 0
  %ninth = extractelement <32 x i1> %bits, i64 8
  %both = bitcast i32 %value to <32 x i1>
  %fifth = extractelement <32 x i1> %both, i64 4
  %a = select i1 %first, i32 1, i32 0
  %b = select i1 %ninth, i32 2, i32 0
  %c = select i1 %fifth, i32 4, i32 0
  %ab = or i32 %a, %b
  %abc = or i32 %ab, %c
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %abc, ptr %to
