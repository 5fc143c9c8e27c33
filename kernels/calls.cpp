// The module gpuslice._calls: what a known call does before it copies, for arrays that are exactly numpy.ndarray.
//
// gpuslice/engine/host_build.py compiles it against the limited C API, so that one binary serves every CPython
// from 3.11 on. gpuslice/engine/calls.py loads it. Where it is missing, the same is done in Python.

#include "calls_keys.h"
#include "calls_launch.h"
#include "calls_outputs.h"
#include "calls_python.h"

#ifndef GPUSLICE_DIGEST
#define GPUSLICE_DIGEST ""
#endif

namespace gpuslice {
namespace {

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
}  // namespace gpuslice

PyMODINIT_FUNC PyInit__calls() {
  if (PyArray_ImportNumPyAPI() < 0) return nullptr;
  PyObject* const module = PyModule_Create(&gpuslice::definition);
  if (!module) return nullptr;
  PyObject* const type = PyType_FromSpec(&gpuslice::launch_type);
  if (!type || PyModule_AddObjectRef(module, "Launch", type) < 0 ||
      PyModule_AddStringConstant(module, "digest", GPUSLICE_DIGEST) < 0) {
    Py_XDECREF(type);
    Py_DECREF(module);
    return nullptr;
  }
  Py_DECREF(type);
  return module;
}
