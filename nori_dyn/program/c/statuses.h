/* How a state went. Exported code returns the same numbers; those from UNPLANNED_CONTACTS on are of sets of contacts,
   of filters, and of what is checked in Python only. */
enum status {
    OK,
    INPUT_NOT_FINITE,
    QUATERNION_NOT_UNIT,
    SMALL_PIVOT,
    OUTPUT_NOT_FINITE,
    INACCURATE,
    NEGATIVE_WEIGHT,
    WEIGHT_SPREAD,
    ZERO_WEIGHT,
    UNPLANNED_CONTACTS,
    UNDETERMINED,
    TIME_NOT_POSITIVE,
    LARGE_RESIDUAL,
    NOT_USUAL
};
