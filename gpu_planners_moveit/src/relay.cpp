#include "relay.hpp"

#include <algorithm>
#include <exception>

#include "moveit_api.hpp"

namespace gpu_planners_moveit
{
namespace
{
using Clock = std::chrono::steady_clock;
using Code = moveit_msgs::msg::MoveItErrorCodes;
using Handle = rclcpp_action::ClientGoalHandle<MoveGroup>;

constexpr std::chrono::milliseconds LOOK_EVERY{ 100 };  // whether the node is still there, and the thread to end
constexpr Seconds CANCELLED_WITHIN{ 2.0 };              // a cancelled goal is answered, or is left alone

Clock::time_point after(Seconds duration)
{
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(duration);
}

rclcpp::ExecutorOptions in_context_of(rclcpp::Node& node)
{
  rclcpp::ExecutorOptions options;
  options.context = node.get_node_base_interface()->get_context();
  return options;
}

void cancel_goal(rclcpp_action::Client<MoveGroup>& client, const Handle::SharedPtr& goal)
{
  try
  {
    client.async_cancel_goal(goal);
  }
  catch (const rclcpp_action::exceptions::UnknownGoalHandleError&)
  {
    // it has ended meanwhile
  }
}
}  // namespace

void Exchange::cancel()
{
  const std::lock_guard<std::mutex> lock(mutex);
  cancelled = true;
  changed.notify_all();
}

Relay::Relay(const rclcpp::Node::SharedPtr& node, const std::string& action, const Limits& limits)
  : node_(node)
  , action_(node->get_node_base_interface()->resolve_topic_or_service_name(action, false, true))
  , limits_(limits)
  , group_(node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false))
  , client_(rclcpp_action::create_client<MoveGroup>(node, action, group_))
  , executor_(in_context_of(*node))
{
  executor_.add_callback_group(group_, node->get_node_base_interface());
  thread_ = std::thread([this] { spin(); });
}

Relay::~Relay()
{
  ends_ = true;
  thread_.join();
}

void Relay::spin()
{
  // not executor_.spin(): a cancel() before it begins is lost
  while (!ends_ && rclcpp::ok(node_->get_node_base_interface()->get_context()))
  {
    try
    {
      executor_.spin_once(LOOK_EVERY);
    }
    catch (const std::exception& error)
    {
      RCLCPP_ERROR(node_->get_logger(), "gpu_planners: a message of %s failed: %s", action_.c_str(), error.what());
    }
  }
}

MoveGroup::Result Relay::failed(int code, const std::string& text) const
{
  MoveGroup::Result result;
  result.error_code.val = code;
  set_text(result.error_code, text, 0);
  RCLCPP_ERROR(node_->get_logger(), "gpu_planners: %s", text.c_str());
  return result;
}

bool Relay::wait_for_server(Exchange& exchange) const
{
  const auto end = after(limits_.server);
  std::unique_lock<std::mutex> lock(exchange.mutex);
  while (!client_->action_server_is_ready())
  {
    if (exchange.cancelled || Clock::now() >= end)
      return false;
    exchange.changed.wait_for(lock, LOOK_EVERY);
  }
  return true;
}

MoveGroup::Result Relay::ask(const MoveGroup::Goal& goal, const std::shared_ptr<Exchange>& exchange)
{
  if (!wait_for_server(*exchange))
  {
    if (exchange->cancelled)
      return failed(Code::PREEMPTED, "cancelled before the node arm_planner was there");
    return failed(Code::COMMUNICATION_FAILURE,
                  "no node serves the action " + action_ +
                      ". Start gpu_planners' arm_planner with the parameters moveit_interface: action and "
                      "move_group_action: " + action_);
  }

  rclcpp_action::Client<MoveGroup>::SendGoalOptions options;
  const std::weak_ptr<Client> weak_client = client_;
  options.goal_response_callback = [exchange, weak_client](const Handle::SharedPtr& handle) {
    std::unique_lock<std::mutex> lock(exchange->mutex);
    if (exchange->left)
    {
      lock.unlock();  // the client's locks are never taken within an exchange's
      const auto client = weak_client.lock();
      if (client && handle)
        cancel_goal(*client, handle);
      return;
    }
    exchange->goal = handle;
    exchange->refused = !handle;
    exchange->changed.notify_all();
  };
  options.result_callback = [exchange](const Handle::WrappedResult& answer) {
    const std::lock_guard<std::mutex> lock(exchange->mutex);
    exchange->answer = std::make_shared<Handle::WrappedResult>(answer);
    exchange->changed.notify_all();
  };
  const auto begun = Clock::now();
  auto end = after(Seconds(goal.request.allowed_planning_time) + limits_.margin);
  client_->async_send_goal(goal, options);

  std::unique_lock<std::mutex> lock(exchange->mutex);
  bool cancel_sent = false, gone = false;
  while (!exchange->answer && !exchange->refused && !gone && Clock::now() < end)
  {
    if (exchange->cancelled && exchange->goal && !cancel_sent)
    {
      cancel_sent = true;
      end = std::min(end, after(CANCELLED_WITHIN));
      const Handle::SharedPtr taken = exchange->goal;
      lock.unlock();
      cancel_goal(*client_, taken);
      lock.lock();
      continue;
    }
    exchange->changed.wait_for(lock, LOOK_EVERY);
    gone = !client_->action_server_is_ready();
  }
  exchange->left = true;
  const Handle::SharedPtr handle = std::move(exchange->goal);  // a goal's callbacks hold the exchange: no circle stays
  exchange->goal.reset();
  const auto answer = exchange->answer;
  const bool refused = exchange->refused;
  lock.unlock();
  if (answer)
  {
    MoveGroup::Result result = *answer->result;
    if (answer->code != rclcpp_action::ResultCode::SUCCEEDED && (result.error_code.val == Code::SUCCESS || result.error_code.val == 0))
      result.error_code.val = answer->code == rclcpp_action::ResultCode::CANCELED ? Code::PREEMPTED : Code::FAILURE;
    const auto text = text_of(result.error_code, 0);
    if (result.error_code.val == Code::SUCCESS)
      RCLCPP_INFO(node_->get_logger(), "gpu_planners: %s", text.c_str());
    else
      RCLCPP_ERROR(node_->get_logger(), "gpu_planners: error code %d: %s", result.error_code.val, text.c_str());
    return result;
  }
  if (refused)
    return failed(Code::ABORT, action_ + " takes no goal now");
  if (exchange->cancelled)
    return failed(Code::PREEMPTED, "cancelled, but " + action_ + " did not confirm it");
  if (gone)
    return failed(Code::COMMUNICATION_FAILURE, "the node that serves " + action_ + " went away while it planned");
  if (handle)
    cancel_goal(*client_, handle);
  const double waited = Seconds(Clock::now() - begun).count();
  return failed(Code::TIMED_OUT, action_ + " gave no answer within " + std::to_string(waited) +
                                     " s: allowed_planning_time and the parameter answer_margin_s");
}
}  // namespace gpu_planners_moveit
