/* Pinocchio as a driver calls it, compiled once a machine: it knows no robot, and makes its model joint by joint from
   numbers, so that nothing but its headers is needed. PEER_... are macros for the names by which it is called. */
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct State { Eigen::VectorXd q, v, y; };

pinocchio::JointModel joint_of(int kind, const Eigen::Vector3d &axis) {
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
pinocchio::Model made_with(int joints, const double *at) {
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

struct Peer {
    pinocchio::Model model;
    std::unique_ptr<pinocchio::Data> data;
    std::vector<State> states;
};

const Eigen::VectorXd &solved(Peer &peer, const State &at, int forward) {
    return forward ? pinocchio::aba(peer.model, *peer.data, at.q, at.v, at.y)
                   : pinocchio::rnea(peer.model, *peer.data, at.q, at.v, at.y);
}

}

#pragma GCC visibility push(default)
extern "C" {

/* A robot of so many joints, with n states of q, v and y one after the other; 0 where it has not so many numbers. */
void *PEER_open(int joints, const double *robot, int nq, int nv, int n, const double *numbers) try {
    std::unique_ptr<Peer> peer(new Peer{made_with(joints, robot), nullptr, {}});
    if (peer->model.nq != nq || peer->model.nv != nv) return nullptr;
    peer->data.reset(new pinocchio::Data(peer->model));
    for (int k = 0; k < n; ++k, numbers += nq + 2 * nv)
        peer->states.push_back({Eigen::VectorXd::Map(numbers, nq), Eigen::VectorXd::Map(numbers + nq, nv),
                                Eigen::VectorXd::Map(numbers + nq + nv, nv)});
    return peer.release();
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
}

/* Solve all states so many times: by ABA, or by RNEA. */
void PEER_run(void *opened, int forward, long repeats) {
    Peer &peer = *static_cast<Peer *>(opened);
    for (long k = 0; k < repeats; ++k)
        for (const State &at : peer.states) solved(peer, at, forward);
}

void PEER_answer(void *opened, int forward, int k, double *answer) {
    Peer &peer = *static_cast<Peer *>(opened);
    Eigen::VectorXd::Map(answer, peer.model.nv) = solved(peer, peer.states[static_cast<std::size_t>(k)], forward);
}

}
#pragma GCC visibility pop
