// A Group over torch's own process groups (c10d). Made by join(); tests make it over an in-memory store, one rank a thread.
#pragma once

#include <memory>
#include <string>

#include "engine/comm/compat.h"
#include "engine/comm/group.h"

namespace engine::comm {

// `store` is where the ranks exchange addresses. `hosting`: this rank serves it and so has to leave last.
struct StoreHandle {
  c10::intrusive_ptr<c10d::Store> store;
  bool hosting = false;
};

// address: where Gloo listens (ignored by NCCL); interfaces, when not empty, wins over it. Throws on failure.
std::unique_ptr<Group> make_c10d_group(StoreHandle store, int rank, int world, at::Device device, const std::string& address,
                                       const std::string& interfaces);

}  // namespace engine::comm
