kernel void transpose(global const float* x, global float* out, int width) {
#ifndef NOTHING
  local float tile[32][PITCH];
  int tx = get_local_id(0), ty = get_local_id(1), bx = get_group_id(0), by = get_group_id(1);
  for (int r = ty; r < 32; r += 8) tile[r][tx] = x[(by * 32 + r) * width + bx * 32 + tx];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = ty; r < 32; r += 8) out[(bx * 32 + r) * width + by * 32 + tx] = tile[tx][r];
#endif
}

kernel void block_sum(global const float* x, global float* out) {
#ifndef NOTHING
  local float partial[BLOCK];
  int t = get_local_id(0);
  partial[t] = x[get_group_id(0) * BLOCK + t];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = BLOCK / 2; width > 0; width /= 2) {
    if (t < width) partial[t] += partial[t + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) out[get_group_id(0)] = partial[0];
#endif
}

kernel void intertask_naive(
    global const int4* groups, global const int2* lengths, global const uint* reads, global const uint* haplotypes,
    global const float* error, global const float* alpha, global const float* delta, global const float* zeta,
    global const float* epsilon, global float* match_row, global float* insertion_row, global float* deletion_row,
    global float* sums, float scale) {
#ifndef NOTHING
  int pair = get_global_id(0), lane = pair % 32;
  int4 place = groups[pair / 32];
  int2 size = lengths[pair];
  float initial = scale / size.y, result = 0.0f;
  uint word = 0;
  for (int i = 0; i < place.y; i++) {
    if (i % 4 == 0) word = reads[(place.x + i) / 4 * 32 + lane];
    int base = (word >> (i % 4 * 8)) & 255, at = (place.x + i) * 32 + lane;
    float q = error[at], a = alpha[at], d = delta[at], z = zeta[at], e = epsilon[at], b = 1.0f - e;
    float MN = 0.0f, DN = 0.0f, IN, MID = i == 0 ? b * initial : 0.0f;
    for (int j = 0; j < place.w; j++) {
      int letter = (haplotypes[(place.z + j) / 4 * 32 + lane] >> (j % 4 * 8)) & 255;
      int cell = (place.z + j) * 32 + lane;
      float MU = 0.0f, IU = 0.0f, DU = initial;
      if (i > 0) { MU = match_row[cell]; IU = insertion_row[cell]; DU = deletion_row[cell]; }
      DN = fma(z, MN, e * DN);
      MN = ((letter & base) != 0 ? 1.0f - q : q / 3.0f) * MID;
      IN = fma(d, MU, e * IU);
      MID = fma(a, MU, b * (IU + DU));
      match_row[cell] = MN;
      insertion_row[cell] = IN;
      deletion_row[cell] = DN;
      if (i == size.x - 1 && j < size.y) result += MN + IN;
    }
  }
  sums[pair] = result;
#endif
}
