/* What a window has of each tick, one double after the other: the number of its contact state, the time since the tick
   before, whether there were rates, its status, and what its readings said. */
enum { SLOT_NUMBER, SLOT_DT, SLOT_RATES, SLOT_STATUS, SLOT_NIS, SLOT_DEGREES, SLOT_LOG_LIKELIHOOD, SLOT_ROOM };
