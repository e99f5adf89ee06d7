/* A stand-in for what the controllers call of ROS 2: the declarations are those that its packages publish, what is behind
 * them is enough to run a controller in one thread. Every header that the controllers include is this file.
 *
 * With HUMBLE it is ros2_control 2 and realtime_tools 2; without, what Jazzy (4 and 3) and later versions (6) share. */
#ifndef ROS_HPP_
#define ROS_HPP_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stand_in {

/* Whether allocations count. */
extern thread_local bool is_counting;

struct Uncounted {
    const bool before = std::exchange(is_counting, false);
    ~Uncounted() { is_counting = before; }
};

inline bool is_busy = false; // the thread that publishes
inline std::string error;    // the last that was logged

} // namespace stand_in

// ------------------------------------------------------------------------------------ messages

namespace rosidl_runtime_cpp {
enum class MessageInitialization { ALL, SKIP, ZERO, DEFAULTS_ONLY };
}

/* The constructor that rosidl gives messages. */
#define MESSAGE(Name) \
    explicit Name(rosidl_runtime_cpp::MessageInitialization = rosidl_runtime_cpp::MessageInitialization::ALL) {}

namespace builtin_interfaces::msg {
struct Time {
    MESSAGE(Time);
    std::int32_t sec = 0;
    std::uint32_t nanosec = 0;
};
} // namespace builtin_interfaces::msg

namespace std_msgs::msg {
struct Header {
    MESSAGE(Header);
    builtin_interfaces::msg::Time stamp;
    std::string frame_id;
};
struct MultiArrayDimension {
    MESSAGE(MultiArrayDimension);
    std::string label;
    std::uint32_t size = 0, stride = 0;
};
struct MultiArrayLayout {
    MESSAGE(MultiArrayLayout);
    std::vector<MultiArrayDimension> dim;
    std::uint32_t data_offset = 0;
};
struct Float64MultiArray {
    MESSAGE(Float64MultiArray);
    MultiArrayLayout layout;
    std::vector<double> data;
};
} // namespace std_msgs::msg

namespace geometry_msgs::msg {
struct Vector3 {
    MESSAGE(Vector3);
    double x = 0, y = 0, z = 0;
};
struct Wrench {
    MESSAGE(Wrench);
    Vector3 force, torque;
};
struct WrenchStamped {
    MESSAGE(WrenchStamped);
    std_msgs::msg::Header header;
    Wrench wrench;
};
} // namespace geometry_msgs::msg

namespace sensor_msgs::msg {
struct JointState {
    MESSAGE(JointState);
    std_msgs::msg::Header header;
    std::vector<std::string> name;
    std::vector<double> position, velocity, effort;
};
} // namespace sensor_msgs::msg

namespace diagnostic_msgs::msg {
struct DiagnosticStatus {
    MESSAGE(DiagnosticStatus);
    static constexpr unsigned char OK = 0, WARN = 1, ERROR = 2, STALE = 3;
    unsigned char level = OK;
    std::string name, message, hardware_id;
};
} // namespace diagnostic_msgs::msg

namespace stand_in {

inline void show(const char *topic, const builtin_interfaces::msg::Time &stamp, const std::string &names) {
    std::printf("message\t%s\t%d.%09u\t%s", topic, stamp.sec, stamp.nanosec, names.c_str());
}
inline void show(const char *topic, const geometry_msgs::msg::WrenchStamped &it) {
    show(topic, it.header.stamp, it.header.frame_id);
    const auto &t = it.wrench.torque, &f = it.wrench.force;
    for (const double x : {t.x, t.y, t.z, f.x, f.y, f.z}) std::printf("\t%.17g", x);
    std::printf("\n");
}
inline void show(const char *topic, const sensor_msgs::msg::JointState &it) {
    std::string names;
    for (const std::string &name : it.name) names += (names.empty() ? "" : ",") + name;
    show(topic, it.header.stamp, names);
    for (const double x : it.effort) std::printf("\t%.17g", x);
    std::printf("\n");
}
inline void show(const char *topic, const std_msgs::msg::Float64MultiArray &it) {
    show(topic, builtin_interfaces::msg::Time(), it.layout.dim.at(0).label);
    for (const double x : it.data) std::printf("\t%.17g", x);
    std::printf("\n");
}

} // namespace stand_in

