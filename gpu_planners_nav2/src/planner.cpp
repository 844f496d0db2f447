// Nav2's planner plugin: start and goal go to the node grid_planner of gpu_planners by its action ComputePathToPose. The
// node plans on the costmap that the planner server publishes, and its codes become nav2_core's exceptions.
#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <stdexcept>

#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>

#include "nav2_api.hpp"

namespace gpu_planners_nav2
{
namespace
{
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Client = rclcpp_action::Client<ComputePath>;
using Handle = rclcpp_action::ClientGoalHandle<ComputePath>;
using Code = ComputePath::Result;

constexpr std::chrono::milliseconds LOOK_EVERY{ 10 };  // whether the goal is cancelled, and the node still there
constexpr Seconds CANCELLED_WITHIN{ 2.0 };             // a cancelled goal is answered, or is left alone

Clock::time_point after(Seconds duration)
{
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(duration);
}

// A parameter of the plugin, declared where nobody has.
template <typename T>
T parameter(Node& node, const std::string& name, const T& otherwise)
{
  if (!node.has_parameter(name))
    node.declare_parameter(name, rclcpp::ParameterValue(otherwise));
  return node.get_parameter(name).get_value<T>();
}

Seconds seconds(Node& node, const std::string& name, double otherwise)
{
  const auto value = parameter(node, name, otherwise);
  if (!(value >= 0.0 && value <= 3600.0))
    throw std::invalid_argument("the parameter " + name + " is " + std::to_string(value) +
                                "; allowed: from 0 to 3600 s");
  return Seconds(value);
}

template <typename F>
bool is_ready(const F& future)
{
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

[[noreturn]] void fail(int code, const std::string& text)
{
  switch (code)
  {
    case Code::INVALID_PLANNER:
      throw nav2_core::InvalidPlanner(text);
    case Code::TF_ERROR:
      throw nav2_core::PlannerTFError(text);
    case Code::START_OUTSIDE_MAP:
      throw nav2_core::StartOutsideMapBounds(text);
    case Code::GOAL_OUTSIDE_MAP:
      throw nav2_core::GoalOutsideMapBounds(text);
    case Code::START_OCCUPIED:
      throw nav2_core::StartOccupied(text);
    case Code::GOAL_OCCUPIED:
      throw nav2_core::GoalOccupied(text);
    case Code::TIMEOUT:
      throw nav2_core::PlannerTimedOut(text);
    case Code::NO_VALID_PATH:
      throw nav2_core::NoValidPathCouldBeFound(text);
    default:
      throw nav2_core::PlannerException(text);
  }
}
}  // namespace

class Planner : public nav2_core::GlobalPlanner
{
public:
  void configure(const Node::WeakPtr& parent, std::string name, std::shared_ptr<Transforms> /*tf*/,
                 std::shared_ptr<nav2_costmap_2d::Costmap2DROS> costmap) override
  {
    const auto node = parent.lock();
    if (!node)
      throw std::invalid_argument("gpu_planners_nav2: the planner server's node is gone");
    frame_ = costmap->getGlobalFrameID();
    planner_id_ = parameter(*node, name + ".planner_id", std::string());
    server_timeout_ = seconds(*node, name + ".server_timeout_s", 2.0);
    answer_timeout_ = seconds(*node, name + ".answer_timeout_s", 10.0);
    const auto action = parameter(*node, name + ".action", std::string("gpu_planners/compute_path_to_pose"));
    action_ = node->get_node_base_interface()->resolve_topic_or_service_name(action, false, true);

    // Whoever asks for a plan spins the client alone: no executor of the planner server is needed for an answer.
    group_ = node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false);
    client_ = rclcpp_action::create_client<ComputePath>(node->get_node_base_interface(), node->get_node_graph_interface(),
                                                        node->get_node_logging_interface(),
                                                        node->get_node_waitables_interface(), action, group_);
    rclcpp::ExecutorOptions options;
    options.context = node->get_node_base_interface()->get_context();
    executor_ = std::make_unique<rclcpp::executors::SingleThreadedExecutor>(options);
    executor_->add_callback_group(group_, node->get_node_base_interface());
  }

  void cleanup() override
  {
    const std::lock_guard<std::timed_mutex> lock(mutex_);
    executor_.reset();
    client_.reset();
    group_.reset();
  }

  void activate() override
  {
  }

