// The module gpuslice._calls: what a known call does before it copies, for arrays that are exactly numpy.ndarray.
//
// gpuslice/engine/host_build.py compiles it against the limited C API, so that one binary serves every CPython
// from 3.11 on. gpuslice/engine/calls.py loads it. Where it is missing, the same is done in Python.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstring>

#include "shared.h"

#ifndef GPUSLICE_DIGEST
#define GPUSLICE_DIGEST ""
#endif

namespace {

using Word = long long;
using Arguments = PyObject* const*;

PyArrayObject* as_array(PyObject* value) { return reinterpret_cast<PyArrayObject*>(value); }

bool is_int(PyObject* value) { return Py_TYPE(value) == &PyLong_Type; }  // True is none

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

bool has_count(const char* function, Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return true;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments; got %zd", function, wanted, count);
  return false;
}

// key_of_slice(array, starts, ends, axes, steps): None if the call cannot be known.
PyObject* key_of_slice(PyObject*, Arguments given, Py_ssize_t count) {
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
PyObject* key_of_split(PyObject*, Arguments given, Py_ssize_t count) {
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
PyObject* key_of_join(PyObject*, Arguments given, Py_ssize_t count) {
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
bool is_foreign(PyArrayObject* array) {
  PyObject* owner = reinterpret_cast<PyObject*>(array);
  while (PyArray_Check(owner)) {
    owner = PyArray_BASE(as_array(owner));
    if (!owner) return false;
  }
  return !PyBytes_Check(owner) && !PyByteArray_Check(owner);
}

// Whether an output is plain, contiguous and of the right kind; -1 if an error is set.
int fits(PyArrayObject* array, PyObject* value, PyObject* shape) {
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
bool are_apart(Extent* extents, Py_ssize_t count) {
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
PyObject* takes_one(PyObject*, Arguments given, Py_ssize_t count) {
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

// takes(arrays, outs, shapes): whether outputs for results of arrays surely need no closer look.
PyObject* takes(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("takes", count, 3)) return nullptr;
  const Items arrays(given[0]), outs(given[1]), shapes(given[2]);
  if (arrays.count() < 1 || outs.count() != shapes.count() || !outs.valid()) Py_RETURN_FALSE;
  constexpr Py_ssize_t kFew = 16;
  const Py_ssize_t all = arrays.count() + outs.count();
  Extent few[kFew];
  Extent* const extents = all <= kFew ? few : static_cast<Extent*>(PyMem_Malloc(all * sizeof(Extent)));
  if (!extents) return PyErr_NoMemory();
  Extent* next = extents;
  Py_ssize_t foreign = 0, foreign_outs = 0;
  int found = 1;
  for (Py_ssize_t i = 0; found == 1 && i < arrays.count(); ++i) {
    found = PyArray_CheckExact(arrays[i]);
    if (found != 1) break;
    foreign += is_foreign(as_array(arrays[i]));
    *next++ = Extent(as_array(arrays[i]), false);
  }
  for (Py_ssize_t i = 0; found == 1 && i < outs.count(); ++i) {
    found = fits(as_array(arrays[0]), outs[i], shapes[i]);
    if (found != 1) break;
    foreign_outs += is_foreign(as_array(outs[i]));
    *next++ = Extent(as_array(outs[i]), true);
  }
  if (found == 1) found = !(foreign_outs && foreign + foreign_outs > 1) && are_apart(extents, all);
  if (extents != few) PyMem_Free(extents);
  return found < 0 ? nullptr : PyBool_FromLong(found);
}

PyObject* address_of(PyObject*, PyObject* value) {
  if (PyArray_Check(value)) return PyLong_FromVoidPtr(PyArray_DATA(as_array(value)));
  PyErr_SetString(PyExc_TypeError, "address_of takes a numpy.ndarray");
  return nullptr;
}

PyObject* addresses_of(PyObject*, PyObject* value) {
  const Items arrays(value);
  if (!arrays.valid()) return PyErr_Format(PyExc_TypeError, "addresses_of takes a list or a tuple");
  PyObject* const addresses = PyList_New(arrays.count());
  for (Py_ssize_t i = 0; addresses && i < arrays.count(); ++i) {
    PyObject* const address = address_of(nullptr, arrays[i]);
    if (!address) {
      Py_DECREF(addresses);
      return nullptr;
    }
    PyList_SetItem(addresses, i, address);
  }
  return addresses;
}

// Returns a list or tuple, made by `make` and filled by `set`, of a function of each address and its place.
template <typename Function>
PyObject* mapped(PyObject* made, int (*set)(PyObject*, Py_ssize_t, PyObject*), const Items& addresses,
                 Function function) {
  for (Py_ssize_t i = 0; made && i < addresses.count(); ++i) {
    const Word address = PyLong_AsLongLong(addresses[i]);
    PyObject* const value = PyErr_Occurred() ? nullptr : PyLong_FromLongLong(function(address, i));
    if (!value) {
      Py_DECREF(made);
      return nullptr;
    }
    set(made, i, value);
  }
  return made;
}

Word in_vector(Word address) { return address & (gpuslice::kVectorBytes - 1); }

// alignments_of(addresses): the position of each in a vector.
PyObject* alignments_of(PyObject*, PyObject* value) {
  const Items addresses(value);
  if (!addresses.valid()) return PyErr_Format(PyExc_TypeError, "alignments_of takes a list or a tuple");
  return mapped(PyTuple_New(addresses.count()), PyTuple_SetItem, addresses,
                [](Word address, Py_ssize_t) { return in_vector(address); });
}

// places_of(addresses, near): what a plan depends on of a few addresses; see kernel_executor.py.
PyObject* places_of(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("places_of", count, 2)) return nullptr;
  const Items addresses(given[0]);
  const Word near = PyLong_AsLongLong(given[1]);
  if (addresses.count() < 1) return PyErr_Format(PyExc_TypeError, "places_of takes a list or a tuple of addresses");
  const Word first = PyLong_AsLongLong(addresses[0]);
  if (PyErr_Occurred()) return nullptr;
  return mapped(PyTuple_New(addresses.count()), PyTuple_SetItem, addresses, [=](Word address, Py_ssize_t i) {
    const Word distance = address - first;
    return -near < distance && distance < near ? distance + in_vector(first) : (Word{i} << 20) + in_vector(address);
  });
}

// shifted(offsets, base): each offset from the base.
PyObject* shifted(PyObject*, Arguments given, Py_ssize_t count) {
  if (!has_count("shifted", count, 2)) return nullptr;
  const Items offsets(given[0]);
  const Word base = PyLong_AsLongLong(given[1]);
  if (!offsets.valid()) return PyErr_Format(PyExc_TypeError, "shifted takes a list or a tuple");
  if (PyErr_Occurred()) return nullptr;
  return mapped(PyList_New(offsets.count()), PyList_SetItem, offsets,
                [=](Word offset, Py_ssize_t) { return base + offset; });
}

// A launch of host.cpp that waits for its addresses.
struct Launch {
  PyObject_HEAD int (*copy)(unsigned kernel, const void* parameters, unsigned long long blocks, int threads);
  unsigned kernel;
  unsigned long long blocks;
  Py_ssize_t head, capacity, tail;  // bytes, entries of each table, bytes
  Py_ssize_t parts;
  Py_ssize_t* numbers;  // of the parts, among all of the plan
  Word source_offset, target_offset, channel_source, channel_target;
  char* bytes;  // head, and then tail
};

Launch* as_launch(PyObject* value) { return reinterpret_cast<Launch*>(value); }

void delete_launch(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyMem_Free(as_launch(self)->numbers);
  PyMem_Free(as_launch(self)->bytes);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// Launch(function, kernel, blocks, head, capacity, tail, parts, (source and target offset, channel source and target))
PyObject* new_launch(PyTypeObject* type, PyObject* given, PyObject*) {
  unsigned long long function, blocks;
  unsigned kernel;
  const char *head, *tail;
  Py_ssize_t head_bytes, capacity, tail_bytes;
  PyObject* parts;
  Word offsets[4];
  if (!PyArg_ParseTuple(given, "KIKy#ny#O!(LLLL)", &function, &kernel, &blocks, &head, &head_bytes, &capacity, &tail,
                        &tail_bytes, &PyTuple_Type, &parts, &offsets[0], &offsets[1], &offsets[2], &offsets[3]))
    return nullptr;
  const Py_ssize_t count = PyTuple_Size(parts);
  if (count > capacity) return PyErr_Format(PyExc_ValueError, "%zd parts in a table of %zd entries", count, capacity);
  PyObject* const self = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return nullptr;
  Launch* const launch = as_launch(self);
  launch->copy = reinterpret_cast<decltype(launch->copy)>(static_cast<npy_uintp>(function));
  launch->kernel = kernel, launch->blocks = blocks;
  launch->head = head_bytes, launch->capacity = capacity, launch->tail = tail_bytes;
  launch->source_offset = offsets[0], launch->target_offset = offsets[1];
  launch->channel_source = offsets[2], launch->channel_target = offsets[3];
  launch->numbers = static_cast<Py_ssize_t*>(PyMem_Malloc(count * sizeof(Py_ssize_t)));
  launch->bytes = static_cast<char*>(PyMem_Malloc(head_bytes + tail_bytes));
  if (!launch->numbers || !launch->bytes) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  memcpy(launch->bytes, head, head_bytes);
  memcpy(launch->bytes + head_bytes, tail, tail_bytes);
  for (launch->parts = 0; launch->parts < count; ++launch->parts)
    launch->numbers[launch->parts] = PyLong_AsSsize_t(PyTuple_GetItem(parts, launch->parts));
  if (PyErr_Occurred()) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

// Write a table of the parameters. Return false if an error is set.
bool write_table(const Launch& launch, char* table, PyObject* value, Word offset, Word channel) {
  const Items addresses(value);
  for (Py_ssize_t i = 0; i < launch.parts; ++i) {
    const Py_ssize_t number = launch.numbers[i];
    if (number < 0 || number >= addresses.count()) {
      PyErr_Format(PyExc_IndexError, "a launch has no address of part %zd", number);
      return false;
    }
    const Word address = static_cast<Word>(PyLong_AsUnsignedLongLong(addresses[number])) + offset + i * channel;
    memcpy(table + i * sizeof address, &address, sizeof address);
  }
  memset(table + launch.parts * sizeof(Word), 0, (launch.capacity - launch.parts) * sizeof(Word));
  return !PyErr_Occurred();
}

// launch.run(sources, targets, threads, size): copy between the addresses of all parts of the plan.
PyObject* run_launch(PyObject* self, Arguments given, Py_ssize_t count) {
  if (!has_count("run", count, 4)) return nullptr;
  const Launch& launch = *as_launch(self);
  const int threads = static_cast<int>(PyLong_AsLong(given[2]));
  const unsigned long long size = PyLong_AsUnsignedLongLong(given[3]);
  if (PyErr_Occurred()) return nullptr;
  constexpr Py_ssize_t kFew = 1 << 11;
  alignas(16) char few[kFew];
  const Py_ssize_t table = launch.capacity * sizeof(Word), bytes = launch.head + 2 * table + launch.tail;
  char* const parameters = bytes <= kFew ? few : static_cast<char*>(PyMem_Malloc(bytes));
  if (!parameters) return PyErr_NoMemory();
  char* const tables = parameters + launch.head;
  memcpy(parameters, launch.bytes, launch.head);
  memcpy(tables + 2 * table, launch.bytes + launch.head, launch.tail);
  int code = 0;
  if (write_table(launch, tables, given[0], launch.source_offset, launch.channel_source) &&
      write_table(launch, tables + table, given[1], launch.target_offset, launch.channel_target)) {
    constexpr unsigned long long kSmall = 1 << 15;  // to release the GIL takes as long as to copy some kilobytes
    PyThreadState* const state = size < kSmall ? nullptr : PyEval_SaveThread();
    code = launch.copy(launch.kernel, parameters, launch.blocks, threads);
    if (state) PyEval_RestoreThread(state);
  }
  if (parameters != few) PyMem_Free(parameters);
  if (code) PyErr_Format(PyExc_RuntimeError, "the host library has no kernel number %u; error %d", launch.kernel, code);
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef launch_methods[] = {{"run", as_method(run_launch), METH_FASTCALL, nullptr}, {}};
PyType_Slot launch_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_launch)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(delete_launch)},
                              {Py_tp_methods, launch_methods},
                              {}};
PyType_Spec launch_type = {"gpuslice._calls.Launch", sizeof(Launch), 0, Py_TPFLAGS_DEFAULT, launch_slots};

PyMethodDef functions[] = {{"key_of_slice", as_method(key_of_slice), METH_FASTCALL, nullptr},
                           {"key_of_split", as_method(key_of_split), METH_FASTCALL, nullptr},
                           {"key_of_join", as_method(key_of_join), METH_FASTCALL, nullptr},
                           {"takes_one", as_method(takes_one), METH_FASTCALL, nullptr},
                           {"takes", as_method(takes), METH_FASTCALL, nullptr},
                           {"address_of", address_of, METH_O, nullptr},
                           {"addresses_of", addresses_of, METH_O, nullptr},
                           {"alignments_of", alignments_of, METH_O, nullptr},
                           {"places_of", as_method(places_of), METH_FASTCALL, nullptr},
                           {"shifted", as_method(shifted), METH_FASTCALL, nullptr},
                           {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "gpuslice._calls", nullptr, -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit__calls() {
  if (PyArray_ImportNumPyAPI() < 0) return nullptr;
  PyObject* const module = PyModule_Create(&definition);
  if (!module) return nullptr;
  PyObject* const type = PyType_FromSpec(&launch_type);
  if (!type || PyModule_AddObjectRef(module, "Launch", type) < 0 ||
      PyModule_AddStringConstant(module, "digest", GPUSLICE_DIGEST) < 0) {
    Py_XDECREF(type);
    Py_DECREF(module);
    return nullptr;
  }
  Py_DECREF(type);
  return module;
}