// ------------------------------------------------------------------------------------ rclcpp

#define RCLCPP_ERROR(logger, ...)                          \
    do {                                                   \
        char line[4096];                                   \
        std::snprintf(line, sizeof line, __VA_ARGS__);     \
        stand_in::error = line, static_cast<void>(logger); \
    } while (false)

namespace rclcpp {

class Duration {
  public:
    explicit Duration(double seconds) : seconds_(seconds) {}
    double seconds() const { return seconds_; }

  private:
    double seconds_;
};

class Time {
  public:
    explicit Time(std::int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
    operator builtin_interfaces::msg::Time() const {
        builtin_interfaces::msg::Time time;
        time.sec = static_cast<std::int32_t>(nanoseconds_ / 1000000000);
        time.nanosec = static_cast<std::uint32_t>(nanoseconds_ % 1000000000);
        return time;
    }

  private:
    std::int64_t nanoseconds_;
};

class QoS {};
class SystemDefaultsQoS : public QoS {};
class Logger {};

class Parameter {
  public:
    using Value = std::variant<std::string, std::vector<std::string>>;
    explicit Parameter(Value value) : value_(std::move(value)) {}
    template <class T> T get_value() const { return std::get<T>(value_); }
    std::string as_string() const { return get_value<std::string>(); }
    std::vector<std::string> as_string_array() const { return get_value<std::vector<std::string>>(); }

  private:
    Value value_;
};

template <class Message> class Publisher {
  public:
    using SharedPtr = std::shared_ptr<Publisher>;
    explicit Publisher(std::string topic) : topic_(std::move(topic)) {}
    void publish(const Message &message) {
        const stand_in::Uncounted uncounted;
        stand_in::show(topic_.c_str(), message);
    }

  private:
    std::string topic_;
};

} // namespace rclcpp

namespace rclcpp_lifecycle {

class State {};

template <class Message> class LifecyclePublisher : public rclcpp::Publisher<Message> {
  public:
    using rclcpp::Publisher<Message>::Publisher;
    void publish(const Message &) {} // of a node that is not active
};

class LifecycleNode {
  public:
    std::map<std::string, rclcpp::Parameter::Value> overrides, declared;

