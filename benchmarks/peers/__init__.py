"""Other libraries, one a module, behind one interface: a `Peer` gives `Run`s by task.

A new one is a module with a `Peer`, and a line in `registry`. Each is called in its best form from Python: its arrays
are made beforehand, and only the call is timed. Numbers go to it, and answers come back, by `nori_dyn.interop`.
"""
