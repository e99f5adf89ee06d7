#include "nori_dyn_controllers/broadcaster.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/logging.hpp"
#include "rclcpp/qos.hpp"

namespace nori_dyn_controllers {
namespace {

using controller_interface::CallbackReturn;
using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using diagnostic_msgs::msg::DiagnosticStatus;
using geometry_msgs::msg::WrenchStamped;
using sensor_msgs::msg::JointState;
using std_msgs::msg::Float64MultiArray;
using Stamp = builtin_interfaces::msg::Time;

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr unsigned UNKNOWN = 1U << 31; // is of no contact: such a state is not planned, and refused
const std::string CONTACT = "contact:";

/* What a number is read from: a factor times an interface, or a constant where there is none. */
struct Source {
    double factor;
    std::string interface;
    double threshold;
};

std::string trimmed(const std::string &text) {
    const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/* "-1 * name" as -1 and "name", "name" as 1 and "name", "0.5" as 0.5 and "". */
std::pair<double, std::string> product(const std::string &text) {
    char *end = nullptr;
    const double factor = std::strtod(text.c_str(), &end);
    const std::string rest = trimmed(end);
    if (end == text.c_str() || !std::isfinite(factor) || !(rest.empty() || rest[0] == '*')) return {1.0, text};
    return {factor, rest.empty() ? "" : trimmed(rest.substr(1))};
}

/* "joint1/effort", "-1 * joint1/effort", "0.5", "foot/force.z > 20". */
Source parsed(const std::string &text) {
    const auto above = text.find('>');
    const auto [factor, interface] = product(trimmed(text.substr(0, above)));
    const auto [threshold, rest] =
        above == std::string::npos ? std::pair(0.5, std::string()) : product(trimmed(text.substr(above + 1)));
    if (!rest.empty() || (!interface.empty() && interface.find('/') == std::string::npos))
        throw std::invalid_argument("'" + text + "' is neither a number nor a state interface");
    return {factor, interface, threshold};
}

/* "LEFT = RIGHT" lines by what is left. */
std::map<std::string, std::string> assigned(const std::vector<std::string> &lines) {
    std::map<std::string, std::string> found;
    for (const std::string &line : lines) {
        const auto at = line.rfind('=');
        if (at == std::string::npos) throw std::invalid_argument("'" + line + "' has no '='");
        if (!found.emplace(trimmed(line.substr(0, at)), trimmed(line.substr(at + 1))).second)
            throw std::invalid_argument("'" + trimmed(line.substr(0, at)) + "' is there twice");
    }
    return found;
}

/* The state interface of a number where none is told, by the names of ros2_control; "" where there is no such name. */
std::string usual_interface(const std::string &name) {
    static const std::map<std::string, std::string> OF_JOINTS{
        {"q", "position"}, {"qd", "velocity"}, {"qdd", "acceleration"}, {"tau", "effort"}, {"tau_J", "effort"}};
    static const std::map<std::string, std::string> OF_SENSORS{{":m", "torque"},
                                                               {":f", "force"},
                                                               {"ft:m", "torque"},
                                                               {"ft:f", "force"},
                                                               {"fx:m", "torque"},
                                                               {"fx:f", "force"},
                                                               {"gyro:w", "angular_velocity"},
                                                               {"acc:a", "linear_acceleration"}};
    const auto colon = name.find(':'), dot = name.rfind('.');
    const std::string kind = colon == std::string::npos ? "" : name.substr(0, colon);
    const std::size_t first = colon == std::string::npos ? 0 : colon + 1;
    if (const auto found = OF_JOINTS.find(kind); found != OF_JOINTS.end() && name.back() != ']')
        return name.substr(first) + "/" + found->second;
    if (dot == std::string::npos || dot < first || name.size() != dot + 3) return "";
    const auto found = OF_SENSORS.find(kind + ":" + name[dot + 1]);
    if (found == OF_SENSORS.end()) return "";
    return name.substr(first, dot - first) + "/" + found->second + "." + name[dot + 2];
}

/* A name as a part of that of a topic. */
std::string token(std::string name) {
    for (char &c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

std::string tokens(const std::string &name) {
    const auto colon = name.find(':');
    return colon == std::string::npos ? token(name)
                                      : token(name.substr(0, colon)) + "/" + tokens(name.substr(colon + 1));
}

bool begins(const std::string &text, const std::string &with) { return text.compare(0, with.size(), with) == 0; }

bool ends(const std::string &text, const std::string &with) {
    return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

void put(WrenchStamped &message, const double *numbers, double factor, const Stamp &stamp) {
    message.header.stamp = stamp;
    auto &torque = message.wrench.torque, &force = message.wrench.force;
    double *const places[] = {&torque.x, &torque.y, &torque.z, &force.x, &force.y, &force.z};
    for (double *const place : places) *place = factor * *numbers++;
}

void put(JointState &message, const double *numbers, double factor, const Stamp &stamp) {
    message.header.stamp = stamp;
    for (double &effort : message.effort) effort = factor * *numbers++;
}

void put(Float64MultiArray &message, const double *numbers, double, const Stamp &) {
    std::copy_n(numbers, message.data.size(), message.data.begin());
}

/* In Humble a publisher has trylock() and msg_, in Jazzy try_publish() too, later only that. */
template <class Publisher, class Message>
auto sent(Publisher &by, const Message &message, int) -> decltype(by.try_publish(message)) {
    return by.try_publish(message);
}

template <class Publisher, class Message> bool sent(Publisher &by, const Message &message, long) {
    if (!by.trylock()) return false;
    by.msg_ = message;
    by.unlockAndPublish();
    return true;
}

template <class Topics> bool sent(Topics &topics, const double *outputs, const Stamp &stamp) {
    bool is_all = true;
    for (auto &topic : topics) {
        put(topic.message, outputs + topic.first, topic.factor, stamp);
        is_all &= sent(*topic.publisher, topic.message, 0);
    }
    return is_all;
}

/* In Humble an interface has get_value(), in Jazzy get_optional() too, later only that. */
template <class Interface> auto read(const Interface &from, int) -> decltype(from.get_optional().value_or(0.0)) {
    return from.get_optional().value_or(NOT_A_NUMBER);
}

template <class Interface> double read(const Interface &from, long) { return from.get_value(); }

} // namespace

CallbackReturn Broadcaster::on_init() {
    auto_declare<std::string>("export", "");
    for (const char *const name : {"inputs", "outputs"})
        auto_declare<std::vector<std::string>>(name, std::vector<std::string>{});
    updater_ = std::make_unique<diagnostic_updater::Updater>(get_node());
    updater_->setHardwareID("none");
    updater_->add("estimates", this, &Broadcaster::diagnose);
    return CallbackReturn::SUCCESS;
}

CallbackReturn Broadcaster::on_configure(const State &) {
    try {
        const std::lock_guard<std::mutex> lock(configuring_);
        configure();
    } catch (const std::exception &error) {
        RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
        return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
}

void Broadcaster::configure() {
    std::string name = get_node()->get_parameter("export").as_string();
    if (name.empty() && makers().size() == 1) name = makers().begin()->first;
    const auto made = makers().find(name);
    if (made == makers().end()) {
        std::string known;
        for (const auto &one : makers()) known += " " + one.first;
        throw std::invalid_argument("export: there is no '" + name + "'; this library was built with:" + known);
    }
    estimator_ = made->second();
    culprit_ = -1;
    bind(get_node()->get_parameter("inputs").as_string_array());
    advertise(get_node()->get_parameter("outputs").as_string_array());

    /* The first message on a topic allocates: it is one without an estimate, now. */
    const std::vector<double> nothing(estimator_->output_names.size(), NOT_A_NUMBER);
    for (int k = 0; k < 100 && !publish(nothing.data(), get_node()->now()); ++k)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/* Find where each number comes from. */
void Broadcaster::bind(const std::vector<std::string> &told) {
    interfaces_.clear(), inputs_.clear(), contacts_.clear();
    closed_ = 0;
    auto sources = assigned(told);
    std::string lacking;
    const auto source_of = [&](const std::string &name) {
        const auto found = sources.find(name);
        const std::string source = found == sources.end() ? usual_interface(name) : found->second;
        if (source.empty()) lacking += (lacking.empty() ? "'" : ", '") + name + "'";
        if (found != sources.end()) sources.erase(found);
        return source.empty() ? Source{0.0, "", 0.0} : parsed(source);
    };
    for (std::size_t k = 0; k < estimator_->input_names.size(); ++k) {
        if (estimator_->input_names[k].empty()) continue;
        const Source source = source_of(estimator_->input_names[k]);
        if (source.interface.empty())
            estimator_->inputs[k] = source.factor;
        else
            inputs_.push_back({reading(source.interface, source.factor), k});
    }
    for (std::size_t k = 0; k < estimator_->contact_names.size(); ++k) {
        const Source source = source_of(CONTACT + estimator_->contact_names[k]);
        if (!source.interface.empty())
            contacts_.push_back({reading(source.interface, source.factor), source.threshold, 1U << k});
        else if (source.factor > source.threshold)
            closed_ |= 1U << k;
    }
    if (!sources.empty()) throw std::invalid_argument("there is no '" + sources.begin()->first + "' to read");
    if (!lacking.empty()) throw std::invalid_argument("nothing says where these come from: " + lacking);
}

Broadcaster::Reading Broadcaster::reading(const std::string &interface, double factor) {
    const auto found = std::find(interfaces_.begin(), interfaces_.end(), interface);
    const auto place = static_cast<std::size_t>(found - interfaces_.begin());
    if (found == interfaces_.end()) interfaces_.push_back(interface);
    return {place, factor};
}

/* Open a topic for all numbers, one for each wrench, and one for the torques of joints of each kind. */
void Broadcaster::advertise(const std::vector<std::string> &told) {
    wrenches_.clear(), efforts_.clear(), values_.clear(), outputs_.clear();
    for (const auto &[topic, source] : assigned(told)) {
        const auto [factor, output] = product(source);
        if (!outputs_.insert({output, {factor, topic, false}}).second)
            throw std::invalid_argument("'" + output + "' is published twice");
    }
    const Estimator::Names &names = estimator_->output_names;
    Float64MultiArray all;
    all.data.resize(names.size());
    all.layout.dim.resize(1);
    all.layout.dim[0].size = all.layout.dim[0].stride = static_cast<std::uint32_t>(names.size());
    for (std::string name : names) {
        for (char &c : name)
            if (c == ',' || c == '\n') c = '_';
        all.layout.dim[0].label += (all.layout.dim[0].label.empty() ? "" : ",") + name;
    }
    open(values_, "", "values", 0, all);
    for (std::size_t k = 0, first = 0; k < names.size(); first = k) {
        const std::string &name = names[k], kind = name.substr(0, std::min(name.rfind(':'), name.size()));
        if ((begins(name, "fx:") || begins(name, "f:")) && ends(name, ".mx")) {
            const std::string output = name.substr(0, name.size() - 3), frame = output.substr(output.find(':') + 1);
            WrenchStamped wrench;
            wrench.header.frame_id = frame;
            k += 6;
            open(wrenches_, output, (name[1] == 'x' ? "wrench/" : "joint_wrench/") + token(frame), first, wrench);
        } else if (kind != name && (kind == "tau" || ends(kind, ":tau") || ends(kind, "tau_J"))) {
            JointState state;
            for (; k < names.size() && begins(names[k], kind + ":"); ++k)
                state.name.push_back(names[k].substr(kind.size() + 1));
            state.effort.resize(state.name.size());
            open(efforts_, kind, kind == "tau" ? "joint_states" : tokens(kind), first, state);
        } else {
            ++k;
        }
    }
    for (const auto &[output, alias] : outputs_)
        if (!alias.is_open) throw std::invalid_argument("there is no output '" + output + "'");
}

/* Open the topic of an output, unless it is open: what is asked for and persists too has the same numbers twice. */
template <class Message>
void Broadcaster::open(std::vector<Topic<Message>> &topics, const std::string &output, const std::string &usual,
                       std::size_t first, const Message &message) {
    Alias &alias = outputs_.insert({output, {1.0, usual, false}}).first->second;
    if (std::exchange(alias.is_open, true)) return;
    const auto publisher = get_node()->create_publisher<Message>("~/" + alias.topic, rclcpp::SystemDefaultsQoS());
    auto sender = std::make_unique<realtime_tools::RealtimePublisher<Message>>(publisher);
    topics.push_back({first, alias.factor, message, std::move(sender)});
}

InterfaceConfiguration Broadcaster::command_interface_configuration() const {
    return {interface_configuration_type::NONE, {}};
}

InterfaceConfiguration Broadcaster::state_interface_configuration() const {
    return {interface_configuration_type::INDIVIDUAL, interfaces_};
}

CallbackReturn Broadcaster::on_activate(const State &) {
    bool is_ours = state_interfaces_.size() == interfaces_.size();
    for (std::size_t k = 0; is_ours && k < interfaces_.size(); ++k)
        is_ours = state_interfaces_[k].get_name() == interfaces_[k];
    if (!is_ours) {
        RCLCPP_ERROR(get_node()->get_logger(), "the state interfaces are not those that were asked for");
        return CallbackReturn::ERROR;
    }
    estimator_->reset();
    return CallbackReturn::SUCCESS;
}

controller_interface::return_type Broadcaster::update(const rclcpp::Time &time, const rclcpp::Duration &period) {
    for (const Input &input : inputs_) estimator_->inputs[input.place] = value(input.from);
    unsigned contacts = closed_;
    for (const Contact &contact : contacts_) {
        const double now = value(contact.from);
        contacts |= std::isnan(now) ? UNKNOWN : now > contact.threshold ? contact.bit : 0;
    }
    const int status = estimator_->tick(contacts, period.seconds());
    publish(estimator_->outputs, time);
    if (status != 0) {
        status_ = status;
        culprit_ = not_finite();
        ++refused_;
    }
    ++ticks_;
    return controller_interface::return_type::OK;
}

bool Broadcaster::publish(const double *outputs, const Stamp &stamp) {
    const bool is_first = sent(values_, outputs, stamp), is_second = sent(wrenches_, outputs, stamp);
    return sent(efforts_, outputs, stamp) && is_first && is_second;
}

double Broadcaster::value(const Reading &of) const { return of.factor * read(state_interfaces_[of.interface], 0); }

/* The place in interfaces_ of the first that is not finite; -1 where all are. */
int Broadcaster::not_finite() const {
    for (std::size_t k = 0; k < state_interfaces_.size(); ++k)
        if (!std::isfinite(read(state_interfaces_[k], 0))) return static_cast<int>(k);
    return -1;
}

void Broadcaster::diagnose(diagnostic_updater::DiagnosticStatusWrapper &status) {
    const std::lock_guard<std::mutex> lock(configuring_);
    const std::uint64_t ticks = ticks_, refused = refused_;
    const bool is_running = ticks != ticks_told_, is_refused = refused != refused_told_;
    if (is_refused)
        status.summary(refused - refused_told_ < ticks - ticks_told_ ? DiagnosticStatus::WARN : DiagnosticStatus::ERROR,
                       std::string("refused: ") + estimator_->text(status_));
    else
        status.summary(DiagnosticStatus::OK, is_running ? "estimates" : "not running");
    status.add("ticks", ticks);
    status.add("refused", refused);
    const int culprit = culprit_;
    if (is_refused && culprit >= 0) status.add("not finite", interfaces_[static_cast<std::size_t>(culprit)]);
    ticks_told_ = ticks, refused_told_ = refused;
}

} // namespace nori_dyn_controllers

PLUGINLIB_EXPORT_CLASS(nori_dyn_controllers::Broadcaster, controller_interface::ControllerInterface)
