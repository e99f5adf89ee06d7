/* Exported C and Pinocchio's C++ in one process, on the same states in turns. DRIVER_... are given: which dynamics, and
   how many joints Pinocchio has, states there are, numbers a configuration has, and freedoms. */
#include "ours.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
/* The exported C, compiled a second time for any processor. */
ours_status ours_solve_anywhere(const ours_inputs *, ours_workspace *, ours_outputs *);
#define DECLARED(peer) \
    void *peer##_open(int, const double *, int, int, int, const double *); \
    void peer##_run(void *, int, long); \
    void peer##_answer(void *, int, int, double *);
DECLARED(pinocchio_wheel)
DECLARED(pinocchio_native)
}

namespace {

struct Peer {
    void *(*open)(int, const double *, int, int, int, const double *);
    void (*run)(void *, int, long);
    void (*answer)(void *, int, int, double *);
    void *opened;
};

Peer peers[] = {
    {pinocchio_wheel_open, pinocchio_wheel_run, pinocchio_wheel_answer, nullptr},
    {pinocchio_native_open, pinocchio_native_run, pinocchio_native_answer, nullptr},
};

constexpr int FORWARD = DRIVER_FORWARD, JOINTS = DRIVER_JOINTS, N = DRIVER_N, NQ = DRIVER_NQ, NV = DRIVER_NV;

ours_inputs in[N];
ours_outputs out;
ours_workspace work;

/* What takes turns: a peer, or one of the compilations of the exported C. */
struct Run {
    decltype(&ours_solve) solve;
    const Peer *peer;
};

double seconds(const Run &run, long repeats) {
    const auto start = std::chrono::steady_clock::now();
    if (run.peer) run.peer->run(run.peer->opened, FORWARD, repeats);
    for (long k = 0; run.solve && k < repeats; ++k)
        for (const auto &at : in) (void)run.solve(&at, &work, &out);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

long repeats_within(const Run &run, double limit) {
    for (long count = 1;; count *= 4) {
        const double took = seconds(run, count);
        if (took >= limit / 4) return std::max(1L, static_cast<long>(static_cast<double>(count) * limit / took));
    }
}

}

/* driver JOINTS STATES ANSWERS ROUNDS SECONDS: writes the answers to all states of one after the other; then prints,
   for each round, the time of a state of one after the other. */
int main(int argc, char **argv) {
    if (argc != 6) return 2;
    const long rounds = std::atol(argv[4]);
    const double limit = std::atof(argv[5]);
    std::vector<double> theirs(N * (NQ + 2 * NV)), answer(NV);
    std::vector<double> robot(JOINTS * 30);
    std::FILE *file = std::fopen(argv[1], "rb");
    if (!file || std::fread(robot.data(), sizeof(double), robot.size(), file) != robot.size()) return 3;
    std::fclose(file);
    file = std::fopen(argv[2], "rb");
    if (!file || std::fread(in, sizeof in, 1, file) != 1) return 3;
    if (std::fread(theirs.data(), sizeof(double), theirs.size(), file) != theirs.size()) return 3;
    std::fclose(file);
    file = std::fopen(argv[3], "wb");
    if (!file) return 3;
    std::vector<Run> runs{{ours_solve, nullptr}, {ours_solve_anywhere, nullptr}};
    for (const Run &run : runs)
        for (const auto &at : in) {
            if (run.solve(&at, &work, &out)) return 4;
            std::fwrite(&out, sizeof out, 1, file);
        }
    for (Peer &peer : peers) {
        peer.opened = peer.open(JOINTS, robot.data(), NQ, NV, N, theirs.data());
        if (!peer.opened) return 5;
        for (int k = 0; k < N; ++k) {
            peer.answer(peer.opened, FORWARD, k, answer.data());
            std::fwrite(answer.data(), sizeof(double), answer.size(), file);
        }
        runs.push_back({nullptr, &peer});
    }
    if (std::fclose(file)) return 3;
    std::vector<long> counts;
    for (const Run &run : runs) counts.push_back(repeats_within(run, limit));
    for (long round = 0; round < rounds; ++round)
        for (std::size_t k = 0; k < runs.size(); ++k)
            std::printf("%.6e%c", seconds(runs[k], counts[k]) / static_cast<double>(counts[k] * N),
                        k + 1 < runs.size() ? ' ' : '\n');
    return 0;
}
