"""The C++ of the comparison with Pinocchio's C++: one process, in which both work on the same states in turns.

The peer is compiled for itself, once a machine, and knows no robot; the driver with the exported C of each plan. The
peer makes its model joint by joint from numbers, so that nothing but Pinocchio's headers is needed for it.
"""

from __future__ import annotations

JOINTS = ("RX", "RY", "RZ", "PX", "PY", "PZ", "RevoluteUnaligned", "PrismaticUnaligned", "FreeFlyer")
"""Pinocchio's joints that a peer makes, by their places."""

JOINT_NUMBERS = 30
"""How many numbers a joint is given by: see `made_with` of the peer."""

PEER = r"""
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
@CASES@
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
""".replace(
    "@CASES@",
    "\n".join(
        f"    case {k}: return pinocchio::JointModel{name}({'axis' if name.endswith('Unaligned') else ''});"
        for k, name in enumerate(JOINTS)
    ),
)
"""Pinocchio's side; `PEER_...` are macros for the names by which a driver calls it."""

DRIVER = r"""
#include "{name}.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {{
/* The exported C, compiled a second time for any processor. */
{name}_status {name}_solve_anywhere(const {name}_inputs *, {name}_workspace *, {name}_outputs *);
{declared}
}}

namespace {{

struct Peer {{
    const char *name;
    void *(*open)(int, const double *, int, int, int, const double *);
    void (*run)(void *, int, long);
    void (*answer)(void *, int, int, double *);
    void *opened;
}};

Peer peers[] = {{
{listed}
}};

constexpr int FORWARD = {forward}, JOINTS = {joints}, N = {n}, NQ = {nq}, NV = {nv};

{name}_inputs in[N];
{name}_outputs out;
{name}_workspace work;

/* What takes turns: a peer, or one of the compilations of the exported C. */
struct Run {{
    decltype(&{name}_solve) solve;
    const Peer *peer;
}};

double seconds(const Run &run, long repeats) {{
    const auto start = std::chrono::steady_clock::now();
    if (run.peer) run.peer->run(run.peer->opened, FORWARD, repeats);
    for (long k = 0; run.solve && k < repeats; ++k)
        for (const auto &at : in) (void)run.solve(&at, &work, &out);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}}

long repeats_within(const Run &run, double limit) {{
    for (long count = 1;; count *= 4) {{
        const double took = seconds(run, count);
        if (took >= limit / 4) return std::max(1L, static_cast<long>(static_cast<double>(count) * limit / took));
    }}
}}

}}

/* driver JOINTS STATES ANSWERS ROUNDS SECONDS: writes the answers to all states of one after the other; then prints,
   for each round, the time of a state of one after the other. */
int main(int argc, char **argv) {{
    if (argc != 6) return 2;
    const long rounds = std::atol(argv[4]);
    const double limit = std::atof(argv[5]);
    std::vector<double> theirs(N * (NQ + 2 * NV)), answer(NV);
    std::vector<double> robot(JOINTS * {numbers});
    std::FILE *file = std::fopen(argv[1], "rb");
    if (!file || std::fread(robot.data(), sizeof(double), robot.size(), file) != robot.size()) return 3;
    std::fclose(file);
    file = std::fopen(argv[2], "rb");
    if (!file || std::fread(in, sizeof in, 1, file) != 1) return 3;
    if (std::fread(theirs.data(), sizeof(double), theirs.size(), file) != theirs.size()) return 3;
    std::fclose(file);
    file = std::fopen(argv[3], "wb");
    if (!file) return 3;
    std::vector<Run> runs{{{{{name}_solve, nullptr}}, {{{name}_solve_anywhere, nullptr}}}};
    for (const Run &run : runs)
        for (const auto &at : in) {{
            if (run.solve(&at, &work, &out)) return 4;
            std::fwrite(&out, sizeof out, 1, file);
        }}
    for (Peer &peer : peers) {{
        peer.opened = peer.open(JOINTS, robot.data(), NQ, NV, N, theirs.data());
        if (!peer.opened) return 5;
        for (int k = 0; k < N; ++k) {{
            peer.answer(peer.opened, FORWARD, k, answer.data());
            std::fwrite(answer.data(), sizeof(double), answer.size(), file);
        }}
        runs.push_back({{nullptr, &peer}});
    }}
    if (std::fclose(file)) return 3;
    std::vector<long> counts;
    for (const Run &run : runs) counts.push_back(repeats_within(run, limit));
    for (long round = 0; round < rounds; ++round)
        for (std::size_t k = 0; k < runs.size(); ++k)
            std::printf("%.6e%c", seconds(runs[k], counts[k]) / static_cast<double>(counts[k] * N),
                        k + 1 < runs.size() ? ' ' : '\n');
    return 0;
}}
"""

DECLARED = """\
void *{peer}_open(int, const double *, int, int, int, const double *);
void {peer}_run(void *, int, long);
void {peer}_answer(void *, int, int, double *);"""

ENDS = {
    2: "it was called wrongly",
    3: "a file cannot be read or written",
    4: "a state is refused",
    5: "Pinocchio does not take the robot, or has other numbers of it",
}
"""What the statuses mean by which a driver ends."""


def driver(name: str, peers: tuple[str, ...], forward: bool, sizes: tuple[int, int, int, int]) -> str:
    """Return the source of a driver.

    Args:
        name: what the exported C is called.
        peers: what each compilation of the peer is called: the start of its functions' names.
        forward: whether it is forward dynamics that is asked for.
        sizes: numbers of Pinocchio's joints, of states, of a configuration's numbers, and of freedoms.
    """
    joints, n, nq, nv = sizes
    return DRIVER.format(
        name=name,
        declared="\n".join(DECLARED.format(peer=peer) for peer in peers),
        listed="\n".join(f'    {{"{p}", {p}_open, {p}_run, {p}_answer, nullptr}},' for p in peers),
        forward=int(forward),
        joints=joints,
        numbers=JOINT_NUMBERS,
        n=n,
        nq=nq,
        nv=nv,
    )