    rclcpp::Logger get_logger() const { return {}; }
    rclcpp::Time now() const { return rclcpp::Time(0); }
    bool has_parameter(const std::string &name) const { return declared.count(name) > 0; }
    rclcpp::Parameter get_parameter(const std::string &name) const { return rclcpp::Parameter(declared.at(name)); }
    template <class T> T declare_parameter(const std::string &name, const T &value) {
        const auto given = overrides.find(name);
        return std::get<T>(declared[name] = given == overrides.end() ? value : given->second);
    }
    template <class Message>
    std::shared_ptr<LifecyclePublisher<Message>> create_publisher(const std::string &topic, const rclcpp::QoS &) {
        return std::make_shared<LifecyclePublisher<Message>>(topic);
    }
};

namespace node_interfaces {
class LifecycleNodeInterface {
  public:
    enum class CallbackReturn : std::uint8_t { SUCCESS = 97, FAILURE = 98, ERROR = 99 };
    virtual ~LifecycleNodeInterface() = default;
    virtual CallbackReturn on_configure(const State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_activate(const State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_deactivate(const State &) { return CallbackReturn::SUCCESS; }
};
} // namespace node_interfaces
} // namespace rclcpp_lifecycle

// ------------------------------------------------------------------------------------ realtime_tools

namespace realtime_tools {

template <class Message> class RealtimePublisher {
  public:
    explicit RealtimePublisher(typename rclcpp::Publisher<Message>::SharedPtr publisher)
        : publisher_(std::move(publisher)) {}
#ifdef HUMBLE
    Message msg_;
    bool trylock() { return !stand_in::is_busy; }
    void unlockAndPublish() { publisher_->publish(msg_); }
#else
    bool try_publish(const Message &message) {
        if (stand_in::is_busy) return false;
        msg_ = message;
        publisher_->publish(msg_);
        return true;
    }
#endif

  private:
    typename rclcpp::Publisher<Message>::SharedPtr publisher_;
#ifndef HUMBLE
    Message msg_;
#endif
};

} // namespace realtime_tools

// ------------------------------------------------------------------------------------ diagnostic_updater

namespace diagnostic_updater {

class DiagnosticStatusWrapper : public diagnostic_msgs::msg::DiagnosticStatus {
  public:
    void summary(unsigned char level_told, const std::string &message_told) {
        level = level_told, message = message_told;
    }
    template <class T> void add(const std::string &key, const T &value) {
        if constexpr (std::is_arithmetic_v<T>)
            message += "; " + key + " " + std::to_string(value);
        else
            message += "; " + key + " " + value;
    }
};

class Updater {
  public:
    template <class Node> explicit Updater(Node node, double period = 1.0) : period_(period) {
        static_cast<void>(node);
    }
    void setHardwareID(const std::string &) {}
    template <class T> void add(const std::string, T *of, void (T::*told)(DiagnosticStatusWrapper &)) {
        run() = [of, told] {
            DiagnosticStatusWrapper status;
            (of->*told)(status);
            std::printf("diagnosis\t%d\t%s\n", status.level, status.message.c_str());
        };
    }
    static std::function<void()> &run() {
        static std::function<void()> all;
        return all;
    }

  private:
    double period_;
};

} // namespace diagnostic_updater

// ------------------------------------------------------------------------------------ ros2_control

namespace hardware_interface {

struct StateInterface {
    std::string name;
    double value;
};

class LoanedStateInterface {
  public:
    explicit LoanedStateInterface(const StateInterface &of) : of_(of) {}
    LoanedStateInterface(const LoanedStateInterface &) = delete;
    LoanedStateInterface(LoanedStateInterface &&) = default;
#ifdef HUMBLE
    const std::string get_name() const { return of_.name; }
    double get_value() const { return of_.value; }
#else
    const std::string &get_name() const { return of_.name; }
    template <class T = double> [[nodiscard]] std::optional<T> get_optional(unsigned int max_tries = 10) const {
        return max_tries && of_.value < 1e300 ? std::optional<T>(of_.value) : std::nullopt; // above: cannot be read
    }
#endif

  private:
    const StateInterface &of_;
};

} // namespace hardware_interface

namespace controller_interface {

using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;
enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };
enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2 };
struct InterfaceConfiguration {
    interface_configuration_type type;
    std::vector<std::string> names = {};
};

class ControllerInterface : public rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface {
  public:
    virtual InterfaceConfiguration command_interface_configuration() const = 0;
    virtual InterfaceConfiguration state_interface_configuration() const = 0;
    virtual CallbackReturn on_init() = 0;
    virtual return_type update(const rclcpp::Time &time, const rclcpp::Duration &period) = 0;

    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() { return node_; }
    void assign(std::vector<hardware_interface::LoanedStateInterface> &&interfaces) {
        state_interfaces_ = std::move(interfaces);
    }

    template <class T> auto auto_declare(const std::string &name, const T &value) {
        return get_node()->template declare_parameter<T>(name, value);
    }

  protected:
    std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

  private:
    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_ = std::make_shared<rclcpp_lifecycle::LifecycleNode>();
};

} // namespace controller_interface

// ------------------------------------------------------------------------------------ pluginlib

namespace stand_in {
std::unique_ptr<controller_interface::ControllerInterface> load();
}

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
    std::unique_ptr<Base> stand_in::load() { return std::make_unique<Class>(); }

#endif
