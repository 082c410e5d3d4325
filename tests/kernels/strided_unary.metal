// A unary operation from an array of any shape and strides into a dense one: the element's position comes from the grid
// for up to three dimensions, and from divisions of its index for more. Operations are types with a call operator.
#include <metal_math>
#include <metal_stdlib>
using namespace metal;

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc(IdxT elem, constant const int* shape, constant const int64_t* strides, int ndim) {
  IdxT loc = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    loc += (elem % shape[i]) * IdxT(strides[i]);
    elem /= shape[i];
  }
  return loc;
}

template <typename IdxT = int64_t>
METAL_FUNC IdxT elem_to_loc_2(uint2 elem, constant const int64_t strides[2]) {
  return elem.x * IdxT(strides[1]) + elem.y * IdxT(strides[0]);
}

struct Negative {
  template <typename T>
  T operator()(T x) {
    return -x;
  };
};

struct Square {
  template <typename T>
  T operator()(T x) {
    return x * x;
  };
};

struct Sigmoid {
  template <typename T>
  T operator()(T x) {
    auto y = 1 / (1 + metal::exp(metal::abs(x)));
    return (x < 0) ? y : 1 - y;
  }
};

struct BitwiseInvert {
  template <typename T>
  T operator()(T x) {
    return ~x;
  };
  bool operator()(bool x) {
    return !x;
  };
};

template <typename T, typename U, typename Op>
[[kernel]] void unary_g(
    device const T* in,
    device U* out,
    constant const int* in_shape,
    constant const int64_t* in_strides,
    device const int& ndim,
    uint3 index [[thread_position_in_grid]],
    uint3 grid_dim [[threads_per_grid]]) {
  auto idx = index.x + int64_t(grid_dim.x) * (index.y + int64_t(grid_dim.y) * index.z);
  auto loc = elem_to_loc<int64_t>(idx, in_shape, in_strides, ndim);
  out[idx] = Op()(in[loc]);
}

template <typename T, typename U, typename Op>
[[kernel]] void unary_g2(
    device const T* in,
    device U* out,
    constant const int64_t in_strides[2],
    uint2 index [[thread_position_in_grid]],
    uint2 grid_dim [[threads_per_grid]]) {
  out[index.x + int64_t(grid_dim.x) * index.y] = Op()(in[elem_to_loc_2(index, in_strides)]);
}

#define instantiate_kernel(name, func, ...) \
  template [[host_name(                     \
      name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

#define instantiate_unary(op, tname, type)                    \
  instantiate_kernel("g_" #op #tname, unary_g, type, type, op) \
  instantiate_kernel("g2_" #op #tname, unary_g2, type, type, op)

instantiate_unary(Negative, float32, float)
instantiate_unary(Negative, int64, int64_t)
instantiate_unary(Square, float16, half)
instantiate_unary(Sigmoid, float32, float)
instantiate_unary(BitwiseInvert, uint8, uint8_t)
instantiate_unary(BitwiseInvert, bool_, bool)
