// MoveIt's planner plugin: each request, with MoveIt's whole scene and the complete start state, is planned by the node
// arm_planner of gpu_planners.
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <moveit_msgs/msg/move_it_error_codes.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>

#include "moveit_api.hpp"
#include "relay.hpp"

namespace gpu_planners_moveit
{
namespace
{
using Code = moveit_msgs::msg::MoveItErrorCodes;
using Request = planning_interface::MotionPlanRequest;

// The node's pipeline, whatever MoveIt's configuration calls ours; and what plans there: test_moveit_plugin.py compares
const std::string PIPELINE = "gpu_planners";
const std::vector<std::string> ALGORITHMS{ "rrt_connect", "prm", "rrt", "rrt_star", "PTP", "LIN", "CIRC" };

// A parameter's value, declared where nobody has; an int serves as a double.
rclcpp::Parameter parameter(const rclcpp::Node::SharedPtr& node, const std::string& name,
                            const rclcpp::ParameterValue& otherwise)
{
  if (!node->has_parameter(name))
    node->declare_parameter(name, otherwise);
  return node->get_parameter(name);
}

Seconds seconds(const rclcpp::Node::SharedPtr& node, const std::string& name, double otherwise)
{
  const auto given = parameter(node, name, rclcpp::ParameterValue(otherwise));
  const bool whole = given.get_type() == rclcpp::ParameterType::PARAMETER_INTEGER;
  const double value = whole ? static_cast<double>(given.as_int()) : given.as_double();
  if (!(value >= 0.0 && value <= 3600.0))
    throw std::invalid_argument("the parameter " + name + " is " + std::to_string(value) +
                                "; allowed: from 0 to 3600 s");
  return Seconds(value);
}
}  // namespace

// A request in a scene; `solve` asks the node.
class Context : public planning_interface::PlanningContext
{
public:
  Context(const std::string& group, std::shared_ptr<Relay> relay)
    : PlanningContext("gpu_planners", group), relay_(std::move(relay))
  {
  }

  Solved solve(Response& response) override
  {
    Plan plan;
    error_code_of(response, 0) = plan_now(plan);
    trajectory_of(response, 0) = plan.trajectory;
    planning_time_of(response, 0) = plan.seconds;
    set_planner(response, planner(), 0);
    set_start(response, plan.start, 0);
    return Solved(plan.trajectory != nullptr);
  }

  Solved solve(DetailedResponse& response) override
  {
    Plan plan;
    error_code_of(response, 0) = plan_now(plan);
    trajectory_of(response, 0).clear();
    if (plan.trajectory)
      trajectory_of(response, 0).push_back(plan.trajectory);
    describe(response, plan.trajectory != nullptr, plan.seconds, 0);
    set_planner(response, planner(), 0);
    return Solved(plan.trajectory != nullptr);
  }

  // From any thread; never waits.
  bool terminate() override
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (exchange_)
      exchange_->cancel();
    return true;
  }

  void clear() override
  {
  }

private:
  struct Plan
  {
    robot_trajectory::RobotTrajectoryPtr trajectory;  // none where planning failed
    moveit_msgs::msg::RobotState start;
    double seconds = 0.0;
  };

  std::string planner() const
  {
    return request_.planner_id.empty() ? PIPELINE : request_.planner_id;
  }

  Code plan_now(Plan& plan)
  {
    const auto exchange = std::make_shared<Exchange>();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      exchange_ = exchange;
    }
    Code code;
    try
    {
      code = plan_by_node(plan, exchange);
    }
    catch (const std::exception& error)
    {
      plan.trajectory.reset();
      code.val = Code::FAILURE;
      set_text(code, error.what(), 0);
      RCLCPP_ERROR(rclcpp::get_logger("gpu_planners_moveit"), "%s", error.what());
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    exchange_.reset();
    return code;
  }

  Code plan_by_node(Plan& plan, const std::shared_ptr<Exchange>& exchange)
  {
    const auto start = planning_scene_->getCurrentStateUpdated(request_.start_state);
    moveit::core::robotStateToRobotStateMsg(*start, plan.start, true);
    plan.start.is_diff = false;

    MoveGroup::Goal goal;
    goal.request = request_;
    goal.request.pipeline_id = PIPELINE;
    goal.request.start_state = plan.start;
    goal.planning_options.plan_only = true;
    auto& scene = goal.planning_options.planning_scene_diff;
    planning_scene_->getPlanningSceneMsg(scene);  // the whole one: what the node has seen counts for its own requests
    scene.is_diff = false;
    scene.robot_state = plan.start;

    const MoveGroup::Result result = relay_->ask(goal, exchange);
    plan.seconds = result.planning_time;
    if (result.error_code.val == Code::SUCCESS)
    {
      plan.trajectory = std::make_shared<robot_trajectory::RobotTrajectory>(planning_scene_->getRobotModel(),
                                                                            request_.group_name);
      plan.trajectory->setRobotTrajectoryMsg(*start, result.planned_trajectory);
    }
    return result.error_code;
  }

  std::shared_ptr<Relay> relay_;
  std::mutex mutex_;
  std::shared_ptr<Exchange> exchange_;  // of a solve that runs
};

class PlannerManager : public planning_interface::PlannerManager
{
public:
  bool initialize(const moveit::core::RobotModelConstPtr& model, const rclcpp::Node::SharedPtr& node,
                  const std::string& parameter_namespace) override
  {
    model_ = model;
    const std::string space = parameter_namespace.empty() ? "" : parameter_namespace + ".";
    try
    {
      const auto action =
          parameter(node, space + "move_group_action", rclcpp::ParameterValue("gpu_planners/move_group"));
      const Relay::Limits limits{ seconds(node, space + "server_timeout_s", 5.0),
                                  seconds(node, space + "answer_margin_s", 10.0) };
      relay_ = std::make_shared<Relay>(node, action.as_string(), limits);
    }
    catch (const std::exception& error)
    {
      RCLCPP_FATAL(node->get_logger(), "gpu_planners_moveit: %s", error.what());
      return false;
    }
    return true;
  }

  std::string getDescription() const override
  {
    return PIPELINE;
  }

  void getPlanningAlgorithms(std::vector<std::string>& algorithms) const override
  {
    algorithms = ALGORITHMS;
  }

  // A context always: what is wrong with the request the node says, with a code that MoveIt passes on.
  planning_interface::PlanningContextPtr getPlanningContext(const planning_scene::PlanningSceneConstPtr& scene,
                                                            const Request& request, Code& error_code) const override
  {
    if (!relay_ || !scene)
    {
      error_code.val = Code::FAILURE;
      set_text(error_code, relay_ ? "no planning scene" : "the plugin is not initialised", 0);
      return nullptr;
    }
    const auto context = std::make_shared<Context>(request.group_name, relay_);
    context->setPlanningScene(scene);
    context->setMotionPlanRequest(request);
    error_code.val = Code::SUCCESS;
    return context;
  }

  bool canServiceRequest(const Request& request) const override
  {
    return model_ && model_->hasJointModelGroup(request.group_name) &&
           request.trajectory_constraints.constraints.empty();
  }

  void setPlannerConfigurations(const planning_interface::PlannerConfigurationMap& configurations) override
  {
    config_settings_ = configurations;  // told as they are; the node's planners have parameters of its own
  }

private:
  moveit::core::RobotModelConstPtr model_;
  std::shared_ptr<Relay> relay_;
};
}  // namespace gpu_planners_moveit

PLUGINLIB_EXPORT_CLASS(gpu_planners_moveit::PlannerManager, planning_interface::PlannerManager)
