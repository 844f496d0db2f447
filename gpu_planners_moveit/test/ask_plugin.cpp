// Loads the plugin as MoveIt does and plans with it, for test_moveit_plugin.py: ask_plugin ROBOT.urdf ROBOT.srdf --ros-args ...
// Reads commands from standard input, and answers each "plan" by lines "joints NAMES", "point SECONDS VALUES", "end CODE TEXT":
//   group NAME, planner NAME, time SECONDS        of the next requests
//   start VALUES, goal VALUES                     of the group's variables
//   box NAME X Y Z LENGTHS, attach LINK NAME      change the scene; the box is attached as it is
//   plan how [SECONDS]                            how: simple, detailed, pipeline; terminated after so many seconds
//   algorithms
// A plan runs in a callback of a single-threaded executor that spins MoveIt's node: the plugin may not need it.
#include <fstream>
#include <future>
#include <iostream>
#include <sstream>
#include <thread>

#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>
#include <srdfdom/model.h>
#include <urdf_parser/urdf_parser.h>

#include "moveit_api.hpp"
#if __has_include(<moveit/planning_pipeline/planning_pipeline.hpp>)
#include <moveit/planning_pipeline/planning_pipeline.hpp>
#else
#include <moveit/planning_pipeline/planning_pipeline.h>
#endif

using namespace gpu_planners_moveit;

namespace
{
std::string text_in(const std::string& file)
{
  std::ifstream stream(file);
  return { std::istreambuf_iterator<char>(stream), {} };
}

moveit::core::RobotModelPtr robot_of(const std::string& urdf_file, const std::string& srdf_file)
{
  const auto urdf = urdf::parseURDF(text_in(urdf_file));
  const auto srdf = std::make_shared<srdf::Model>();
  if (!urdf || !srdf->initString(*urdf, text_in(srdf_file)))
    throw std::runtime_error("no robot in " + urdf_file + ", " + srdf_file);
  return std::make_shared<moveit::core::RobotModel>(urdf, srdf);
}

std::vector<double> numbers(std::istream& words)
{
  return { std::istream_iterator<double>(words), {} };
}

moveit_msgs::msg::CollisionObject box(std::istream& words, const std::string& frame)
{
  moveit_msgs::msg::CollisionObject object;
  words >> object.id;
  const auto given = numbers(words);
  object.header.frame_id = frame;
  object.pose.orientation.w = 1.0;
  object.primitives.resize(1);
  object.primitives[0].type = shape_msgs::msg::SolidPrimitive::BOX;
  object.primitives[0].dimensions = { given.at(3), given.at(4), given.at(5) };
  object.primitive_poses.resize(1);
  object.primitive_poses[0].position.x = given[0];
  object.primitive_poses[0].position.y = given[1];
  object.primitive_poses[0].position.z = given[2];
  object.primitive_poses[0].orientation.w = 1.0;
  object.operation = object.ADD;
  return object;
}

void print(const robot_trajectory::RobotTrajectoryPtr& trajectory, int code, const std::string& text)
{
  if (trajectory)
  {
    moveit_msgs::msg::RobotTrajectory message;
    trajectory->getRobotTrajectoryMsg(message);
    std::cout << "joints";
    for (const auto& name : message.joint_trajectory.joint_names)
      std::cout << ' ' << name;
    for (const auto& point : message.joint_trajectory.points)
    {
      std::cout << "\npoint " << rclcpp::Duration(point.time_from_start).seconds();
      for (const double value : point.positions)
        std::cout << ' ' << value;
    }
    std::cout << '\n';
  }
  std::cout << "end " << code << ' ' << text << std::endl;
}
}  // namespace

