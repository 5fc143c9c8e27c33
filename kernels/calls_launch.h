// From arrays to a launch: their addresses, what a plan depends on of these, and the call of host.cpp.
#pragma once

#include "calls_python.h"
#include "shared.h"

namespace gpuslice {

inline PyObject* address_of(PyObject*, PyObject* value) {
  if (PyArray_Check(value)) return PyLong_FromVoidPtr(PyArray_DATA(as_array(value)));
  PyErr_SetString(PyExc_TypeError, "address_of takes a numpy.ndarray");
  return nullptr;
}

inline PyObject* addresses_of(PyObject*, PyObject* value) {
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
inline PyObject* mapped(PyObject* made, int (*set)(PyObject*, Py_ssize_t, PyObject*), const Items& addresses,
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

inline Word in_vector(Word address) { return address & (kVectorBytes - 1); }

// alignments_of(addresses): the position of each in a vector.
inline PyObject* alignments_of(PyObject*, PyObject* value) {
  const Items addresses(value);
  if (!addresses.valid()) return PyErr_Format(PyExc_TypeError, "alignments_of takes a list or a tuple");
  return mapped(PyTuple_New(addresses.count()), PyTuple_SetItem, addresses,
                [](Word address, Py_ssize_t) { return in_vector(address); });
}

// places_of(addresses, near): what a plan depends on of a few addresses; see kernel_executor.py.
inline PyObject* places_of(PyObject*, Arguments given, Py_ssize_t count) {
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
inline PyObject* shifted(PyObject*, Arguments given, Py_ssize_t count) {
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
  PyObject_HEAD;
  int (*copy)(unsigned kernel, const void* parameters, unsigned long long blocks, int threads);
  unsigned kernel;
  unsigned long long blocks, size;  // size: of what is copied, in bytes
  Py_ssize_t head, capacity, tail;  // bytes, entries of each table, bytes
  Py_ssize_t parts;
  Py_ssize_t* numbers;  // of the parts, among all of the plan
  Word source_offset, target_offset, channel_source, channel_target;
  char* bytes;  // head, and then tail
};

inline Launch* as_launch(PyObject* value) { return reinterpret_cast<Launch*>(value); }

inline void delete_launch(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyMem_Free(as_launch(self)->numbers);
  PyMem_Free(as_launch(self)->bytes);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// Launch(function, kernel, blocks, size, head, capacity, tail, parts,
//        (source and target offset, channel source and target))
inline PyObject* new_launch(PyTypeObject* type, PyObject* given, PyObject*) {
  unsigned long long function, blocks, size;
  unsigned kernel;
  const char *head, *tail;
  Py_ssize_t head_bytes, capacity, tail_bytes;
  PyObject* parts;
  Word offsets[4];
  if (!PyArg_ParseTuple(given, "KIKKy#ny#O!(LLLL)", &function, &kernel, &blocks, &size, &head, &head_bytes, &capacity,
                        &tail, &tail_bytes, &PyTuple_Type, &parts, &offsets[0], &offsets[1], &offsets[2], &offsets[3]))
    return nullptr;
  const Py_ssize_t count = PyTuple_Size(parts);
  if (count > capacity) return PyErr_Format(PyExc_ValueError, "%zd parts in a table of %zd entries", count, capacity);
  PyObject* const self = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return nullptr;
  Launch* const launch = as_launch(self);
  launch->copy = reinterpret_cast<decltype(launch->copy)>(static_cast<npy_uintp>(function));
  launch->kernel = kernel, launch->blocks = blocks, launch->size = size;
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
inline bool write_table(const Launch& launch, char* table, PyObject* value, Word offset, Word channel) {
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

// launch.run(sources, targets, threads = 1): copy between the addresses of all parts of the plan.
inline PyObject* run_launch(PyObject* self, Arguments given, Py_ssize_t count) {
  if (count != 2 && !has_count("run", count, 3)) return nullptr;
  const Launch& launch = *as_launch(self);
  const int threads = count == 2 ? 1 : static_cast<int>(PyLong_AsLong(given[2]));
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
    PyThreadState* const state = launch.size < kSmall ? nullptr : PyEval_SaveThread();
    code = launch.copy(launch.kernel, parameters, launch.blocks, threads);
    if (state) PyEval_RestoreThread(state);
  }
  if (parameters != few) PyMem_Free(parameters);
  if (code) PyErr_Format(PyExc_RuntimeError, "the host library has no kernel number %u; error %d", launch.kernel, code);
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace gpuslice
