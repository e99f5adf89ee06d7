"""Plans as C11 that stands alone, for controllers: a header, the code, an example, a class for C++ and a CMake list.

The texts are templates of Jinja, one a file, in `templates/`; `interface` is their subject. A name of a model
gets into them by `names` only.
"""
