/* The same algorithms, taped with CppAD for a robot and written as C by CppADCodeGen, which is compiled when opened. */
#include <pinocchio/codegen/cppadcg.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "peer.hpp"

namespace {

using Scalar = CppAD::AD<CppAD::cg::CG<double>>;
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

CppAD::ADFun<CppAD::cg::CG<double>> taped(const Problem &problem) {
    const auto model = problem.model.cast<Scalar>();
    pinocchio::DataTpl<Scalar> data(model);
    const auto nq = model.nq, nv = model.nv;
    Vector x(nq + 2 * nv), y(problem.outputs());
    x.head(nq) = pinocchio::neutral(problem.model).cast<Scalar>();
    x.tail(2 * nv).setZero();
    CppAD::Independent(x);
    const Vector q = x.head(nq), v = x.segment(nq, nv), last = x.tail(nv);
    solve(problem.task, model, data, q, v, last);
    copy_answer(problem.task, data, y);
    CppAD::ADFun<CppAD::cg::CG<double>> function(x, y);
    function.optimize("no_compare_op");
    return function;
}

struct Peer {
    explicit Peer(Problem given) : problem(std::move(given)), found(problem.outputs()) {
        using namespace CppAD::cg;
        auto function = taped(problem);
        ModelCSourceGen<double> source(function, "generated");
        source.setCreateForwardZero(true);
        ModelLibraryCSourceGen<double> sources(source);
        DynamicModelLibraryProcessor<double> processor(sources, problem.folder + "/generated");
        GccCompiler<double> compiler(problem.compiler);
        compiler.setCompileFlags({"-O3", "-DNDEBUG", "-march=native", "-fPIC"});
        compiler.setTemporaryFolder(problem.folder + "/parts");
        library = processor.createDynamicLibrary(compiler);
        model = library->model("generated");
        for (const State &at : problem.states) {
            Eigen::VectorXd x(at.q.size() + 2 * at.v.size());
            x << at.q, at.v, at.y;
            inputs.push_back(x);
        }
    }
    void solved(const State &at) {
        auto &x = inputs[static_cast<std::size_t>(&at - problem.states.data())];
        model->ForwardZero(CppAD::cg::ArrayView<const double>(x.data(), static_cast<std::size_t>(x.size())),
                           CppAD::cg::ArrayView<double>(found.data(), static_cast<std::size_t>(found.size())));
    }
    void answer(Eigen::Map<Eigen::VectorXd> to) const { to = found; }
    Problem problem;
    Eigen::VectorXd found;
    std::vector<Eigen::VectorXd> inputs;
    std::unique_ptr<CppAD::cg::DynamicLib<double>> library;
    std::unique_ptr<CppAD::cg::GenericModel<double>> model;
};

}

DEFINE_PEER(Peer)
