/* Pinocchio's algorithms as a library of C++ calls them. */
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "peer.hpp"

namespace {

struct Peer {
    explicit Peer(Problem given) : problem(std::move(given)), data(problem.model) {}
    void solved(const State &at) { solve(problem.task, problem.model, data, at.q, at.v, at.y); }
    void answer(Eigen::Map<Eigen::VectorXd> found) const { copy_answer(problem.task, data, found); }
    Problem problem;
    pinocchio::Data data;
};

}

DEFINE_PEER(Peer)
