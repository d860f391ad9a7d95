/*
 * Split-C for C++: global and spread pointers as types.
 *
 *     #include <split-c/split-c.hpp>
 *
 *     int program(int, char **)
 *     {
 *         splitc::spread_ptr<int> cells = splitc::allocate<int>(splitc::procs());
 *         cells[(splitc::me() + 1) % splitc::procs()] = splitc::me();
 *         splitc::barrier();
 *         int mine = cells[splitc::me()];
 *         splitc::free(cells);
 *         return mine == (splitc::me() + splitc::procs() - 1) % splitc::procs() ? 0 : 1;
 *     }
 *
 *     int main(int argc, char **argv) { return splitc::run(argc, argv, program); }
 *
 * Values are those that a copy of their bytes copies. Operations are those of <split-c/split-c.h>,
 * and end the program as these do; its function-like macros are not defined here.
 */

#ifndef SPLIT_C_SPLIT_C_HPP
#define SPLIT_C_SPLIT_C_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef SPLITC_OWN_MAIN
#define SPLITC_OWN_MAIN
#endif
#include "split-c.h"

#undef barrier
#undef sync
#undef store_sync
#undef all_store_sync
#undef reset_store_sync
#undef toglobal
#undef toproc
#undef tolocal
#undef bulk_read
#undef bulk_get
#undef bulk_write
#undef bulk_put
#undef bulk_store
#undef fetch_and_add
#undef fetch_and_add_l
#undef exchange
#undef exchange_l
#undef test_and_set
#undef cmp_swap
#undef cmp_swap_l
#undef on_one
#undef on_proc
#undef get_seconds

