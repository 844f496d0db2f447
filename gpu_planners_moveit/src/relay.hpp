// Asks the node arm_planner by its action MoveGroup, from any thread, and waits for its answer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <moveit_msgs/action/move_group.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>

namespace gpu_planners_moveit
{
using MoveGroup = moveit_msgs::action::MoveGroup;
using Seconds = std::chrono::duration<double>;

// One request on its way. Whoever asks waits for `changed`; the relay's thread and `cancel` change it.
struct Exchange
{
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> cancelled{ false };  // somebody wants it to end
  bool refused = false;                  // the node took no goal
  bool left = false;                     // nobody waits any more
  rclcpp_action::ClientGoalHandle<MoveGroup>::SharedPtr goal;
  std::shared_ptr<rclcpp_action::ClientGoalHandle<MoveGroup>::WrappedResult> answer;

  void cancel();
};

// The action's client has a callback group and a thread of its own: whoever spins MoveIt's node may wait in `ask`, and
// answers arrive all the same, with any executor.
class Relay
{
public:
  struct Limits
  {
    Seconds server;  // for the node to be there
    Seconds margin;  // over the request's own time limit, for requests before it and for messages
  };

  Relay(const rclcpp::Node::SharedPtr& node, const std::string& action, const Limits& limits);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // The result of a goal, always with an error code. It returns within the limits, or soon after exchange->cancel().
  MoveGroup::Result ask(const MoveGroup::Goal& goal, const std::shared_ptr<Exchange>& exchange);

private:
  using Client = rclcpp_action::Client<MoveGroup>;

  MoveGroup::Result failed(int code, const std::string& text) const;
  bool wait_for_server(Exchange& exchange) const;
  void spin();

  rclcpp::Node::SharedPtr node_;
  std::string action_;
  Limits limits_;
  rclcpp::CallbackGroup::SharedPtr group_;
  Client::SharedPtr client_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::atomic<bool> ends_{ false };
  std::thread thread_;
};
}  // namespace gpu_planners_moveit
