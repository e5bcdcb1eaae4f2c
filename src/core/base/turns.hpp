// Who may use an object now, where several threads have it. No lock here may be waited for while
// holding the GIL: whoever has the lock may be waiting for that.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace pm {

// Many readers or one writer, for std::shared_lock and std::unique_lock. A writer that waits lets
// no more readers in, so that readers who overlap cannot keep it out for ever.
class ReadersOrWriter {
  public:
    void lock() {
        const std::lock_guard at_the_door(door_);
        room_.lock();
    }
    void unlock() { room_.unlock(); }
    void lock_shared() {
        const std::lock_guard at_the_door(door_);
        room_.lock_shared();
    }
    void unlock_shared() { room_.unlock_shared(); }

  private:
    std::mutex door_;
    std::shared_mutex room_;
};

// One user at a time; a second one is refused, since it would find things half done.
class OneUser {
  public:
    explicit OneUser(const char* refusal) : refusal_(refusal) {}

    class Use {
      public:
        explicit Use(OneUser& of) : of_(of) {
            if (of_.busy_.exchange(true, std::memory_order_acquire))
                throw std::runtime_error(of_.refusal_);
        }
        ~Use() { of_.busy_.store(false, std::memory_order_release); }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

      private:
        OneUser& of_;
    };

  private:
    const char* refusal_;
    std::atomic<bool> busy_ = false;
};

}  // namespace pm