int main(int argc, char** argv)
{
  const auto arguments = rclcpp::init_and_remove_ros_arguments(argc, argv);
  rclcpp::NodeOptions options;
  options.automatically_declare_parameters_from_overrides(true);
  const auto node = std::make_shared<rclcpp::Node>("move_group", options);
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);

  const auto robot = robot_of(arguments.at(1), arguments.at(2));
  const auto scene = std::make_shared<planning_scene::PlanningScene>(robot);
  pluginlib::ClassLoader<planning_interface::PlannerManager> loader("moveit_core", "planning_interface::PlannerManager");
  const auto manager = loader.createUniqueInstance("gpu_planners_moveit/PlannerManager");
  if (!manager->initialize(robot, node, "gpu_planners"))
    return 1;
  const planning_pipeline::PlanningPipeline pipeline(robot, node, "gpu_planners");  // what its parameters name
  planning_interface::MotionPlanRequest request;
  request.max_velocity_scaling_factor = request.max_acceleration_scaling_factor = 1.0;

  const auto plan = [&](const std::string& how) {
    const planning_scene::PlanningSceneConstPtr seen = scene;
    if (how == "pipeline")
    {
      Response response;
      static_cast<void>(pipeline.generatePlan(seen, request, response));  // the response says it all
      print(trajectory_of(response, 0), error_code_of(response, 0).val, text_of(error_code_of(response, 0), 0));
      return;
    }
    moveit_msgs::msg::MoveItErrorCodes code;
    const auto context = manager->getPlanningContext(seen, request, code);
    if (!context)
      return print(nullptr, code.val, text_of(code, 0));
    if (how == "detailed")
    {
      DetailedResponse response;
      context->solve(response);
      const auto& found = trajectory_of(response, 0);
      print(found.empty() ? nullptr : found.at(0), error_code_of(response, 0).val,
            text_of(error_code_of(response, 0), 0));
      return;
    }
    Response response;
    context->solve(response);
    print(trajectory_of(response, 0), error_code_of(response, 0).val, text_of(error_code_of(response, 0), 0));
  };

  auto& state = scene->getCurrentStateNonConst();
  state.setToDefaultValues();
  for (std::string line; std::getline(std::cin, line);)
  {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "group")
      words >> request.group_name;
    else if (what == "planner")
    {
      request.planner_id.clear();
      words >> request.planner_id;
    }
    else if (what == "time")
      words >> request.allowed_planning_time;
    else if (what == "start")
    {
      state.setJointGroupPositions(request.group_name, numbers(words));
      state.update();
    }
    else if (what == "goal")
    {
      const auto values = numbers(words);
      const auto* group = robot->getJointModelGroup(request.group_name);
      request.goal_constraints.assign(1, moveit_msgs::msg::Constraints());
      for (std::size_t k = 0; k < values.size(); ++k)
      {
        moveit_msgs::msg::JointConstraint joint;
        joint.joint_name = group->getVariableNames().at(k);
        joint.position = values[k];
        joint.tolerance_above = joint.tolerance_below = 1e-4;
        joint.weight = 1.0;
        request.goal_constraints[0].joint_constraints.push_back(joint);
      }
    }
    else if (what == "box")
      scene->processCollisionObjectMsg(box(words, scene->getPlanningFrame()));
    else if (what == "attach")
    {
      moveit_msgs::msg::AttachedCollisionObject attached;
      words >> attached.link_name >> attached.object.id;
      attached.object.operation = attached.object.ADD;
      attached.touch_links = { attached.link_name };
      scene->processAttachedCollisionObjectMsg(attached);
    }
    else if (what == "algorithms")
    {
      std::vector<std::string> names;
      manager->getPlanningAlgorithms(names);
      std::cout << manager->getDescription();
      for (const auto& name : names)
        std::cout << ' ' << name;
      std::cout << std::endl;
    }
    else if (what == "plan")
    {
      std::string how;
      double terminated_after = -1.0;
      words >> how >> terminated_after;
      std::thread terminating;
      if (terminated_after >= 0.0)
        terminating = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::duration<double>(terminated_after));
          manager->terminate();
        });
      std::promise<void> done;
      rclcpp::TimerBase::SharedPtr timer = node->create_wall_timer(std::chrono::milliseconds(0), [&] {
        timer->cancel();
        plan(how);
        done.set_value();
      });
      executor.spin_until_future_complete(done.get_future());
      if (terminating.joinable())
        terminating.join();
    }
  }
  rclcpp::shutdown();
  return 0;
}
