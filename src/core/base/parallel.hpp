// Threads that an object keeps while it works, and that a forked process knows it does not have.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace pm {

inline int this_process() {
#ifdef _WIN32
    return 0;  // there is no fork
#else
    return static_cast<int>(getpid());
#endif
}

// Whether this thread can throw. The first exception of a thread asks for memory of its own, and
// where there is none the C library ends the process; so it is asked for while there is some.
inline bool has_room_to_throw() {
    // malloc: the new that does not throw throws within. What it finds stays with the thread.
    constexpr std::size_t kChunks[] = {4096, 512, 256, 128, 64, 32};
    void* volatile chunks[std::size(kChunks)];  // or compilers leave the calls out
    bool all = true;
    for (std::size_t i = 0; i < std::size(kChunks); ++i) {
        chunks[i] = std::malloc(kChunks[i]);
        all = all && chunks[i] != nullptr;
    }
    for (void* const volatile& chunk : chunks) std::free(chunk);
    return all && std::uncaught_exceptions() == 0;
}

// A few threads that wait between the jobs of one call: starting them costs more than a small
// product.
class Team {
  public:
    // Fewer threads than asked for where the system refuses more, or their memory.
    explicit Team(int threads) {
        workers_.reserve(std::max(0, threads - 1));
        int started = 0;
        try {
            for (; started + 1 < threads; ++started) workers_.emplace_back([this] { begin(); });
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
        }
        for (int n; (n = began_.load(std::memory_order_acquire)) != started;) began_.wait(n);
        size_ = 1 + able_.load(std::memory_order_relaxed);
    }
    ~Team() {
        job_ = nullptr;
        announce();
        for (auto& worker : workers_) worker.join();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return size_; }

    // f(part) on every thread; the caller's takes part 0. When all are done, one of the exceptions
    // goes to the caller, if there are any.
    void run(const std::function<void(int)>& f) {
        if (size_ == 1) return f(0);
        job_ = &f;
        busy_.store(size_ - 1, std::memory_order_relaxed);
        announce();
        do_part(0);
        for (int left; (left = busy_.load(std::memory_order_acquire)) != 0;) busy_.wait(left);
        if (failed_.exchange(false, std::memory_order_acq_rel))
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

    // f(part, begin, end) on parts of [0, n), cut at multiples of `grain`.
    template <class F>
    void ranges(std::int64_t n, std::int64_t grain, F&& f) {
        const std::int64_t grains = (n + grain - 1) / grain;
        run([&](int part) {
            const std::int64_t begin = std::min(n, grains * part / size_ * grain);
            const std::int64_t end = std::min(n, grains * (part + 1) / size_ * grain);
            if (begin < end) f(part, begin, end);
        });
    }

  private:
    void begin() {
        const bool able = has_room_to_throw();
        const int part = able ? 1 + able_.fetch_add(1, std::memory_order_relaxed) : 0;
        began_.fetch_add(1, std::memory_order_release);
        began_.notify_one();
        if (able) work(part);
    }
    void do_part(int part) noexcept {
        try {
            (*job_)(part);
        } catch (...) {
            if (!failed_.exchange(true, std::memory_order_acq_rel))
                error_ = std::current_exception();  // read when nobody is busy
        }
    }
    void announce() {
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
    }
    void work(int part) {
        for (int seen = 0;;) {
            int now;
            while ((now = round_.load(std::memory_order_acquire)) == seen) round_.wait(seen);
            seen = now;
            if (job_ == nullptr) return;
            do_part(part);
            if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
        }
    }

    int size_ = 1;
    std::atomic<int> began_{0}, able_{0};
    const std::function<void(int)>* job_ = nullptr;
    std::atomic<int> round_{0}, busy_{0};
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;  // of whoever failed first
    std::vector<std::thread> workers_;
};

// The team of whoever solves a problem: started at the first job for several threads, joined with
// the object. A forked child does not have its parent's threads: it forgets them and starts its
// own.
class TeamOfProcess {
  public:
    TeamOfProcess() = default;
    ~TeamOfProcess() { forget_parents(); }
    TeamOfProcess(const TeamOfProcess&) = delete;
    TeamOfProcess& operator=(const TeamOfProcess&) = delete;

    Team& of(int threads) {
        forget_parents();
        if (team_ == nullptr || wanted_ != threads) {
            team_ = std::make_unique<Team>(threads);
            wanted_ = threads;
            process_ = this_process();
        }
        return *team_;
    }

  private:
    void forget_parents() {
        if (team_ != nullptr && process_ != this_process()) (void)team_.release();
    }

    std::unique_ptr<Team> team_;
    int wanted_ = 0;
    int process_ = 0;
};

}  // namespace pm
