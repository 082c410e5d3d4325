// MSL's keywords in C++ for OpenCL. Included before everything else, for every reader of a cell: $REFLECT is 1 for
// libclang, which looks for annotations, and 0 for the compiler, which needs none.
#pragma once

// A function may be a template's argument (MSL allows that; the front end refuses other pointers to functions).
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
// MSL allows bit-fields (1.5.4 lists what it refuses).
#pragma OPENCL EXTENSION __cl_clang_bitfields : enable

// MSL 4: address spaces. `thread` is the generic space, so that references to members through `this` convert.
#define device __attribute__((opencl_global_device))
#define threadgroup __local
#if $REFLECT
// Marks a written word, which the compiler would not distinguish from an omitted one.
#define constant const __global __attribute__((annotate("constant")))
#define thread __attribute__((annotate("thread")))
#else
#define constant const __global
#define thread
#endif

// The type that a reference to thread memory refers to (rewrite/thread_deduction.py).
template <class T> struct $thread_type { typedef T type; };
template <class T> struct $thread_type<__private T> { typedef T type; };
template <class T> struct $thread_type<__generic T> { typedef T type; };

// The deduced element type of an array in thread memory (rewrite/array_deduction.py), which must be T.
template <class E, class T> struct $thread_element {};
template <class T> struct $thread_element<T, T> { typedef int type; };
template <class T> struct $thread_element<__private T, T> { typedef int type; };
template <class T> struct $thread_element<__generic T, T> { typedef int type; };

// A string that is an argument, in the constant address space (rewrite/string_literals.py).
template <class T, T... characters> struct $text { static const __global T all[sizeof...(characters) + 1]; };
template <class T, T... characters>
const __global T $text<T, characters...>::all[sizeof...(characters) + 1] = {characters..., 0};
template <class T, T... characters> constexpr const __global T (&operator""_metalnb_text())[sizeof...(characters) + 1] {
    return $text<T, characters...>::all;
}

// The result of a member function for device or constant objects (rewrite/member_spaces.py).
template <class T> constexpr device T& $reference_device(__global T& x) { return (device T&)x; }
template <class T> constexpr device T* $pointer_device(__global T* x) { return (device T*)x; }
template <class T> constexpr device T& $reference_device(device T& x) { return x; }
template <class T> constexpr device T* $pointer_device(device T* x) { return x; }
template <class T> constexpr const __global T& $reference_constant(const __global T& x) { return x; }
template <class T> constexpr const __global T* $pointer_constant(const __global T* x) { return x; }

// Members for const objects of device and of constant memory both (rewrite/function_heads/space_overloads.py): a
// constant object appears volatile where such a member is called by the number of its name, and plain again in the
// member.
template <unsigned name> struct $named {};
template <unsigned name, class T, class = void> struct $is_overloaded { enum { value = false }; };
template <unsigned name, class T> struct $is_overloaded<name, T, decltype(T::$overloads($named<name>()))> { enum { value = true }; };
template <class T, bool overloaded> struct $seeming { typedef const __global T type; };
template <class T> struct $seeming<T, true> { typedef const volatile __global T type; };
template <unsigned name, class T> struct $object { typedef T&& type; };
template <unsigned name, class T> struct $object<name, const __global T&> {
    typedef typename $seeming<T, $is_overloaded<name, T>::value>::type& type;
};
template <unsigned name, class T> constexpr typename $object<name, T>::type $within(T&& x) {
    return static_cast<typename $object<name, T>::type>(x);
}
template <unsigned name, class T>
constexpr typename $seeming<T, $is_overloaded<name, T>::value>::type* $within_at(const __global T* x) {
    return x;
}
template <unsigned name, class T> constexpr T&& $within_at(T&& x) { return static_cast<T&&>(x); }
template <class T> constexpr const __global T* $steady(const volatile __global T* x) { return (const __global T*)x; }

// `a += b` in a template (rewrite/compound_assignments.py).
template <class T> struct $is_pointer { enum { value = false }; };
template <class T> struct $is_pointer<T*> { enum { value = true }; };
template <class A, class B> constexpr void $advance(A& a, const B& b) {
    if constexpr ($is_pointer<typename $thread_type<A>::type>::value && __is_class(typename $thread_type<B>::type)) a = a + b;
    else a += b;
}

// The alignment that a threadgroup variable requests, by a type or a number (rewrite/threadgroup_storage.py), and the
// strictest of several.
template <class T> constexpr __SIZE_TYPE__ $alignment() { return alignof(T); }
template <__SIZE_TYPE__ n> constexpr __SIZE_TYPE__ $alignment() { return n; }
constexpr __SIZE_TYPE__ $strictest(__SIZE_TYPE__ a) { return a; }
template <class... B> constexpr __SIZE_TYPE__ $strictest(__SIZE_TYPE__ a, __SIZE_TYPE__ b, B... more) {
    return $strictest(a < b ? b : a, more...);
}

// The first parameter of a constructor that applies to no object here (rewrite/constructor_spaces.py).
template <int> struct $nothing { $nothing() = delete; };