namespace splitc {

template <class T> class global_ptr;

/* A place in the memory of a rank, as a value: reading it and assigning to it wait. */
template <class T> class global_ref {
    static_assert(std::is_trivially_copyable<T>::value, "a copy of the bytes of a value is to be one");
    sc_global at_;

public:
    explicit global_ref(sc_global at) : at_(at) {}
    global_ref(const global_ref &) = default;

    operator T() const
    {
        T value;
        sc_read(&value, at_, sizeof value);
        return value;
    }
    const global_ref &operator=(const T &value) const
    {
        sc_write(at_, &value, sizeof value);
        return *this;
    }
    const global_ref &operator=(const global_ref &other) const { return *this = static_cast<T>(other); }
    /* A read and a write: not atomic. */
    template <class U> const global_ref &operator+=(const U &u) const { return *this = static_cast<T>(T(*this) + u); }
    template <class U> const global_ref &operator-=(const U &u) const { return *this = static_cast<T>(T(*this) - u); }
    template <class U> const global_ref &operator*=(const U &u) const { return *this = static_cast<T>(T(*this) * u); }
    template <class U> const global_ref &operator/=(const U &u) const { return *this = static_cast<T>(T(*this) / u); }
    global_ptr<T> operator&() const { return global_ptr<T>(at_); }
};

/* A rank and an address there. Arithmetic stays on the rank. */
template <class T> class global_ptr {
    sc_global bits_;

public:
    global_ptr() : bits_(0) {}
    global_ptr(std::nullptr_t) : bits_(0) {}
    explicit global_ptr(sc_global bits) : bits_(bits) {}
    /* To an address of this program at a rank: statics, spread memory and what sc_malloc gives. */
    global_ptr(int rank, T *address) : bits_(sc_pack(rank, address)) {}

    sc_global bits() const { return bits_; }
    int rank() const { return sc_rank(bits_); }
    /* The address at that rank. */
    T *local() const { return static_cast<T *>(sc_address(bits_)); }
    template <class U> global_ptr<U> cast() const { return global_ptr<U>(bits_); }

    global_ref<T> operator*() const { return global_ref<T>(bits_); }
    global_ref<T> operator[](std::ptrdiff_t n) const { return *(*this + n); }
    /* A member: (p->*&node::value). */
    template <class U, class C> global_ref<U> operator->*(U C::*member) const
    {
        static_assert(std::is_base_of<C, T>::value, "a member of what the pointer leads to");
        alignas(T) char place[sizeof(T)];
        const T *object = reinterpret_cast<const T *>(place);
        const char *inside = reinterpret_cast<const char *>(&(object->*member));
        return global_ref<U>(sc_global_add(bits_, inside - place, 1));
    }
    global_ptr operator+(std::ptrdiff_t n) const { return global_ptr(sc_global_add(bits_, n, sizeof(T))); }
    global_ptr operator-(std::ptrdiff_t n) const { return *this + -n; }
    std::ptrdiff_t operator-(global_ptr other) const { return sc_global_sub(bits_, other.bits_, sizeof(T)); }
    global_ptr &operator+=(std::ptrdiff_t n) { return *this = *this + n; }
    global_ptr &operator-=(std::ptrdiff_t n) { return *this = *this - n; }
    global_ptr &operator++() { return *this += 1; }
    global_ptr &operator--() { return *this -= 1; }
    explicit operator bool() const { return bits_ != 0; }
    bool operator==(global_ptr other) const { return bits_ == other.bits_; }
    bool operator!=(global_ptr other) const { return bits_ != other.bits_; }
};

/* The same bits. Arithmetic walks over the ranks first. */
template <class T> class spread_ptr {
    sc_global bits_;

public:
    spread_ptr() : bits_(0) {}
    spread_ptr(std::nullptr_t) : bits_(0) {}
    explicit spread_ptr(sc_global bits) : bits_(bits) {}

    sc_global bits() const { return bits_; }
    int rank() const { return sc_rank(bits_); }
    T *local() const { return static_cast<T *>(sc_address(bits_)); }
    global_ptr<T> global() const { return global_ptr<T>(bits_); }
    template <class U> spread_ptr<U> cast() const { return spread_ptr<U>(bits_); }

    global_ref<T> operator*() const { return global_ref<T>(bits_); }
    global_ref<T> operator[](std::ptrdiff_t n) const { return *(*this + n); }
    spread_ptr operator+(std::ptrdiff_t n) const { return spread_ptr(sc_spread_add(bits_, n, sizeof(T))); }
    spread_ptr operator-(std::ptrdiff_t n) const { return *this + -n; }
    std::ptrdiff_t operator-(spread_ptr other) const { return sc_spread_sub(bits_, other.bits_, sizeof(T)); }
    spread_ptr &operator+=(std::ptrdiff_t n) { return *this = *this + n; }
    spread_ptr &operator-=(std::ptrdiff_t n) { return *this = *this - n; }
    spread_ptr &operator++() { return *this += 1; }
    spread_ptr &operator--() { return *this -= 1; }
    explicit operator bool() const { return bits_ != 0; }
    bool operator==(spread_ptr other) const { return bits_ == other.bits_; }
    bool operator!=(spread_ptr other) const { return bits_ != other.bits_; }
};

/* The number of this rank, and how many there are. */
inline int me() { return MYPROC; }
inline int procs() { return PROCS; }

/* Runs a program as a rank of the job: see splitc_run. */
inline int run(int argc, char **argv, int (*program)(int, char **)) { return splitc_run(argc, argv, program); }

inline void barrier() { sc_barrier(); }
inline void poll() { sc_poll(); }
/* Completes all gets, puts and stores of this rank. */
inline void sync() { sc_sync(); }
inline void store_sync(std::size_t bytes) { sc_store_sync(bytes); }
inline void all_store_sync() { sc_all_store_sync(); }
inline void reset_store_sync() { sc_reset_store_sync(); }

/* `count` zeroes over all ranks, at the same addresses of each. All ranks call both. */
template <class T> spread_ptr<T> allocate(std::size_t count)
{
    return spread_ptr<T>(sc_spread_malloc(count, sizeof(T)));
}
template <class T> void free(spread_ptr<T> memory) { sc_spread_free(memory.bits()); }

/* Split phases: complete by sync(). A get's destination is the run time's until then. */
template <class T> void get(T &into, global_ptr<T> from) { sc_get(&into, from.bits(), sizeof(T)); }
template <class T> void put(global_ptr<T> to, const T &value) { sc_put(to.bits(), &value, sizeof(T)); }
/* Complete at the target by store_sync() or all_store_sync(). */
template <class T> void store(global_ptr<T> to, const T &value) { sc_store(to.bits(), &value, sizeof(T)); }

/* `n` elements that follow each other on one rank. */
template <class T> void bulk_read(T *to, global_ptr<T> from, std::size_t n) { sc_read(to, from.bits(), n * sizeof(T)); }
template <class T> void bulk_get(T *to, global_ptr<T> from, std::size_t n) { sc_get(to, from.bits(), n * sizeof(T)); }
template <class T> void bulk_write(global_ptr<T> to, const T *from, std::size_t n)
{
    sc_write(to.bits(), from, n * sizeof(T));
}
template <class T> void bulk_put(global_ptr<T> to, const T *from, std::size_t n)
{
    sc_put(to.bits(), from, n * sizeof(T));
}
template <class T> void bulk_store(global_ptr<T> to, const T *from, std::size_t n)
{
    sc_store(to.bits(), from, n * sizeof(T));
}

namespace detail {
template <class T> T change(global_ptr<T> at, int operation, T first, T second)
{
    static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "an integer of 4 or 8 bytes");
    return static_cast<T>(sc_change(at.bits(), sizeof(T), operation, static_cast<std::uint64_t>(first),
                                    static_cast<std::uint64_t>(second)));
}
inline int reduce(int operation, int value) { return sc_reduce_i(operation, value); }
inline long reduce(int operation, long value) { return sc_reduce_l(operation, value); }
inline float reduce(int operation, float value) { return sc_reduce_f(operation, value); }
inline double reduce(int operation, double value) { return sc_reduce_d(operation, value); }
inline int scan(int operation, int value) { return sc_scan_i(operation, value); }
inline long scan(int operation, long value) { return sc_scan_l(operation, value); }
inline float scan(int operation, float value) { return sc_scan_f(operation, value); }
inline double scan(int operation, double value) { return sc_scan_d(operation, value); }
} // namespace detail

/* Atomic operations; all return the old value. */
template <class T> T fetch_add(global_ptr<T> at, T value) { return detail::change(at, SC_FETCH_ADD_, value, T()); }
template <class T> T exchange(global_ptr<T> at, T value) { return detail::change(at, SC_EXCHANGE_, value, T()); }
template <class T> T compare_swap(global_ptr<T> at, T expected, T desired)
{
    return detail::change(at, SC_COMPARE_SWAP_, expected, desired);
}

/* Over all ranks, of int, long, float or double; scans over ranks 0 to this one. */
template <class T> T sum(T value) { return detail::reduce(SC_ADD_, value); }
template <class T> T product(T value) { return detail::reduce(SC_MUL_, value); }
template <class T> T maximum(T value) { return detail::reduce(SC_MAX_, value); }
template <class T> T minimum(T value) { return detail::reduce(SC_MIN_, value); }
template <class T> T scan_sum(T value) { return detail::scan(SC_ADD_, value); }

/* The value of a rank, in all. */
template <class T> T broadcast(T value, int from = 0)
{
    static_assert(std::is_trivially_copyable<T>::value, "a copy of the bytes of a value is to be one");
    sc_broadcast_bytes(&value, sizeof value, from);
    return value;
}

} // namespace splitc

#endif /* SPLIT_C_SPLIT_C_HPP */
