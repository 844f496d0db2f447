// What MoveIt's releases name differently: Humble has .h, members with a trailing underscore, solve() that returns bool and
// error codes without a text; later ones have .hpp, plain members, solve() that returns nothing, and texts.
#pragma once

#include <string>
#include <utility>

#if __has_include(<moveit/planning_interface/planning_interface.hpp>)
#include <moveit/planning_interface/planning_interface.hpp>
#include <moveit/planning_scene/planning_scene.hpp>
#include <moveit/robot_state/conversions.hpp>
#include <moveit/robot_trajectory/robot_trajectory.hpp>
#else
#include <moveit/planning_interface/planning_interface.h>
#include <moveit/planning_scene/planning_scene.h>
#include <moveit/robot_state/conversions.h>
#include <moveit/robot_trajectory/robot_trajectory.h>
#endif

namespace gpu_planners_moveit
{
using Response = planning_interface::MotionPlanResponse;
using DetailedResponse = planning_interface::MotionPlanDetailedResponse;

// void or bool; `return Solved(true)` does for both
using Solved = decltype(std::declval<planning_interface::PlanningContext&>().solve(std::declval<Response&>()));

// Each pair of overloads: the member under the name that the response has. Callers pass 0, which prefers the first one.
template <typename R>
auto error_code_of(R& response, int) -> decltype((response.error_code))
{
  return response.error_code;
}
template <typename R>
auto error_code_of(R& response, long) -> decltype((response.error_code_))
{
  return response.error_code_;
}

template <typename R>
auto trajectory_of(R& response, int) -> decltype((response.trajectory))
{
  return response.trajectory;
}
template <typename R>
auto trajectory_of(R& response, long) -> decltype((response.trajectory_))
{
  return response.trajectory_;
}

template <typename R>
auto planning_time_of(R& response, int) -> decltype((response.planning_time))
{
  return response.planning_time;
}
template <typename R>
auto planning_time_of(R& response, long) -> decltype((response.planning_time_))
{
  return response.planning_time_;
}

// Of a DetailedResponse with one trajectory or none.
template <typename R>
auto describe(R& response, bool solved, double seconds, int) -> decltype(response.processing_time, void())
{
  response.description.assign(solved, "plan");
  response.processing_time.assign(solved, seconds);
}
template <typename R>
auto describe(R& response, bool solved, double seconds, long) -> decltype(response.processing_time_, void())
{
  response.description_.assign(solved, "plan");
  response.processing_time_.assign(solved, seconds);
}

template <typename R>
auto set_planner(R& response, const std::string& planner, int) -> decltype(response.planner_id, void())
{
  response.planner_id = planner;
}
template <typename R>
void set_planner(R&, const std::string&, long)
{
}

template <typename R>
auto set_start(R& response, const moveit_msgs::msg::RobotState& start, int) -> decltype(response.start_state, void())
{
  response.start_state = start;
}
template <typename R>
void set_start(R&, const moveit_msgs::msg::RobotState&, long)
{
}

template <typename C>
auto text_of(const C& code, int) -> decltype(std::string(code.message))
{
  return code.message;
}
template <typename C>
std::string text_of(const C&, long)
{
  return "";
}

template <typename C>
auto set_text(C& code, const std::string& text, int) -> decltype(code.message, void())
{
  code.message = text;
  code.source = "gpu_planners";
}
template <typename C>
void set_text(C&, const std::string&, long)
{
}
}  // namespace gpu_planners_moveit
