// What the files of calls.cpp share: the headers of Python and NumPy, and lists and ints of Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstring>

namespace gpuslice {

using Word = long long;
using Arguments = PyObject* const*;

inline PyArrayObject* as_array(PyObject* value) { return reinterpret_cast<PyArrayObject*>(value); }

inline bool is_int(PyObject* value) { return Py_TYPE(value) == &PyLong_Type; }  // True is none

// A list or a tuple, without a reference to it.
class Items {
 public:
  explicit Items(PyObject* value) : value_(value), is_list_(Py_TYPE(value) == &PyList_Type) {
    if (is_list_)
      count_ = PyList_Size(value);
    else if (Py_TYPE(value) == &PyTuple_Type)
      count_ = PyTuple_Size(value);
  }

  bool valid() const { return count_ >= 0; }
  Py_ssize_t count() const { return count_; }
  PyObject* operator[](Py_ssize_t i) const { return is_list_ ? PyList_GetItem(value_, i) : PyTuple_GetItem(value_, i); }

 private:
  PyObject* value_;
  bool is_list_;
  Py_ssize_t count_ = -1;
};

// Bytes that are written word by word.
class Words {
 public:
  explicit Words(Py_ssize_t count) : bytes_(PyBytes_FromStringAndSize(nullptr, count * sizeof(Word))) {
    if (bytes_) next_ = PyBytes_AsString(bytes_);
  }
  Words(const Words&) = delete;
  ~Words() { Py_XDECREF(bytes_); }

  PyObject* bytes() const { return bytes_; }

  void add(Word word) {
    memcpy(next_, &word, sizeof word);
    next_ += sizeof word;
  }

  static Py_ssize_t of_layout(PyArrayObject* array) { return 1 + 2 * PyArray_NDIM(array); }

  void add_layout(PyArrayObject* array) {
    const int rank = PyArray_NDIM(array);
    add(rank);
    for (int i = 0; i < rank; ++i) add(PyArray_DIM(array, i));
    for (int i = 0; i < rank; ++i) add(PyArray_STRIDE(array, i));
  }

  // Return false if the value is not exactly an int, or has more than 64 bits.
  bool add_int(PyObject* value) {
    int overflow = 1;
    const Word word = is_int(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
    add(word);
    return !overflow;
  }

  bool add_ints(const Items& values) {
    add(values.count());
    for (Py_ssize_t i = 0; i < values.count(); ++i)
      if (!add_int(values[i])) return false;
    return true;
  }

 private:
  PyObject* bytes_;
  char* next_ = nullptr;
};

inline bool has_count(const char* function, Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments; got %zd", function, wanted, count);
  return false;
}

}  // namespace gpuslice
