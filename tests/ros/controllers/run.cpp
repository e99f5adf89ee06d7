/* Runs a controller as a controller manager does. Parameters come from the command line: the export, lines of inputs, and
 * lines of outputs after "outputs: "; then each line of the standard input is a command:
 *
 *     activate
 *     tick PERIOD VALUE ...    of the state interfaces that were asked for, in that order
 *     busy 0|1                 whether messages are still being sent
 *     diagnose
 */
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "controller_interface/controller_interface.hpp"
#include "diagnostic_updater/diagnostic_updater.hpp"

thread_local bool stand_in::is_counting = false;

static thread_local long allocations = 0;

#ifdef COUNTED
extern "C" {
void *__libc_malloc(std::size_t size);
void *__libc_calloc(std::size_t n, std::size_t size);
void *__libc_realloc(void *old, std::size_t size);

void *malloc(std::size_t size) {
    allocations += stand_in::is_counting;
    return __libc_malloc(size);
}
void *calloc(std::size_t n, std::size_t size) {
    allocations += stand_in::is_counting;
    return __libc_calloc(n, size);
}
void *realloc(void *old, std::size_t size) {
    allocations += stand_in::is_counting;
    return __libc_realloc(old, size);
}
}
#endif

int main(int argc, char **argv) {
    using controller_interface::CallbackReturn;
    const auto controller = stand_in::load();
    auto &parameters = controller->get_node()->overrides;
    parameters["export"] = std::string(argv[1]);
    std::vector<std::string> inputs, outputs;
    for (int k = 2; k < argc; ++k) {
        const std::string line = argv[k], mark = "outputs: ";
        if (line.compare(0, mark.size(), mark) == 0)
            outputs.push_back(line.substr(mark.size()));
        else
            inputs.push_back(line);
    }
    parameters["inputs"] = inputs, parameters["outputs"] = outputs;
    if (controller->on_init() != CallbackReturn::SUCCESS) return 1;
    stand_in::is_counting = true;
    const CallbackReturn configured = controller->on_configure({});
    stand_in::is_counting = false;
    if (configured != CallbackReturn::SUCCESS) {
        std::printf("error\t%s\n", stand_in::error.c_str());
        return 0;
    }
    std::printf("allocations\tto configure\t%ld\n", std::exchange(allocations, 0));
    const auto asked = controller->state_interface_configuration().names;
    std::vector<hardware_interface::StateInterface> hardware;
    for (const std::string &name : asked) {
        hardware.push_back({name, 0.0});
        std::printf("interface\t%s\n", name.c_str());
    }
    std::vector<hardware_interface::LoanedStateInterface> loaned(hardware.begin(), hardware.end());
    controller->assign(std::move(loaned));
    std::int64_t time = 0;
    for (std::string line, command; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string word;
        words >> command;
        if (command == "activate" && controller->on_activate({}) != CallbackReturn::SUCCESS) return 2;
        if (command == "diagnose") diagnostic_updater::Updater::run()();
        if (command == "busy") words >> stand_in::is_busy;
        if (command != "tick") continue;
        words >> word;
        const double period = std::strtod(word.c_str(), nullptr);
        for (auto &interface : hardware) words >> word, interface.value = std::strtod(word.c_str(), nullptr);
        time += static_cast<std::int64_t>(1e9 * period);
        stand_in::is_counting = true;
        const auto result = controller->update(rclcpp::Time(time), rclcpp::Duration(period));
        stand_in::is_counting = false;
        if (result != controller_interface::return_type::OK) return 3;
    }
    std::printf("allocations\tto update\t%ld\n", allocations);
    return 0;
}
