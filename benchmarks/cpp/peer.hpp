/* A robot and states as a peer is given them, compiled once a machine: it knows no robot, and makes its model joint by
   joint from numbers, so that nothing but Pinocchio's headers is needed. A peer defines `Peer`, and is called by the
   functions at the end. */
#pragma once

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

enum Task { RNEA, ABA, RNEA_DERIVATIVES, ABA_DERIVATIVES };

struct State { Eigen::VectorXd q, v, y; };

/* What a peer is opened with: its task, model and states; a folder of its own, and the compiler of what it generates. */
struct Problem {
    Task task;
    pinocchio::Model model;
    std::vector<State> states;
    std::string folder, compiler;
    Eigen::Index outputs() const { return task < RNEA_DERIVATIVES ? model.nv : 3 * model.nv * model.nv; }
};

inline pinocchio::JointModel joint_of(int kind, const Eigen::Vector3d &axis) {
    switch (kind) {
    case 0: return pinocchio::JointModelRX();
    case 1: return pinocchio::JointModelRY();
    case 2: return pinocchio::JointModelRZ();
    case 3: return pinocchio::JointModelPX();
    case 4: return pinocchio::JointModelPY();
    case 5: return pinocchio::JointModelPZ();
    case 6: return pinocchio::JointModelRevoluteUnaligned(axis);
    case 7: return pinocchio::JointModelPrismaticUnaligned(axis);
    case 8: return pinocchio::JointModelFreeFlyer();
    }
    throw std::invalid_argument("a joint of no kind that is known");
}

/* A joint and its body are 30 numbers: its kind, its parent, its axis (3), where it stands on its parent (a rotation's
   9 columnwise, then 3), and the body's mass, centre of mass (3) and inertia about that (9). */
inline pinocchio::Model made_with(int joints, const double *at) {
    using pinocchio::SE3;
    pinocchio::Model model;
    for (int k = 0; k < joints; ++k, at += 30) {
        const Eigen::Vector3d axis = Eigen::Vector3d::Map(at + 2), lever = Eigen::Vector3d::Map(at + 18);
        const SE3 placement(Eigen::Matrix3d::Map(at + 5), Eigen::Vector3d::Map(at + 14));
        const pinocchio::Inertia body(at[17], lever, Eigen::Matrix3d::Map(at + 21));
        const auto parent = static_cast<pinocchio::JointIndex>(at[1]);
        const auto joint = joint_of(static_cast<int>(at[0]), axis);
        const auto made = model.addJoint(parent, joint, placement, "joint_" + std::to_string(k));
        model.appendBodyToJoint(made, body, SE3::Identity());
    }
    return model;
}

/* What a task computes with an algorithm of Pinocchio, over any scalar: a vector, or three matrices one below the other,
   of which the last is symmetric and may be filled above its diagonal alone. */
template <typename Model, typename Data, typename Q, typename V>
void solve(Task task, const Model &model, Data &data, const Q &q, const V &v, const V &y) {
    switch (task) {
    case RNEA: pinocchio::rnea(model, data, q, v, y); break;
    case ABA: pinocchio::aba(model, data, q, v, y); break;
    case RNEA_DERIVATIVES: pinocchio::computeRNEADerivatives(model, data, q, v, y); break;
    case ABA_DERIVATIVES: pinocchio::computeABADerivatives(model, data, q, v, y); break;
    }
}

template <typename Data, typename Found>
void copy_answer(Task task, const Data &data, Found &&found) {
    const auto n = data.M.rows();
    const auto three = [&](const auto &of_q, const auto &of_v, const auto &upper) {
        typename Data::MatrixXs last = upper;
        last.template triangularView<Eigen::StrictlyLower>() = last.transpose();
        for (Eigen::Index i = 0; i < n; ++i) {
            found.segment(i * n, n) = of_q.row(i).transpose();
            found.segment((n + i) * n, n) = of_v.row(i).transpose();
            found.segment((2 * n + i) * n, n) = last.row(i).transpose();
        }
    };
    switch (task) {
    case RNEA: found = data.tau; break;
    case ABA: found = data.ddq; break;
    case RNEA_DERIVATIVES: three(data.dtau_dq, data.dtau_dv, data.M); break;
    case ABA_DERIVATIVES: three(data.ddq_dq, data.ddq_dv, data.Minv); break;
    }
}

#define DEFINE_PEER(Peer) \
    extern "C" { \
    /* A robot of so many joints, with n states of q, v and y one after the other; 0 where that fails. */ \
    __attribute__((visibility("default"))) void *peer_open(int task, int joints, const double *robot, int n, \
                                                           const double *numbers, const char *folder, \
                                                           const char *compiler) try { \
        Problem problem{static_cast<Task>(task), made_with(joints, robot), {}, folder, compiler}; \
        const int nq = problem.model.nq, nv = problem.model.nv; \
        for (int k = 0; k < n; ++k, numbers += nq + 2 * nv) \
            problem.states.push_back({Eigen::VectorXd::Map(numbers, nq), Eigen::VectorXd::Map(numbers + nq, nv), \
                                      Eigen::VectorXd::Map(numbers + nq + nv, nv)}); \
        return new Peer(std::move(problem)); \
    } catch (const std::exception &error) { \
        std::fprintf(stderr, "%s\n", error.what()); \
        return nullptr; \
    } \
    /* Solve all states so many times. */ \
    __attribute__((visibility("default"))) void peer_run(void *opened, long repeats) { \
        Peer &peer = *static_cast<Peer *>(opened); \
        for (long k = 0; k < repeats; ++k) \
            for (const State &at : peer.problem.states) peer.solved(at); \
    } \
    /* The answers to all states, one after the other. */ \
    __attribute__((visibility("default"))) void peer_answer(void *opened, double *answers) { \
        Peer &peer = *static_cast<Peer *>(opened); \
        for (const State &at : peer.problem.states) { \
            peer.solved(at); \
            peer.answer(Eigen::Map<Eigen::VectorXd>(answers, peer.problem.outputs())); \
            answers += peer.problem.outputs(); \
        } \
    } \
    __attribute__((visibility("default"))) void peer_close(void *opened) { delete static_cast<Peer *>(opened); } \
    }
