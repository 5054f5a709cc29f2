// Who waits for whom, by what the ranks have asked of each other. Pure; compare.cc follows it from rank to rank.
//
// Each rank has a head: its oldest operation that is not completed. A head names whom its rank waits for: those who have not come, and
// those who have queued the same operation behind something else.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "diagnosis/hang/records.h"

namespace phalanx::diagnosis {

struct Group {
  std::string name, within;
  bool open = false;  // it may have members that are not known
  std::set<int> members;
};

struct Turn {  // one send or receive among those of its pair
  const Operation* entry = nullptr;
  const Transfer* part = nullptr;
};

struct Lane {  // of one rank in one group
  std::map<int64_t, const Operation*> collectives;
  std::map<std::pair<int, int>, std::vector<Turn>> ways;  // (from, to), oldest first
};

struct RankNode {
  const RankRecord* record = nullptr;
  const Operation* head = nullptr;
  std::map<std::string, size_t> groups;  // by its key here
  std::map<size_t, Lane> lanes;          // by group
};

// Whom an operation of one rank waits for.
struct Waits {
  std::vector<int> absent, busy, queued;  // absent: free, and never came; busy: never came, waits elsewhere
  std::vector<int> there;                 // in it, the rank itself first
  std::vector<int> beyond;                // wait in a later one of the group, and never had this one
  bool differs = false;                   // of a send and its receive: the sizes
};

bool is_all_to_all(const Operation& operation);
// What must be equal on all ranks: name, and size and type where these do not depend on the rank.
std::string signature(const Operation& operation);
// Of operations that can be compared: another one, or of another size.
bool differ(const Operation& a, const Operation& b);

class WaitGraph {
 public:
  // Of a rank that has a record in both, the first counts. The records must outlive the graph.
  WaitGraph(std::span<const RankRecord> records, std::span<const RankRecord> also);

  const std::map<int, RankNode>& ranks() const { return ranks_; }
  const RankRecord& record_of(int rank) const { return *ranks_.at(rank).record; }
  const Operation& head_of(int rank) const { return *ranks_.at(rank).head; }    // of one that has a head
  const Group& group_of(int rank) const { return groups_[group_index(rank)]; }  // of its head
  Waits waits_of(int rank);

 private:
  struct Meeting {
    size_t at = 0, pending = 0;  // among the own turns
    std::vector<Turn> open;      // the other side's, not completed
    bool whole = false;
  };
  void add(const RankRecord& record);
  size_t add_group(const std::string& key, const GroupRecord& told, int rank);
  size_t group_index(int rank) const { return ranks_.at(rank).groups.at(head_of(rank).group); }
  void place(int rank, const Operation* theirs, Waits& waits) const;
  bool is_beyond(const RankNode& rank, size_t group, int64_t sequence) const;
  void waits_of_parts(int rank, const Operation& head, size_t group, Waits& waits);
  Meeting meeting(int rank, int peer, const std::vector<Turn>& theirs) const;
  static Turn counterpart(const Transfer& part, Meeting& m, const std::vector<Turn>& mine, const std::vector<Turn>& theirs);

  std::map<int, RankNode> ranks_;
  std::vector<Group> groups_;
  std::map<std::pair<std::string, std::vector<int>>, size_t> index_;
};

}  // namespace phalanx::diagnosis