// An operand of ?: (rewrite/conditional_operands.py). It copies an object of a class that MSL treats as a value, and
// any object that is constant or not in thread memory, to thread memory; anything else is passed on.
template <class T> struct $referred { typedef T type; };
template <class T> struct $referred<T&> { typedef T type; };
template <class T> struct $varying { typedef T type; };
template <class T> struct $varying<const T> { typedef T type; };
template <class T> struct $place_of { typedef T type; enum { elsewhere = false }; };
template <class T> struct $place_of<__private T> { typedef T type; enum { elsewhere = false }; };
template <class T> struct $place_of<__generic T> { typedef T type; enum { elsewhere = false }; };
template <class T> struct $place_of<__global T> { typedef T type; enum { elsewhere = true }; };
template <class T> struct $place_of<device T> { typedef T type; enum { elsewhere = true }; };
template <class T> struct $place_of<__local T> { typedef T type; enum { elsewhere = true }; };
template <class T, bool copied> struct $handed { typedef T& type; };
template <class T> struct $handed<T, true> { typedef __private typename $place_of<typename $varying<T>::type>::type type; };
template <class T, bool object> struct $valued { typedef T type; };
template <class T> struct $valued<T, true> : $handed<T, true> {};  // to clang a call's value has no address space, another value has
template <class T> struct $chosen : $valued<T, __is_class(T)> {};
template <class T> struct $chosen<T&>
    : $handed<T, __is_class(T) && (__is_const(T) || $place_of<typename $varying<T>::type>::elsewhere)> {};
struct $either {
    template <class T> static constexpr typename $referred<T>::type::$copied $type(int);
    template <class T> static constexpr typename $chosen<T>::type $type(long);
    template <class T> constexpr decltype($type<T>(0)) operator->*(T&& x) const { return static_cast<T&&>(x); }
};
// The result of ?: in a cell with bfloats, converted back from its operand's class.
template <class T> constexpr T& $settled(T& x) { return x; }
template <class T> struct $original { typedef T type; };
template <class T> constexpr typename $original<T>::type $settled(T&& x) { return static_cast<T&&>(x); }

// The inputs that a cell declares at program scope, as its functions pass them on (analysis/scope_inputs.py).
template <class...> struct $scoped {};
template <class T, class... R> struct $scoped<T, R...> { T $first; $scoped<R...> $rest; };

// MSL 5.1, 5.2, 5.8
#if $REFLECT
#define kernel __attribute__((annotate("kernel")))
#define vertex __attribute__((annotate("vertex")))
#define fragment __attribute__((annotate("fragment")))
#define $attribute clang::annotate
#define is_function_constant_defined(name) true
struct $undetermined { template <class T> operator T() const; };
#define $initial(name) = $undetermined()
#else
#define kernel
#define $attribute(...)
#define is_function_constant_defined(name) $defined_##name
#define $initial(name) = $value_##name
#endif

// OpenCL's keywords, types and functions that are free for authors in MSL.
#define global $global
#define local $local
#define generic $generic
#define read_only $read_only
#define write_only $write_only
#define read_write $read_write
#define pipe $pipe
#define vec_step $vec_step
#define event_t $event_t
#define clk_event_t $clk_event_t
#define queue_t $queue_t
#define reserve_id_t $reserve_id_t
#define sampler_t $sampler_t
#define image1d_t $image1d_t
#define image1d_array_t $image1d_array_t
#define image1d_buffer_t $image1d_buffer_t
#define image2d_t $image2d_t
#define image2d_array_t $image2d_array_t
#define image2d_depth_t $image2d_depth_t
#define image2d_array_depth_t $image2d_array_depth_t
#define image2d_msaa_t $image2d_msaa_t
#define image2d_array_msaa_t $image2d_array_msaa_t
#define image2d_msaa_depth_t $image2d_msaa_depth_t
#define image2d_array_msaa_depth_t $image2d_array_msaa_depth_t
#define image3d_t $image3d_t
#define atomic_flag $atomic_flag
#define atomic_long $atomic_long
#define atomic_double $atomic_double
#define atomic_size_t $atomic_size_t
#define atomic_intptr_t $atomic_intptr_t
#define atomic_uintptr_t $atomic_uintptr_t
#define atomic_ptrdiff_t $atomic_ptrdiff_t
#define atomic_half $atomic_half
#define to_global $to_global
#define to_local $to_local
#define to_private $to_private
#define enqueue_kernel $enqueue_kernel
#define read_pipe $read_pipe
#define write_pipe $write_pipe
#define reserve_read_pipe $reserve_read_pipe
#define reserve_write_pipe $reserve_write_pipe
#define commit_read_pipe $commit_read_pipe
#define commit_write_pipe $commit_write_pipe
#define get_pipe_num_packets $get_pipe_num_packets
#define get_pipe_max_packets $get_pipe_max_packets
#define get_kernel_work_group_size $get_kernel_work_group_size
#define get_kernel_preferred_work_group_size_multiple $get_kernel_preferred_work_group_size_multiple
#define get_kernel_max_sub_group_size_for_ndrange $get_kernel_max_sub_group_size_for_ndrange
#define get_kernel_sub_group_count_for_ndrange $get_kernel_sub_group_count_for_ndrange
#define work_group_reserve_read_pipe $work_group_reserve_read_pipe
#define work_group_reserve_write_pipe $work_group_reserve_write_pipe
#define work_group_commit_read_pipe $work_group_commit_read_pipe
#define work_group_commit_write_pipe $work_group_commit_write_pipe
#define sub_group_reserve_read_pipe $sub_group_reserve_read_pipe
#define sub_group_reserve_write_pipe $sub_group_reserve_write_pipe
#define sub_group_commit_read_pipe $sub_group_commit_read_pipe
#define sub_group_commit_write_pipe $sub_group_commit_write_pipe
