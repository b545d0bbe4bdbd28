// Waiting tasks in the order of their rank, searchable for the first that fits into what is free:
// a treap whose nodes know the smallest need below them, so that a thousand blocked tasks in front
// cost no more than one.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tw {

// Smaller keys rank first; among equal keys the smaller id.
struct RankedNode {
  std::int64_t key, need_bytes, least_need_bytes;
  std::uint64_t id;
  RankedNode *left, *right;
};

// Every operation takes O(log n) expected time. Nodes belong to the caller.
class RankedTree {
 public:
  bool empty() const { return !root_; }
  void insert(RankedNode* node) {
    node->left = node->right = nullptr;
    node->least_need_bytes = node->need_bytes;
    insert(root_, node);
  }
  // `node` must be in the tree.
  void erase(RankedNode* node) { erase(root_, node); }
  // The best-ranked node that needs at most `free_bytes`; null where none does.
  RankedNode* first_fitting(std::int64_t free_bytes) const {
    RankedNode* node = root_;
    if (!node || node->least_need_bytes > free_bytes) return nullptr;
    while (true) {
      if (node->left && node->left->least_need_bytes <= free_bytes) {
        node = node->left;
      } else if (node->need_bytes <= free_bytes) {
        return node;
      } else {
        node = node->right;
      }
    }
  }
  static bool before(const RankedNode* a, const RankedNode* b) {
    return a->key != b->key ? a->key < b->key : a->id < b->id;
  }

 private:
  // The heap order of a treap: random enough where it has nothing to do with keys. Source: the
  // finaliser of SplitMix64.
  static std::uint64_t weight(const RankedNode* node) {
    std::uint64_t z = node->id * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 27);
  }
  static void update(RankedNode* node) {
    node->least_need_bytes = node->need_bytes;
    for (const RankedNode* child : {node->left, node->right})
      if (child) node->least_need_bytes = std::min(node->least_need_bytes, child->least_need_bytes);
  }
  static void insert(RankedNode*& root, RankedNode* node) {
    if (!root || weight(node) > weight(root)) {
      split(root, node, node->left, node->right);
      root = node;
    } else {
      insert(before(node, root) ? root->left : root->right, node);
    }
    update(root);
  }
  static void split(RankedNode* root, const RankedNode* pivot, RankedNode*& low,
                    RankedNode*& high) {
    if (!root) {
      low = high = nullptr;
    } else if (before(root, pivot)) {
      low = root;
      split(root->right, pivot, root->right, high);
      update(root);
    } else {
      high = root;
      split(root->left, pivot, low, root->left);
      update(root);
    }
  }
  static RankedNode* merge(RankedNode* low, RankedNode* high) {
    if (!low || !high) return low ? low : high;
    RankedNode* root = weight(low) > weight(high) ? low : high;
    if (root == low) {
      low->right = merge(low->right, high);
    } else {
      high->left = merge(low, high->left);
    }
    update(root);
    return root;
  }
  static void erase(RankedNode*& root, RankedNode* node) {
    if (root == node) {
      root = merge(node->left, node->right);
      return;
    }
    erase(before(node, root) ? root->left : root->right, node);
    update(root);
  }
  RankedNode* root_ = nullptr;
};

}  // namespace tw
