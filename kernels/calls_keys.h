// The keys of calls: two calls with one key copy in the same way.
#pragma once

#include <algorithm>

#include "calls_python.h"

namespace gpuslice {

// key_of_slice(array, starts, ends, axes, steps): None if the call cannot be known.
inline PyObject* key_of_slice(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("key_of_slice", count, 5)) return nullptr;
  if (!PyArray_CheckExact(given[0])) Py_RETURN_NONE;
  PyArrayObject* const array = as_array(given[0]);
  Py_ssize_t size = Words::of_layout(array) + 4;
  for (int i = 1; i < 5; ++i) {
    const Items values(given[i]);
    if (!values.valid() && (i < 3 || given[i] != Py_None)) Py_RETURN_NONE;
    size += std::max<Py_ssize_t>(0, values.count());
  }
  Words words(size);
  if (!words.bytes()) return nullptr;
  words.add_layout(array);
  for (int i = 1; i < 5; ++i) {
    if (given[i] == Py_None)
      words.add(-1);
    else if (!words.add_ints(Items(given[i])))
      Py_RETURN_NONE;
  }
  return PyTuple_Pack(2, PyArray_DESCR(array), words.bytes());
}

// key_of_split(array, split, axis, number): None if the call cannot be known.
inline PyObject* key_of_split(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("key_of_split", count, 4)) return nullptr;
  if (!PyArray_CheckExact(given[0])) Py_RETURN_NONE;
  PyArrayObject* const array = as_array(given[0]);
  const Items sizes(given[1]);
  Words words(Words::of_layout(array) + 4 + std::max<Py_ssize_t>(1, sizes.count()));
  if (!words.bytes()) return nullptr;
  words.add_layout(array);
  if (!words.add_int(given[2])) Py_RETURN_NONE;
  words.add(given[3] == Py_None);
  if (given[3] == Py_None)
    words.add(0);
  else if (!words.add_int(given[3]))
    Py_RETURN_NONE;
  if (sizes.valid()) {
    if (!words.add_ints(sizes)) Py_RETURN_NONE;
    if (!sizes.count()) words.add(0);
  } else if (given[1] == Py_None) {
    words.add(-1), words.add(0);
  } else {
    words.add(-2);
    if (!words.add_int(given[1])) Py_RETURN_NONE;
  }
  return PyTuple_Pack(2, PyArray_DESCR(array), words.bytes());
}

// key_of_join(arrays, axis, new_axis): None if the call cannot be known. `arrays` is a tuple.
inline PyObject* key_of_join(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("key_of_join", count, 3)) return nullptr;
  const Items arrays(given[0]);
  Py_ssize_t size = 2;
  for (Py_ssize_t i = 0; i < arrays.count(); ++i) {
    if (!PyArray_CheckExact(arrays[i])) Py_RETURN_NONE;
    size += Words::of_layout(as_array(arrays[i]));
  }
  Words words(size);
  if (!words.bytes()) return nullptr;
  if (!arrays.valid() || !words.add_int(given[1]) || !words.add_int(given[2])) Py_RETURN_NONE;
  for (Py_ssize_t i = 0; i < arrays.count(); ++i) words.add_layout(as_array(arrays[i]));
  PyObject* const key = PyTuple_New(arrays.count() + 1);
  if (!key) return nullptr;
  for (Py_ssize_t i = 0; i < arrays.count(); ++i) {
    PyTuple_SetItem(key, i, Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(arrays[i])))));
  }
  PyTuple_SetItem(key, arrays.count(), Py_NewRef(words.bytes()));
  return key;
}

}  // namespace gpuslice
