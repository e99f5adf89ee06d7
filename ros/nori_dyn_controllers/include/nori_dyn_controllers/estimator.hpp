#ifndef NORI_DYN_CONTROLLERS__ESTIMATOR_HPP_
#define NORI_DYN_CONTROLLERS__ESTIMATOR_HPP_

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nori_dyn_controllers {

/* An exported plan or tracker as the controller sees it: arrays of numbers with names. */
class Estimator {
  public:
    using Names = std::vector<std::string>;

    virtual ~Estimator() = default;

    /* Estimate, a time dt [s] after the last tick: 0, or the status of a refusal, and then all outputs are NaN. Without
     * allocation. */
    virtual int tick(unsigned contacts, double dt) noexcept = 0;

    /* Forget all readings. */
    virtual void reset() noexcept = 0;

    virtual const char *text(int status) const noexcept = 0;

    Names input_names, output_names, contact_names;
    double *inputs = nullptr;        // q, qd and y, one after the other
    const double *outputs = nullptr; // all, one after the other
};

/* The class for C++ of an export, nori_dyn::NAME::Estimator. */
template <class Exported> class ExportedEstimator final : public Estimator {
    static_assert(Exported::lag == 0, "late estimates are not for a control loop: export the tracker without a lag");

  public:
    ExportedEstimator() {
        input_names.assign(Exported::input_names.begin(), Exported::input_names.end());
        output_names.assign(Exported::output_names.begin(), Exported::output_names.end());
        contact_names.assign(Exported::contact_names.begin(), Exported::contact_names.end());
        inputs = reinterpret_cast<double *>(&exported_.in);
        outputs = reinterpret_cast<const double *>(&exported_.out);
        static_assert(sizeof(exported_.in) >= sizeof(double) * Exported::input_names.size());
        static_assert(sizeof(exported_.out) == sizeof(double) * Exported::output_names.size());
    }

    int tick(unsigned contacts, double dt) noexcept override { return exported_.tick(contacts, dt); }
    void reset() noexcept override { exported_.reset(); }
    const char *text(int status) const noexcept override { return Exported::text(status); }

  private:
    Exported exported_;
};

/* What makes each estimator that this library was built with, by the name of its export. */
using Makers = std::map<std::string, std::unique_ptr<Estimator> (*)()>;
const Makers &makers();

template <class Exported> std::unique_ptr<Estimator> make() { return std::make_unique<ExportedEstimator<Exported>>(); }

} // namespace nori_dyn_controllers

#endif
