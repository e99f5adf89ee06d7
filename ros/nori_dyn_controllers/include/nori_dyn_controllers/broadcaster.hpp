#ifndef NORI_DYN_CONTROLLERS__BROADCASTER_HPP_
#define NORI_DYN_CONTROLLERS__BROADCASTER_HPP_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "diagnostic_updater/diagnostic_updater.hpp"
#include "geometry_msgs/msg/wrench_stamped.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "sensor_msgs/msg/joint_state.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"

#include "nori_dyn_controllers/estimator.hpp"

namespace nori_dyn_controllers {

/* Reads state interfaces into the inputs of an exported plan or tracker, and publishes its outputs.
 *
 * Nothing that was refused is published as a number: every number of that tick is NaN, and /diagnostics says why. */
class Broadcaster : public controller_interface::ControllerInterface {
  public:
    using State = rclcpp_lifecycle::State;

    controller_interface::CallbackReturn on_init() override;
    controller_interface::CallbackReturn on_configure(const State &previous) override;
    controller_interface::CallbackReturn on_activate(const State &previous) override;

    controller_interface::InterfaceConfiguration command_interface_configuration() const override;
    controller_interface::InterfaceConfiguration state_interface_configuration() const override;

    controller_interface::return_type update(const rclcpp::Time &time, const rclcpp::Duration &period) override;

  private:
    /* A factor times a state interface. */
    struct Reading {
        std::size_t interface;
        double factor;
    };
    struct Input {
        Reading from;
        std::size_t place; // among q, qd and y
    };
    struct Contact {
        Reading from;
        double threshold; // closed above it
        unsigned bit;
    };
    /* How an output is published. */
    struct Alias {
        double factor;
        std::string topic;
        bool is_open;
    };
    template <class Message> struct Topic {
        std::size_t first; // of its numbers among the outputs
        double factor;
        Message message;
        std::unique_ptr<realtime_tools::RealtimePublisher<Message>> publisher;
    };

    void configure();
    void bind(const std::vector<std::string> &told);
    Reading reading(const std::string &interface, double factor);
    void advertise(const std::vector<std::string> &told);
    template <class Message>
    void open(std::vector<Topic<Message>> &topics, const std::string &output, const std::string &usual,
              std::size_t first, const Message &message);
    bool publish(const double *outputs, const builtin_interfaces::msg::Time &stamp);
    double value(const Reading &of) const;
    int not_finite() const;
    void diagnose(diagnostic_updater::DiagnosticStatusWrapper &status);

    std::unique_ptr<Estimator> estimator_;
    std::vector<std::string> interfaces_;
    std::vector<Input> inputs_;
    std::vector<Contact> contacts_;
    unsigned closed_ = 0; // the contacts that always are
    std::map<std::string, Alias> outputs_;
    std::vector<Topic<geometry_msgs::msg::WrenchStamped>> wrenches_;
    std::vector<Topic<sensor_msgs::msg::JointState>> efforts_;
    std::vector<Topic<std_msgs::msg::Float64MultiArray>> values_;

    /* What update() counts for diagnose(), which runs in another thread. */
    std::atomic<std::uint64_t> ticks_{0}, refused_{0};
    std::atomic<int> status_{0}, culprit_{-1};
    std::uint64_t ticks_told_ = 0, refused_told_ = 0;
    std::mutex configuring_; // is not taken by update()
    std::unique_ptr<diagnostic_updater::Updater> updater_;
};

} // namespace nori_dyn_controllers

#endif