  void deactivate() override
  {
  }

#if GPU_PLANNERS_NAV2_VIAPOINTS
  nav_msgs::msg::Path createPlan(const Pose& start, const Pose& goal, const Poses& viapoints,
                                 CancelChecker cancelled) override
  {
    return plan(start, goal, viapoints, cancelled);
  }
#else
  nav_msgs::msg::Path createPlan(const Pose& start, const Pose& goal, CancelChecker cancelled) override
  {
    return plan(start, goal, {}, cancelled);
  }
#endif

private:
  nav_msgs::msg::Path plan(const Pose& start, const Pose& goal, const Poses& viapoints, const CancelChecker& cancelled)
  {
    std::unique_lock<std::timed_mutex> lock(mutex_, std::defer_lock);  // the planner server's two actions take turns
    while (!lock.try_lock_for(LOOK_EVERY))
      stop_if(cancelled);
    if (!client_)
      throw nav2_core::PlannerException("gpu_planners_nav2: the plugin is not configured");
    wait_for_server(cancelled);

    ComputePath::Goal request;
    request.start = start;
    request.goal = goal;
    request.use_start = true;
    request.planner_id = planner_id_;
    set_viapoints(request, viapoints, 0);
    const auto answer = ask(request, cancelled);
    const ComputePath::Result& result = *answer.result;
    if (answer.code != rclcpp_action::ResultCode::SUCCEEDED)
      fail(result.error_code, result.error_msg.empty() ? action_ + " ended without a path" : result.error_msg);
    if (!frame_.empty() && result.path.header.frame_id != frame_)
      throw nav2_core::PlannerTFError(action_ + " plans in the frame '" + result.path.header.frame_id +
                                      "'; the costmap's is '" + frame_ + "'");
    return result.path;
  }

  static void stop_if(const CancelChecker& cancelled)
  {
    if (cancelled && cancelled())
      throw nav2_core::PlannerCancelled("cancelled before grid_planner was asked");
  }

  void wait_for_server(const CancelChecker& cancelled) const
  {
    const auto end = after(server_timeout_);
    while (!client_->action_server_is_ready())
    {
      stop_if(cancelled);
      if (Clock::now() >= end)
        throw nav2_core::PlannerException("no node serves the action " + action_ +
                                          ". Start gpu_planners' grid_planner in that namespace, with map_kind "
                                          "costmap_raw and the topic map remapped to the planner server's costmap_raw");
      executor_->spin_once(LOOK_EVERY);
    }
  }

  // The answer to a request; it comes within the limits, or soon after the planner server cancels.
  Handle::WrappedResult ask(const ComputePath::Goal& request, const CancelChecker& cancelled) const
  {
    const auto begun = Clock::now();
    auto end = after(answer_timeout_);
    const auto accepted = client_->async_send_goal(request);
    Handle::SharedPtr goal;
    std::shared_future<Handle::WrappedResult> answer;
    bool stops = false, told = false;  // somebody cancels, and the node knows
    while (Clock::now() < end)
    {
      executor_->spin_once(LOOK_EVERY);
      if (!goal && is_ready(accepted))
      {
        goal = accepted.get();
        if (!goal)
          throw nav2_core::PlannerException(action_ + " takes no goal now");
        answer = client_->async_get_result(goal);
      }
      if (goal && is_ready(answer))
      {
        if (answer.get().code == rclcpp_action::ResultCode::CANCELED)
          throw nav2_core::PlannerCancelled("cancelled");
        return answer.get();
      }
      if (!client_->action_server_is_ready())
        throw nav2_core::PlannerException("the node that serves " + action_ + " went away while it planned");
      if (!stops && cancelled && cancelled())
      {
        stops = true;
        end = std::min(end, after(CANCELLED_WITHIN));
      }
      if (stops && goal && !told)
      {
        told = true;
        cancel(goal);
      }
    }
    if (stops)
      throw nav2_core::PlannerCancelled("cancelled, but " + action_ + " did not confirm it");
    if (goal)
      cancel(goal);
    const double waited = Seconds(Clock::now() - begun).count();
    throw nav2_core::PlannerTimedOut(action_ + " gave no answer within " + std::to_string(waited) +
                                     " s: the parameter answer_timeout_s");
  }

  void cancel(const Handle::SharedPtr& goal) const
  {
    try
    {
      client_->async_cancel_goal(goal);
    }
    catch (const rclcpp_action::exceptions::UnknownGoalHandleError&)
    {
      // it has ended meanwhile
    }
  }

  std::string action_, planner_id_, frame_;
  Seconds server_timeout_{ 0.0 }, answer_timeout_{ 0.0 };
  rclcpp::CallbackGroup::SharedPtr group_;
  Client::SharedPtr client_;
  std::unique_ptr<rclcpp::executors::SingleThreadedExecutor> executor_;
  std::timed_mutex mutex_;
};
}  // namespace gpu_planners_nav2

PLUGINLIB_EXPORT_CLASS(gpu_planners_nav2::Planner, nav2_core::GlobalPlanner)
