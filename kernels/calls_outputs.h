// Whether outputs of the caller can be written at once: plain, contiguous, of the right kind, and apart.
#pragma once

#include <algorithm>

#include "calls_python.h"

namespace gpuslice {

// The addresses between an array's first byte and its last one.
struct Extent {
  const char* start;
  const char* end;
  bool written;

  Extent(PyArrayObject* array, bool is_written)
      : start(PyArray_BYTES(array)), end(PyArray_BYTES(array)), written(is_written) {
    for (int i = 0; i < PyArray_NDIM(array); ++i) {
      if (!PyArray_DIM(array, i)) {
        end = start;
        return;
      }
      const npy_intp reach = PyArray_STRIDE(array, i) * (PyArray_DIM(array, i) - 1);
      (reach < 0 ? start : end) += reach;
    }
    end += PyArray_ITEMSIZE(array);
  }
  Extent() = default;

  bool empty() const { return start == end; }
};

// Whether memory may belong to something else than NumPy, such as a file that is mapped at several addresses.
inline bool is_foreign(PyArrayObject* array) {
  PyObject* owner = reinterpret_cast<PyObject*>(array);
  while (PyArray_Check(owner)) {
    owner = PyArray_BASE(as_array(owner));
    if (!owner) return false;
  }
  return !PyBytes_Check(owner) && !PyByteArray_Check(owner);
}

// Whether an output is plain, contiguous and of the right kind; -1 if an error is set.
inline int fits(PyArrayObject* array, PyObject* value, PyObject* shape) {
  if (!value || !shape) return -1;  // to compare dtypes may run code that changes a list
  if (!PyArray_CheckExact(value)) return 0;
  PyArrayObject* const out = as_array(value);
  const int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE, rank = PyArray_NDIM(out);
  if ((PyArray_FLAGS(out) & wanted) != wanted || PyTuple_Size(shape) != rank) return PyErr_Occurred() ? -1 : 0;
  for (int i = 0; i < rank; ++i)
    if (PyLong_AsLongLong(PyTuple_GetItem(shape, i)) != PyArray_DIM(out, i)) return PyErr_Occurred() ? -1 : 0;
  if (PyArray_DESCR(out) == PyArray_DESCR(array)) return 1;
  return PyObject_RichCompareBool(reinterpret_cast<PyObject*>(PyArray_DESCR(out)),
                                  reinterpret_cast<PyObject*>(PyArray_DESCR(array)), Py_EQ);
}

// Whether extents are apart where one of them is written. They are sorted.
inline bool are_apart(Extent* extents, Py_ssize_t count) {
  std::sort(extents, extents + count, [](const Extent& a, const Extent& b) { return a.start < b.start; });
  const char* read_end = nullptr;
  const char* written_end = nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Extent& one = extents[i];
    if (one.empty()) continue;
    if (one.start < written_end || (one.written && one.start < read_end)) return false;
    (one.written ? written_end : read_end) = std::max(one.end, one.written ? written_end : read_end);
  }
  return true;
}

// takes_one(array, out, shape): whether the output surely needs no closer look.
inline PyObject* takes_one(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("takes_one", count, 3)) return nullptr;
  if (!PyArray_CheckExact(given[0])) Py_RETURN_FALSE;
  const int found = fits(as_array(given[0]), given[1], given[2]);
  if (found < 0) return nullptr;
  if (!found) Py_RETURN_FALSE;
  PyArrayObject *const array = as_array(given[0]), *const out = as_array(given[1]);
  if (is_foreign(out) && is_foreign(array)) Py_RETURN_FALSE;
  Extent extents[] = {{array, false}, {out, true}};
  return PyBool_FromLong(are_apart(extents, 2));
}

// Collect the extents of arrays and of outputs that fit. Return 0 if one does not, or if both an output and another
// array may be of one file; -1 if an error is set.
inline int collect(const Items& arrays, const Items& outs, const Items& shapes, Extent* next) {
  Py_ssize_t foreign = 0;
  bool writes_foreign = false;
  for (Py_ssize_t i = 0; i < arrays.count(); ++i) {
    if (!PyArray_CheckExact(arrays[i])) return 0;
    foreign += is_foreign(as_array(arrays[i]));
    *next++ = Extent(as_array(arrays[i]), false);
  }
  for (Py_ssize_t i = 0; i < outs.count(); ++i) {
    const int found = fits(as_array(arrays[0]), outs[i], shapes[i]);
    if (found != 1) return found;
    if (is_foreign(as_array(outs[i]))) ++foreign, writes_foreign = true;
    *next++ = Extent(as_array(outs[i]), true);
  }
  return !writes_foreign || foreign == 1;
}

// takes(arrays, outs, shapes): whether outputs for results of arrays surely need no closer look.
inline PyObject* takes(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("takes", count, 3)) return nullptr;
  const Items arrays(given[0]), outs(given[1]), shapes(given[2]);
  if (arrays.count() < 1 || !outs.valid() || outs.count() != shapes.count()) Py_RETURN_FALSE;
  constexpr Py_ssize_t kFew = 16;
  const Py_ssize_t all = arrays.count() + outs.count();
  Extent few[kFew];
  Extent* const extents = all <= kFew ? few : static_cast<Extent*>(PyMem_Malloc(all * sizeof(Extent)));
  if (!extents) return PyErr_NoMemory();
  int found = collect(arrays, outs, shapes, extents);
  if (found == 1) found = are_apart(extents, all);
  if (extents != few) PyMem_Free(extents);
  return found < 0 ? nullptr : PyBool_FromLong(found);
}

}  // namespace gpuslice
